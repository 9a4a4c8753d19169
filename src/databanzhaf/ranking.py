"""How far two rankings, or many, agree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import FloatArray

# Values that a law of true values is fitted to, and steps of the fit.
_MOST_FITTED = 2_000
_STEPS = 400


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


def expected_agreement(values: ArrayLike, errors: ArrayLike, noise: float = 1.0) -> float:
    r"""The rank correlation that two further runs with these standard errors would have.

    The values are those of a law of true values with normal noise. The law is fitted without any
    assumption of its shape, by maximum likelihood on a grid (Kiefer & Wolfowitz 1956; expectation
    and maximisation): so ten rows that stand out among a thousand that do not are seen as such.
    Two runs are independent given the truth, so their Spearman correlation is
    :math:`12\, E[H^2] - 3`, where H is the expected share of values that a noisy value exceeds.

    `noise` scales the errors: :math:`\sqrt{m / m'}` predicts runs of m' evaluations from one of m.
    1 if all errors are 0; NaN if one is unknown, or if no error is finite. A fit never finds less
    than nothing: pure noise is credited with about 0.1 for 50 values and 0.05 for 400.

    >>> round(expected_agreement([0, 0, 10, 10], [1, 1, 1, 1]), 2)  # two pairs, alike within each
    0.75
    """
    v, s = _numbers("values", values), _numbers("errors", errors)
    finite = np.isfinite(s)
    if np.isnan(s).any() or not finite.any():
        return float("nan")
    v, s = v[finite], s[finite]
    if not s.any():
        return 1.0
    if len(v) > _MOST_FITTED:
        v, s = (part[np.argsort(v)][:: -(-len(v) // _MOST_FITTED)] for part in (v, s))
    s = np.maximum(s, 1e-6 * s.max())
    ends, quantiles = np.linspace(v.min(), v.max(), 60), np.linspace(0, 1, 60)
    grid = np.unique(np.concatenate([ends, np.quantile(v, quantiles)]))
    distance = ((v[:, None] - grid) / s[:, None]) ** 2
    likelihood = np.exp(-0.5 * (distance - distance.min(axis=1, keepdims=True)))
    law = np.full(len(grid), 1 / len(grid))
    for _ in range(_STEPS):
        law = law * (likelihood.T @ (1 / (likelihood @ law))) / len(v)
    posterior = likelihood * law
    posterior /= posterior.sum(axis=1, keepdims=True)
    # Rows of like errors together: each kind has a truth and a noise of its own.
    kinds = np.array_split(np.argsort(s, kind="stable"), min(5, len(v)))
    weight = np.concatenate([posterior[kind].sum(axis=0) for kind in kinds]) / len(v)
    truth = np.tile(grid, len(kinds))
    spread = np.repeat(
        [max(noise, 1e-9) * np.sqrt((s[kind] ** 2).mean()) for kind in kinds], len(grid)
    )
    apart = (truth[:, None] - truth) / np.hypot(spread[:, None], spread)
    exceeds = _normal(apart) @ weight
    return float(12 * weight @ exceeds**2 - 3)


def _normal(x: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


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
