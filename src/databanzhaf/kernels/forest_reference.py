"""The twin of `forest`: the same trees, node by node in NumPy, every formula in the open."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.kernels.trees import (
    CATEGORIES,
    DRAWS,
    LEFT,
    MANY_TREES,
    MISSING,
    NUMBERS,
    PLAIN,
    RIGHT,
    SAMPLE,
    SECOND_WORD,
    SPLIT,
    WITH_GAPS,
    Table,
    Trees,
)
from databanzhaf.protocols import BoolArray, Float32Array, IntArray, KeyArray

_ALL = (1 << 64) - 1
_LOW = (1 << 32) - 1


@dataclass(frozen=True, eq=False)
class _Split:
    """Rows whose value in `column` is at most `cut` go left; see `_values`."""

    score: float
    column: int
    cut: int
    word: int
    gapless: bool


def grow(
    trees: Trees, table: Table, members: BoolArray, keys: KeyArray, *, unseen: bool = False
) -> tuple[Float32Array, Float32Array | None]:
    """See `forest.grow`."""
    n, n_all = table.n_rows, table.codes.shape[1]
    n_outputs = max(table.n_classes, 1)
    kind = np.float32 if table.n_classes else np.float64
    summed = np.float64 if trees.trees > MANY_TREES else kind
    predicted = np.zeros((len(keys), n_all - n, n_outputs), kind)
    outside = np.full((len(keys), n, n_outputs), np.nan, kind)
    for model, key in enumerate(keys):
        answers = np.zeros((n_all, n_outputs), summed)
        for tree in range(trees.trees):
            of_tree = _fold(int(key), tree)
            rows = _sample(trees, np.flatnonzero(members[model]), _fold(of_tree, SAMPLE))
            _node(trees, table, rows, np.arange(n_all), _fold(of_tree, SPLIT), 0, answers)
        answers /= summed(trees.trees)
        predicted[model] = answers[n:]
        outside[model, ~members[model]] = answers[:n][~members[model]]
    return predicted, outside if unseen else None


def _fold(key: int, number: int) -> int:
    return int(chance.fold(np.array([key], np.uint64), np.array([number], np.uint64))[0])


def _below(bits: int, bound: int) -> int:
    return ((bits & _LOW) * bound) >> 32


def _sample(trees: Trees, present: IntArray, key: int) -> IntArray:
    n = len(present)
    wanted = min(trees.most_rows, max(1, int(trees.share_of_rows * n)))
    if trees.best:
        return present[[_below(_fold(key, j), n) for j in range(wanted)]]
    rows = present.copy()
    for j in range(wanted if wanted < n else 0):
        other = j + _below(_fold(key, j), n - j)
        rows[[j, other]] = rows[[other, j]]
    return rows[:wanted]


def _node(
    trees: Trees,
    table: Table,
    rows: IntArray,
    tests: IntArray,
    key: int,
    depth: int,
    answers: Any,
    constant: frozenset[int] = frozenset(),
) -> None:
    """Answer the rows in `tests` by the tree that the rows grow."""
    y = table.target[rows].astype(np.int64)
    split = None
    if (y != y[0]).any() and len(y) >= 2 * trees.min_samples_leaf and depth < trees.max_depth:
        split, constant = _choose(trees, table, rows, y, key, constant)
    if split is None:
        answers[tests] += _leaf(table, y)
        return
    goes, tests_go = (
        _values(table, split.column, which, split.word) <= split.cut for which in (rows, tests)
    )
    if split.gapless:  # without a gap to learn from, a gap goes with the larger side
        tests_go[table.codes[split.column, tests] == MISSING] = 2 * goes.sum() > len(rows)
    for number, side, tests_side in ((LEFT, goes, tests_go), (RIGHT, ~goes, ~tests_go)):
        _node(
            trees, table, rows[side], tests[tests_side], _fold(key, number), depth + 1, answers,
            constant,
        )  # fmt: skip


def _leaf(table: Table, y: IntArray) -> Any:
    if table.kind == NUMBERS:
        return np.array([y.sum() / len(y)])
    counts = np.bincount(y, minlength=table.n_classes).astype(np.float32)
    return counts / np.float32(len(y))


def _choose(
    trees: Trees, table: Table, rows: IntArray, y: IntArray, key: int, constant: frozenset[int]
) -> tuple[_Split | None, frozenset[int]]:
    """The best of the splits that a node tries, the first of equally good ones, and the columns now
    known to be constant.
    """
    best: _Split | None = None
    d, found, draw, seen = len(table.kinds), 0, 0, set(constant)
    while found < trees.columns_tried and len(seen) < d:
        word = _fold(key, draw)
        column = _below(word, d) if draw < DRAWS * d else (draw + _below(key, d)) % d
        draw += 1
        if column in seen:
            continue
        seen.add(column)
        second = _fold(key, SECOND_WORD + draw)
        values = _values(table, column, rows, second)
        gaps = (table.codes[column, rows] == MISSING) & (table.kinds[column] == WITH_GAPS)
        known = values[~gaps]
        if gaps.all() or (not gaps.any() and (known == known[0]).all()):
            constant = constant | {column}
            continue
        found += 1
        shift = second & 1 if table.kinds[column] == WITH_GAPS else 0
        if trees.best:
            cuts = _cuts(values, shift if gaps.any() else None)
        elif (known == known[0]).all():
            cuts = [0 if shift else MISSING - 1]
        else:
            low, high = int(known.min()), int(known.max())
            cuts = [low + _below(word >> 32, high - low)]
        for cut in cuts:
            score = _score(table, values <= cut, y, trees.min_samples_leaf)
            if score > (best.score if best else -1.0):
                gapless = bool(table.kinds[column] == WITH_GAPS and not gaps.any())
                best = _Split(score, column, cut, second, gapless)
        if best is not None and table.n_classes and best.score >= len(y):
            break
    return best, constant


def _cuts(values: IntArray, shift: int | None) -> list[int]:
    """Halfway between neighbouring values; if there are gaps (`shift` says where they lie), they
    are parted from all that is known.
    """
    cuts = []
    for low, high in pairwise(int(value) for value in np.unique(values)):
        if (shift == 1 and low == 0) or (shift == 0 and high == MISSING):
            cuts.append(0 if shift else MISSING - 1)
        else:
            cuts.append((low + high) // 2)
    return cuts


def _values(table: Table, column: int, rows: IntArray, word: int) -> IntArray:
    """What a split compares: codes; with gaps below or above all others by a random bit; or
    categories in a random order.
    """
    codes: IntArray = table.codes[column, rows].astype(np.int64)
    if table.kinds[column] == PLAIN:
        return codes
    if table.kinds[column] == WITH_GAPS:
        return np.bitwise_and(codes + (word & 1), MISSING)
    assert table.kinds[column] == CATEGORIES
    factor = word | 1
    return np.array([_ordered(int(code), factor) for code in codes], dtype=np.int64)


def _ordered(code: int, factor: int) -> int:
    x = (((code * factor) & _ALL) + (factor >> 40)) & MISSING
    x ^= x >> 8
    x = (x * ((factor >> 20) | 1)) & MISSING
    return x ^ (x >> 8)


def _score(table: Table, goes: Any, y: IntArray, least: int) -> float:
    """Classes: the sum of squared class counts on each side, over its size. Numbers: what the split
    takes from the squared errors.
    """
    left, right = float(goes.sum()), float((~goes).sum())
    if min(left, right) < least:
        return -1.0
    if not table.n_classes:
        beyond = float(y[goes].sum()) - left * (float(y.sum()) / (left + right))
        return beyond * beyond * ((left + right) / (left * right))
    left_squares, right_squares = (
        float(np.sum(np.float64(np.bincount(y[side])) ** 2)) for side in (goes, ~goes)
    )
    return (left_squares * right + right_squares * left) / (left * right)
