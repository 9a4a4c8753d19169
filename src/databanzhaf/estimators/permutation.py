"""Any semivalue from random permutations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.moments import contribution_errors, player_means
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import SizeWeighted, Together
from databanzhaf.protocols import FloatArray, IntArray, Notion


@dataclass(frozen=True)
class Permutation:
    r"""Marginal contributions along random permutations, weighted by position.

    A player stands at each position k = 1..n equally often, and given k the players before it are a
    uniform set of size k - 1. With the notion's size law g(k) = C(n-1, k-1) w(k) / n,

    .. math:: \hat\phi_i = \frac1T \sum_t n\, g(k_t)\, [U(S_t \cup i) - U(S_t)],

    where the factor is 1 for Shapley. The standard error is that of `moments.contribution_errors`,
    which knows that the position was drawn. Its degrees of freedom count the permutations that
    carry weight,
    :math:`(\sum_t g)^2 / \max(\sum_t g^2, T\,E[g^2])`; a player with fewer than two of them has
    been seen too little, and its standard error is infinite.

    `truncation` stops each permutation once its utility is that close to U(N) (TMC): cheaper, and
    biased.
    """

    truncation: float | None = None

    name = "permutation"
    reads = (designs.Permutation,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (SizeWeighted, Together))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 1 if self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> designs.Permutation:
        if not isinstance(notion, Together):
            _check(notion)
        return designs.Permutation(n_players, seed, self.truncation)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        semivalue, design = _check(notion), evaluations.design
        if not isinstance(design, designs.Permutation):
            raise DesignMismatch(
                "`permutation` needs coalitions along permutations",
                got=repr(design),
                remedy='Run with estimator="permutation".',
            )
        n, repeats = design.n_players, evaluations.n_repeats
        chains, numbers = _chains(design, evaluations)
        count = len(numbers)
        if not count:
            return self._estimate(
                evaluations,
                notion,
                np.zeros(n),
                np.full(n, np.inf),
                np.ones(n),
                np.zeros((repeats, n)),
            )
        factor = n * semivalue.weights(n)
        player, place = design.orders(numbers).ravel(), np.tile(np.arange(n), count)
        contributions = np.diff(chains, axis=2).reshape(1 + repeats, -1) * factor[place]
        means = np.stack([player_means(column, player, n) for column in contributions])
        errors = contribution_errors(
            contributions[0], place, player, n, np.full(n, 1 / n), evaluations.scale()
        )
        load = np.bincount(player, weights=factor[place], minlength=n)
        load_squares = np.bincount(player, weights=factor[place] ** 2, minlength=n)
        effective = load**2 / np.maximum(load_squares, count * np.mean(factor**2))
        errors = np.where(effective >= 2, errors, np.inf)
        return self._estimate(
            evaluations, notion, means[0], errors, np.maximum(effective - 1, 1.0), means[1:]
        )

    def _estimate(
        self,
        evaluations: Evaluations,
        notion: Notion,
        values: FloatArray,
        errors: FloatArray,
        freedom: FloatArray,
        by_repeat: FloatArray,
    ) -> Estimate:
        return Estimate(
            values,
            errors,
            freedom,
            by_repeat,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def _check(notion: Notion) -> SizeWeighted:
    if not isinstance(notion, SizeWeighted):
        raise DesignMismatch(
            f"`permutation` is for semivalues, and {notion.name} is not one",
            remedy='Use estimator="auto".',
        )
    return notion


def _chains(design: designs.Permutation, evaluations: Evaluations) -> tuple[FloatArray, IntArray]:
    """Utilities along the complete permutations, (1 + repeats, t, n + 1): the mean first; and the
    permutations' numbers.
    """
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
        held = np.take_along_axis(
            chains, np.broadcast_to(last[None, :, None], (*chains.shape[:2], 1)), axis=2
        )
        chains = np.where(np.arange(design.unit) > last[:, None], held, chains)
    complete = following == design.unit
    return chains[:, complete], numbers[complete]
