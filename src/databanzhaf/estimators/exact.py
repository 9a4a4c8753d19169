"""Exact values from all 2^n coalitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.designs import Exhaustive
from databanzhaf.designs.exhaustive import LIMIT
from databanzhaf.errors import DesignMismatch, short
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.least_core import least_core_values
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import LeastCore, SizeWeighted, Together, log_binomial
from databanzhaf.protocols import FloatArray, Notion


@dataclass(frozen=True)
class Exact:
    """Every semivalue, and the least core, by their definition; for games of up to 24 players.

    The standard errors are 0 for a game without noise. For a stochastic game they need two repeats
    or more: a value is a weighted sum of utilities, so its variance is the sum of their variances
    times squared weights.
    """

    name = "exact"
    reads = (Exhaustive,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (SizeWeighted, LeastCore, Together))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        few = n_players <= LIMIT and 2**n_players <= budget
        return 20 if few and self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Exhaustive:
        return Exhaustive(n_players)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        design = evaluations.design
        if not isinstance(design, Exhaustive) or len(evaluations.indices) != design.size:
            raise DesignMismatch(
                f"exact values need each of the 2**{design.n_players} coalitions",
                got=f"{len(evaluations.indices)} evaluations of a {type(design).__name__} design",
                remedy='Run with estimator="exact".',
            )
        n = design.n_players
        if isinstance(notion, LeastCore):
            by_repeat = np.stack(
                [_least_core(design, column) for column in evaluations.utilities.T]
            )
            values = (
                by_repeat[0] if len(by_repeat) == 1 else _least_core(design, evaluations.utility)
            )
            std_errors = np.full(n, np.nan if evaluations.stochastic else 0.0)
            freedom = np.full(n, np.inf)
        elif isinstance(notion, SizeWeighted):
            by_repeat = semivalues(evaluations.utilities, notion)
            values = by_repeat.mean(axis=0)
            std_errors, freedom = _noise(evaluations, notion)
        else:
            raise DesignMismatch(
                "exact values are known for semivalues and the least core",
                got=short(notion),
                remedy="Derive your notion from notions.SizeWeighted.",
            )
        return Estimate(
            values,
            std_errors,
            freedom,
            by_repeat,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def semivalues(tables: FloatArray, notion: SizeWeighted) -> FloatArray:
    r"""Semivalues of k tables at once: (2^n, k) → (k, n).

    .. math:: \phi_i = \sum_{S \not\ni i} \frac{w(|S|+1)}{n} [U(S \cup i) - U(S)]

    Player i's axis is split off by a reshape, so that all 2^(n-1) differences are one subtraction
    and their weighted sum one product: O(n 2^n) and exact zeros for a player that changes nothing.
    """
    n = len(tables).bit_length() - 1
    weights = _coalition_weights(notion, n)
    by_repeat = np.empty((tables.shape[1], n))
    for player in range(n):
        halves = tables.reshape(-1, 2, 1 << player, tables.shape[1])
        differences = (halves[:, 1] - halves[:, 0]).reshape(-1, tables.shape[1])
        by_repeat[:, player] = weights @ differences
    return by_repeat


def _coalition_weights(notion: SizeWeighted, n: int) -> FloatArray:
    """w(|S| + 1) / n for each S among the n - 1 others, float64 (2^(n-1),); the same for every
    player.
    """
    by_size = np.exp(notion.log_size_law(n) - log_binomial(n - 1, np.arange(n)))
    return np.asarray(by_size[np.bitwise_count(np.arange(1 << (n - 1)))])


def _noise(evaluations: Evaluations, notion: SizeWeighted) -> tuple[FloatArray, FloatArray]:
    """Standard errors from training noise, with Satterthwaite's degrees of freedom."""
    n = evaluations.n_players
    noise = evaluations.noise_variance()
    squares = _coalition_weights(notion, n) ** 2
    variance, fourth = np.empty(n), np.empty(n)
    for player in range(n):
        halves = noise.reshape(-1, 2, 1 << player)
        variance[player] = squares @ (halves[:, 0] + halves[:, 1]).ravel()
        fourth[player] = squares**2 @ (halves[:, 0] ** 2 + halves[:, 1] ** 2).ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (evaluations.n_repeats - 1) * variance**2 / fourth
    return np.sqrt(variance), np.where(fourth > 0, freedom, np.inf)


def _least_core(design: Exhaustive, utility: FloatArray) -> FloatArray:
    def sums(values: FloatArray) -> FloatArray:
        totals = np.zeros(1)
        for value in values:
            totals = np.concatenate([totals, totals + value])
        return totals

    everybody = len(utility) - 1
    return least_core_values(utility, sums, design.coalitions, everybody)
