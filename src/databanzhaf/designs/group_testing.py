"""Subsets of the players and a dummy, with sizes that lean to the ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.designs.sized import draw_sizes, smallest
from databanzhaf.errors import check_count
from databanzhaf.protocols import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class GroupTesting:
    """Among N = n + 1 players, the last a dummy, size k has probability (1/k + 1/(N - k)) / Z, k =
    1..N-1.
    """

    n_players: int
    seed: int

    size = None
    unit = 1

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)

    def _rates(self) -> FloatArray:
        k = np.arange(1, self.n_players + 1)
        return 1 / k + 1 / (self.n_players + 1 - k)

    @property
    def normaliser(self) -> float:
        """Z, the sum of 1/k + 1/(N - k)."""
        return float(self._rates().sum())

    def with_dummy(self, indices: IntArray) -> BoolArray:
        """Coalitions of the n players and, in the last column, the dummy; bool (m, n + 1)."""
        keys = chance.keys(self.seed, chance.DESIGN, indices)
        sizes = 1 + draw_sizes(keys, self._rates() / self.normaliser, self.n_players + 1)
        return smallest(chance.words(keys, self.n_players + 1), sizes)

    def coalitions(self, indices: IntArray) -> BoolArray:
        return self.with_dummy(indices)[:, :-1]
