"""The twin of `boosting`: the same trees, leaf by leaf in NumPy, every formula in the open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf.kernels.trees import ABSENT, LEAST_CURVATURE, UNIT, Boosted, Table
from databanzhaf.protocols import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class _Leaf:
    """Rows with their sums, and the best split: rows where `goes_left` of its codes go left."""

    rows: IntArray
    tests: IntArray
    slope: int
    curvature: int
    gain: float = 0.0
    column: int = 0
    cut: int = 0
    gaps_left: bool = False


def boost(
    recipe: Boosted, table: Table, members: BoolArray, *, unseen: bool = False
) -> tuple[Any, Any]:
    """See `boosting.boost`."""
    n, n_all = table.n_rows, table.codes.shape[1]
    codes = np.minimum(table.codes, recipe.bins).astype(np.int64)
    answers = []
    for member in members:
        rows = np.flatnonzero(member)
        y = table.target[rows].astype(np.int64)
        scores = np.repeat(_begin(table, y)[:, None], n_all, axis=1)
        for _ in range(recipe.trees):
            shares = _shares(scores[:, rows]) if table.n_classes else scores[:, rows]
            for c in range(len(scores)):
                if table.n_classes and abs(scores[c, rows[0]]) == ABSENT:
                    continue
                slopes, curvatures = _derivatives(table, shares[c], y, c, len(scores))
                scores[c] += _tree(recipe, table, codes, rows, slopes, curvatures)
        answers.append(_answers(table, scores))
    made = np.stack(answers)
    outside = made[:, :n].copy()
    outside[members] = np.nan
    return made[:, n:], outside if unseen else None


def _begin(table: Table, y: IntArray) -> FloatArray:
    if not table.n_classes:
        return np.array([y.sum() / len(y)])
    counts = np.bincount(y, minlength=table.n_classes)
    if table.n_classes > 2:
        with np.errstate(divide="ignore"):
            return np.where(counts > 0, np.log(counts / len(y)), -ABSENT)
    ones = int((y == 1).sum())
    if ones in (0, len(y)):
        return np.array([ABSENT if ones else -ABSENT])
    return np.array([np.log(ones / (len(y) - ones))])


def _shares(scores: FloatArray) -> FloatArray:
    if len(scores) == 1:
        return np.asarray(1 / (1 + np.exp(-scores)))
    powers = np.exp(scores - scores.max(axis=0))
    return np.asarray(powers / powers.sum(axis=0))


def _derivatives(
    table: Table, p: FloatArray, y: IntArray, c: int, outputs: int
) -> tuple[IntArray, IntArray]:
    if not table.n_classes:
        return np.rint(p - y).astype(np.int64), np.ones(len(y), np.int64)
    own = y == (1 if outputs == 1 else c)
    slopes = np.rint((p - own) * UNIT).astype(np.int64)
    return slopes, np.maximum(1, np.rint(p * (1 - p) * UNIT).astype(np.int64))


def _answers(table: Table, scores: FloatArray) -> Any:
    if not table.n_classes:
        return scores.T
    shares = _shares(scores).T
    if len(scores) == 1:
        shares = np.column_stack([1 - shares, shares])[:, : table.n_classes]
    return shares.astype(np.float32)


def _tree(
    recipe: Boosted,
    table: Table,
    codes: IntArray,
    rows: IntArray,
    slopes: IntArray,
    curvatures: IntArray,
) -> FloatArray:
    """What one tree adds to every row's score."""
    one = UNIT if table.n_classes else 1.0
    slope_of, curvature_of = (np.zeros(codes.shape[1], np.int64) for _ in range(2))
    slope_of[rows], curvature_of[rows] = slopes, curvatures

    def look(rows: IntArray, tests: IntArray) -> _Leaf:
        return _best(recipe, codes, rows, tests, slope_of, curvature_of, one)

    leaves = [look(rows, np.arange(codes.shape[1]))]
    while len(leaves) < recipe.max_leaves:
        number = int(np.argmax([leaf.gain for leaf in leaves]))
        leaf = leaves[number]
        if not leaf.gain > 0:
            break
        parts = []
        for which in (leaf.rows, leaf.tests):
            code = codes[leaf.column, which]
            goes = np.where(code == recipe.bins, leaf.gaps_left, code <= leaf.cut)
            parts.append((which[goes], which[~goes]))
        (left, right), (tests_left, tests_right) = parts
        leaves[number] = look(left, tests_left)
        leaves.append(look(right, tests_right))
    added = np.zeros(codes.shape[1])
    for leaf in leaves:
        added[leaf.tests] = -recipe.learning_rate * (
            leaf.slope / (leaf.curvature + recipe.l2 * one)
        )
    return added


def _best(
    recipe: Boosted,
    codes: IntArray,
    rows: IntArray,
    tests: IntArray,
    slope_of: IntArray,
    curvature_of: IntArray,
    one: float,
) -> _Leaf:
    """A leaf with the split that gains most, the first of equally good ones."""
    slope, curvature = int(slope_of[rows].sum()), int(curvature_of[rows].sum())
    leaf = _Leaf(rows, tests, slope, curvature)
    ridge, floor = recipe.l2 * one, max(1.0, LEAST_CURVATURE * one)
    whole = float(slope) * float(slope) / (curvature + ridge)
    best = whole * (1 + 1e-12)
    if len(rows) < 2 * recipe.min_samples_leaf:
        return leaf
    for column in range(len(codes)):
        code = codes[column, rows]
        gaps = code == recipe.bins
        for gaps_left in (False, True) if gaps.any() else (False,):
            for cut in np.unique(code[~gaps]):
                goes = np.where(gaps, gaps_left, code <= cut)
                left, bend = int(slope_of[rows[goes]].sum()), int(curvature_of[rows[goes]].sum())
                right, rest = slope - left, curvature - bend
                if min(goes.sum(), (~goes).sum()) < recipe.min_samples_leaf or (
                    min(bend, rest) < floor
                ):
                    continue
                score = float(left) * float(left) / (bend + ridge) + float(right) * float(right) / (
                    rest + ridge
                )
                if score > best:
                    best = score
                    # Without a gap to learn from, a gap goes with the larger side.
                    side = gaps_left if gaps.any() else bool(2 * goes.sum() > len(rows))
                    leaf = _Leaf(
                        rows, tests, slope, curvature, score - whole, column, int(cut), side
                    )
    return leaf
