"""Juries in folds, for designs that leave no row outside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.designs.storing import restore
from databanzhaf.protocols import BoolArray, Design, IntArray


@dataclass(frozen=True)
class Folds:
    """Each fold of the rows judges models of the other rows: one design for each fold, in turn.

    Attributes
    ----------
    n_players : int
    parts : tuple of descriptions
        The design of each fold, among the players that it leaves.
    player_folds : tuple of int
        The fold that each player judges in, or -1 for every player where the rows of each player
        are cut into folds (few groups).
    judge_folds : tuple of int
        The fold that each judging row judges in.
    row_folds, row_players : tuple of int
        Where the rows of each player are cut into folds: the fold and the player of each training
        row. Then coalitions are of rows.
    """

    n_players: int
    parts: tuple[dict[str, Any], ...]
    player_folds: tuple[int, ...]
    judge_folds: tuple[int, ...]
    row_folds: tuple[int, ...] = ()
    row_players: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("parts", "player_folds", "judge_folds", "row_folds", "row_players"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @cached_property
    def designs(self) -> tuple[Design, ...]:
        """The design of each fold."""
        return tuple(restore(dict(part)) for part in self.parts)

    @cached_property
    def _lengths(self) -> IntArray:
        """Indices of each fold that come in a row: all of a finite design, a unit of an endless
        one.
        """
        return np.array([design.size or design.unit for design in self.designs])

    @property
    def size(self) -> int | None:
        return None if self.designs[0].size is None else int(self._lengths.sum())

    @property
    def unit(self) -> int:
        return 1 if self.designs[0].size is not None else int(self._lengths.sum())

    def places(self, indices: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """The fold of each index, its index in the design of that fold, and the number of its
        sample.
        """
        block, offset = np.divmod(np.asarray(indices, dtype=np.int64), int(self._lengths.sum()))
        ends = np.cumsum(self._lengths)
        fold = np.searchsorted(ends, offset, side="right")
        inner = block * self._lengths[fold] + offset - (ends - self._lengths)[fold]
        return fold, inner, block * len(self.parts) + fold

    def samples(self, indices: IntArray) -> IntArray:
        """Which sample (coalition, pair, permutation) an index belongs to."""
        return self.places(indices)[2]

    def players(self, fold: int) -> IntArray:
        """The players that a fold values."""
        return np.flatnonzero(np.asarray(self.player_folds) != fold)

    def by_fold(self, indices: IntArray) -> Iterator[tuple[int, IntArray, IntArray]]:
        """Each fold that has indices: its number, their places and their indices in its design."""
        fold, inner, _ = self.places(indices)
        for number in np.unique(fold).tolist():
            where = np.flatnonzero(fold == number)
            yield number, where, inner[where]

    def coalitions(self, indices: IntArray) -> BoolArray:
        out = np.zeros((len(indices), self.n_players), dtype=np.bool_)
        for number, where, inner in self.by_fold(indices):
            out[np.ix_(where, self.players(number))] = self.designs[number].coalitions(inner)
        if not self.row_players:
            return out
        fold = self.places(indices)[0]
        rows = out[:, self.row_players] & (np.asarray(self.row_folds) != fold[:, None])
        return np.asarray(rows)

    def judging(self, indices: IntArray) -> BoolArray:
        """Which rows judge the model of each index, (indices, judges)."""
        return np.asarray(np.asarray(self.judge_folds) == self.places(indices)[0][:, None])
