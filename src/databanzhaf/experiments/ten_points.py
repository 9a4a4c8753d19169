"""The paper's synthetic set of ten points, small enough for every coalition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db

N_TEST = 1000
STEPS, RATE = 200, 1.0


def points(seed: int, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Points of a bivariate Gaussian with means 0.1 and -0.1 and identity covariance; the label is
    the sign of their sum.
    """
    X = np.random.default_rng([seed, count]).normal([0.1, -0.1], size=(count, 2))
    return X, (X.sum(axis=1) > 0).astype(np.int64)


def utilities(seed: int) -> NDArray[np.float64]:
    """Test accuracy of logistic regression on each of the 1,024 coalitions, by full-batch gradient
    descent from zero: no randomness.

    Coalition number c has player i if bit i of c is set. The empty one predicts one class, which is
    right half of the time: 0.5.
    """
    X, y = points(seed, 10)
    X_test, y_test = points(seed + 1_000_003, N_TEST)
    who = (np.arange(1024)[:, None] >> np.arange(10) & 1).astype(np.float64)
    rows = np.column_stack([X, np.ones(10)])
    theta = np.zeros((1024, 3))
    size = np.maximum(who.sum(axis=1), 1)[:, None]
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-theta @ rows.T))
        theta -= RATE * (who * (chance - y)) @ rows / size
    right = ((np.column_stack([X_test, np.ones(N_TEST)]) @ theta.T > 0) == y_test[:, None]).mean(
        axis=0
    )
    right[0] = 0.5
    return np.asarray(right)


def game(seed: int) -> db.games.Table:
    return db.games.Table(utilities(seed))
