"""Where a run is, or will be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from databanzhaf.errors import InvalidInput, check_path

_NAME = "run.db"
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True)
class Place:
    """A ledger, and the folder whose run.json tells of it; None where no command wrote one."""

    ledger: Path
    folder: Path | None

    @property
    def name(self) -> str:
        """As a title."""
        shown = self.ledger if self.folder is None else self.folder
        return shown.name or shown.resolve().name

    @property
    def shown(self) -> Path:
        """What a sentence names."""
        return self.folder or self.ledger


def find(path: Path) -> Place:
    """The place of a run, by its folder or its ledger. A path that is not there yet is that of a
    run that has not begun.
    """
    check_path(path)
    try:
        there, folder = path.exists(), path.is_dir()
        if folder and not _may_be_of_a_run(path):
            raise _no_run(path, "a folder without run.db")
        if folder and _is_closed(path):
            raise InvalidInput(
                f"there is nothing to watch in `{path}`: its values are a closed form, and no "
                "model was trained",
                remedy="Open its report.html.",
            )
        if there and not folder and not _is_ledger(path):
            raise _no_run(path, "a file that is not a ledger")
    except OSError as error:
        raise InvalidInput(
            f"`{path}` cannot be read ({error.strerror})", remedy="Check its permissions."
        ) from error
    if folder or not (there or path.suffix == ".db"):
        return Place(path / _NAME, path)
    return Place(path, path.parent if path.name == _NAME else None)


def _may_be_of_a_run(folder: Path) -> bool:
    """A command makes an empty folder, then the lock of the ledger, then the ledger."""
    names = {each.name for each in folder.iterdir()}
    return not names or bool(names & {_NAME, f"{_NAME}.lock", "run.json"})


def _is_closed(folder: Path) -> bool:
    """Whether run.json tells of values without a ledger."""
    try:
        record = json.loads((folder / "run.json").read_text())
    except (OSError, ValueError):
        return False
    closed = isinstance(record, dict) and record.get("estimator") == "closed_form"
    return closed and not (folder / _NAME).exists()


def _is_ledger(file: Path) -> bool:
    with file.open("rb") as opened:
        first = opened.read(len(_MAGIC))
    return first in (_MAGIC, b"")  # a ledger that is being made is empty


def _no_run(path: Path, got: str) -> InvalidInput:
    return InvalidInput(
        f"there is no run in `{path}`",
        got=got,
        remedy="Give the folder of a `databanzhaf value` or `databanzhaf mislabels` run, such as "
        "runs/suppliers, or its run.db.",
    )
