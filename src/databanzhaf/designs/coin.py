"""Every player joins by an independent coin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.protocols import BoolArray, IntArray


@dataclass(frozen=True)
class Coin:
    """Players join independently with probability p. A fair coin draws coalitions uniformly from
    all 2^n.
    """

    n_players: int
    seed: int
    p: float = 0.5

    size = None
    unit = 1

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)
        if not 0 < self.p < 1:
            raise InvalidInput(
                "`p` must lie strictly between 0 and 1",
                got=short(self.p),
                remedy="A fair coin is p=0.5.",
            )

    @property
    def outside(self) -> float:
        """The probability that a player is out, whoever else is in."""
        return 1 - self.p

    def coalitions(self, indices: IntArray) -> BoolArray:
        keys = chance.keys(self.seed, chance.DESIGN, indices)
        if self.p == 0.5:
            return chance.bits(keys, self.n_players)
        return np.asarray(chance.uniform(keys, self.n_players) < self.p)
