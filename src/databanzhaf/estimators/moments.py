"""Means with standard errors."""

from __future__ import annotations

import numpy as np

from databanzhaf.types import FloatArray, IntArray


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
