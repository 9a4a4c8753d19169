"""Forests for many coalitions in one Numba kernel: columns are coded once, then every tree is grown
on row numbers alone.

A tree is never stored. The rows that it shall judge walk down with the rows that grow it: both
lists are divided at each split, and a leaf hands its answer to the rows that arrived. Branches
where no such row arrives are not grown; nothing else depends on them, since a node's chance is a
function of the path to it. Models run in Python threads, each in its own workspace, without the
interpreter's lock. All sums are sums of whole numbers, so the answer is that of `forest_reference`
to the last bit.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import uint64

from databanzhaf import chance
from databanzhaf.kernels.forest_splits import (
    MANY_ROWS,
    answer,
    answer_purely,
    best_cut,
    between_gaps,
    divide,
    is_pure,
    load,
    sample,
    split_score,
)
from databanzhaf.kernels.numba_chance import GOLDEN, allocating, below, compiled, fold, mix
from databanzhaf.kernels.threads import in_threads
from databanzhaf.kernels.trees import (
    DRAWS,
    LEFT,
    MANY_CLASSES,
    MANY_TREES,
    MISSING,
    NUMBERS,
    PLAIN,
    RIGHT,
    SAMPLE,
    SPLIT,
    WITH_GAPS,
    Table,
    Trees,
    parted,
)
from databanzhaf.protocols import BoolArray, Float32Array, KeyArray

# What `fold` makes of the numbers of the two sides, up to the key.
_LEFT, _RIGHT = (
    uint64(int(word)) for word in chance.mix(np.array([LEFT, RIGHT], np.uint64) + chance.GOLDEN)
)
# Of two children the smaller is grown first, so at most one node waits for each halving of the
# rows.
_WAITING: Final = 72
# The first numbers that are folded into a node's key are mixed once.
_MIXED: Final = 64


def grow(
    trees: Trees,
    table: Table,
    members: BoolArray,
    keys: KeyArray,
    *,
    unseen: bool = False,
    threads: int | None = None,
) -> tuple[Float32Array, Float32Array | None]:
    """Grow one forest for each row of `members`, none of which is empty.

    Returns float32 predictions (m, validation rows, classes), or float64 ones (m, validation rows,
    1) in steps of the table's unit; and if asked for, the same (m, rows, ...) for the training rows
    that a forest did not see, NaN for the others.
    """
    m, n = members.shape
    first = 0 if unseen else n  # of the rows that are judged
    kind = np.float32 if table.n_classes and trees.trees <= MANY_TREES else np.float64
    answers = np.zeros((m, table.codes.shape[1] - first, max(table.n_classes, 1)), kind)
    plain = np.array(
        [
            trees.trees,
            trees.best,
            trees.columns_tried,
            trees.max_depth,
            trees.min_samples_leaf,
            table.kind,
            trees.most_rows,
        ],
        dtype=np.int64,
    )

    def work(worker: int, workers: int) -> None:
        _grow_many(
            table.codes.ravel(), table.kinds, table.target, members, keys, worker, workers, plain,
            trees.share_of_rows, answers,
        )  # fmt: skip

    in_threads(work, m, threads)
    if table.n_classes:
        answers = answers.astype(np.float32, copy=False)
    return parted(answers, members, unseen)


@allocating
def _grow_many(  # type: ignore[no-untyped-def]
    codes, kinds, target, members, keys, worker, workers, plain, share, predicted
):  # fmt: skip
    """Grow models worker, worker + workers, ...; everything they need lies in the worker's own
    memory.
    """
    trees, best, most = plain[0], plain[1] == 1, plain[6]
    n, d = len(target), len(kinds)
    n_all = len(codes) // d
    first = n_all - predicted.shape[1]
    present, judged = np.empty(n, np.uint32), np.empty(n_all, np.uint32)
    # Two of each: a node's rows lie in one, its children's in the other.
    rows, tests = np.empty(2 * n, np.int64), np.empty(2 * n_all, np.uint32)
    y, values = np.empty(n, target.dtype), np.empty(n, np.uint16)
    counts = np.zeros((2, max(predicted.shape[2], 2)), np.int64)
    sorting = np.empty(n if best else 0, np.int64)
    histogram = np.zeros((1 << 16) + 1 if best else 0, np.int64)
    seen, constant, marked = np.zeros(d, np.int64), np.zeros(d, np.uint8), np.empty(d, np.int64)
    waiting, waiting_keys = np.empty((_WAITING, 6), np.int64), np.empty(_WAITING, np.uint64)
    mixed = np.empty(_MIXED, np.uint64)
    for i in range(_MIXED):
        mixed[i] = mix(uint64(i) + GOLDEN)
    stamp = 0
    for model in range(worker, len(keys), workers):
        n_present, n_judged = 0, 0
        for i in range(n):
            if members[model, i]:
                present[n_present] = i
                n_present += 1
            elif first == 0:
                judged[n_judged] = i
                n_judged += 1
        for i in range(n, n_all):
            judged[n_judged] = i
            n_judged += 1
        answers = predicted[model]
        for tree in range(trees):
            key = fold(keys[model], tree)
            n_rows = sample(rows, present, n_present, fold(key, SAMPLE), share, most, best)
            if plain[5] != NUMBERS:
                for j in range(n_rows):
                    rows[j] |= np.int64(target[rows[j]]) << 32
            for j in range(n_judged):
                tests[j] = judged[j]
            stamp = _grow_one(
                codes, kinds, target, fold(key, SPLIT), n_rows, n_judged, plain,
                rows, tests, y, values, counts, sorting, histogram, seen, constant, marked,
                waiting, waiting_keys, mixed, stamp, answers, first,
            )  # fmt: skip
        divisor = answers.dtype.type(trees)
        for i in range(answers.shape[0]):
            for c in range(answers.shape[1]):
                answers[i, c] /= divisor


@compiled
def _grow_one(  # type: ignore[no-untyped-def]
    codes, kinds, target, root_key, n_rows, n_tests, plain,
    rows, tests, y, values, counts, sorting, histogram, seen, constant, marked,
    waiting, waiting_keys, mixed, stamp, answers, first,
):  # fmt: skip
    """Grow one tree and add its answers for the rows in `tests`; return the number of its last
    node.

    Columns that are constant in a node are so below it: they are marked, and unmarked when the walk
    leaves the node's branch.
    """
    best_splits, tried, max_depth, least, kind = (
        plain[1] == 1, plain[2], plain[3], plain[4], plain[5],
    )  # fmt: skip
    n, d = len(target), len(kinds)
    n_all = len(codes) // d
    if is_pure(rows, uint64(0), n_rows, target, kind):
        label = target[np.uint32(rows[0])]
        answer_purely(tests, uint64(0), n_tests, kind, label, answers, first)
        return stamp
    n_marked, top = 0, 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = 0, n_rows, 0, n_tests
    waiting[0, 4], waiting[0, 5], waiting_keys[0] = 0, 0, root_key
    while top:
        top -= 1
        low, high, tests_low, tests_high = (
            waiting[top, 0], waiting[top, 1], waiting[top, 2], waiting[top, 3],
        )  # fmt: skip
        depth, n_known, key = waiting[top, 4], waiting[top, 5], waiting_keys[top]
        while n_marked > n_known:
            n_marked -= 1
            constant[marked[n_marked]] = 0
        k, q = high - low, tests_high - tests_low
        here, there = depth & 1, 1 - (depth & 1)
        at, tests_at = uint64(here * n + low), uint64(here * n_all + tests_low)
        if kind == NUMBERS:
            for j in range(k):
                y[j] = target[np.uint32(rows[at + uint64(j)])]
        else:
            for j in range(k):
                y[j] = np.int32(rows[at + uint64(j)] >> 32)
        total, squares = np.int64(0), np.int64(0)
        if kind == MANY_CLASSES:
            for j in range(k):
                squares += 2 * counts[0, y[j]] + 1
                counts[0, y[j]] += 1
        else:
            for j in range(k):
                total += y[j]
        best, column, cut = -1.0, np.int64(-1), np.uint32(0)
        shift, factor, gapless = np.uint32(0), uint64(0), False
        if k >= 2 * least and depth < max_depth:
            stamp += 1
            found, drawn, draw = 0, n_known, np.int64(0)
            while found < tried and drawn < d:
                word = mix(key ^ mixed[draw]) if draw < _MIXED else fold(key, draw)
                # Where draws keep hitting what was drawn before, the columns are gone through.
                f = below(word, d)
                if draw >= DRAWS * d:
                    f = (draw + below(key, d)) % d
                draw += 1
                if seen[f] == stamp or constant[f]:
                    continue
                seen[f] = stamp
                drawn += 1
                base = uint64(f * n_all)
                if kinds[f] == PLAIN and k < MANY_ROWS:
                    # `load`, written out for the most common case: a tenth faster on the whole.
                    smallest, largest = np.uint32(MISSING), np.uint32(0)
                    this_shift, this_factor, gaps = np.uint32(0), uint64(0), np.int64(0)
                    for j in range(k):
                        value = np.uint32(codes[base + uint64(np.uint32(rows[at + uint64(j)]))])
                        values[j] = value
                        smallest, largest = min(smallest, value), max(largest, value)
                else:
                    smallest, largest, gaps, this_shift, this_factor = load(
                        values, codes, base, rows, at, k, kinds[f], key, draw
                    )
                if gaps == k or (gaps == 0 and smallest == largest):
                    constant[f] = 1
                    marked[n_marked] = f
                    n_marked += 1
                    continue
                found += 1
                if best_splits:
                    score, this_cut = best_cut(
                        values, y, k, kind, least, total, squares, counts, sorting, histogram,
                        gaps > 0, this_shift,
                    )  # fmt: skip
                else:
                    this_cut = between_gaps(this_shift)
                    if smallest < largest:
                        bits = word >> uint64(32)
                        this_cut = smallest + np.uint32(below(bits, largest - smallest))
                    score = split_score(values, y, k, kind, least, total, squares, counts, this_cut)
                if score > best:
                    best, column, cut = score, f, this_cut
                    shift, factor = this_shift, this_factor
                    gapless = kinds[f] == WITH_GAPS and gaps == 0
                    if kind != NUMBERS and best >= k:
                        break  # both sides are pure: no later draw is better
        if column < 0:
            answer(tests, tests_at, q, k, kind, total, counts, answers, first)
        if kind == MANY_CLASSES:
            for j in range(k):
                counts[0, y[j]] = 0
        if column < 0:
            continue
        base = uint64(column * n_all)
        left = divide(rows, at, uint64(there * n + low), k, codes, base, cut, shift, factor)
        if gapless:
            # Without a gap to learn from, a gap goes with the larger side.
            side = np.uint32(2 * left > k)
            cut, shift = cut + side - shift, side
        tests_left = divide(
            tests, tests_at, uint64(there * n_all + tests_low), q, codes, base, cut, shift, factor
        )
        for smaller in range(2):
            is_left = (2 * left < k) == (smaller == 1)
            size, n_judged = (left, tests_left) if is_left else (k - left, q - tests_left)
            if n_judged == 0:
                continue
            start = low if is_left else low + left
            tests_start = tests_low if is_left else tests_low + tests_left
            if is_pure(rows, uint64(there * n + start), size, target, kind):
                label = target[np.uint32(rows[uint64(there * n + start)])]
                tests_at = uint64(there * n_all + tests_start)
                answer_purely(tests, tests_at, n_judged, kind, label, answers, first)
                continue
            waiting[top, 0], waiting[top, 1] = start, start + size
            waiting[top, 2], waiting[top, 3] = tests_start, tests_start + n_judged
            waiting[top, 4], waiting[top, 5] = depth + 1, n_marked
            waiting_keys[top] = mix(key ^ (_LEFT if is_left else _RIGHT))
            top += 1
    while n_marked:
        n_marked -= 1
        constant[marked[n_marked]] = 0
    return stamp
