"""Pairs (S, S + i): one marginal contribution of one player each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.designs.sized import draw_sizes, smallest
from databanzhaf.errors import InvalidInput, check_count
from databanzhaf.protocols import BoolArray, IntArray


@dataclass(frozen=True)
class Paired:
    """Pair j is about player j % n: index 2j is a random S without it, index 2j + 1 is S with it.

    `law[k-1]` is the probability that S has k - 1 players; given its size, S is uniform.
    """

    n_players: int
    seed: int
    law: tuple[float, ...]

    size = None
    unit = 2

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)
        object.__setattr__(self, "law", tuple(float(share) for share in self.law))
        law = np.asarray(self.law)
        if law.shape != (self.n_players,) or not (law >= 0).all() or abs(law.sum() - 1) > 1e-9:
            raise InvalidInput(
                f"`law` must be {self.n_players} probabilities that sum to 1",
                got=f"shape {law.shape}, sum {law.sum():g}",
                remedy="Pass notion.weights(n).",
            )

    def players(self, pairs: IntArray) -> IntArray:
        """The player that each pair is about."""
        return np.asarray(pairs, dtype=np.int64) % self.n_players

    def coalitions(self, indices: IntArray) -> BoolArray:
        index = np.asarray(indices, dtype=np.int64)
        keys = chance.keys(self.seed, chance.DESIGN, index // 2)
        rows, player = np.arange(len(index)), self.players(index // 2)
        words = chance.words(keys, self.n_players)
        words[rows, player] = np.iinfo(np.uint64).max
        coalitions = smallest(words, draw_sizes(keys, np.asarray(self.law), self.n_players))
        coalitions[rows, player] = index % 2 == 1
        return coalitions
