"""Do 95% intervals cover? Few permutations of a learning curve, U = 1 - exp(-|S| / 3): our standard
errors beside the plain ones.

The plain one is the standard deviation of a player's own contributions over the root of their
number, by Student's t.
"""

from __future__ import annotations

import numpy as np
from record import record, table
from scipy.stats import t

import databanzhaf as db


def curve(coalitions):
    return 1 - np.exp(-coalitions.sum(axis=1) / 3)


def coverage(n, permutations, seeds=40):
    """Share of players whose interval holds the truth: (plain, ours)."""
    game, truth, plain, ours = (
        db.games.Function(n, curve, name="curve"),
        (1 - np.exp(-n / 3)) / n,
        [],
        [],
    )
    for seed in range(seeds):
        ledger = db.Ledger()
        estimate = db.value(
            game,
            db.Shapley(),
            estimator="permutation",
            budget=permutations * (n + 1),
            seed=seed,
            ledger=ledger,
        )
        chains = ledger.utilities()[:, 0].reshape(permutations, n + 1)
        orders = db.designs.Permutation(n, seed).orders(np.arange(permutations))
        contributions = np.take_along_axis(
            np.diff(chains, axis=1), np.argsort(orders, axis=1), axis=1
        )
        error = contributions.std(axis=0, ddof=1) / np.sqrt(permutations)
        plain.append(np.abs(estimate.values - truth) <= t.ppf(0.975, permutations - 1) * error)
        low, high = estimate.interval(0.95)
        ours.append((low <= truth) & (truth <= high))
    return np.mean(plain), np.mean(ours)


if __name__ == "__main__":
    rows = []
    for n, permutations in ((50, 5), (50, 20), (50, 100), (200, 9), (200, 100)):
        plain, ours = coverage(n, permutations)
        rows.append([str(n), str(permutations), f"{plain:.0%}", f"{ours:.0%}"])
    record(
        "Coverage of 95% intervals",
        table(["players", "permutations", "plain standard error", "ours"], rows),
    )
