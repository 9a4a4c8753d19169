"""Which model to value rows by: wrong labels found, stability and time of Banzhaf values, for the
models that the shell offers as engines.

Tables: the paper's ten, two of image features and pixels (as .npz files in a folder). 10% of the
training labels are wrong. "None": 300 rows valued that judge each other, which is the default.
"Held out": 210 rows valued, 90 rows as noisy as the rest judge, as with --validation-fraction 0.3.
"Checked": 210 rows valued, 200 clean rows judge, as with --validation. Draws 0 and 1 served to look
around; the figures are of draws 10 to 12. The first kind is a section of its own and can be run
alone, and so can the other two.

    python benchmarks/models.py FOLDER [across | split]
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from forests import TEN
from record import record, table
from scipy.stats import spearmanr

import databanzhaf as db

DRAWS = (10, 11, 12)
BUDGET = 2000
IMAGES = ("cifar10_catdog_squeezenet_32px", "mnist")


def rows_of(folder, name, draw):
    """Training rows with wrong labels, which those are, and clean rows."""
    stored = np.load(folder / f"{name}.npz")
    X, y = (stored[f"{part}_train"] if f"{part}_train" in stored else stored[part] for part in "Xy")
    X, y = X.reshape(len(X), -1).astype(np.float32), y.astype(int)
    rng = np.random.default_rng(draw)
    smallest = min(np.bincount(y).min(), 5000)
    order = rng.permutation(
        np.concatenate([rng.permutation(np.flatnonzero(y == c))[:smallest] for c in np.unique(y)])
    )
    X, y = X[order[:500]], y[order[:500]]
    X = (X - X[:300].mean(axis=0)) / np.clip(X[:300].std(axis=0), 1e-6, None)
    wrong = np.zeros(300, dtype=bool)
    wrong[rng.choice(300, 30, replace=False)] = True
    noisy = y[:300].copy()
    noisy[wrong] = (noisy[wrong] + rng.integers(1, y.max() + 1, 30)) % (y.max() + 1)
    return X[:300], noisy, wrong, X[300:], y[300:]


class Both:
    """The mean utility of two games on one coalition."""

    stochastic, players = True, None

    def __init__(self, *games):
        self.games, self.n_players = games, games[0].n_players
        self.call_size = min(game.call_size for game in games)

    def utility(self, coalitions, keys):
        return np.mean([game.utility(coalitions, keys) for game in self.games], axis=0)

    def fingerprint(self):
        return {"game": " and ".join(str(game.fingerprint()) for game in self.games)}


def models(data):
    network, forest = db.games.Network(data, device="cpu"), db.games.Forest(data)
    both = {"mlp and forest, 1,000 coalitions": (Both(network, forest), BUDGET // 2)}
    return {
        "forest": (forest, BUDGET),
        "forest, best splits": (db.games.Forest(data, splits="best"), BUDGET),
        "forest, 50 trees": (db.games.Forest(data, 50), BUDGET),
        "mlp": (network, BUDGET),
        "logistic": (db.games.Network(data, (), device="cpu"), BUDGET),
        **({} if data.judges is not None else both),  # a sum of games has no jury of its own
    }


def measured(data, wrong):
    """(wrong rows among as many lowest values, rank correlation of two runs, seconds of one)."""
    for name, (game, budget) in models(data).items():
        start = time.perf_counter()
        values = [db.value(game, budget=budget, seed=seed).values for seed in (0, 1)]
        spent = (time.perf_counter() - start) / 2
        found = np.mean([wrong[np.argsort(v)[: wrong.sum()]].mean() for v in values])
        yield name, (found, spearmanr(*values).statistic, spent)


def kinds(part, folder, name, draw):
    """(who judges, data, which of the valued rows are wrong)."""
    X, y, wrong, X_clean, y_clean = rows_of(folder, name, draw)
    if part == "across":
        return [("none", db.Dataset(X, y), wrong)]
    return [
        ("held out", db.Dataset(X[:210], y[:210], X[210:], y[210:]), wrong[:210]),
        ("checked", db.Dataset(X[:210], y[:210], X_clean, y_clean), wrong[:210]),
    ]


def main(folder, part):
    scores = {}
    for name in (*TEN, *IMAGES):
        kind = "images" if name in IMAGES else "tables"
        for draw in DRAWS:
            for judge, data, is_wrong in kinds(part, folder, name, draw):
                for model, line in measured(data, is_wrong):
                    scores.setdefault((kind, judge, model), {}).setdefault(name, []).append(line)
        print(
            name,
            {k[1:]: np.round(np.mean(v[name], axis=0), 2) for k, v in scores.items() if name in v},
            flush=True,
        )
    lines = []
    for (kind, judge, model), by_table in scores.items():
        found, stable, spent = np.mean([np.mean(v, axis=0) for v in by_table.values()], axis=0)
        lines.append([kind, judge, model, f"{found:.3f}", f"{stable:.2f}", f"{spent:.1f}"])
    lines.sort(key=lambda line: (line[0] != "tables", line[1] != "held out"))
    head = ["data", "validation rows", "model", "wrong rows found", "two runs agree", "seconds"]
    best = {}
    for (kind, judge, model), by_table in scores.items():
        for name, v in by_table.items():
            best.setdefault((kind, judge, name), {})[model] = np.mean(v, axis=0)[0]
    wins = sum(by["forest"] > by["mlp"] for by in best.values())
    ties = sum(by["forest"] == by["mlp"] for by in best.values())
    rows = "300 rows that judge each other" if part == "across" else "210 rows"
    record(
        "Models to value by" + (", rows that judge each other" if part == "across" else ""),
        f"{table(head, lines)}\n\nMeans over ten tables, or two of images (512 features, two "
        f"classes; 784 pixels, ten classes), three draws each; Banzhaf values of {rows} by "
        f"{BUDGET:,} coalitions, two cores. Found: share of the wrong rows among as many lowest "
        f"values. Agree: rank correlation of two runs' values. The forest found more than the mlp "
        f"in {wins} of {len(best)} cells (table and kind of validation rows), and as many in "
        f"{ties}.",
    )


if __name__ == "__main__":
    for part in sys.argv[2:] or ("across", "split"):
        main(Path(sys.argv[1]), part)
