"""Gradient boosting for many coalitions in one Numba kernel, on the bins of `trees`.

As in `forest`, no tree is stored: the rows that are judged walk down with the rows that grow it,
and each leaf adds to the scores of both. Slopes and curvatures of the loss are rounded to whole
multiples of 2^-24, so their sums are exact in every order and the splits are those of
`boosting_reference`. Two exponential functions may differ in the last bit, and predictions agree to
float32.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from databanzhaf.kernels.numba_chance import allocating, compiled
from databanzhaf.kernels.threads import in_threads
from databanzhaf.kernels.trees import ABSENT, LEAST_CURVATURE, UNIT, Boosted, Table, parted
from databanzhaf.protocols import BoolArray, Float32Array, FloatArray


def boost(
    recipe: Boosted,
    table: Table,
    members: BoolArray,
    *,
    unseen: bool = False,
    threads: int | None = None,
) -> tuple[Float32Array | FloatArray, Float32Array | FloatArray | None]:
    """Boost one model for each row of `members`, none of which is empty; see `forest.grow` for what
    is returned.
    """
    m, n = members.shape
    first = 0 if unseen else n
    kind = np.float32 if table.n_classes else np.float64
    answers = np.zeros((m, table.codes.shape[1] - first, max(table.n_classes, 1)), kind)
    bins = recipe.bins
    codes = np.minimum(table.codes, bins)  # gaps become the last bin

    def work(worker: int, workers: int) -> None:
        _boost_many(
            codes.ravel(), len(codes), table.target, members, worker, workers, recipe.trees,
            recipe.max_leaves, recipe.min_samples_leaf, bins, recipe.learning_rate, recipe.l2,
            table.n_classes, first, answers,
        )  # fmt: skip

    in_threads(work, m, threads)
    return parted(answers, members, unseen)


@allocating
def _boost_many(  # type: ignore[no-untyped-def]
    codes, d, target, members, worker, workers, trees, max_leaves, least, bins, rate, l2,
    n_classes, first, answers,
):  # fmt: skip
    """Boost models worker, worker + workers, ...; everything they need lies in the worker's own
    memory.
    """
    n, n_all = len(target), len(codes) // d
    outputs = n_classes if n_classes > 2 else 1
    scores, shares = np.empty((outputs, n_all)), np.empty((outputs, n_all))
    derivatives = np.empty((n, 2), np.int64)
    rows, tests = np.empty(n, np.uint32), np.empty(n_all, np.uint32)
    spare = np.empty(n_all, np.uint32)
    histogram = np.zeros((bins + 1, 3), np.int64)
    leaves, gains = np.empty((max_leaves, 9), np.int64), np.empty(max_leaves)
    for model in range(worker, len(members), workers):
        k, q = 0, 0
        for i in range(n_all):
            if i < n and members[model, i]:
                rows[k] = i
                k += 1
            elif i >= first:
                tests[q] = i
                q += 1
        _begin(scores, target, rows, k, n_classes)
        for _ in range(trees):
            if n_classes:
                _share_out(scores, rows, k, shares)
            for c in range(outputs):
                if n_classes and abs(scores[c, rows[0]]) == ABSENT:
                    continue
                _derive(scores, shares, target, rows, k, c, n_classes, derivatives)
                _grow(
                    codes, d, n_all, rows, k, tests, q, spare, derivatives, scores[c], max_leaves,
                    least, bins, rate, l2, UNIT if n_classes else 1.0, histogram, leaves, gains,
                )  # fmt: skip
        if n_classes:
            _share_out(scores, tests, q, shares)
        for j in range(q):
            i = tests[j]
            if n_classes == 0:
                answers[model, i - first, 0] = scores[0, i]
            elif outputs == 1:
                answers[model, i - first, 0] = np.float32(1 - shares[0, i])
                if n_classes == 2:
                    answers[model, i - first, 1] = np.float32(shares[0, i])
            else:
                for c in range(n_classes):
                    answers[model, i - first, c] = np.float32(shares[c, i])


@compiled
def _begin(scores, target, rows, k, n_classes):  # type: ignore[no-untyped-def]
    """The best constant scores: the mean, or the logarithms of the classes' odds or shares."""
    outputs = len(scores)
    for c in range(outputs):
        total = np.int64(0)
        for j in range(k):
            if n_classes == 0:
                total += target[rows[j]]
            else:
                total += target[rows[j]] == (1 if outputs == 1 else c)
        if n_classes == 0:
            start = total / k
        elif outputs == 1:
            start = ABSENT if total == k else -ABSENT
            if 0 < total < k:
                start = np.log(total / (k - total))
        else:
            start = np.log(total / k) if total else -ABSENT
        scores[c] = start


@compiled
def _share_out(scores, rows, k, shares):  # type: ignore[no-untyped-def]
    """Probabilities of some rows: of class 1 by the logistic function, or of all by softmax."""
    outputs = len(scores)
    for j in range(k):
        i = rows[j]
        if outputs == 1:
            shares[0, i] = 1 / (1 + np.exp(-scores[0, i]))
            continue
        top, total = scores[0, i], 0.0
        for c in range(1, outputs):
            top = max(top, scores[c, i])
        for c in range(outputs):
            shares[c, i] = np.exp(scores[c, i] - top)
            total += shares[c, i]
        for c in range(outputs):
            shares[c, i] /= total


