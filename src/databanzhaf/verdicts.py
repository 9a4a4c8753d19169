"""What the judging rows say of each model, and the utilities that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from databanzhaf.protocols import BoolArray, Float32Array, FloatArray, IntArray

# Cells of a block of scores: 4 million are 32 MiB once they are float64.
_BLOCK = 1 << 22


# Validation rows whose scores are held for the intervals: more would add hardly any precision.
_MOST_HELD = 1_000


@dataclass(frozen=True, eq=False)
class Jury:
    """The rows that judge models: how much each counts (they sum to 1), and whether they are the
    training rows outside the coalition. With `whole` the scores of all of them are held.
    """

    weights: FloatArray
    across: bool
    whole: bool = False

    @property
    def held(self) -> IntArray:
        """The rows whose scores a run holds in memory: all that judge across, else a part of the
        validation rows.
        """
        n = len(self.weights)
        if self.across or self.whole or n <= _MOST_HELD:
            return np.arange(n)
        return np.asarray((np.arange(_MOST_HELD) + 0.5) * (n / _MOST_HELD), dtype=np.int64)

    def verdicts(self, scores: Float32Array, outside: float | None) -> Verdicts:
        """Of the scores that the rows held give."""
        weights = self.weights[self.held]
        return Verdicts(scores, weights / weights.sum(), outside, len(self.weights))


@dataclass(frozen=True, eq=False)
class Seating:
    """How a jury is cut into folds; see `designs.Folds`."""

    count: int
    player_folds: IntArray
    judge_folds: IntArray
    row_folds: IntArray
    row_players: IntArray

    @property
    def within(self) -> bool:
        """Whether the rows of each player are cut into folds."""
        return len(self.row_players) > 0


@dataclass(frozen=True, eq=False)
class Verdicts:
    r"""The score that each judging row gives to each model.

    With validation rows every row judges every model, and a utility is their weighted mean. Judged
    across, the rows outside the coalition judge. With :math:`s_{tj}` the score of row j for model
    t, :math:`O_t` the rows outside its coalition, q the probability that a row is outside, and
    :math:`\bar s_j^{(-t)}` the mean score of row j over the models of other coalitions that it
    judged,

    .. math:: U_t = \frac{1}{q} \sum_{j \in O_t} w_j \left(s_{tj} - \bar s_j^{(-t)}\right).

    Subtracting a row's own mean takes its difficulty out: else a hard row would look valuable,
    since it leaves the jury when it joins the coalition. Models of coalition t do not count in
    that mean, so that it is independent of them and values are unbiased (docs/theory.md).

    Attributes
    ----------
    scores : float32 array (m, repeats, judges)
        NaN where a row does not judge.
    weights : float64 array (judges,)
        They sum to 1.
    outside : float or None
        q; None where the same rows judge every model.
    size : int
        Rows that judge, of which `scores` may hold a part.
    """

    scores: Float32Array
    weights: FloatArray
    outside: float | None
    size: int

    def utilities(self) -> FloatArray:
        """U, float64 (m, repeats)."""
        m, repeats, _ = self.scores.shape
        out = np.zeros((m, repeats))
        for rows, said, judging in self._centred():
            weights = self.weights if self.outside is not None else self.weights * judging
            total = 1.0 if self.outside is not None else weights.sum(axis=2)
            with np.errstate(invalid="ignore"):
                out[rows] = (weights * said).sum(axis=2) / total
        return out

    def by_judge(self) -> FloatArray:
        """U as if each row judged alone, averaged over repeats, float64 (m, judges)."""
        out = np.zeros((len(self.scores), self.scores.shape[2]))
        for rows, said in self.blocks_by_judge():
            out[rows] = said
        return out

    def blocks_by_judge(self) -> Iterator[tuple[slice, FloatArray]]:
        """`by_judge` for some models at a time, never more than a few MiB."""
        for rows, said, _ in self._centred():
            yield rows, said.mean(axis=1)

    def _centred(self) -> Iterator[tuple[slice, FloatArray, BoolArray]]:
        """Blocks of models: what each row adds to U before it is weighted, 0 where it does not
        judge, and where it does.
        """
        if self.outside is None:
            yield from self._blocks()
            return
        total, count = np.zeros((2, self.scores.shape[2]))
        for _, scores, judging in self._blocks():
            total += scores.sum(axis=(0, 1))
            count += judging.sum(axis=(0, 1))
        for rows, scores, judging in self._blocks():
            others = count - judging.sum(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                mean = np.where(others > 0, (total - scores.sum(axis=1)) / others, np.nan)
            known = judging & (others > 0)[:, None]
            yield rows, np.where(known, scores - mean[:, None], 0.0) / self.outside, judging

    def only(self, which: BoolArray) -> Verdicts:
        """Those of some models, bool (m,)."""
        return replace(self, scores=self.scores[which])

    def judged_by(self, which: BoolArray) -> Verdicts:
        """As if only some of the rows judged, bool (judges,)."""
        weights = self.weights[which]
        return Verdicts(
            self.scores[:, :, which], weights / weights.sum(), self.outside, int(which.sum())
        )

    def _blocks(self) -> Iterator[tuple[slice, FloatArray, BoolArray]]:
        """Blocks of models: scores as float64, 0 where a row does not judge, and where it does."""
        m, repeats, judges = self.scores.shape
        step = max(1, _BLOCK // max(1, repeats * judges))
        for low in range(0, m, step):
            rows = slice(low, low + step)
            judging = ~np.isnan(self.scores[rows])
            yield rows, np.where(judging, self.scores[rows], 0.0).astype(np.float64), judging


def places_in_folds(folds: IntArray) -> IntArray:
    """The place of each row among those of its fold, from 0."""
    place = np.empty(len(folds), dtype=np.int64)
    for fold in np.unique(folds):
        place[folds == fold] = np.arange(int((folds == fold).sum()))
    return place
