"""The durable store of evaluations: a SQLite file, or memory. `schema` describes its tables.

Each batch is one transaction in write-ahead mode, so that kill -9 loses at most the batch in
flight. A run holds a lock beside the file (``run.db.lock``), which the system frees when the
process ends, however it ends: a second run on the same file is refused, while readers may look at
any time. The file is made when a run is bound to it, and never removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from databanzhaf._version import __version__
from databanzhaf.errors import InvalidInput, LedgerFailed, LedgerMismatch, short
from databanzhaf.ledger import checksums, schema
from databanzhaf.ledger.coverage import Coverage
from databanzhaf.ledger.names import plain_names, read_index
from databanzhaf.ledger.rows import Portion, Rows
from databanzhaf.ledger.storage import Storage, existing
from databanzhaf.protocols import FloatArray, IntArray, Labels


class Ledger:
    """Every evaluation of one run.

    Parameters
    ----------
    path : str or Path, optional
        The file; without it the ledger lives in memory.
    keep : "utilities" or "outcomes", optional
        "outcomes" also keeps each model's predictions, so that another metric needs no training and
        intervals count the choice of the judging rows. By default what the file keeps already; a
        new one keeps outcomes if the game has small ones.
    """

    def __init__(self, path: str | Path | None = None, *, keep: str | None = None) -> None:
        if keep not in (None, "utilities", "outcomes"):
            raise InvalidInput(
                '`keep` must be "utilities" or "outcomes"',
                got=short(keep),
                remedy="Outcomes let you change the metric later.",
            )
        self._open(Storage(path), keep)

    @classmethod
    def looking(cls, path: str | Path) -> Self:
        """A ledger to read while a run may be writing to it. No file is made or changed, and what
        is in its write-ahead log stays there.
        """
        ledger = cls.__new__(cls)
        ledger._open(Storage(existing(path), looking=True), None)
        return ledger

    def _open(self, storage: Storage, keep: str | None) -> None:
        self._asked_keep, self._storage, self.path = keep, storage, storage.path
        try:
            self._check()
        except BaseException:
            self._storage.close()
            raise

    def _check(self) -> None:
        self._format = schema.check(self._storage)
        if not self.is_new and self._asked_keep not in (None, self.keep):
            raise LedgerMismatch(
                f"the ledger `{self.path}` keeps {self.keep}, but keep={self._asked_keep!r} was "
                "asked for",
                remedy="Leave `keep` out, or give another path.",
            )

    @property
    def _rows(self) -> Rows:
        run = checksums.run_key(self.facts) if self.has_checksums else None
        return Rows(self._storage, run, str(self._fact("version")))

    @property
    def has_checksums(self) -> bool:
        """Whether damage to its rows would be noticed; one of databanzhaf 0.1 has none."""
        return self._format != schema.WITHOUT_CHECKSUMS

    def check_checksums(self) -> None:
        """Refuse a ledger that has none."""
        if not self.has_checksums:
            raise LedgerFailed(
                f"`{self.path}` was written by databanzhaf {self.library_version}, which kept no "
                "checksums",
                remedy="Continue it by itself: nothing tells its whole rows from damaged ones.",
            )

    @property
    def facts(self) -> dict[str, str]:
        """What its run is, as JSON texts with their checksum; nothing before the first run."""
        with self._storage.translated():
            [(tables,)] = self._storage.connection.execute("SELECT count(*) FROM sqlite_master")
            query = "SELECT name, value FROM facts"
            return dict(self._storage.connection.execute(query)) if tables else {}

    def _fact(self, name: str) -> Any:
        with self._storage.translated():
            if not self._storage.connection.execute(
                "SELECT count(*) FROM sqlite_master"
            ).fetchone()[0]:
                return None
            row = self._storage.connection.execute(
                "SELECT value FROM facts WHERE name = ?", (name,)
            ).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except json.JSONDecodeError as error:
            raise self._storage.damaged(f"its fact {name!r} cannot be read") from error

    def _described(self, name: str) -> dict[str, Any]:
        found = self._fact(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._storage.damaged(f"its fact {name!r} cannot be read")
        return found

    @property
    def is_new(self) -> bool:
        """Whether it holds no evaluation yet. Then it belongs to no run, and the next may
        bind it.
        """
        if self._fact("design") is None:
            return True
        total = (
            "(SELECT max(count) FROM total WHERE name = 'evaluations')"
            if self.has_checksums
            else "0"
        )
        with self._storage.translated():  # one statement, since a run may be writing
            [(some, written)] = self._storage.connection.execute(
                f"SELECT EXISTS (SELECT 1 FROM evaluations), {total}"
            )
        if written and not some:
            raise self._storage.damaged(f"its {written} evaluations are gone")
        return not some

    @property
    def keep(self) -> str:
        stored = self._fact("keep")
        return str(self._asked_keep or stored or "utilities") if self.is_new else str(stored)

    @property
    def asked_keep(self) -> str | None:
        """What the caller asked it to keep; None if nothing."""
        return self._asked_keep

    @property
    def game(self) -> dict[str, str]:
        """The fingerprint of the game."""
        return self._described("game")

    @property
    def design(self) -> dict[str, Any]:
        """The description of the design."""
        return self._described("design")

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self._fact("seed"))

    @property
    def stochastic(self) -> bool:
        return bool(self._fact("stochastic"))

    @property
    def players(self) -> Labels | None:
        """The user's own names of the players, a pandas index as one."""
        names: Labels | dict[str, Any] | None = self._fact("players")
        return read_index(names) if isinstance(names, dict) else names

    @property
    def library_version(self) -> str:
        """The version that began the run."""
        return str(self._fact("version"))

    def bind(
        self,
        game: dict[str, str],
        design: dict[str, Any],
        *,
        seed: int,
        stochastic: bool,
        players: Labels | None = None,
        keep: str = "utilities",
    ) -> None:
        """Begin a run, or make sure that the run in this ledger is this one; `LedgerMismatch` shows
        both sides. `keep` is what a new ledger keeps if it was not asked for anything.
        """
        self.claim()
        asked = {"game": game, "design": design, "seed": seed}
        if self.is_new:
            names = None if players is None else plain_names(players)
            known = {
                **asked,
                "stochastic": stochastic,
                "players": names,
                "keep": self._asked_keep or keep,
                "version": __version__,
            }
            self.begin({name: json.dumps(value) for name, value in known.items()})
            return
        found = {"game": self.game, "design": self.design, "seed": self._fact("seed")}
        if found != asked:
            raise self._mismatch(found, asked)

    def claim(self) -> None:
        """Become the one that writes to the file."""
        if self._storage.claim():
            self._check()

    def begin(self, facts: dict[str, str]) -> None:
        """Make the tables of the run that `facts`, as JSON texts, describe."""
        with self._storage.transaction() as connection:
            schema.make(connection, facts)
        self._format = schema.FORMAT

    def _mismatch(self, found: dict[str, Any], asked: dict[str, Any]) -> LedgerMismatch:
        old = {**found["design"], **found["game"], "seed": found["seed"]}
        new = {**asked["design"], **asked["game"], "seed": asked["seed"]}
        different = schema.differences(old, new, "the ledger", "this call")
        remedy = "Give another path for this run, or repeat the call that wrote the ledger."
        if self.keep == "outcomes" and list(different) == ["metric"]:
            remedy = (
                "It keeps outcomes, so no training is needed: "
                "databanzhaf.estimate(ledger, notion, game=...)."
            )
        if list(different) == ["shares"]:
            different = {"shares": "sizes of coalitions: the ledger has those of other notions"}
            remedy = (
                "databanzhaf.estimate(ledger, notion) reads this notion from it; give another path "
                "for a run of its own."
            )
        where = "in memory" if self.path is None else f"`{self.path}`"
        return LedgerMismatch(
            f"the ledger {where} belongs to another run",
            remedy=remedy,
            differences=tuple(different.values()),
        )

    def append(
        self,
        indices: IntArray,
        repeats: IntArray,
        utilities: FloatArray,
        seconds: FloatArray,
        outcomes: list[bytes | None] | None = None,
    ) -> None:
        """Add evaluations in one transaction."""
        if not self._storage.in_place:
            raise LedgerFailed(
                f"`{self.path}` was deleted or replaced while a run was writing to it, and its "
                "evaluations are gone",
                remedy=f"Remove `{self.path}-wal` and `{self.path}-shm` if they are left, then "
                "restore "
                "a copy or run again.",
            )
        with self._storage.transaction():
            self._rows.append_evaluations(indices, repeats, utilities, seconds)
            if outcomes is not None:
                self._rows.append_outcomes(indices, repeats, outcomes)

    def utilities(self, score: Callable[[list[bytes]], FloatArray] | None = None) -> FloatArray:
        """All utilities, (largest index + 1, largest repeat + 1) with NaN for what is missing.

        With `score`, a function of a list of outcomes, they are computed again from those kept.
        """
        if self.is_new:
            return np.empty((0, 0))
        if score is not None and self.keep != "outcomes":
            raise LedgerMismatch(
                "another metric needs the outcomes, and this ledger keeps utilities only",
                remedy='Begin a run with ledger=Ledger(path, keep="outcomes").',
            )
        with self._storage.transaction("DEFERRED"):  # one snapshot, though a run may be writing
            indices, repeats, utilities, _ = self._rows.evaluations()
            out = np.full((indices.max() + 1, repeats.max() + 1), np.nan)
            if score is None:
                out[indices, repeats] = utilities
            else:
                self._rows.score_outcomes(score, out)
                if np.isnan(out[indices, repeats]).any():
                    raise self._storage.damaged("some of its evaluations have no outcome")
        return out

    def outcomes(self) -> list[tuple[IntArray, IntArray, list[bytes]]]:
        """The outcomes kept, in chunks: indices, repeats, outcomes."""
        if self.is_new or self.keep != "outcomes":
            return []
        with self._storage.transaction("DEFERRED") as connection:
            chunks = self._rows.outcomes()
            [(count,)] = connection.execute("SELECT count(*) FROM evaluations")
        if sum(len(outcomes) for _, _, outcomes in chunks) != count:
            raise self._storage.damaged("some of its evaluations have no outcome")
        return chunks

    def portions(self) -> Iterator[Portion]:
        """Every evaluation in the order of their places, as of one moment though a run may be
        writing; each is checked before it is given.
        """
        if not self.is_new:
            self.check_checksums()
            with self._storage.transaction("DEFERRED"):
                yield from self._rows.portions(self.keep == "outcomes")

    def evaluations(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """All evaluations: index, repeat, utility, seconds."""
        with self._storage.transaction("DEFERRED"):
            return self._rows.evaluations()

    def held(self, indices: IntArray, repeats: IntArray) -> list[tuple[float, bytes | None] | None]:
        """Utility and outcome of each of these evaluations; None for one that is not there."""
        rows, outcomes = self._rows, self.keep == "outcomes"
        places = zip(indices.tolist(), repeats.tolist(), strict=True)
        with self._storage.transaction("DEFERRED"):
            return [rows.held(*place, outcomes) for place in places]

    def coverage(self) -> Coverage:
        """Which indices it has evaluations of."""
        if self.is_new:
            return Coverage.none()
        with self._storage.translated():
            return Coverage.read(self._storage.connection)

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file, the first few."""
        with self._storage.translated():
            found = self._storage.connection.execute("PRAGMA integrity_check(5)").fetchall()
        return [] if found == [("ok",)] else [" ".join(str(text).split()) for (text,) in found]

    def count(self) -> int:
        """Evaluations so far, as they were counted when they were written."""
        if self.is_new:
            return 0
        if self._format == schema.FORMAT:
            return self._rows.total("evaluations")[0]
        with self._storage.translated():
            [(count,)] = self._storage.connection.execute("SELECT count(*) FROM evaluations")
        return int(count)

    def seconds(self) -> float:
        """Training time recorded so far."""
        if self.is_new:
            return 0.0
        with self._storage.transaction("DEFERRED"):
            return float(self._rows.evaluations()[3].sum())

    def close(self) -> None:
        """Close the file; what was appended is on disk already."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else repr(str(self.path))
        return (
            f"Ledger({where}, keeps "
            f"{self.keep}{'' if self.is_new else f', {self.count():,} evaluations'})"
        )
