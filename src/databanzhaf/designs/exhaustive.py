"""Each coalition once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.errors import InvalidInput, check_count
from databanzhaf.protocols import BoolArray, IntArray

LIMIT = 24


@dataclass(frozen=True)
class Exhaustive:
    """Each coalition once: bit i of the index is player i.

    >>> Exhaustive(2).coalitions(np.arange(4)).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """

    n_players: int

    unit = 1

    def __post_init__(self) -> None:
        if check_count("n_players", self.n_players) > LIMIT:
            raise InvalidInput(
                f"every coalition can be listed for at most {LIMIT} players (2**{LIMIT} "
                "coalitions)",
                got=f"{self.n_players}",
                remedy='Sample instead, with estimator="auto", or value groups of rows.',
            )

    @property
    def size(self) -> int:
        return 1 << self.n_players

    def coalitions(self, indices: IntArray) -> BoolArray:
        bits = np.asarray(indices, dtype=np.int64)[:, None] >> np.arange(self.n_players)
        return (bits & 1).astype(np.bool_)
