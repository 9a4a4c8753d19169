"""Fair-coin coalitions, with the empty and the full one first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.designs.coin import Coin
from databanzhaf.protocols import BoolArray, IntArray


@dataclass(frozen=True)
class Anchored:
    """Index 0 is the empty coalition, index 1 the full one; the rest are fair-coin coalitions. The
    least core needs all three.
    """

    n_players: int
    seed: int

    size = None
    unit = 1

    def __post_init__(self) -> None:
        Coin(self.n_players, self.seed)

    def coalitions(self, indices: IntArray) -> BoolArray:
        index = np.asarray(indices)
        coalitions = Coin(self.n_players, self.seed).coalitions(index)
        coalitions[index == 0] = False
        coalitions[index == 1] = True
        return coalitions
