"""One SQLite file: opened, locked by one writer, its errors in this library's words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from databanzhaf.errors import InvalidInput, LedgerBusy, LedgerFailed, check_path, short

if TYPE_CHECKING:
    from filelock import BaseFileLock


def existing(path: str | Path) -> Path:
    """The path of a ledger that is there."""
    if not isinstance(path, (str, Path)):
        raise InvalidInput(
            "a ledger must be given by its path", got=short(path), remedy="Pass 'run.db'."
        )
    check_path(path)
    try:
        there = Path(path).is_file()
    except OSError:  # a name that is too long
        there = False
    if not there:
        raise InvalidInput(
            f"there is no ledger at `{path}`"[:300],
            remedy="Give the path of a file that a run wrote.",
        )
    return Path(path)


def log_of(file: Path) -> Path:
    """The write-ahead log of a file, which stands beside the file itself and not beside a link."""
    return Path(f"{file.resolve()}-wal")


def locked(file: Path, name: str) -> BaseFileLock:
    """The lock of a ledger's one writer, held until it is released."""
    from filelock import FileLock, Timeout

    lock = FileLock(f"{file.resolve()}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise LedgerBusy(
            f"another run, in this or another process, holds the ledger `{name}`",
            remedy="Wait until it ends (or close its Ledger), or give another path.",
        ) from error
    except OSError as error:
        raise LedgerFailed(
            f"`{name}.lock` cannot be written ({error})",
            remedy="Check the folder's permissions.",
        ) from error
    return lock


class Storage:
    """A file, or memory. A file that is not there yet stands in memory until `claim` makes it, so
    that looking never makes one. One that is only looked at (`looking`) is never claimed, and no
    file beside it is made or changed: SQLite otherwise writes the write-ahead log to the file and
    deletes it when the last one who has it open closes it, and what a damaged log still holds would
    be lost.
    """

    def __init__(self, path: str | Path | None, *, looking: bool = False) -> None:
        if path is not None and not isinstance(path, (str, Path)):
            raise InvalidInput(
                "`ledger` must be a path or a Ledger",
                got=short(path),
                remedy="Pass a file name such as 'run.db'.",
            )
        if isinstance(path, str) and path.startswith("file:"):
            raise InvalidInput(
                "`ledger` must be a plain path",
                got=f"the address {path!r}",
                remedy="Leave `ledger` out to keep it in memory.",
            )
        check_path(path)
        self.path = None if path in (None, ":memory:") else Path(path)
        # The file stays the same when the process changes its folder.
        self._file = None if self.path is None else self.path.absolute()
        self._lock: BaseFileLock | None = None
        self._looking = looking
        if self._file is not None:
            self._check_file(self._file)
        self._connect()

    def _check_file(self, file: Path) -> None:
        try:
            there, folder = file.exists(), file.parent.is_dir()
            odd = there and not file.is_file()
            file.resolve()
        except (OSError, RuntimeError) as error:  # a name that is too long, a link to itself
            raise LedgerFailed(
                f"`{str(self.path)[:200]}` cannot be used ({error})"[:300],
                remedy="Give another path.",
            ) from error
        if odd:
            raise LedgerFailed(f"`{self.path}` is no ordinary file", remedy="Give another path.")
        if not there and not folder:
            raise LedgerFailed(
                f"`{self.path}` cannot be made: there is no folder `{file.parent.name}`",
                remedy="Make it, or give another path.",
            )

    def _connect(self, *, make: bool = False) -> None:
        """Open the file as it is now."""
        with self.translated():
            self.connection = self._opened(make)
        self._identity = self._place()

    def _opened(self, make: bool) -> sqlite3.Connection:
        if self._file is None or not (make or self._file.exists()):
            return sqlite3.connect(":memory:", isolation_level=None)
        writable = os.access(self._file.parent, os.W_OK)
        if make or (writable and not self._looking):
            # An absolute path is a path, whatever its name: SQLite may take one that begins with
            # "file:" for an address.
            return sqlite3.connect(self._file, timeout=10, isolation_level=None)
        # Write-ahead mode needs a writable folder even to read, and makes a log there. Without a
        # log the file may be read as it is; with one, only if SQLite can.
        log = log_of(self._file)
        as_it_is = not log.exists() or not (writable or log.stat().st_size)
        address = f"{self._file.as_uri()}?{'immutable=1' if as_it_is else 'mode=ro'}"
        connection = sqlite3.connect(address, uri=True, timeout=10, isolation_level=None)
        if writable:
            return connection
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError as error:
            connection.close()
            raise LedgerFailed(
                f"`{self.path}` has evaluations in `{log.name}` that cannot be read in a folder "
                f"without write permission ({error})",
                remedy="Copy both files to a folder of your own, or make this one writable.",
            ) from error
        return connection

    def _place(self) -> tuple[int, int] | None:
        """Which file the path names."""
        if self._file is None:
            return None
        try:
            found = self._file.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    @property
    def in_place(self) -> bool:
        """Whether the path still names the file that is open."""
        return self._place() == self._identity

    @contextmanager
    def translated(self) -> Iterator[None]:
        """SQLite's errors in this library's words."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            raise LedgerFailed(
                f"{self.path or 'this ledger'} was closed, or belongs to another thread ({error})",
                remedy="Open it again.",
            ) from error
        except sqlite3.IntegrityError as error:
            raise LedgerBusy(
                f"another run wrote the same evaluations to `{self.path}` ({error})",
                remedy="Wait until it ends, then run again.",
            ) from error
        except UnicodeDecodeError as error:  # of a damaged text, in SQLite's own message
            raise self.damaged("a text in it cannot be read") from error
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
            if name.startswith("SQLITE_NOTADB"):
                raise LedgerFailed(
                    f"`{self.path}` is not a ledger ({error})", remedy="Give another path."
                ) from error
            if name.startswith(
                ("SQLITE_CORRUPT", "SQLITE_ERROR")
            ):  # broken pages; tables, columns or texts that are not there
                raise self.damaged(str(error)) from error
            raise LedgerFailed(
                f"`{self.path}` cannot be used ({error})",
                remedy="Check the folder, its permissions and the free disk space.",
            ) from error

    def claim(self) -> bool:
        """Become the one run that writes to the file; whether it had to be opened again."""
        if self._file is None or self._lock is not None:
            return False
        if self._looking:
            raise LedgerFailed(
                f"the ledger `{self.path}` was opened to be looked at",
                remedy="Open it by Ledger(path).",
            )
        self._lock = locked(self._file, str(self.path))
        again = (
            self._identity is None or not self.in_place
        )  # not made yet, or another run made it since
        if again:
            self.connection.close()
            self._connect(make=True)
        with self.translated():
            self.connection.execute("PRAGMA journal_mode = WAL")
        return again

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self.translated():
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def damaged(self, how: str) -> LedgerFailed:
        return LedgerFailed(
            f"`{self.path}` is damaged: {how}",
            remedy="Nothing was computed from it: restore a copy, or write what is whole to a new "
            "file with `databanzhaf ledger repair`.",
        )

    def close(self) -> None:
        self.connection.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
