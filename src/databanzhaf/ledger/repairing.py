"""A damaged ledger → a new one with everything in it that is whole."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from databanzhaf.errors import InvalidInput, LedgerFailed, check_path
from databanzhaf.files import written
from databanzhaf.ledger import schema
from databanzhaf.ledger.coverage import Coverage
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.salvage import facts_and_totals, fill
from databanzhaf.ledger.storage import Storage, existing, locked


@dataclass(frozen=True)
class Repaired:
    """What `repair` wrote.

    Attributes
    ----------
    file, out : Path
        The damaged ledger, and the new one.
    evaluations : int
        How many are in the new one.
    written : int or None
        How many had been written to the damaged one, None where it no longer says so.
    coverage : Coverage
        What the new ledger holds, and which indices are missing.
    """

    file: Path
    out: Path
    evaluations: int
    written: int | None
    coverage: Coverage

    @property
    def lost(self) -> int | None:
        """Evaluations that are trained again when the run is repeated."""
        return None if self.written is None else self.written - self.evaluations


def repair(path: str | Path, out: str | Path, like: str | Path | None = None) -> Repaired:
    """Write a new ledger with every evaluation of a damaged one that is whole.

    The file's pages are read one by one, those of its write-ahead log included, and each row that
    matches its checksum is kept. The damaged file is not changed. Where outcomes are kept, an
    evaluation without its outcome is left out: both are made again when the run is repeated.

    Parameters
    ----------
    path : path
        The damaged ledger. No run may be writing to it.
    out : path
        The new one; it must not exist.
    like : path, optional
        Another ledger of the same run, which says what the run is where the damaged one no longer
        does.
    """
    source, target = existing(path), _free(out)
    found, totals = facts_and_totals(source)
    facts = _facts(source, found, like)
    with ExitStack() as stack:
        if os.access(source.absolute().parent, os.W_OK):  # elsewhere no run can be writing
            stack.callback(locked(source.absolute(), str(source)).release)
        temporary = stack.enter_context(written(target))
        coverage = _write(source, temporary, facts)
        if not coverage.evaluations:
            raise LedgerFailed(
                f"no evaluation in `{source}` is whole",
                remedy="Nothing was written: begin the run again.",
            )
    count = totals.get("evaluations")
    if count is not None and count < coverage.evaluations:
        count = None  # the count itself is damaged
    return Repaired(source, target, coverage.evaluations, count, coverage)


def _free(out: str | Path) -> Path:
    """The path of a file that is not there. SQLite would take a log that is left beside it for its
    own.
    """
    check_path(out)
    target = Path(out)
    for file in (target, *(Path(f"{target}-{end}") for end in ("wal", "shm", "journal"))):
        if os.path.lexists(file):
            raise InvalidInput(f"`{file}` already exists", remedy="Give another path.")
    return target


def _facts(source: Path, facts: dict[str, str] | None, like: str | Path | None) -> dict[str, str]:
    """What the run is: as the damaged ledger says it, or another of the same run."""
    if like is None:
        if facts is None:
            raise LedgerFailed(
                f"nothing in `{source}` can be repaired: the description of its run is damaged or "
                "has no checksum (databanzhaf 0.1), or it is no ledger",
                remedy='Give another ledger of the same run, such as an old copy: like="old.db".',
            )
        return facts
    with Ledger.looking(like) as other:
        known = other.facts if other.has_checksums and not other.is_new else None
    if known is None:
        raise InvalidInput(
            "`like` must be a ledger with evaluations and checksums",
            got=f"`{like}`",
            remedy="Give another one of the same run.",
        )
    if facts is not None:
        schema.check_same_run(facts, f"`{source}`", known, f"`{like}`")
    return facts or known


def _write(source: Path, target: Path, facts: dict[str, str]) -> Coverage:
    """Write the rows that are whole, in one transaction; which indices they have."""
    target.touch()
    storage = Storage(target)
    try:
        with storage.transaction() as connection:
            fill(connection, source, facts)
            return Coverage.read(connection)
    finally:
        storage.close()