@compiled
def _derive(scores, shares, target, rows, k, c, n_classes, derivatives):  # type: ignore[no-untyped-def]
    """Slope and curvature of the loss in each row's score, in multiples of 2^-24; of a squared loss
    in steps of the target, and 1.
    """
    for j in range(k):
        i = rows[j]
        if n_classes == 0:
            derivatives[i, 0], derivatives[i, 1] = np.int64(np.rint(scores[0, i] - target[i])), 1
        else:
            p = shares[c, i]
            own = target[i] == (1 if len(scores) == 1 else c)
            derivatives[i, 0] = np.int64(np.rint((p - own) * UNIT))
            derivatives[i, 1] = max(1, np.int64(np.rint(p * (1 - p) * UNIT)))


@compiled
def _grow(  # type: ignore[no-untyped-def]
    codes, d, n_all, rows, k, tests, q, spare, derivatives, scores, max_leaves, least, bins, rate,
    l2, one, histogram, leaves, gains,
):  # fmt: skip
    """Grow one tree, the leaf that gains most first, and add its answers to the scores.

    A leaf is (rows from, to, judged rows from, to, column, cut, gaps go left, slope, curvature).
    """
    leaves[0, 0], leaves[0, 1], leaves[0, 2], leaves[0, 3] = 0, k, 0, q
    _look(codes, d, n_all, rows, derivatives, least, bins, l2, one, histogram, leaves[0], gains, 0)
    n_leaves = 1
    while n_leaves < max_leaves:
        best = 0
        for leaf in range(1, n_leaves):
            if gains[leaf] > gains[best]:
                best = leaf
        if not gains[best] > 0:
            break
        this, other = leaves[best], leaves[n_leaves]
        base = uint64(this[4] * n_all)
        cut, gaps_left = this[5], this[6]
        middle = _part(rows, this[0], this[1], spare, codes, base, cut, gaps_left, bins)
        judged = _part(tests, this[2], this[3], spare, codes, base, cut, gaps_left, bins)
        other[0], other[1], other[2], other[3] = middle, this[1], judged, this[3]
        this[1], this[3] = middle, judged
        for leaf in (best, n_leaves):
            _look(
                codes, d, n_all, rows, derivatives, least, bins, l2, one, histogram, leaves[leaf],
                gains, leaf,
            )  # fmt: skip
        n_leaves += 1
    for leaf in range(n_leaves):
        this = leaves[leaf]
        step = -rate * (this[7] / (this[8] + l2 * one))
        for j in range(this[0], this[1]):
            scores[rows[j]] += step
        for j in range(this[2], this[3]):
            scores[tests[j]] += step


@compiled
def _part(items, low, high, spare, codes, base, cut, gaps_left, bins):  # type: ignore[no-untyped-def]
    """Put the rows that go left first; return where the others begin."""
    left, right = low, 0
    for j in range(low, high):
        row = items[j]
        code = codes[base + uint64(row)]
        goes = gaps_left == 1 if code == bins else code <= cut
        items[left] = row
        spare[right] = row
        left += goes
        right += not goes
    for j in range(right):
        items[left + j] = spare[j]
    return left


@compiled
def _look(  # type: ignore[no-untyped-def]
    codes, d, n_all, rows, derivatives, least, bins, l2, one, histogram, leaf, gains, number
):  # fmt: skip
    """Sum a leaf's derivatives and find its best split: over all columns and cuts, with gaps on
    either side. The first of equally good ones.
    """
    slope, curvature = np.int64(0), np.int64(0)
    low, high = leaf[0], leaf[1]
    for j in range(low, high):
        slope += derivatives[rows[j], 0]
        curvature += derivatives[rows[j], 1]
    leaf[7], leaf[8] = slope, curvature
    gains[number] = 0.0
    k, ridge = high - low, l2 * one
    floor = max(1.0, LEAST_CURVATURE * one)
    if k < 2 * least:
        return
    whole = np.float64(slope) * np.float64(slope) / (curvature + ridge)
    best = whole * (1 + 1e-12)
    for column in range(d):
        base = uint64(column * n_all)
        for j in range(low, high):
            row = rows[j]
            code = codes[base + uint64(row)]
            histogram[code, 0] += 1
            histogram[code, 1] += derivatives[row, 0]
            histogram[code, 2] += derivatives[row, 1]
        gaps = histogram[bins, 0]
        for gaps_left in range(2 if gaps else 1):
            count, left, bend = np.int64(0), np.int64(0), np.int64(0)
            if gaps_left:
                count, left, bend = gaps, histogram[bins, 1], histogram[bins, 2]
            for code in range(bins):
                if histogram[code, 0] == 0:
                    continue
                count += histogram[code, 0]
                left += histogram[code, 1]
                bend += histogram[code, 2]
                if k - count < least:
                    break
                right, rest = slope - left, curvature - bend
                if count < least or bend < floor or rest < floor:
                    continue
                score = np.float64(left) * np.float64(left) / (bend + ridge) + np.float64(
                    right
                ) * np.float64(right) / (rest + ridge)
                if score > best:
                    best = score
                    # Without a gap to learn from, a gap goes with the larger side.
                    leaf[4], leaf[5] = column, code
                    leaf[6] = gaps_left if gaps else np.int64(2 * count > k)
                    gains[number] = score - whole
        for code in range(bins + 1):
            histogram[code, 0], histogram[code, 1], histogram[code, 2] = 0, 0, 0
