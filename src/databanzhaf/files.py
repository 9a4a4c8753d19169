"""Files that are whole or not there: written under another name, then renamed."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from databanzhaf.errors import LedgerFailed


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to, which takes its place at the end. Several processes may
    write the same file: each has a name of its own.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex[:12]}-{path.name}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """`replacing`, with the system's errors in this library's words."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except OSError as error:
        raise LedgerFailed(
            f"`{path}` cannot be written ({error.strerror})",
            remedy="Check the folder and the free disk space.",
        ) from error


def write_text(path: Path, text: str) -> None:
    """All or nothing, on disk, with the permissions of any new file of the user's."""
    with written(path) as temporary, temporary.open("x", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
