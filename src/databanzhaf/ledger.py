"""The durable store of evaluations: a SQLite file, or memory.

Tables
------
facts(name, value)
    What the run is: game, design, library version, ... as JSON.
evaluations(idx, rep, utility, seconds)
    One row per training.
outcomes(idx, rep, outcome)
    The packed predictions, with ``keep="outcomes"``.

Each batch is one transaction in write-ahead mode, so that kill -9 loses at most the batch in flight. A run
holds a lock beside the file (``run.db.lock``), which the system frees when the process ends, however it ends: a second
run on the same file is refused, while readers may look at any time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from databanzhaf._version import __version__
from databanzhaf.errors import InvalidInput, LedgerBusy, LedgerFailed, LedgerMismatch
from databanzhaf.types import FloatArray, IntArray, Labels

if TYPE_CHECKING:
    from filelock import BaseFileLock

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluations (
    idx INTEGER, rep INTEGER, utility REAL NOT NULL, seconds REAL NOT NULL, PRIMARY KEY (idx, rep)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (idx INTEGER, rep INTEGER, outcome BLOB NOT NULL, PRIMARY KEY (idx, rep));
"""
_APPLICATION_ID = 0x44425A46  # "DBZF"
_FORMAT = 1


class Ledger:
    """Every evaluation of one run.

    Parameters
    ----------
    path : str or Path, optional
        The file; without it the ledger lives in memory.
    keep : "utilities" or "outcomes", optional
        "outcomes" also keeps each model's predictions, so that another metric needs no training. By default
        what the file keeps already; "utilities" for a new one.
    """

    def __init__(self, path: str | Path | None = None, *, keep: str | None = None) -> None:
        if keep not in (None, "utilities", "outcomes"):
            raise InvalidInput(f'`keep` must be "utilities" or "outcomes"; got {keep!r}. Outcomes let you change the metric later.')
        if path is not None and not isinstance(path, (str, Path)):
            raise InvalidInput(f"`ledger` must be a path or a Ledger; got {path!r}. Pass a file name such as 'run.db'.")
        self.path = None if path in (None, ":memory:") else Path(path)
        self._asked_keep = keep
        self._made_here = self.path is not None and not self.path.exists()
        self._lock: BaseFileLock | None = None
        with self._translated():
            self._connection = self._connect()
        try:
            self._open()
        except Exception:
            self._connection.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        if self.path is None:
            return sqlite3.connect(":memory:", isolation_level=None)
        if self.path.exists() and not os.access(self.path.parent, os.W_OK):
            # Write-ahead mode needs a writable folder even to read; a file that nobody can write to may be read as it is.
            return sqlite3.connect(f"{self.path.absolute().as_uri()}?immutable=1", uri=True, isolation_level=None)
        return sqlite3.connect(self.path, timeout=10, isolation_level=None)

    def _open(self) -> None:
        with self._transaction("DEFERRED") as connection:
            [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
            [(identity,)] = connection.execute("PRAGMA application_id")
            [(version,)] = connection.execute("PRAGMA user_version")
        if not tables:
            return
        if identity != _APPLICATION_ID:
            raise LedgerFailed(f"`{self.path}` is a SQLite file, but not a ledger. Give another path.")
        if version != _FORMAT:
            raise LedgerFailed(f"`{self.path}` has ledger format {version}; this version reads {_FORMAT}. Upgrade databanzhaf.")
        if not self.is_new and self._asked_keep not in (None, self.keep):
            raise LedgerMismatch(
                f"the ledger `{self.path}` keeps {self.keep}, but keep={self._asked_keep!r} was asked for. "
                "Leave `keep` out, or give another path."
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """SQLite's errors in this library's words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise LedgerFailed(
                f"`{self.path}` cannot be used ({error}). Check the folder, its permissions and the free disk space."
            ) from error
        except sqlite3.ProgrammingError as error:
            raise LedgerFailed(f"{self.path or 'this ledger'} was closed, or belongs to another thread ({error}). Open it anew.") from error
        except sqlite3.IntegrityError as error:
            raise LedgerBusy(
                f"another run wrote the same evaluations to `{self.path}` ({error}). Wait until it ends, then run again."
            ) from error
        except sqlite3.DatabaseError as error:
            raise LedgerFailed(f"`{self.path}` is not a ledger ({error}). Give another path.") from error

    def _claim(self) -> None:
        """Become the one run that writes to the file."""
        if self.path is None or self._lock is not None:
            return
        from filelock import FileLock, Timeout

        lock = FileLock(f"{self.path.resolve()}.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout as error:
            raise LedgerBusy(
                f"another run, in this or another process, holds the ledger `{self.path}`. "
                "Wait until it ends (or close its Ledger), or give another path."
            ) from error
        except OSError as error:
            raise LedgerFailed(f"`{self.path}.lock` cannot be written ({error}). Check the folder's permissions.") from error
        self._lock = lock
        with self._translated():
            if not self.path.exists():  # whoever made it left it empty and took it away
                self._connection.close()
                self._connection = self._connect()
            self._connection.execute("PRAGMA journal_mode = WAL")

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._translated():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _fact(self, name: str) -> Any:
        with self._translated():
            if not self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return None
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except json.JSONDecodeError as error:
            raise self._damaged(f"its fact {name!r} cannot be read") from error

    def _described(self, name: str) -> dict[str, Any]:
        found = self._fact(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._damaged(f"its fact {name!r} cannot be read")
        return found

    def _damaged(self, how: str) -> LedgerFailed:
        return LedgerFailed(f"`{self.path}` is damaged: {how}. Restore a copy, or begin a new run.")

    @property
    def is_new(self) -> bool:
        """Whether it holds no evaluation yet. Then it belongs to no run, and the next may bind it."""
        if self._fact("design") is None:
            return True
        with self._translated():
            return self._connection.execute("SELECT 1 FROM evaluations LIMIT 1").fetchone() is None

    @property
    def keep(self) -> str:
        stored = self._fact("keep")
        return str(self._asked_keep or stored or "utilities") if self.is_new else str(stored)

    @property
    def game(self) -> dict[str, str]:
        """The fingerprint of the game."""
        return self._described("game")

    @property
    def design(self) -> dict[str, Any]:
        """The description of the design."""
        return self._described("design")

    @property
    def stochastic(self) -> bool:
        return bool(self._fact("stochastic"))

    @property
    def players(self) -> Labels | None:
        """The user's own names of the players, a pandas index as one."""
        names: Labels | dict[str, Any] | None = self._fact("players")
        return _read_index(names) if isinstance(names, dict) else names

    @property
    def library_version(self) -> str:
        """The version that began the run."""
        return str(self._fact("version"))

    def bind(self, game: dict[str, str], design: dict[str, Any], *, seed: int, stochastic: bool, players: Labels | None = None) -> None:
        """Begin a run, or make sure that the run in this ledger is this one; `LedgerMismatch` shows both sides."""
        self._claim()
        asked = {"game": game, "design": json.loads(json.dumps(design)), "seed": seed}
        if self.is_new:
            names = None if players is None else _plain_names(players)
            facts = {**asked, "stochastic": stochastic, "players": names, "keep": self.keep, "version": __version__}
            with self._transaction() as connection:
                for statement in _SCHEMA.strip().split(";\n"):
                    connection.execute(statement)
                connection.execute("DELETE FROM facts")
                connection.executemany("INSERT INTO facts VALUES (?, ?)", [(k, json.dumps(v)) for k, v in facts.items()])
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            return
        found = {"game": self.game, "design": self.design, "seed": self._fact("seed")}
        if found != asked:
            raise LedgerMismatch(self._difference(found, asked))

    def _difference(self, found: dict[str, Any], asked: dict[str, Any]) -> str:
        old = {**found["design"], **found["game"], "seed": found["seed"]}
        new = {**asked["design"], **asked["game"], "seed": asked["seed"]}
        lines = [
            f"  {name}: the ledger has {_short(old.get(name))}, this call has {_short(new.get(name))}"
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name)
        ]
        remedy = "Give another path for this run, or repeat the call that wrote the ledger."
        if self.keep == "outcomes" and len(lines) == 1 and lines[0].startswith("  metric:"):
            remedy = "It keeps outcomes, so no training is needed: databanzhaf.estimate(ledger, notion, game=...)."
        where = "in memory" if self.path is None else f"`{self.path}`"
        return "\n".join([f"the ledger {where} belongs to another run:", *lines, remedy])

    def append(
        self,
        indices: IntArray,
        repeats: IntArray,
        utilities: FloatArray,
        seconds: FloatArray,
        outcomes: list[bytes | None] | None = None,
    ) -> None:
        """Add evaluations in one transaction."""
        where = list(zip(indices.tolist(), repeats.tolist(), strict=True))
        rows = [(*key, *numbers) for key, numbers in zip(where, zip(utilities.tolist(), seconds.tolist(), strict=True), strict=True)]
        with self._transaction() as connection:
            connection.executemany("INSERT INTO evaluations VALUES (?, ?, ?, ?)", rows)
            if outcomes is not None:
                connection.executemany(
                    "INSERT INTO outcomes VALUES (?, ?, ?)", [(*key, packed) for key, packed in zip(where, outcomes, strict=True)]
                )

    def utilities(self, score: Callable[[bytes], float] | None = None) -> FloatArray:
        """All utilities, (largest index + 1, largest repeat + 1) with NaN for what is missing.

        With `score` they are computed anew from the outcomes kept.
        """
        if self.is_new:
            return np.empty((0, 0))
        if score is not None and self.keep != "outcomes":
            raise LedgerMismatch(
                "another metric needs the outcomes, and this ledger keeps utilities only. "
                'Begin a run with ledger=Ledger(path, keep="outcomes").'
            )
        table = "evaluations" if score is None else "outcomes"
        column = "utility" if score is None else "outcome"
        with self._transaction("DEFERRED"):  # one snapshot, though a run may be writing
            [(indices, repeats)] = self._connection.execute("SELECT max(idx) + 1, max(rep) + 1 FROM evaluations")
            rows = self._connection.execute(f"SELECT idx, rep, {column} FROM {table}")
            out = np.full((indices or 0, repeats or 0), np.nan)
            while chunk := rows.fetchmany(65536):
                idx, rep, values = zip(*chunk, strict=True)
                numbers = values if score is None else [score(packed) for packed in values]
                try:
                    if min(idx) < 0 or min(rep) < 0:
                        raise IndexError("a negative place")
                    out[np.array(idx), np.array(rep)] = numbers
                except (IndexError, TypeError, ValueError) as error:
                    raise self._damaged(f"its evaluations cannot be read ({error})") from error
        return out

    def count(self) -> int:
        """Evaluations so far."""
        if self.is_new:
            return 0
        with self._translated():
            [(count,)] = self._connection.execute("SELECT count(*) FROM evaluations")
        return int(count)

    def seconds(self) -> float:
        """Training time recorded so far."""
        if self.is_new:
            return 0.0
        with self._translated():
            [(total,)] = self._connection.execute("SELECT total(seconds) FROM evaluations")
        return float(total)

    def close(self) -> None:
        """Close the file; what was appended is on disk already. A file that was made here and stayed empty goes."""
        self._connection.close()
        if self._made_here and self.path is not None and self.path.exists() and not self.path.stat().st_size:
            self.path.unlink()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else repr(str(self.path))
        return f"Ledger({where}, keeps {self.keep}{'' if self.is_new else f', {self.count():,} evaluations'})"


def _plain_names(players: Any) -> list[Any] | dict[str, Any]:
    """Names for JSON: a pandas index (dates, several levels, its own names) as a table with its types, else a list."""
    if hasattr(players, "to_frame"):
        # An index of a kind that JSON has no place for (periods, intervals, bytes, ...) is kept by its texts.
        with suppress(TypeError, ValueError, NotImplementedError, OverflowError):
            stored = _stored_index(players)
            if _read_index(stored).equals(players):
                return stored
        return [str(name) for name in players]
    plain = [name.item() if isinstance(name, np.generic) else name for name in players]
    return [name if isinstance(name, (bool, int, float, str)) else str(name) for name in plain]


def _stored_index(players: Any) -> dict[str, Any]:
    levels = [f"level {level}" for level in range(players.nlevels)]
    frame = players.to_frame(index=False, name=levels if len(levels) > 1 else levels[0])
    table: dict[str, Any] = json.loads(frame.to_json(orient="table", index=False, date_unit="ns"))
    return {"names": [None if name is None else str(name) for name in players.names], "table": table}


def _read_index(stored: dict[str, Any]) -> Any:
    import io

    import pandas as pd

    frame = pd.read_json(io.StringIO(json.dumps(stored["table"])), orient="table", precise_float=True)
    index: Any = pd.Index(frame.iloc[:, 0]) if frame.shape[1] == 1 else pd.MultiIndex.from_frame(frame)
    return index.set_names(stored["names"])


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value) if not isinstance(value, str) else value
    return text if len(text) <= 120 else f"{text[:117]}..."
