"""Random subsets of a random size: the design `Sized`, and what `paired` and `group_testing` share
with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import InvalidInput, check_count
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, KeyArray


@dataclass(frozen=True)
class Sized:
    """The size of a coalition follows a law; given its size, it is uniform.

    Size s = 0..n has the probability `shares[s]` / sum(shares). Shares are whole numbers, so that
    the law is the same wherever a ledger is read.
    """

    n_players: int
    seed: int
    shares: tuple[int, ...]

    size = None
    unit = 1

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)
        shares: Any = tuple(self.shares)
        whole = all(isinstance(each, (int, np.integer)) and each >= 0 for each in shares)
        if len(shares) != self.n_players + 1 or not whole or not 0 < sum(shares) < 2**53:
            raise InvalidInput(
                f"`shares` must be {self.n_players + 1} whole numbers, 0 or more, whose sum lies "
                "between 0 and 2**53",
                got=f"{len(shares)} of them, such as {shares[:3]}",
                remedy="One for each size, from 0 to the number of players.",
            )
        object.__setattr__(self, "shares", tuple(int(each) for each in shares))

    @property
    def law(self) -> FloatArray:
        """The probability of each size, float64 (n + 1,)."""
        return np.asarray(self.shares, dtype=np.float64) / sum(self.shares)

    def coalitions(self, indices: IntArray) -> BoolArray:
        keys = chance.keys(self.seed, chance.DESIGN, indices)
        shares = np.asarray(self.shares, dtype=np.float64)
        return smallest(
            chance.words(keys, self.n_players), draw_sizes(keys, shares, self.n_players)
        )


def draw_sizes(keys: KeyArray, law: FloatArray, counter: int) -> IntArray:
    """One position of `law` per key, drawn with its probabilities by inversion; uses word
    `counter`.
    """
    edges = np.cumsum(law)
    position = np.searchsorted(
        edges / edges[-1], chance.uniform(keys, 1, counter)[:, 0], side="right"
    )
    return np.minimum(position, len(law) - 1).astype(np.int64)


def smallest(words: KeyArray, sizes: IntArray) -> BoolArray:
    """The `sizes[j]` smallest of row j's words: a uniformly random subset of that size, bool (m,
    n).
    """
    ordered = np.sort(words, axis=1)
    bar = ordered[np.arange(len(words)), np.maximum(sizes, 1) - 1]
    return np.asarray((words <= bar[:, None]) & (sizes > 0)[:, None])
