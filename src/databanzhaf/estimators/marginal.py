"""Any semivalue from pairs (S, S + i)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from databanzhaf.designs import Paired
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.moments import contribution_errors, player_means
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import IntArray, Notion


@dataclass(frozen=True)
class Marginal:
    r"""Simple Monte Carlo: the mean of :math:`U(S \cup i) - U(S)` over each player's own pairs.

    The size of S follows the notion's law, so the mean is unweighted. Each training informs one
    player. The standard error is that of `moments.contribution_errors`.
    """

    name = "marginal"
    reads = (Paired,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, SizeWeighted)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Paired:
        if not isinstance(notion, SizeWeighted):
            raise DesignMismatch(
                f"`marginal` is for semivalues, and {notion.name} is not one",
                remedy='Use estimator="auto".',
            )
        return Paired(n_players, seed, tuple(notion.weights(n_players).tolist()))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        design = evaluations.design
        if not isinstance(design, Paired):
            raise DesignMismatch(
                "`marginal` needs pairs (S, S + i)",
                got=repr(design),
                remedy='Run with estimator="marginal".',
            )
        if design.law != self.design(notion, design.n_players, design.seed).law:
            raise DesignMismatch(
                f"these pairs were drawn with the sizes of another notion, not {notion.name}",
                remedy="Run again for this notion.",
            )
        index = evaluations.indices
        first = np.flatnonzero((index[:-1] % 2 == 0) & (index[1:] == index[:-1] + 1))
        contributions = evaluations.utilities[first + 1] - evaluations.utilities[first]
        player = design.players(index[first] // 2)
        n = design.n_players
        values = player_means(contributions.mean(axis=1), player, n)
        by_repeat = np.stack([player_means(column, player, n) for column in contributions.T])
        size = np.concatenate([np.empty(0, np.int64), *self._sizes(design, index[first])])
        errors = contribution_errors(
            contributions.mean(axis=1), size, player, n, np.asarray(design.law), evaluations.scale()
        )
        freedom = np.maximum(np.bincount(player, minlength=n) - 1.0, 1.0)
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

    def _sizes(self, design: Paired, indices: IntArray) -> Iterator[IntArray]:
        """How many players S has in each pair, block by block."""
        step = max(1, BLOCK_CELLS // design.n_players)
        for low in range(0, len(indices), step):
            yield design.coalitions(indices[low : low + step]).sum(axis=1)
