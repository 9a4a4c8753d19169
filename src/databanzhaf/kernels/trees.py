"""What the forest kernels grow, and the table they grow it on: columns as bins, labels as whole
numbers.

A column's bins are a property of the dataset: they are made once, from all training rows, and serve
every coalition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from databanzhaf.protocols import BoolArray, FloatArray, Int32Array, IntArray, UInt16Array

# Streams of a tree's key (see `chance`): which rows it gets, and how it splits them.
SAMPLE, SPLIT = range(2)
# Numbers folded into a node's key: from 0 on its draws of columns; its children's keys, and the
# second word of each draw, lie where no draw comes.
LEFT, RIGHT, SECOND_WORD = 1 << 60, 1 << 61, 1 << 62
TWO_CLASSES, MANY_CLASSES, NUMBERS = range(3)
# Kinds of columns.
PLAIN, WITH_GAPS, CATEGORIES = range(3)
MOST_BINS: Final = 255
MISSING: Final = 65535
# Where random draws of a column keep hitting known ones, so many times the number of columns, they
# are gone through in their order.
DRAWS: Final = 6
# Slopes and curvatures of a boosted loss are whole multiples of 1 / UNIT; a leaf needs so much
# curvature; the score of a class that the coalition lacks is -ABSENT.
UNIT: Final = 2.0**24
LEAST_CURVATURE: Final = 1e-3
ABSENT: Final = 30.0
# With more trees than this their answers are summed in 64 bits.
MANY_TREES: Final = 256
# Targets farther from the median than so many times the usual distance count as that far.
FARTHEST: Final = 1e6
# A target of a regression is a whole number of steps from their median, 2^42 for the farthest
# (fewer above a million rows): sums are exact, whatever their order.
_TARGET_BITS: Final = 42


@dataclass(frozen=True)
class Trees:
    """How a forest is grown; see `games.Forest` for the meaning of each field."""

    trees: int
    best: bool
    columns_tried: int
    max_depth: int
    min_samples_leaf: int
    share_of_rows: float = 1.0
    most_rows: int = 1 << 40


@dataclass(frozen=True)
class Boosted:
    """How trees are boosted; see `games.Boosting` for the meaning of each field."""

    trees: int
    learning_rate: float
    max_leaves: int
    min_samples_leaf: int
    l2: float
    bins: int


@dataclass(frozen=True, eq=False)
class Table:
    """Training rows, then validation rows, as codes.

    codes uint16 (columns, rows + validation rows), `MISSING` where a cell is; kinds (columns,) are
    PLAIN, WITH_GAPS or CATEGORIES; target (rows,) are class numbers, int32, or targets in steps of
    `unit` from `center`, int64; n_classes is 0 for a regression. Columns with one code in all rows
    are left out.
    """

    codes: UInt16Array
    kinds: Int32Array
    target: Int32Array | IntArray
    n_classes: int
    center: float = 0.0
    unit: float = 1.0

    @property
    def n_rows(self) -> int:
        return len(self.target)

    @property
    def kind(self) -> int:
        if not self.n_classes:
            return NUMBERS
        return TWO_CLASSES if self.n_classes <= 2 else MANY_CLASSES


def binned(
    column: FloatArray, n_rows: int, *, spread: bool, most: int = MOST_BINS
) -> tuple[UInt16Array, int]:
    """Codes of a column of numbers, by bins that its first `n_rows` make, and its kind.

    Up to 255 (`most`) distinct values keep a bin each; more are cut where the sorted rows reach
    each 255th part. A value between two bins goes to the nearer one. Codes count the bins, or
    `spread` them over 0 to 65534 as the means of their values lie, one apart at least: an even draw
    among such codes is nearly one among the values.
    """
    column = np.clip(column, -1e300, 1e300)
    missing = np.isnan(column)
    known = np.sort(column[:n_rows][~missing[:n_rows]])
    distinct = np.unique(known)
    ends = np.arange(len(distinct) - 1)  # the last value of each bin but the last bin's
    if len(distinct) > most:
        cuts = np.arange(1, most) * len(known) // most
        ends = np.unique(np.searchsorted(distinct, known[cuts - 1]))
        ends = ends[ends < len(distinct) - 1]
    low, high = distinct[ends], distinct[ends + 1]
    middle = low / 2 + high / 2
    edges = np.where((low <= middle) & (middle < high), middle, low)  # neighbours have no middle
    bins = np.searchsorted(edges, column)
    if spread and len(edges):
        width = distinct[-1] - distinct[0]
        shares = (known - distinct[0]) / width
        of_known = np.searchsorted(edges, known)
        means = np.bincount(of_known, weights=shares) / np.bincount(of_known)
        number = np.arange(len(means))
        places = np.round(means * (MISSING - 1 - number[-1])).astype(np.int64)
        codes = (np.maximum.accumulate(places) + number).astype(np.uint16)[bins]
    else:
        codes = bins.astype(np.uint16)
    codes[missing] = MISSING
    return codes, WITH_GAPS if missing.any() else PLAIN


def make_table(columns: Sequence[tuple[UInt16Array, int]], labels: Any, n_classes: int) -> Table:
    """The table of coded columns and training labels: class numbers, or targets when `n_classes` is
    0.
    """
    used = [column for column in columns if (column[0] != column[0][0]).any()] or [columns[0]]
    codes = np.stack([codes for codes, _ in used])
    kinds = np.array([kind for _, kind in used], dtype=np.int32)
    if n_classes:
        return Table(codes, kinds, np.asarray(labels, dtype=np.int32), n_classes)
    target = np.asarray(labels, dtype=np.float64)
    center = float(np.median(target))
    bits = min(_TARGET_BITS, 61 - len(target).bit_length())
    away = np.abs(target - center)
    # One absurd target must not cost all others their digits: beyond a million times the distance
    # that three quarters of the rows keep to, a target counts as that far away.
    usual = FARTHEST * float(np.quantile(away, 0.75))
    farthest = min(float(away.max()), usual) if usual > 0 else float(away.max())
    unit = farthest / 2.0**bits or 1.0
    steps = np.round(np.clip(target - center, -farthest, farthest) / unit).astype(np.int64)
    return Table(codes, kinds, steps, 0, center, unit)


def parted(answers: Any, members: BoolArray, unseen: bool) -> tuple[Any, Any]:
    """(predictions for the validation rows, those for the training rows that a model did not see
    or None) of answers (m, rows and validation rows, ...), or without the training rows.
    """
    if not unseen:
        return answers, None
    n = members.shape[1]
    answers[:, :n][members] = np.nan
    return answers[:, n:], answers[:, :n]
