"""Is a ledger whole? What is in it, and what is damaged?"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databanzhaf.errors import LedgerFailed
from databanzhaf.ledger import schema
from databanzhaf.ledger.coverage import Coverage
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.salvage import facts_and_totals, fill
from databanzhaf.ledger.storage import existing, log_of


@dataclass(frozen=True)
class Checked:
    """What `check` found.

    Attributes
    ----------
    file : Path
    problems : tuple of str
        What is wrong; empty if the ledger is whole.
    run : dict or None
        What the run is: game, design, seed, stochastic, keep, players and the library version that
        began it. None where the ledger does not say so: nothing ran yet, or it is damaged.
    coverage : Coverage
        What it holds, and which indices are missing; of a damaged ledger, what is whole.
    outcomes : int
        Kept outcomes.
    seconds : float
        Training time of its evaluations.
    written : int or None
        Evaluations that were written, None where a damaged ledger no longer says so.
    size : int
        Bytes of the file and of its write-ahead log.
    """

    file: Path
    problems: tuple[str, ...]
    run: dict[str, Any] | None
    coverage: Coverage
    outcomes: int
    seconds: float
    written: int | None
    size: int

    @property
    def whole(self) -> bool:
        return not self.problems

    @property
    def lost(self) -> int | None:
        """Evaluations that were written and are not whole."""
        return None if self.written is None else self.written - self.coverage.evaluations


def check(path: str | Path) -> Checked:
    """Read all of a ledger: every row, every checksum, the totals, the description of its run, and
    SQLite's own check of the file. Nothing is changed, also where the ledger is damaged. A run may
    be writing to it: what it has committed is read.
    """
    file = existing(path)
    log = log_of(file)
    size = file.stat().st_size + (log.stat().st_size if log.is_file() else 0)
    try:
        with Ledger.looking(file) as ledger:
            return _read(ledger, file, size)
    except LedgerFailed as error:
        return _salvaged(file, size, error)


def _read(ledger: Ledger, file: Path, size: int) -> Checked:
    """What a ledger holds that can be read to its end."""
    if ledger.is_new:
        return Checked(file, (), None, ledger.coverage(), 0, 0.0, 0, size)
    if ledger.has_checksums:
        seconds = sum(float(portion.seconds.sum()) for portion in ledger.portions())
    else:
        seconds = ledger.seconds()  # which says that damage would not be noticed
    coverage = ledger.coverage()
    return Checked(
        file,
        tuple(f"SQLite: {fault}" for fault in ledger.faults()),
        schema.plain(ledger.facts),
        coverage,
        coverage.evaluations if ledger.keep == "outcomes" else 0,
        seconds,
        coverage.evaluations,
        size,
    )


def _salvaged(file: Path, size: int, error: LedgerFailed) -> Checked:
    """What is whole in a ledger that cannot be read to its end."""
    mark = f"`{file}` is damaged: "
    facts, totals = facts_and_totals(file)
    if not error.rule.startswith(mark) and (facts is None or "not a ledger" not in error.rule):
        raise error  # no ledger, or one of a later version, or one that may not be read
    problems = ["its header is damaged, and SQLite does not take it for a ledger"]
    if error.rule.startswith(mark):
        problems = [error.rule.removeprefix(mark)]
    if facts is None:
        problems.append("nothing says what its run is")
        return Checked(file, tuple(problems), None, Coverage.none(), 0, 0.0, None, size)
    with closing(sqlite3.connect("", isolation_level=None)) as connection:  # in memory, or on disk
        connection.execute("BEGIN")
        fill(connection, file, facts, packed=False)
        coverage = Coverage.read(connection)
        [(outcomes,)] = connection.execute("SELECT count(*) FROM outcomes")
        [(seconds,)] = connection.execute("SELECT total(seconds) FROM evaluations")
    count = totals.get("evaluations")
    return Checked(
        file,
        tuple(problems),
        schema.plain(facts),
        coverage,
        outcomes,
        seconds,
        None if count is None or count < coverage.evaluations else count,
        size,
    )
