"""How far two rankings, or many, agree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import FloatArray


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Spearman's rank correlation, ties given their mean rank; NaN if one side is constant.

    >>> spearman([1, 2, 3], [10, 30, 20])
    0.5
    """
    from scipy.stats import rankdata

    x, y = _numbers("a", a), _numbers("b", b)
    if x.ndim != 1 or x.shape != y.shape:
        raise InvalidInput(
            "`a` and `b` must be two lists of one length",
            got=f"shapes {x.shape} and {y.shape}",
            remedy="Pass one value per player.",
        )
    if np.isnan(x).any() or np.isnan(y).any():
        raise InvalidInput(
            "`a` and `b` must hold no NaN", remedy="Drop the players without a value from both."
        )
    x, y = rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 0 else float("nan")


def relative_spearman(values_by_step: ArrayLike) -> FloatArray:
    """Relative Spearman index (paper, "Sample Efficiency"): Spearman between each step's values and
    the next's.

    `values_by_step` is (steps, n), each step estimated from more evaluations; returns (steps - 1,).
    """
    steps = _runs("values_by_step", values_by_step)
    return np.array([spearman(now, later) for now, later in pairwise(steps)])


def among_lowest(values: ArrayLike, k: int) -> FloatArray:
    """How likely each player is among the k lowest if equal values are put in order by chance: 1,
    0, or between at the edge.

    Row order says nothing, and must not decide: leave-one-out values of an accuracy are mostly
    equal. Values that differ by rounding only count as equal.

    >>> among_lowest([0.0, 2.0, 1.0, 1.0], 2)
    array([1. , 0. , 0.5, 0.5])
    """
    lowest = _numbers("values", values)
    edge = np.partition(lowest, k - 1)[k - 1]
    slack = 1e-12 * float(np.abs(lowest[np.isfinite(lowest)]).max(initial=1.0))
    level = (lowest == edge) | ((lowest >= edge - slack) & (lowest <= edge + slack))
    below = (lowest < edge) & ~level
    return np.where(below, 1.0, np.where(level, (k - below.sum()) / level.sum(), 0.0))


def consistent(values_by_run: ArrayLike, k: int | float, side: str = "top") -> float:
    """Share of the k players with the highest (lowest) values that every run agrees on (paper, Fig.
    top-k).

    Equal values are put in order by chance, separately in each run: the share is its expectation.

    Parameters
    ----------
    values_by_run : (runs, n)
    k : int or float
        A number of players, or a share of them strictly between 0 and 1.
    side : "top" or "bottom"

    >>> consistent([[1, 2, 3, 4], [1, 4, 2, 3]], 2)
    0.5
    """
    runs = _runs("values_by_run", values_by_run)
    n = runs.shape[1]
    if side not in ("top", "bottom"):
        raise InvalidInput(
            '`side` must be "top" or "bottom"', got=short(side), remedy="Pass one of the two."
        )
    if isinstance(k, (float, np.floating)) and 0 < k < 1:
        k = max(1, round(k * n))
    whole = isinstance(k, (int, np.integer, float)) and not isinstance(k, bool) and k == int(k)
    if not whole or not 1 <= k <= n:
        raise InvalidInput(
            f"`k` must be a whole number from 1 to {n}, or a share strictly between 0 and 1",
            got=short(k),
            remedy="Try 0.1.",
        )
    inside = np.stack([among_lowest(-run if side == "top" else run, int(k)) for run in runs])
    return float(inside.prod(axis=0).sum() / k)


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"`{name}` must be numbers", got=short(values), remedy="Pass one value per player."
        ) from error


def _runs(name: str, values: ArrayLike) -> FloatArray:
    runs = _numbers(name, values)
    if runs.ndim != 2 or runs.shape[0] < 2 or runs.shape[1] < 1:
        raise InvalidInput(
            f"`{name}` must be 2-d, two runs or more by n players",
            got=f"shape {runs.shape}",
            remedy="Stack the runs with np.stack.",
        )
    return runs
