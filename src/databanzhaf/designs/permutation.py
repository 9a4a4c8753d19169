"""Growing coalitions along random permutations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.protocols import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Permutation:
    """Index t (n + 1) + k is the first k players of permutation t, k = 0..n.

    Each permutation evaluates its own empty and full coalition, so permutations stay independent
    draws under training noise, and their spread is an honest standard error.

    With `truncation`, a permutation stops at the first coalition whose utility is that close to its
    own U(N); the players after it contribute nothing (TMC, Ghorbani & Zou 2019). This saves
    trainings and is biased.
    """

    n_players: int
    seed: int
    truncation: float | None = None

    size = None

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)
        chance.check_seed(self.seed)
        if self.truncation is not None and not 0 <= self.truncation < np.inf:
            raise InvalidInput(
                "`truncation` must be None or a number, 0 or more",
                got=short(self.truncation),
                remedy="Try 0.01.",
            )

    @property
    def unit(self) -> int:
        return self.n_players + 1

    def orders(self, permutations: IntArray) -> IntArray:
        """The players in the order in which they join, int64 (permutations, n)."""
        words = chance.words(chance.keys(self.seed, chance.DESIGN, permutations), self.n_players)
        return np.argsort(words, axis=1, kind="stable").astype(np.int64)

    def coalitions(self, indices: IntArray) -> BoolArray:
        permutation, count = np.divmod(np.asarray(indices, dtype=np.int64), self.unit)
        distinct, which = np.unique(permutation, return_inverse=True)
        orders = self.orders(distinct)
        places = np.empty_like(orders)
        np.put_along_axis(places, orders, np.arange(self.n_players)[None, :], axis=1)
        return np.asarray(places[which] < count[:, None])

    def fill(self, chains: FloatArray) -> tuple[FloatArray, IntArray]:
        """Complete the utilities along permutations, (t, n + 1) with NaN where nothing was
        evaluated.

        Returns the chains with truncated tails filled in, and for each the position to evaluate
        next: n + 1 when the permutation is complete.
        """
        chains = np.array(chains)
        if self.truncation is None:
            return chains, self._first_gap(chains)
        reached = np.cumsum(np.isnan(chains), axis=1) == 0
        with np.errstate(invalid="ignore"):
            near = reached & (np.abs(chains - chains[:, -1:]) <= self.truncation)
        stopped, first = near.any(axis=1), near.argmax(axis=1)
        tail = stopped[:, None] & (np.arange(self.unit) >= first[:, None])
        chains = np.where(tail, chains[np.arange(len(chains)), first][:, None], chains)
        # U(N) is the yardstick, so it comes first.
        return chains, np.where(np.isnan(chains[:, -1]), self.n_players, self._first_gap(chains))

    def _first_gap(self, chains: FloatArray) -> IntArray:
        missing = np.isnan(chains)
        return np.where(missing.any(axis=1), missing.argmax(axis=1), self.unit).astype(np.int64)

    def wave(self, chains: FloatArray) -> IntArray:
        """Indices to evaluate next, given the utilities so far, (t, n + 1) with NaN for what is
        missing.
        """
        if self.truncation is None:
            return np.flatnonzero(np.isnan(chains)).astype(np.int64)
        position = self.fill(chains)[1]
        unfinished = np.flatnonzero(position < self.unit)
        return (unfinished * self.unit + position[unfinished]).astype(np.int64)
