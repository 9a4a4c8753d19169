"""Fair coins, each coalition followed by its complement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import check_count
from databanzhaf.protocols import BoolArray, IntArray


@dataclass(frozen=True)
class Complementary:
    """Index 2j is a fair-coin coalition, index 2j + 1 holds everyone else.

    The difference of the two utilities is free of every interaction of an even number of players.
    """

    n_players: int
    seed: int

    size = None
    unit = 2

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)

    @property
    def outside(self) -> float:
        """The probability that a player is out, whoever else is in."""
        return 0.5

    def coalitions(self, indices: IntArray) -> BoolArray:
        index = np.asarray(indices, dtype=np.int64)
        keys = chance.keys(self.seed, chance.DESIGN, index // 2)
        return np.asarray(chance.bits(keys, self.n_players) ^ (index % 2 == 1)[:, None])
