"""Banzhaf values by maximum sample reuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.designs import Coin
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.moments import two_part_errors
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import Banzhaf, WeightedBanzhaf
from databanzhaf.protocols import FloatArray, Notion


@dataclass(frozen=True)
class Reuse:
    r"""Banzhaf values by maximum sample reuse (MSR; Wang & Jia 2023, Eq. 6).

    When every player joins by a coin of bias p, each evaluation informs every player:

    .. math:: \hat\phi_i = \bar U(S \ni i) - \bar U(S \not\ni i).

    The standard error is that of a difference of two means (`moments.two_part_errors`). A player
    that is in all or in none of the coalitions gets 0 and an infinite standard error.
    """

    name = "reuse"
    reads = (Coin,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (Banzhaf, WeightedBanzhaf))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 10 if self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Coin:
        return Coin(n_players, seed, bias(notion, self.name))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        check_coin(evaluations, notion, self.name)
        with one_blas_thread():
            split = Split.of(evaluations)
        errors, freedom = two_part_errors(
            split.variance, split.farthest, split.count, evaluations.scale()
        )
        return Estimate(
            split.differences[0],
            errors,
            freedom,
            split.differences[1:],
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


@dataclass(frozen=True, eq=False)
class Split:
    """The utilities of the coalitions with each player (first row) and of those without it.

    `sums` (2, 1 + repeats, n) are those of the averaged utility and of each repeat, `squares`
    (2, n) those of the squared averaged utility, both about `centre`: that leaves differences of
    means as they are and keeps their squares free of cancellation.
    """

    centre: float
    ends: tuple[float, float]
    count: FloatArray
    sums: FloatArray
    squares: FloatArray

    @staticmethod
    def of(evaluations: Evaluations) -> Split:
        utility = evaluations.utility
        centre = float(utility.mean()) if len(utility) else 0.0
        ends = (float(utility.min()), float(utility.max())) if len(utility) else (0.0, 0.0)
        utility = utility - centre
        columns = np.vstack(
            [np.ones_like(utility), utility**2, utility, (evaluations.utilities - centre).T]
        )
        inside = np.zeros((len(columns), evaluations.n_players))
        for rows, coalitions in evaluations.blocks():
            inside += columns[:, rows] @ coalitions.astype(np.float64)
        both = np.stack([inside, columns.sum(axis=1, keepdims=True) - inside])
        return Split(centre, ends, both[:, 0], both[:, 2:], both[:, 1])

    @property
    def means(self) -> FloatArray:
        """Of the averaged utility and of each repeat, about `centre`, (2, 1 + repeats, n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            means: FloatArray = self.sums / self.count[:, None]
        return means

    @property
    def differences(self) -> FloatArray:
        """Maximum sample reuse, (1 + repeats, n): 0 for players that are in all or in none."""
        means = self.means
        return np.where((self.count > 0).all(axis=0), means[0] - means[1], 0.0)

    @property
    def spread(self) -> FloatArray:
        """Squared deviations from the mean, summed, (2, n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.maximum(self.squares - self.sums[:, 0] ** 2 / self.count, 0.0)

    @property
    def variance(self) -> FloatArray:
        """Variance of each mean, (2, n)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            variance: FloatArray = self.spread / (self.count - 1) / self.count
        return variance

    @property
    def farthest(self) -> FloatArray:
        """How far the utility farthest from each mean lies from it, (2, n)."""
        means, (low, high) = self.means[:, 0] + self.centre, self.ends
        return np.nan_to_num(np.maximum(high - means, means - low))


def bias(notion: Notion, estimator: str) -> float:
    """The coin whose coalitions identify the notion."""
    if isinstance(notion, Banzhaf):
        return 0.5
    if isinstance(notion, WeightedBanzhaf):
        return notion.p
    raise DesignMismatch(
        f"a run whose coalitions a coin drew, read by `{estimator}`, gives Banzhaf values only "
        "(paper, Appendix C.2)",
        got=f"{notion.name}",
        remedy='Make a new run for this notion with estimator="auto" and a ledger of its own.',
    )


def check_coin(evaluations: Evaluations, notion: Notion, estimator: str) -> None:
    """Refuse evaluations of coalitions that another coin drew, or none."""
    design, p = evaluations.design, bias(notion, estimator)
    if not isinstance(design, Coin) or design.p != p:
        raise DesignMismatch(
            f"{notion.name} values by `{estimator}` need coalitions drawn by a coin of bias {p:g}",
            got=repr(design),
            remedy="Make a new run for this notion, with a ledger of its own.",
        )
