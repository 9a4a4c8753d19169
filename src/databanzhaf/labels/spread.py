r"""How likely is a number wrong, when a committee has said what it expects?

A right target lies around the expected one, :math:`y_j = \mu_j + s_j \epsilon`, with errors that
have a t distribution; a wrong one is a draw from the density m of all targets. With a share
:math:`\pi` of wrong targets,

.. math::

    P(\text{wrong}) = \frac{\pi\, m(y_j)}{\pi\, m(y_j) + (1 - \pi)\, t_\nu(e_j / s_j) / s_j}.

The target of a row has no part in the models that judge it, so that this density is also that of
wrong targets planted there. The spread :math:`s_j` is the same for all rows, or follows the
expected target, or how far the judges disagree, whichever the targets are most likely under.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from databanzhaf.protocols import FloatArray, IntArray

_SHARES = (0.001, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.18, 0.23, 0.29, 0.36, 0.44)
_PRIOR = (1.3, 6.0)
_TAILS = (2.5, 4.0, 8.0, 30.0)  # degrees of freedom
_WINDOW = 40  # rows whose errors give a local spread, at least
_GRID = 512


@dataclass(frozen=True, eq=False)
class Spread:
    """What is expected of each row, its spread, and how likely each target is wrong."""

    expected: FloatArray
    spread: FloatArray
    wrong: FloatArray
    shares: FloatArray
    weights: FloatArray
    name: str
    _of: tuple[tuple[float, float, float], ...]
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
            errors, self.spread[rows], _density(self._targets, targets), self._of, self.weights
        )


def fit_spread(means: FloatArray, targets: FloatArray) -> Spread:
    """Fit the mixture to the judges' mean predictions, (judges, rows)."""
    known = np.isfinite(means).all(axis=0)
    means = np.where(known, means, np.mean(targets))
    expected = _combined(means, targets)
    errors = targets - expected
    others = _density(targets, targets)
    found = []
    for name, spread in _spreads(expected, means, errors).items():
        losses, of = _fits(errors, spread, others)
        found.append((np.logaddexp.reduce(-losses), name, spread, losses, of))
    _, name, spread, losses, of = max(found, key=lambda each: each[0])
    weights = np.exp(losses.min() - losses)
    weights /= weights.sum()
    wrong = _averaged(errors, spread, others, of, weights)
    wrong = np.where(known, wrong, float((weights * np.array(_SHARES)).sum()))
    return Spread(expected, spread, wrong, np.array(_SHARES), weights, name, of, targets)


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


def _fits(
    errors: FloatArray, spread: FloatArray, others: FloatArray
) -> tuple[FloatArray, tuple[tuple[float, float, float], ...]]:
    """For each share the loss, and (share, scale, degrees of freedom)."""
    a, b = _PRIOR
    losses, of = [], []
    log_others, widths = np.log(others), np.gradient(np.array(_SHARES))
    for share, width in zip(_SHARES, widths, strict=True):
        tries = []
        for tail in _TAILS:

            def loss(log_scale: float, tail: float = tail, share: float = share) -> float:
                right = _log_t(errors, spread * np.exp(log_scale), tail) + np.log1p(-share)
                return -float(np.logaddexp(right, log_others + np.log(share)).sum())

            best = minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 0.01})
            tries.append((float(best.fun), float(np.exp(best.x)), tail))
        value, scale, tail = min(tries)
        prior = (a - 1) * np.log(share) + (b - 1) * np.log1p(-share) + np.log(width)
        losses.append(value - prior)
        of.append((share, scale, tail))
    return np.array(losses), tuple(of)


def _log_t(errors: FloatArray, scale: FloatArray, tail: float) -> FloatArray:
    constant = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(tail * np.pi)
    return np.asarray(
        constant - np.log(scale) - (tail + 1) / 2 * np.log1p((errors / scale) ** 2 / tail)
    )


def _averaged(
    errors: FloatArray,
    spread: FloatArray,
    others: FloatArray,
    of: tuple[tuple[float, float, float], ...],
    weights: FloatArray,
) -> FloatArray:
    wrong = np.zeros(len(errors))
    for (share, scale, tail), weight in zip(of, weights, strict=True):
        right = np.log1p(-share) + _log_t(errors, spread * scale, tail)
        wrong += weight / (1 + np.exp(np.clip(right - np.log(share * others), -700, 700)))
    return wrong
