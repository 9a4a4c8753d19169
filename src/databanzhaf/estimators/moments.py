"""Means with standard errors."""

from __future__ import annotations

import numpy as np

from databanzhaf.types import FloatArray, IntArray


def doubt(error: FloatArray, count: FloatArray, spread: float, scale: float) -> FloatArray:
    """Standard errors that do not claim certainty where chance showed no spread.

    Equal samples of one player prove nothing while other players' samples vary: as many samples more could hold one as far
    off as the farthest seen (`spread`), so the error is at least spread / count. Without any spread at all the values are exact
    for an additive game; but if not even the utilities differ (`scale` 0), nothing was learned and the error is infinite.
    """
    if scale == 0:
        return np.full_like(error, np.inf)
    if spread <= 1e-12 * scale:
        return error
    with np.errstate(divide="ignore"):
        return np.where(error <= 1e-12 * spread, spread / count, error)


def mean_and_error(samples: FloatArray, player: IntArray, n_players: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Each player's mean, its standard error and degrees of freedom, from samples (m,) that belong to `player` (m,).

    Without a sample the mean is 0; with fewer than two the error is infinite.
    """
    count = np.bincount(player, minlength=n_players)
    total = np.bincount(player, weights=samples, minlength=n_players)
    mean = np.divide(total, count, out=np.zeros(n_players), where=count > 0)
    squares = np.bincount(player, weights=(samples - mean[player]) ** 2, minlength=n_players)
    variance = np.divide(squares, count * (count - 1.0), out=np.full(n_players, np.inf), where=count > 1)
    return mean, np.sqrt(variance), np.maximum(count - 1.0, 1.0)
