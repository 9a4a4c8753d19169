"""A game that is a list of numbers."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import ArrayLike

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray


class Table:
    """U as 2**n numbers: bit i of the position is player i.

    >>> Table([0, 0, 0, 1]).utility(np.array([[True, True]]), np.zeros(1, np.uint64))
    array([1.])
    """

    stochastic = False
    call_size = None
    players = None

    def __init__(self, utilities: ArrayLike) -> None:
        try:
            self.utilities = np.array(utilities, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                "`utilities` must be numbers", got=short(utilities), remedy="Pass 2**n floats."
            ) from error
        length = self.utilities.size
        if self.utilities.ndim != 1 or length < 2 or length & (length - 1):
            raise InvalidInput(
                "`utilities` must be 2**n numbers for n players, n >= 1",
                got=f"shape {self.utilities.shape}",
                remedy="Bit i of the position says whether player i is in.",
            )
        bad = np.flatnonzero(~np.isfinite(self.utilities))
        if bad.size:
            raise InvalidInput(
                f"`utilities` must be finite; position {bad[0]} is {self.utilities[bad[0]]} "
                f"({bad.size} such)",
                remedy="Fill in a number for every coalition.",
            )
        self.n_players = length.bit_length() - 1

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        return self.utilities[coalitions @ (1 << np.arange(self.n_players))]

    def fingerprint(self) -> dict[str, str]:
        digest = hashlib.sha256(self.utilities.tobytes()).hexdigest()[:16]
        return {"game": "table", "players": str(self.n_players), "utilities": digest}

    def __repr__(self) -> str:
        return f"Table({self.n_players} players)"
