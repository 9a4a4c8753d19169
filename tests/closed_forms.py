"""Games whose values are known by a formula, as vectorised functions of coalitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

import databanzhaf as db


@dataclass(frozen=True)
class ClosedForm:
    name: str
    n: int
    function: Callable
    banzhaf: np.ndarray
    shapley: np.ndarray

    def game(self):
        return db.games.Function(self.n, self.function, name=self.name)


def unanimity(n=8, carriers=3):
    """U = 1 when all of the first `carriers` players are in."""
    inside = np.arange(n) < carriers
    return ClosedForm(
        "unanimity",
        n,
        lambda coalitions: coalitions[:, :carriers].all(axis=1),
        inside / 2 ** (carriers - 1),
        inside / carriers,
    )


def glove(left=2, right=4):
    """U = the number of matching pairs of gloves."""
    n = left + right

    def function(coalitions):
        return np.minimum(coalitions[:, :left].sum(axis=1), coalitions[:, left:].sum(axis=1))

    # A left glove helps when the others hold fewer left gloves than right ones, and the other way
    # round.
    def pivotal(own, other, weight):
        total = 0.0
        for a in range(own):
            for b in range(other + 1):
                if a < b:
                    total += comb(own - 1, a) * comb(other, b) * weight(a + b)
        return total

    def values(weight):
        return np.array(
            [pivotal(left, right, weight)] * left + [pivotal(right, left, weight)] * right
        )

    return ClosedForm(
        "glove",
        n,
        function,
        values(lambda size: 2.0 ** (1 - n)),
        values(lambda size: 1 / (n * comb(n - 1, size))),
    )


def airport(costs=(1.0, 2.0, 2.0, 4.0, 7.0, 7.5)):
    """U = the largest cost among the members: the runway that the largest aeroplane needs."""
    cost = np.array(costs)
    n = len(cost)

    def function(coalitions):
        return np.where(coalitions, cost, 0.0).max(axis=1)

    # Each piece of the runway is shared by those who need it (Littlechild & Owen 1973).
    pieces = np.diff(np.append(0.0, cost))
    users = n - np.arange(n)
    shapley = np.cumsum(pieces / users)
    # Player i pays for the piece k <= i unless another player that needs it is in: probability
    # 2^-(users - 1).
    banzhaf = np.cumsum(pieces * 2.0 ** (1 - users))
    return ClosedForm("airport", n, function, banzhaf, shapley)


def additive(n=10):
    """U = the sum of the members' weights: every semivalue is the weight."""
    weights = np.linspace(-0.5, 1.0, n)
    return ClosedForm("additive", n, lambda coalitions: coalitions @ weights, weights, weights)


def voting(weights=(4, 3, 2, 1, 1, 1), quota=7):
    """Weighted voting; the power indices by counting swings by total weight (generating
    functions).
    """
    w = np.array(weights)
    n = len(w)

    def function(coalitions):
        return coalitions @ w >= quota

    banzhaf, shapley = np.zeros(n), np.zeros(n)
    for i in range(n):
        ways = np.zeros((n, w.sum() + 1))
        ways[0, 0] = 1
        for other in np.delete(w, i):
            ways[1:, other:] += ways[:-1, : ways.shape[1] - other].copy()
        for size in range(n):
            swings = ways[size, max(quota - w[i], 0) : quota].sum()
            banzhaf[i] += swings / 2 ** (n - 1)
            shapley[i] += swings / (n * comb(n - 1, size))
    return ClosedForm("voting", n, function, banzhaf, shapley)


ALL = [unanimity(), glove(), airport(), additive(), voting()]


def noisy_additive(n=10, noise=0.3):
    """U = the sum of weights, plus Gaussian noise that is a function of the key alone."""
    from scipy.special import ndtri

    weights = np.linspace(-0.5, 1.0, n)

    def function(coalitions, keys):
        return np.where(coalitions, weights, 0).sum(axis=1) + noise * ndtri(
            db.chance.uniform(keys, 1)[:, 0] + 2.0**-54
        )

    return db.games.Function(
        n, function, stochastic=True, name=f"noisy additive {n} {noise}"
    ), weights
