"""Everybody, then everybody but one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.errors import check_count
from databanzhaf.protocols import BoolArray, IntArray


@dataclass(frozen=True)
class LeaveOneOut:
    """Index 0 is everybody; index 1 + i is everybody but player i."""

    n_players: int

    unit = 1

    def __post_init__(self) -> None:
        check_count("n_players", self.n_players)

    @property
    def size(self) -> int:
        return self.n_players + 1

    def coalitions(self, indices: IntArray) -> BoolArray:
        index = np.asarray(indices)
        return np.asarray(np.arange(1, self.n_players + 1) != index[:, None])
