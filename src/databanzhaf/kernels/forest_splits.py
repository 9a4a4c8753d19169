"""The pieces of the forest kernel, compiled by Numba: what a split compares, how good it is, where
rows go, what a leaf answers.

An item of a node's list is a row number in its low 32 bits; above them lies the row's target, if it
is a training row.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import uint64

from databanzhaf.kernels.numba_chance import below, compiled, fold, inlined
from databanzhaf.kernels.trees import (
    CATEGORIES,
    MANY_CLASSES,
    MISSING,
    NUMBERS,
    PLAIN,
    SECOND_WORD,
    TWO_CLASSES,
)

_MASK: Final = np.uint32(MISSING)
_SECOND_WORD: Final = uint64(SECOND_WORD)
# From so many rows on, the smallest and the largest value are looked for in a second pass, which
# becomes vector instructions: 0.31 instead of 0.50 ns a row for 1,000 rows, 1.3 instead of 0.6 for
# 8.
MANY_ROWS: Final = 32
# Up to so many rows are sorted by insertion, more by counting.
_FEW_ROWS: Final = 24


@compiled
def sample(rows, present, n_present, key, share, most, again):  # type: ignore[no-untyped-def]
    """Write the rows of one tree, drawn with replacement (`again`) or without; return how many."""
    wanted = min(most, max(1, np.int64(share * n_present)))
    if again:
        for j in range(wanted):
            rows[j] = present[below(fold(key, j), n_present)]
        return wanted
    for j in range(n_present):
        rows[j] = present[j]
    if wanted >= n_present:
        return n_present
    for j in range(wanted):
        other = j + below(fold(key, j), n_present - j)
        kept = rows[j]
        rows[j] = rows[other]
        rows[other] = kept
    return wanted


@compiled
def load(values, codes, base, rows, at, k, kind, key, draw):  # type: ignore[no-untyped-def]
    """Write what a split of a column compares, one value for each of the k rows.

    Returns the smallest and the largest value that is known, how many are missing, and how a code
    becomes a value: plus `shift` (gaps lie below all others, or above, by a random bit), or in an
    order of the categories that `factor` makes.
    """
    smallest, largest, gaps = _MASK, np.uint32(0), np.int64(0)
    shift, factor = np.uint32(0), uint64(0)
    if kind == PLAIN:
        for j in range(k):
            values[j] = codes[base + uint64(np.uint32(rows[at + uint64(j)]))]
        low, high = np.uint16(MISSING), np.uint16(0)
        for j in range(k):
            low, high = min(low, values[j]), max(high, values[j])
        smallest, largest = np.uint32(low), np.uint32(high)
    elif kind == CATEGORIES:
        factor = fold(key, _SECOND_WORD + uint64(draw)) | uint64(1)
        for j in range(k):
            value = _ordered(codes[base + uint64(np.uint32(rows[at + uint64(j)]))], factor)
            values[j] = value
            smallest, largest = min(smallest, value), max(largest, value)
    else:
        shift = np.uint32(fold(key, _SECOND_WORD + uint64(draw)) & uint64(1))
        for j in range(k):
            code = np.uint32(codes[base + uint64(np.uint32(rows[at + uint64(j)]))])
            value = (code + shift) & _MASK
            values[j] = value
            if code == _MASK:
                gaps += 1
            else:
                smallest, largest = min(smallest, value), max(largest, value)
    return smallest, largest, gaps, shift, factor


@compiled
def between_gaps(shift):  # type: ignore[no-untyped-def]
    """The cut that parts what is known from what is missing."""
    return np.uint32(0) if shift else np.uint32(MISSING - 1)


@compiled
def _ordered(code, factor):  # type: ignore[no-untyped-def]
    """The place of a category in a random order: a bijection of the codes for each odd `factor`."""
    x = np.uint32(uint64(code) * factor + (factor >> uint64(40))) & _MASK
    x ^= x >> np.uint32(8)
    x = np.uint32(uint64(x) * ((factor >> uint64(20)) | uint64(1))) & _MASK
    return x ^ (x >> np.uint32(8))


@inlined
def divide(items, source, to, k, codes, base, cut, shift, factor):  # type: ignore[no-untyped-def]
    """Write the k items from place `source` on to place `to` on: those whose rows go left first,
    the others from the end; return how many go left.
    """
    left, last = 0, k - 1
    if factor:
        for j in range(k):
            item = items[source + uint64(j)]
            goes = _ordered(codes[base + uint64(np.uint32(item))], factor) <= cut
            items[to + uint64(left if goes else last - j + left)] = item
            left += goes
    else:
        for j in range(k):
            item = items[source + uint64(j)]
            goes = ((np.uint32(codes[base + uint64(np.uint32(item))]) + shift) & _MASK) <= cut
            items[to + uint64(left if goes else last - j + left)] = item
            left += goes
    return left


@inlined
def split_score(values, y, k, kind, least, total, squares, counts, cut):  # type: ignore[no-untyped-def]
    """How well `values <= cut` splits a node; more is better, -1 if a side is too small.

    Classes: the sum of squared class counts on each side, over its size (Gini's criterion up to
    constants). Numbers: how far the left sum lies from its share, squared, over the sizes: what
    the split takes from the squared errors. `total` is the node's sum of targets, `squares` its sum
    of squared class counts, `counts` its class counts and zeros.
    """
    if kind == TWO_CLASSES:
        # In 32 bits twice as many go at a time.
        edge, few, ones = np.uint16(cut), np.int32(0), np.int32(0)
        for j in range(k):
            goes = np.int32(values[j] <= edge)
            few = np.int32(few + goes)
            ones = np.int32(ones + (goes & y[j]))
        left, summed = np.int64(few), np.int64(ones)
        if left < least or k - left < least:
            return -1.0
        return _two_sides(kind, summed, left, total - summed, k - left)
    if kind == MANY_CLASSES:
        left, mine, cross = np.int64(0), np.int64(0), np.int64(0)
        for j in range(k):
            if values[j] <= cut:
                c = y[j]
                mine += 2 * counts[1, c] + 1
                cross += counts[0, c]
                counts[1, c] += 1
                left += 1
        for j in range(k):
            counts[1, y[j]] = 0
        if left < least or k - left < least:
            return -1.0
        return _mean_squares(mine, left, squares - 2 * cross + mine, k - left)
    left, summed = np.int64(0), np.int64(0)
    for j in range(k):
        goes = values[j] <= cut
        left += goes
        summed += goes * y[j]
    if left < least or k - left < least:
        return -1.0
    return _two_sides(kind, summed, left, total - summed, k - left)


@inlined
def _mean_squares(left_squares, left, right_squares, right):  # type: ignore[no-untyped-def]
    """left_squares / left + right_squares / right, by one division."""
    x, z = np.float64(left), np.float64(right)
    return (np.float64(left_squares) * z + np.float64(right_squares) * x) / (x * z)


@inlined
def _two_sides(kind, left_sum, left, right_sum, right):  # type: ignore[no-untyped-def]
    """The score of a split from the sums of targets on its sides."""
    if kind == NUMBERS:
        size = np.float64(left + right)
        beyond = np.float64(left_sum) - left * (np.float64(left_sum + right_sum) / size)
        return beyond * beyond * (size / (np.float64(left) * np.float64(right)))
    left_zeros, right_zeros = left - left_sum, right - right_sum
    return _mean_squares(
        left_sum * left_sum + left_zeros * left_zeros,
        left,
        right_sum * right_sum + right_zeros * right_zeros,
        right,
    )


@compiled
def best_cut(  # type: ignore[no-untyped-def]
    values, y, k, kind, least, total, squares, counts, sorting, histogram, gaps, shift
):  # fmt: skip
    """The best cut of one column: (score, cut), the lowest of equally good ones."""
    _sort(values, k, sorting, histogram)
    best, cut = -1.0, np.uint32(0)
    left, mine, rest, summed = np.int64(0), np.int64(0), squares, np.int64(0)
    for place in range(k - 1):
        label = y[sorting[place] & 0xFFFFFFFF]
        now, after = sorting[place] >> 32, sorting[place + 1] >> 32
        left += 1
        if kind == MANY_CLASSES:
            mine += 2 * counts[1, label] + 1
            rest -= 2 * (counts[0, label] - counts[1, label]) - 1
            counts[1, label] += 1
        else:
            summed += label
        if now == after or left < least or k - left < least:
            continue
        if kind == MANY_CLASSES:
            score = _mean_squares(mine, left, rest, k - left)
        else:
            score = _two_sides(kind, summed, left, total - summed, k - left)
        if score > best:
            best = score
            cut = np.uint32((now + after) // 2)
            if gaps and (now == 0 if shift else after == MISSING):
                cut = between_gaps(shift)
    if kind == MANY_CLASSES:
        for j in range(k):
            counts[1, y[j]] = 0
    return best, cut


@compiled
def _sort(values, k, sorting, histogram):  # type: ignore[no-untyped-def]
    """Values in order, each above its place: value * 2^32 + place."""
    if k <= _FEW_ROWS:
        for j in range(k):
            item, at = (np.int64(values[j]) << 32) | j, j
            while at > 0 and sorting[at - 1] > item:
                sorting[at] = sorting[at - 1]
                at -= 1
            sorting[at] = item
        return
    low, high = np.int64(MISSING), np.int64(0)
    for j in range(k):
        value = np.int64(values[j])
        low, high = min(low, value), max(high, value)
        histogram[value + 1] += 1
    for bin in range(low, high + 1):
        histogram[bin + 1] += histogram[bin]
    for j in range(k):
        value = np.int64(values[j])
        sorting[histogram[value]] = (value << 32) | j
        histogram[value] += 1
    for bin in range(low, high + 2):
        histogram[bin] = 0


@compiled
def is_pure(rows, at, k, target, kind):  # type: ignore[no-untyped-def]
    """Whether the k rows from place `at` on have one target."""
    if kind == NUMBERS:
        label = target[np.uint32(rows[at])]
        for j in range(1, k):  # noqa: SIM110
            if target[np.uint32(rows[at + uint64(j)])] != label:
                return False
        return True
    first = rows[at] >> 32
    for j in range(1, k):  # noqa: SIM110 (Numba knows no generator in `all`)
        if rows[at + uint64(j)] >> 32 != first:
            return False
    return True


@compiled
def answer_purely(tests, at, q, kind, label, answers, first):  # type: ignore[no-untyped-def]
    """Add the answer of a leaf whose rows have one target for each of the q rows that arrived;
    `answers` begin with row `first`.
    """
    place, amount = (0, np.float64(label)) if kind == NUMBERS else (np.int64(label), 1.0)
    for j in range(q):
        answers[tests[at + uint64(j)] - first, place] += answers.dtype.type(amount)


@compiled
def answer(tests, at, q, k, kind, total, counts, answers, first):  # type: ignore[no-untyped-def]
    """The same for a leaf of several targets: their mean, or the shares of the classes."""
    if kind == NUMBERS:
        mean = total / k
        for j in range(q):
            answers[tests[at + uint64(j)] - first, 0] += mean
        return
    size = np.float32(k)
    if kind == TWO_CLASSES:
        counts[0, 0], counts[0, 1] = k - total, total
    for j in range(q):
        row = tests[at + uint64(j)] - first
        for c in range(answers.shape[1]):
            answers[row, c] += np.float32(counts[0, c]) / size
