r"""How likely is a number wrong, when a committee has said what it expects?

A right target lies around the expected one, :math:`y_j = \mu_j + s_j \epsilon`; a wrong one is a
draw from the density m of all targets. With a share :math:`\pi` of wrong targets,

.. math::

    P(\text{wrong}) = \frac{\pi\, m(y_j)}{\pi\, m(y_j) + (1 - \pi)\, f(e_j / s_j) / s_j}.

The errors' density f is that of an asymmetric t distribution (Zhu and Galbraith 2010): two halves
of different width and tails, that meet where the density is largest, which may be beside zero.
Prices, durations and counts err farther upwards than downwards.

The target of a row has no part in the models that judge it, so that this density is also that of
wrong targets planted there. The spread :math:`s_j` is the same for all rows, or follows the
expected target, or how far the judges disagree, whichever the targets are most likely under.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from databanzhaf.protocols import FloatArray, IntArray

_SHARES = (0.001, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.18, 0.23, 0.29, 0.36, 0.44)
_PRIOR = (1.3, 6.0)
_USUAL = 0.05
# Bounds and priors (mean, deviation) of the errors' shape: logarithms of scale and lean, middle,
# logarithms of both tails.
_BOUNDS = ((-4.0, 4.0), (-1.5, 1.5), (-3.0, 3.0), (0.4, 4.0), (0.4, 4.0))
_USUAL_SHAPE = np.array([0.0, 0.0, 0.0, 1.8, 1.8])
_APART = np.array([np.inf, 0.5, 1.0, 0.8, 0.8])
_MOST_ROWS = 2000  # of a fit: beyond, some rows spread evenly say as much
_WINDOW = 40  # rows whose errors give a local spread, at least
_GRID = 512


@dataclass(frozen=True)
class Shape:
    r"""Of right errors, in units of the rows' spread: the density

    .. math::

        f(z) = c\, \frac{t_{\nu_-}(\kappa z)}{t_{\nu_-}(0)} \;(z < 0), \qquad
        f(z) = c\, \frac{t_{\nu_+}(z / \kappa)}{t_{\nu_+}(0)} \;(z \ge 0)

    around its middle, where :math:`t_\nu` is Student's density.
    """

    scale: float
    lean: float
    middle: float
    left: float
    right: float

    def log_density(self, errors: FloatArray, spread: FloatArray) -> FloatArray:
        scale = spread * self.scale
        z = errors / scale - self.middle
        above = z > 0
        z = z * np.where(above, 1 / self.lean, self.lean)
        tail = np.where(above, self.right, self.left)
        width = 0.5 / (self.lean * _at_zero(self.left)) + 0.5 * self.lean / _at_zero(self.right)
        return np.asarray(-np.log(width * scale) - (tail + 1) / 2 * np.log1p(z**2 / tail))


def _at_zero(tail: float) -> float:
    """Student's density at 0."""
    return float(np.exp(gammaln((tail + 1) / 2) - gammaln(tail / 2)) / np.sqrt(tail * np.pi))


@dataclass(frozen=True, eq=False)
class Spread:
    """What is expected of each row, its spread, and how likely each target is wrong."""

    expected: FloatArray
    spread: FloatArray
    wrong: FloatArray
    shares: FloatArray
    weights: FloatArray
    name: str
    _shapes: tuple[Shape, ...]
    _targets: FloatArray

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Of the share of wrong targets."""
        middle = np.cumsum(self.weights) - self.weights / 2
        low, high = np.interp(((1 - level) / 2, (1 + level) / 2), middle, self.shares)
        return float(low), float(high)

    def planted(self, rows: IntArray, targets: FloatArray) -> FloatArray:
        """How likely other targets would be wrong in some rows."""
        errors = targets - self.expected[rows]
        return _averaged(
            errors, self.spread[rows], _density(self._targets, targets), self._shapes, self.weights
        )


def fit_spread(means: FloatArray, targets: FloatArray) -> Spread:
    """Fit the mixture to the judges' mean predictions, (judges, rows)."""
    known = np.isfinite(means).all(axis=0)
    means = np.where(known, means, np.mean(targets))
    expected = _combined(means, targets)
    errors = targets - expected
    others = _density(targets, targets)
    some = _some(targets)
    tried = []
    for name, spread in _spreads(expected, means, errors).items():
        fit = _Likelihood(errors[some], spread[some], others[some])
        tried.append((*fit.best(_USUAL, _USUAL_SHAPE), name, spread, fit))
    _, start, name, spread, fit = min(tried, key=lambda each: each[0])
    losses, shapes = _sweep(fit, start)
    weights = np.exp(losses.min() - losses)
    weights /= weights.sum()
    wrong = _averaged(errors, spread, others, shapes, weights)
    wrong = np.where(known, wrong, float((weights * np.array(_SHARES)).sum()))
    return Spread(expected, spread, wrong, np.array(_SHARES), weights, name, shapes, targets)


