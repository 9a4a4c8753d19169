"""Which rows a model is trained on: halves, and later ones that doubtful rows join less often.

Evaluations come in stages of fifty. In the first two every row joins by a fair coin. Before each
further stage the rows are judged by all evaluations so far, and a row that is wrong with
probability p joins with probability (1 - p) / 2: models trained on fewer wrong labels judge better.
So a coalition is a function of (seed, index) and of the evaluations before its stage; a larger
budget adds stages and changes none.

Rows with the same cells join together: a copy with the same wrong label must not speak for it.
Checked rows join 85 of 100 models. That finds as many wrong labels as if they joined all, and the
models that they do not join are judged by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.labels.committee import STAGE, Committee
from databanzhaf.labels.tally import Tally
from databanzhaf.ledger import Ledger
from databanzhaf.protocols import BoolArray, Evaluator, FloatArray, IntArray, KeyArray

PLAIN_STAGES = 2
CHECKED_JOIN = 0.85
# Of a class the mean odds stay above this, so that no class is left out as a whole.
_LEAST_ODDS = 0.35
# The list has settled when less than this part of it changes from one stage to the next.
SETTLED = 0.05


@dataclass(frozen=True, eq=False)
class Rows:
    """What decides who joins: the unit of each row (copies share one), its class for the least
    odds, which rows are checked (they come last), and a digest of their labels before a review,
    which have a part in the odds.
    """

    units: IntArray
    parts: IntArray
    n_checked: int
    before: str = ""

    @property
    def n(self) -> int:
        return len(self.units) - self.n_checked

    def odds(self, wrong: FloatArray | None) -> FloatArray:
        """The probability that each row joins, given how likely each label is wrong."""
        odds = np.full(len(self.units), 0.5)
        if wrong is not None:
            odds[: self.n] = 0.5 * (1 - wrong)
            for part in np.unique(self.parts[: self.n]):
                mine = np.flatnonzero(self.parts[: self.n] == part)
                mean = odds[mine].mean()
                if mean < _LEAST_ODDS:
                    share = (0.5 - _LEAST_ODDS) / (0.5 - mean)
                    odds[mine] = 0.5 - share * (0.5 - odds[mine])
        odds[self.n :] = CHECKED_JOIN
        # Copies have one draw, and so must have one probability.
        return np.asarray((np.bincount(self.units, odds) / np.bincount(self.units))[self.units])

    def coalitions(self, seed: int, indices: IntArray, odds: FloatArray) -> BoolArray:
        draws = chance.uniform(chance.keys(seed, chance.DESIGN, indices), int(self.units.max()) + 1)
        return np.asarray(draws[:, self.units] < odds)


Judging = Callable[[Tally], FloatArray]
Watching = Callable[[int, int], None]


def run(
    committee: Committee,
    rows: Rows,
    *,
    seed: int,
    budget: int,
    wrong: Judging,
    ledger: Ledger | None,
    evaluator: Evaluator,
    watch: Watching,
) -> Tally:
    """Evaluate stage after stage until the list settles or the budget is spent. `wrong` says how
    likely each label is wrong, from a tally.
    """
    tally = Tally(committee.shape)
    kept = _bound(committee, rows, seed, ledger)
    judged: FloatArray | None = None
    with evaluator.session(committee, True) as session:
        for start in range(0, budget, STAGE):
            if start >= PLAIN_STAGES * STAGE:
                before, judged = judged, wrong(tally)
                if before is not None and _settled(before, judged):
                    break
            indices = np.arange(start, min(start + STAGE, budget))
            odds = rows.odds(judged)
            outcomes = dict(kept.pop(start // STAGE, {}))
            missing = np.array(
                [index for index in indices if index not in outcomes], dtype=np.int64
            )
            halves = Halves(rows, seed, odds)
            watch(start + len(outcomes), budget)
            for done in session(halves, _calls(missing, committee.call_size)):
                for piece, batch in done:
                    _append(ledger, piece, batch)
                    batch.check(piece, halves)
                    packed = [each or b"" for each in batch.outcomes or []]
                    outcomes.update(zip(piece.indices.tolist(), packed, strict=True))
                watch(start + len(outcomes), budget)
            tally.add([outcomes[index] for index in indices.tolist()])
    watch(budget, budget)
    return tally


@dataclass(frozen=True, eq=False)
class Halves:
    """The coalitions of a stage."""

    rows: Rows
    seed: int
    odds: FloatArray

    def __call__(self, indices: IntArray, repeats: IntArray) -> tuple[BoolArray, KeyArray]:
        keys = chance.keys(self.seed, chance.TRAINING, indices)
        return self.rows.coalitions(self.seed, indices, self.odds), keys


def _calls(missing: IntArray, size: int) -> Iterator[Piece]:
    """Missing indices, one call at a time, cut at multiples of the call size."""
    for call in np.split(missing, np.flatnonzero(np.diff(missing // size)) + 1):
        if len(call):
            yield Piece(call, np.zeros_like(call), np.zeros(1, dtype=np.int64))


def _append(ledger: Ledger | None, piece: Piece, batch: Batch) -> None:
    done = np.flatnonzero(~np.isnan(batch.utilities))
    if ledger is not None and len(done):
        ledger.append(
            piece.indices[done],
            piece.repeats[done],
            batch.utilities[done],
            batch.seconds[done],
            [(batch.outcomes or [])[place] for place in done],
        )


def _settled(before: FloatArray, now: FloatArray) -> bool:
    """Whether two stages name the same rows: as many of the most doubtful as are expected to be
    wrong, ten at least.
    """
    count = min(len(now), max(10, round(float(now.sum()))))
    tops = [set(np.argsort(-each, kind="stable")[:count].tolist()) for each in (before, now)]
    return len(tops[0] & tops[1]) > (1 - SETTLED) * count


def bind(committee: Committee, rows: Rows, seed: int, ledger: Ledger) -> None:
    """Begin a run in a ledger, or make sure that its run is this one."""
    design: dict[str, Any] = {
        "design": "Committee",
        "rows": rows.n,
        "checked": rows.n_checked,
        "stage": STAGE,
        "before": rows.before,
    }
    ledger.bind(committee.fingerprint(), design, seed=seed, stochastic=True, keep="outcomes")


def _bound(
    committee: Committee, rows: Rows, seed: int, ledger: Ledger | None
) -> dict[int, dict[int, bytes]]:
    """Bind the ledger, and give what it holds by stage."""
    if ledger is None:
        return {}
    bind(committee, rows, seed, ledger)
    kept: dict[int, dict[int, bytes]] = {}
    for indices, _, outcomes in ledger.outcomes():
        for index, outcome in zip(indices.tolist(), outcomes, strict=True):
            kept.setdefault(index // STAGE, {})[index] = outcome
    return kept
