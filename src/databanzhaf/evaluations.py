"""The frozen values between games and estimators: one batch, and all evaluations of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.errors import EvaluationFailed, InvalidInput
from databanzhaf.protocols import BoolArray, Design, Float32Array, FloatArray, IntArray, Labels
from databanzhaf.verdicts import Jury, Verdicts

# Cells of a block of coalitions: 4 million bools are 32 MiB once they are float64.
BLOCK_CELLS = 1 << 22


@dataclass(frozen=True, eq=False)
class Piece:
    """Evaluations that are made together: their indices and repeats, and the positions at which
    calls of the game begin.
    """

    indices: IntArray
    repeats: IntArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.indices)

    def part(self, low: int, high: int) -> Piece:
        """The calls that begin from position `low` to before `high`."""
        inside = (self.starts >= low) & (self.starts < high)
        return Piece(self.indices[low:high], self.repeats[low:high], self.starts[inside] - low)


@dataclass(frozen=True)
class Failure:
    """Which position of a batch failed first, and why; whether the game raised an error there,
    which may not come again.
    """

    position: int
    reason: str
    cause: BaseException | None = None
    raised: bool = False


@dataclass(frozen=True, eq=False)
class Batch:
    """Utilities (m,), NaN where nothing was evaluated; seconds (m,); packed outcomes if they are
    kept.
    """

    utilities: FloatArray
    seconds: FloatArray
    outcomes: list[bytes | None] | None = None
    failure: Failure | None = None

    def first(self, count: int) -> Batch:
        """The first evaluations, which did not fail."""
        outcomes = None if self.outcomes is None else self.outcomes[:count]
        return Batch(self.utilities[:count], self.seconds[:count], outcomes)

    def check(
        self,
        piece: Piece,
        draws: Callable[[IntArray, IntArray], tuple[BoolArray, Any]],
        named: Piece | None = None,
    ) -> None:
        """Raise what failed, with its coalition and its place, which may go by another name."""
        if self.failure is None:
            return
        at, whose = [self.failure.position], named or piece
        coalitions, _ = draws(piece.indices[at], piece.repeats[at])
        where = int(whose.indices[at[0]]), int(whose.repeats[at[0]]), coalitions[0]
        raise EvaluationFailed(self.failure.reason, *where) from self.failure.cause


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Utilities of a design's coalitions. Coalitions are not stored: the design makes them again.

    Attributes
    ----------
    design : Design
        Which coalition an index stands for.
    indices : int64 array (m,)
        Increasing.
    utilities : float64 array (m, k)
        One column per repeat.
    stochastic : bool
        Whether the game's utilities carry training noise.
    players : sequence or None
        The user's own names of the players.
    verdicts : Verdicts or None
        What each judging row says of each model, where that is known. Judged across, utilities
        follow from it.
    """

    design: Design
    indices: IntArray
    utilities: FloatArray
    stochastic: bool = True
    players: Labels | None = None
    verdicts: Verdicts | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", np.asarray(self.indices, dtype=np.int64))
        object.__setattr__(self, "utilities", np.asarray(self.utilities, dtype=np.float64))
        if self.utilities.ndim != 2 or self.indices.shape != self.utilities.shape[:1]:
            raise InvalidInput(
                "`indices` must have shape (m,) and `utilities` (m, repeats)",
                got=f"{self.indices.shape} and {self.utilities.shape}",
                remedy="Reshape one repeat with utilities[:, None].",
            )
        if not np.isfinite(self.utilities).all():
            raise InvalidInput(
                "`utilities` must be finite",
                got="NaN or infinity",
                remedy="Leave those evaluations out.",
            )
        if (np.diff(self.indices) <= 0).any():
            raise InvalidInput(
                "`indices` must increase",
                got="repeated or unsorted ones",
                remedy="Sort them with np.unique.",
            )
        end = self.design.size
        if len(self.indices) and (
            self.indices[0] < 0 or (end is not None and self.indices[-1] >= end)
        ):
            raise InvalidInput(
                f"`indices` must lie from 0 to {end or 'any number'}",
                got=f"{self.indices[0]}..{self.indices[-1]}",
                remedy="Check the design.",
            )

    def __len__(self) -> int:
        """Coalitions."""
        return len(self.indices)

    @property
    def n_players(self) -> int:
        return self.design.n_players

    @property
    def n_repeats(self) -> int:
        return int(self.utilities.shape[1])

    @property
    def n_evaluations(self) -> int:
        """Trainings: coalitions times repeats."""
        return self.utilities.size

    @property
    def utility(self) -> FloatArray:
        """U(S) averaged over the repeats, float64 (m,)."""
        mean: FloatArray = self.utilities.mean(axis=1)
        return mean

    def scale(self) -> float:
        """How far the utilities lie apart."""
        return float(np.ptp(self.utility)) if len(self.indices) else 0.0

    def noise_variance(self) -> FloatArray:
        """Variance of each averaged utility due to training noise, (m,): zeros for a game without
        noise, NaN if unknown.
        """
        if not self.stochastic:
            return np.zeros(len(self.indices))
        if self.n_repeats < 2:
            return np.full(len(self.indices), np.nan)
        spread: FloatArray = self.utilities.var(axis=1, ddof=1)
        return spread / self.n_repeats

    def blocks(self) -> Iterator[tuple[slice, BoolArray]]:
        """Slices of the evaluations with their coalitions, which are not to be changed, never more
        than a few MiB at a time.
        """
        step = max(1, BLOCK_CELLS // self.n_players)
        if 0 < len(self.indices) <= step:
            yield slice(0, len(self.indices)), self._all_coalitions
            return
        for low in range(0, len(self.indices), step):
            rows = slice(low, low + step)
            yield rows, self._coalitions(rows)

    @cached_property
    def _all_coalitions(self) -> BoolArray:
        """For evaluations of one block: fits read them dozens of times."""
        return self._coalitions(slice(None))

    def _coalitions(self, rows: slice) -> BoolArray:
        made = self.design.coalitions(self.indices[rows]).view()  # a design may keep its own
        made.flags.writeable = False
        return made

    def samples(self) -> IntArray:
        """Which sample (coalition, pair, permutation) each evaluation belongs to, (m,)."""
        if hasattr(self.design, "samples"):
            return np.asarray(self.design.samples(self.indices))
        return np.asarray(self.indices // self.design.unit)

    def before(self, index: int) -> Evaluations:
        """The evaluations whose index is below `index`."""
        return self.only(self.indices < index)

    def only(self, which: BoolArray) -> Evaluations:
        """Some of the evaluations, bool (m,)."""
        utilities, verdicts = self.utilities[which], self.verdicts and self.verdicts.only(which)
        if verdicts is not None and verdicts.outside is not None:
            utilities = verdicts.utilities()
        return Evaluations(
            self.design, self.indices[which], utilities, self.stochastic, self.players, verdicts
        )

    def repeated(self, which: slice) -> Evaluations:
        """Some of the repeats of every coalition."""
        verdicts = self.verdicts and replace(self.verdicts, scores=self.verdicts.scores[:, which])
        return replace(self, utilities=self.utilities[:, which], verdicts=verdicts)

    def judged_by(self, which: BoolArray) -> Evaluations:
        """As if only some of the rows judged, bool (judges,)."""
        assert self.verdicts is not None
        verdicts = self.verdicts.judged_by(which)
        return replace(self, utilities=verdicts.utilities(), verdicts=verdicts)

    def marks(self, *, stops: bool = False) -> list[int]:
        """The checkpoints up to here; see `checkpoint_marks`."""
        if not len(self.indices):
            return []
        return checkpoint_marks(self.design, int(self.indices[-1]) + 1, stops=stops)


# With more players a run is asked less often whether it may stop.
FEW_PLAYERS = 1000


def checkpoint_marks(design: Design, total: int, *, stops: bool = False) -> list[int]:
    """Where to see how a run stands: 100 coalitions, then twice as many each time, in whole units;
    then the end. Estimates often take longer than the models that they are made of: with a quarter
    more each time, 19 checkpoints of a run for three notions took 29 s, and its 5,000 forests 1.5.

    A run that `stops` where a condition holds is asked after a quarter more each time, unless it
    has many players.
    """
    if design.size is not None:
        return [total]
    marks, mark = [], 100.0
    while mark < total:
        marks.append(-(-int(mark) // design.unit) * design.unit)
        mark *= 1.25 if stops and design.n_players <= FEW_PLAYERS else 2.0
    return sorted({mark for mark in marks if mark < total} | {total})


def complete_rows(
    design: Design,
    utilities: FloatArray,
    stochastic: bool,
    players: Labels | None,
    jury: Jury | None = None,
    scores: Float32Array | None = None,
) -> Evaluations:
    """The coalitions that have all their repeats; `scores` are those of the jury's rows, for each
    utility.
    """
    complete = np.flatnonzero(~np.isnan(utilities).any(axis=1)).astype(np.int64)
    utilities, verdicts = utilities[complete], None
    if jury is not None and scores is not None:
        outside = getattr(design, "outside", None) if jury.across else None
        scores = scores[complete]
        if hasattr(design, "judging"):
            scores = np.where(design.judging(complete)[:, None], scores, np.float32(np.nan))
        verdicts = jury.verdicts(scores, outside)
        if jury.across:
            utilities = verdicts.utilities()
    return Evaluations(design, complete, utilities, stochastic, players, verdicts)
