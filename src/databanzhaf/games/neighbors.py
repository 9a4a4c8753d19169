r"""A game whose values are known in closed form: nearest neighbours (Jia et al. 2019).

U(S) is the mean over the judging rows of the share, out of k, of the k nearest rows of S that have
the judging row's label; neighbours that a small S lacks vote for nobody.

A row counts for a judge by its place alone. With the n players in the order of their distance, let
:math:`u_r` be 1 where the r-th has the judge's label, and :math:`P_m(t)` the probability that
exactly t of m others are in the coalition that player r joins. It becomes one of the k nearest if
fewer than k of the r - 1 closer ones are in; and it pushes out the j-th, j > r, if exactly k of the
j - 1 others up to place j are in and the j-th is one of them, which of k out of j - 1 has the
probability k / (j - 1). So

.. math:: \phi_r = \frac{1}{k} \Big( u_r \sum_{t < k} P_{r-1}(t) -
    \sum_{j > r} u_j \frac{k}{j - 1} P_{j-1}(k) \Big),

and the second sum is the same for all r but for where it begins: O(n) for each judge, after
sorting, for every semivalue. P is binomial for Banzhaf values, uniform for Shapley values,
beta-binomial for Beta values (`notions.inclusion`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.notions import SizeWeighted, inclusion
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, KeyArray, Labels

# Cells of a block of distances.
_BLOCK = 1 << 23


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """Values (n,), and the variance of each over juries like this one; of how many judges."""

    values: FloatArray
    variance: FloatArray
    judges: int


class Neighbors:
    """U(S) is the share of right votes among the k nearest rows of S, averaged over the judging
    rows.

    All its semivalues are known in closed form: ``db.value(game, notion)`` takes no evaluation.

    Parameters
    ----------
    dataset : Dataset
        Numbers, without NaN; scale them. Each row is a player. Without validation rows each row
        judges the others. Distances are Euclidean; of equally near rows the first is nearer.
    k : int
        Neighbours that vote.
    """

    stochastic = False
    call_size = 16

    def __init__(self, dataset: Dataset, k: int = 5) -> None:
        if not isinstance(dataset, Dataset):
            raise InvalidInput(
                "`dataset` must be a databanzhaf.Dataset",
                got=short(dataset),
                remedy="Pass Dataset(X, y, X_val, y_val).",
            )
        self.dataset, self.k = dataset, check_count("k", k)
        self._X, self._judges = (_numbers(part) for part in (dataset.X, dataset.X_val))
        if dataset.n_players != dataset.n_rows:
            raise InvalidInput(
                "each row must be a player of its own",
                got=f"{dataset.n_players:,} groups of {dataset.n_rows:,} rows",
                remedy='Leave `groups` out, or use a Learner with "knn".',
            )
        if dataset.y.dtype.kind == "f" and (dataset.y != np.round(dataset.y)).any():
            raise InvalidInput(
                "neighbours vote for classes, and `y` holds numbers that are no class labels",
                got=short(dataset.y[:3].tolist()),
                remedy='Use DataBanzhaf("knn") for a regression.',
            )

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        if self.dataset.judges is not None:
            raise InvalidInput(
                "a model of neighbours whose rows judge each other has values in closed form only",
                got="coalitions to evaluate",
                remedy='Pass estimator="closed_form", or give validation rows.',
            )
        total = np.zeros(len(coalitions))
        for order, right in self._by_distance():
            inside = coalitions[:, order]
            votes = inside & (np.cumsum(inside, axis=1) <= self.k)
            total += votes @ right.astype(np.float64)
        return np.asarray(total / (self.k * len(self._judges)))

    def closed_form(self, notion: SizeWeighted) -> ClosedForm:
        """The values of every player, without an evaluation."""
        own, n = self.dataset.judges, self.n_players
        among = n if own is None else n - 1
        if among < 1:
            raise InvalidInput(
                "rows that judge each other must be two or more",
                got="one row",
                remedy="Give more rows, or validation rows.",
            )
        joins = inclusion(notion, among, self.k)
        becomes = joins[:, : self.k].sum(axis=1) / self.k
        pushes = np.zeros(among)
        place = np.arange(1, among)
        pushes[1:] = joins[1:, self.k] / place
        sums, squares = np.zeros((2, n))
        for order, right in self._by_distance():
            voted = pushes * right
            # From the far end: a difference of sums would leave its rounding to rows far away.
            after = np.append(np.cumsum(voted[:0:-1])[::-1], 0.0)
            values = becomes * right - after
            sums[order] += values
            squares[order] += values**2
        judges = len(self._judges)
        # A row that judges the others does not judge itself.
        count = np.full(n, judges)
        if own is not None:
            count[own] -= 1
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.maximum(squares - sums**2 / count, 0.0)
            variance = spread / judges**2 * count / (count - 1)
        return ClosedForm(sums / judges, variance, judges)

    def votes(self) -> FloatArray:
        """The share of right votes of each judging row among all rows but itself, (judges,)."""
        said = np.zeros(len(self._judges))
        for place, distances in self._distances():
            if self.dataset.judges is not None:
                distances[self.dataset.judges[place]] = np.inf
            # The k nearest without sorting all; of equally near rows the first.
            farthest = np.partition(distances, min(self.k, self.n_players) - 1)[: self.k].max()
            near = np.flatnonzero(distances <= min(farthest, np.finfo(np.float64).max))
            near = near[np.argsort(distances[near], kind="stable")][: self.k]
            said[place] = (self.dataset.y[near] == self.dataset.y_val[place]).sum() / self.k
        return said

    def guesses(self) -> FloatArray:
        """What a guess says, (judges,): the share of each row's label among the judging rows."""
        _, which, counts = np.unique(self.dataset.y_val, return_inverse=True, return_counts=True)
        return np.asarray(counts[which] / len(which))

    def fingerprint(self) -> dict[str, str]:
        judged = {} if self.dataset.judges is None else {"judged": "across"}
        return {
            "game": "neighbors",
            "data": self.dataset.fingerprint(),
            "k": str(self.k),
            "metric": "probability",
            **judged,
        }

    def _by_distance(self) -> Iterator[tuple[IntArray, BoolArray]]:
        """For each judge the players, nearest first and without itself, and which of them have its
        label.
        """
        own, labels = self.dataset.judges, self.dataset.y_val
        for place, distances in self._distances():
            order = np.argsort(distances, kind="stable")
            if own is not None:
                order = order[order != own[place]]
            yield order, self.dataset.y[order] == labels[place]

    def _distances(self) -> Iterator[tuple[int, FloatArray]]:
        """The place of each judge, and the squared distances of all rows from it."""
        from scipy.spatial.distance import cdist

        step = max(1, _BLOCK // self.n_players)
        for low in range(0, len(self._judges), step):
            # By differences: a product of matrices would round equal rows differently.
            block = cdist(self._judges[low : low + step], self._X, "sqeuclidean")
            yield from enumerate(block, start=low)

    def __repr__(self) -> str:
        return f"Neighbors({self.dataset!r}, k={self.k})"


def _numbers(X: Any) -> FloatArray:
    """Rows as float64."""
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "distances need numbers", got=short(X), remedy="Encode texts and categories."
        ) from error
    rows = rows.reshape(len(rows), -1)
    if not np.isfinite(rows).all():
        raise InvalidInput(
            "distances need finite numbers", got="gaps or infinity", remedy="Fill or drop them."
        )
    return rows
