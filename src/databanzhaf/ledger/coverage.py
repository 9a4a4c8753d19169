"""Which indices a ledger has evaluations of, and which it lacks."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from databanzhaf.protocols import IntArray

Ranges = tuple[tuple[int, int], ...]
# Ranges that a sentence shows.
MOST = 5


@dataclass(frozen=True)
class Coverage:
    """What a ledger holds.

    Attributes
    ----------
    evaluations, coalitions, repeats : int
        How many; `repeats` is the largest number that a coalition has.
    largest : int
        The largest index; -1 where there is none.
    missing : tuple of (first, last)
        Indices below the largest without any evaluation.
    fewer : tuple of (first, last)
        Indices with fewer repeats than others.
    """

    evaluations: int
    coalitions: int
    repeats: int
    largest: int
    missing: Ranges = field(repr=False)
    fewer: Ranges = field(repr=False)

    @classmethod
    def none(cls) -> Self:
        """Of a ledger without evaluations."""
        return cls(0, 0, 0, -1, (), ())

    @classmethod
    def of(cls, indices: IntArray, counts: IntArray) -> Self:
        """From increasing indices, and how many evaluations each has."""
        if not len(indices):
            return cls.none()
        before = np.concatenate([[-1], indices[:-1]])
        gaps = np.flatnonzero(indices - before > 1)
        missing = zip((before[gaps] + 1).tolist(), (indices[gaps] - 1).tolist(), strict=True)
        repeats = int(counts.max())
        return cls(
            int(counts.sum()),
            len(indices),
            repeats,
            int(indices[-1]),
            tuple(missing),
            ranges(indices[counts < repeats]),
        )

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> Self:
        """From the table of evaluations."""
        rows = connection.execute("SELECT idx, count(*) FROM evaluations GROUP BY idx ORDER BY idx")
        parts = [np.empty((0, 2), dtype=np.int64)]
        while chunk := rows.fetchmany(65536):
            parts.append(np.array(chunk, dtype=np.int64))
        indices, counts = np.concatenate(parts).T
        return cls.of(indices, counts)


def ranges(indices: IntArray) -> Ranges:
    """Increasing indices as (first, last) of each run of neighbours."""
    if not len(indices):
        return ()
    cuts = np.flatnonzero(np.diff(indices) > 1)
    firsts, lasts = np.r_[indices[0], indices[cuts + 1]], np.r_[indices[cuts], indices[-1]]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


def spelled(some: Ranges) -> str:
    """The first ranges in words, and how many more there are."""
    shown = [f"{low:,}" if low == high else f"{low:,} to {high:,}" for low, high in some[:MOST]]
    more = len(some) - MOST
    rest = [f"and {more:,} more range{'' if more == 1 else 's'}"] if more > 0 else []
    return ", ".join([*shown, *rest])