def _combined(means: FloatArray, targets: FloatArray) -> FloatArray:
    """Better judges count more: by the inverse square of their median error."""
    size = np.median(np.abs(means - targets), axis=1)
    weights = 1 / np.maximum(size, 1e-12 + 1e-6 * size.max()) ** 2
    return np.asarray(weights @ means / weights.sum())


def _spreads(expected: FloatArray, means: FloatArray, errors: FloatArray) -> dict[str, FloatArray]:
    whole = float(np.median(np.abs(errors))) or float(np.std(errors)) or 1.0
    found = {"the same for all rows": np.full(len(errors), whole)}
    if len(errors) >= 3 * _WINDOW:
        found["by the expected target"] = _local(expected, errors, whole)
        found["by how far the judges disagree"] = _local(means.std(axis=0), errors, whole)
    return found


def _local(along: FloatArray, errors: FloatArray, whole: float) -> FloatArray:
    """The median error of the rows nearest along one number."""
    from scipy.ndimage import median_filter, uniform_filter1d

    order = np.argsort(along, kind="stable")
    window = max(_WINDOW, len(errors) // 50)
    sizes = median_filter(np.abs(errors[order]), size=window, mode="nearest")
    smooth = uniform_filter1d(sizes, size=window, mode="nearest")
    out = np.empty(len(errors))
    out[order] = np.maximum(smooth, 0.05 * whole)
    return out


def _density(targets: FloatArray, at: FloatArray) -> FloatArray:
    """Of all targets: a kernel estimate on a grid, with a floor over their whole range."""
    low, high = float(targets.min()), float(targets.max())
    width = (high - low) or 1.0
    quarters = np.quantile(targets, (0.25, 0.75))
    size = min(float(targets.std()), float(np.ptp(quarters)) / 1.34) or width / 10
    step = width / (_GRID - 1)
    kernel = max(0.9 * size * len(targets) ** -0.2, step)
    counts, edges = np.histogram(targets, bins=_GRID, range=(low - step / 2, high + step / 2))
    middles = (edges[:-1] + edges[1:]) / 2
    from scipy.ndimage import gaussian_filter1d

    density = gaussian_filter1d(counts / (len(targets) * step), kernel / step, mode="constant")
    return np.asarray(0.95 * np.interp(at, middles, density) + 0.05 / width)


def _some(targets: FloatArray) -> IntArray:
    """Rows spread evenly over the targets, as many as a fit needs."""
    n = len(targets)
    order = np.argsort(targets, kind="stable")
    places = (np.arange(min(n, _MOST_ROWS)) + 0.5) * (n / min(n, _MOST_ROWS))
    return np.sort(order[places.astype(np.int64)])


class _Likelihood:
    """Minus the log-likelihood of a share of wrong targets and a shape, with the shape's prior."""

    def __init__(self, errors: FloatArray, spread: FloatArray, others: FloatArray) -> None:
        self.errors, self.spread, self.log_others = errors, spread, np.log(others)

    def __call__(self, x: FloatArray, share: float) -> float:
        right = _shape(x).log_density(self.errors, self.spread) + np.log1p(-share)
        total = np.logaddexp(right, self.log_others + np.log(share)).sum()
        return float(0.5 * (((x - _USUAL_SHAPE) / _APART) ** 2).sum() - total)

    def best(self, share: float, start: FloatArray) -> tuple[float, FloatArray]:
        how: dict[str, Any] = {"method": "L-BFGS-B", "bounds": _BOUNDS, "options": {"maxiter": 40}}
        found = minimize(self, start, args=(share,), **how)
        return float(found.fun), found.x


def _shape(x: FloatArray) -> Shape:
    scale, lean, left, right = np.exp(x[[0, 1, 3, 4]]).tolist()
    return Shape(scale, lean, float(x[2]), left, right)


def _sweep(fit: _Likelihood, start: FloatArray) -> tuple[FloatArray, tuple[Shape, ...]]:
    """For each share the loss, with the prior of shares, and the errors' shape: from the usual
    share downwards and upwards, each fit from its neighbour's.
    """
    usual = _SHARES.index(_USUAL)
    found: dict[int, tuple[float, FloatArray]] = {}
    for places in (range(usual, -1, -1), range(usual + 1, len(_SHARES))):
        x = start
        for place in places:
            found[place] = fit.best(_SHARES[place], x)
            x = found[place][1]
    shares, (a, b) = np.array(_SHARES), _PRIOR
    prior = (a - 1) * np.log(shares) + (b - 1) * np.log1p(-shares) + np.log(np.gradient(shares))
    ordered = [found[place] for place in range(len(shares))]
    return np.array([loss for loss, _ in ordered]) - prior, tuple(_shape(x) for _, x in ordered)


def _averaged(
    errors: FloatArray,
    spread: FloatArray,
    others: FloatArray,
    shapes: tuple[Shape, ...],
    weights: FloatArray,
) -> FloatArray:
    wrong = np.zeros(len(errors))
    for share, shape, weight in zip(_SHARES, shapes, weights, strict=True):
        right = np.log1p(-share) + shape.log_density(errors, spread)
        wrong += weight / (1 + np.exp(np.clip(right - np.log(share * others), -700, 700)))
    return wrong
