"""Any semivalue from pairs (S, S + i)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.designs import Paired
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimators.moments import doubt, mean_and_error
from databanzhaf.notions import Notion, SizeWeighted
from databanzhaf.types import Estimate, Evaluations


@dataclass(frozen=True)
class Marginal:
    r"""Simple Monte Carlo: the mean of :math:`U(S \cup i) - U(S)` over each player's own pairs.

    The size of S follows the notion's law, so the mean is unweighted. Each training informs one player.
    """

    name = "marginal"

    def design(self, notion: Notion, n_players: int, seed: int) -> Paired:
        if not isinstance(notion, SizeWeighted):
            raise DesignMismatch(f'`marginal` is for semivalues; {notion.name} is none. Use estimator="auto".')
        return Paired(n_players, seed, tuple(notion.weights(n_players).tolist()))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        design = evaluations.design
        if not isinstance(design, Paired):
            raise DesignMismatch(f'`marginal` needs pairs (S, S + i); got {design!r}. Run with estimator="marginal".')
        if design.law != self.design(notion, design.n_players, design.seed).law:
            raise DesignMismatch(f"these pairs were drawn with the sizes of another notion, not {notion.name}. Run again for this notion.")
        index = evaluations.indices
        first = np.flatnonzero((index[:-1] % 2 == 0) & (index[1:] == index[:-1] + 1))
        contributions = evaluations.utilities[first + 1] - evaluations.utilities[first]
        player = design.players(index[first] // 2)
        contribution = contributions.mean(axis=1)
        mean, error, freedom = mean_and_error(contribution, player, design.n_players)
        spread = float(np.abs(contribution - mean[player]).max(initial=0.0))
        error = doubt(error, np.bincount(player, minlength=design.n_players).astype(np.float64), spread, evaluations.scale())
        by_repeat = np.stack([mean_and_error(column, player, design.n_players)[0] for column in contributions.T])
        return Estimate(mean, error, freedom, by_repeat, evaluations.n_evaluations, notion.name, self.name, evaluations.players)
