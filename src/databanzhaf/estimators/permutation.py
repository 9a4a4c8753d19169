"""Any semivalue from random permutations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimators.moments import doubt
from databanzhaf.notions import Notion, SizeWeighted
from databanzhaf.types import BLOCK_CELLS, Estimate, Evaluations, FloatArray, IntArray


@dataclass(frozen=True)
class Permutation:
    r"""Marginal contributions along random permutations, weighted by position.

    A player stands at each position k = 1..n equally often, and given k the players before it are a uniform
    set of size k - 1. With the notion's size law g(k) = C(n-1, k-1) w(k) / n,

    .. math:: \hat\phi_i = \frac1T \sum_t n\, g(k_t)\, [U(S_t \cup i) - U(S_t)],

    where the factor is 1 for Shapley. The standard error is that of a mean over permutations. Its degrees
    of freedom count the permutations that carry weight, :math:`(\sum_t g)^2 / \max(\sum_t g^2, T\,E[g^2])`; a player
    with fewer than two of them has been seen too little, and its standard error is infinite. With fewer than about 30 permutations the
    intervals are too narrow where a player matters in few positions only: a handful of draws then rarely shows them.

    `truncation` stops each permutation once its utility is that close to U(N) (TMC): cheaper, and biased.
    """

    truncation: float | None = None

    name = "permutation"

    def design(self, notion: Notion, n_players: int, seed: int) -> designs.Permutation:
        _check(notion)
        return designs.Permutation(n_players, seed, self.truncation)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        semivalue, design = _check(notion), evaluations.design
        if not isinstance(design, designs.Permutation):
            raise DesignMismatch(f'`permutation` needs coalitions along permutations; got {design!r}. Run with estimator="permutation".')
        n, repeats = design.n_players, evaluations.n_repeats
        chains, numbers = _chains(design, evaluations)
        factor = n * semivalue.weights(n)
        total, squares = np.zeros((1 + repeats, n)), np.zeros(n)
        load, load_squares = np.zeros(n), np.zeros(n)
        shift: FloatArray | None = None
        spread = 0.0
        step = max(1, BLOCK_CELLS // (n * (1 + repeats)))
        for low in range(0, len(numbers), step):
            orders = design.orders(numbers[low : low + step])
            places = np.argsort(orders, axis=1)
            steps = np.diff(chains[:, low : low + step], axis=2) * factor
            contributions = np.take_along_axis(steps, places[None], axis=2)
            if shift is None:
                # Sums of squares around the first permutation, so that equal contributions have no spread.
                shift = contributions[0, 0]
            total += contributions.sum(axis=1)
            squares += ((contributions[0] - shift) ** 2).sum(axis=0)
            spread = max(spread, float(np.abs(contributions[0] - shift).max(initial=0.0)))
            load += factor[places].sum(axis=0)
            load_squares += (factor[places] ** 2).sum(axis=0)

        count = len(numbers)
        if not count or shift is None:
            zero = np.zeros(n)
            return self._estimate(evaluations, notion, zero, np.full(n, np.inf), np.ones(n), np.zeros((repeats, n)))
        mean = total / count
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.maximum(squares / count - (mean[0] - shift) ** 2, 0.0) / (count - 1)
            effective = load**2 / np.maximum(load_squares, count * np.mean(factor**2))
        error = doubt(np.sqrt(variance), np.full(n, float(count)), spread, evaluations.scale())
        error = np.where((effective >= 2) & (count > 1), error, np.inf)
        return self._estimate(evaluations, notion, mean[0], error, np.maximum(effective - 1, 1.0), mean[1:])

    def _estimate(
        self, evaluations: Evaluations, notion: Notion, values: FloatArray, errors: FloatArray, freedom: FloatArray, by_repeat: FloatArray
    ) -> Estimate:
        return Estimate(values, errors, freedom, by_repeat, evaluations.n_evaluations, notion.name, self.name, evaluations.players)


def _check(notion: Notion) -> SizeWeighted:
    if not isinstance(notion, SizeWeighted):
        raise DesignMismatch(f'`permutation` is for semivalues; {notion.name} is none. Use estimator="auto".')
    return notion


def _chains(design: designs.Permutation, evaluations: Evaluations) -> tuple[FloatArray, IntArray]:
    """Utilities along the complete permutations, (1 + repeats, t, n + 1): the mean first; and the permutations' numbers."""
    permutation, place = np.divmod(evaluations.indices, design.unit)
    numbers, which = np.unique(permutation, return_inverse=True)
    utilities = np.vstack([evaluations.utility, evaluations.utilities.T])
    chains = np.full((len(utilities), len(numbers), design.unit), np.nan)
    chains[:, which, place] = utilities
    filled, following = design.fill(chains[0])
    if design.truncation is not None:
        # Each repeat is cut where the mean was.
        cut = np.isnan(chains[0]) | (filled != chains[0])
        last = np.where(cut.any(axis=1), cut.argmax(axis=1) - 1, design.n_players)
        held = np.take_along_axis(chains, np.broadcast_to(last[None, :, None], (*chains.shape[:2], 1)), axis=2)
        chains = np.where(np.arange(design.unit) > last[:, None], held, chains)
    complete = following == design.unit
    return chains[:, complete], numbers[complete]
