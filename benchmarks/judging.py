"""Rows that judge each other against a part that is held out: which finds more wrong rows, and
which is closer to the value that thousands of further rows give?

Six tables of 300 rows, 10% of the labels flipped, 3,000 models, mean of three draws. Found: the
share of the wrong rows among as many lowest values; rows that are held out have no value and are
never found. Correlation: with the values that up to 2,000 further clean rows give (10,000 models),
over the rows that have both. Data: a folder with the tables as .npz files (X, y).

    python benchmarks/judging.py FOLDER
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from record import record, table

import databanzhaf as db
from databanzhaf.tables import held_out

TABLES = ("pol", "wind", "cpu", "2dplanes", "vehicle", "creditcard")
ROWS, FURTHER, DRAWS = 300, 2000, 3


def draw(folder, name, seed):
    """Rows, labels, which of them are wrong, further rows and their labels."""
    stored = np.load(folder / f"{name}.npz")
    X, y = stored["X"].astype(np.float64), stored["y"].astype(int)
    rng = np.random.default_rng(seed)
    smaller = min(np.bincount(y))
    parts = [rng.permutation(np.flatnonzero(y == label))[:smaller] for label in (0, 1)]
    order = rng.permutation(np.concatenate(parts))[: ROWS + FURTHER]
    X, y = X[order], y[order]
    X = (X - X[:ROWS].mean(axis=0)) / np.maximum(X[:ROWS].std(axis=0), 1e-12)
    X = np.clip(X, -50, 50).astype(np.float32)
    wrong = np.zeros(ROWS, bool)
    wrong[rng.choice(ROWS, ROWS // 10, replace=False)] = True
    labels = np.where(wrong, 1 - y[:ROWS], y[:ROWS])
    return X[:ROWS], labels, wrong, X[ROWS:], y[ROWS:]


def across(kind, X, y, seed):
    return db.value(kind(db.Dataset(X, y)), budget=3000, seed=seed).values


def split(kind, X, y, seed):
    held = held_out(y, 0.3, seed, by_class=True)
    values = np.full(len(y), np.nan)
    data = db.Dataset(X[~held], y[~held], X[held], y[held])
    values[~held] = db.value(kind(data), budget=3000, seed=seed).values
    return values


def found(values, wrong):
    lowest = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")
    return wrong[lowest[: wrong.sum()]].mean()


def main():
    folder, rows, means = Path(sys.argv[1]), [], []
    kinds = {"forest": db.games.Forest, "mlp": lambda data: db.games.Network(data, device="cpu")}
    for model, kind in kinds.items():
        for name in TABLES:
            cells = []
            for seed in range(DRAWS):
                X, y, wrong, X_more, y_more = draw(folder, name, seed)
                further = db.Dataset(X, y, X_more, y_more)
                truth = db.value(kind(further), budget=10_000, seed=99).values
                for values in (across(kind, X, y, seed), split(kind, X, y, seed)):
                    known = ~np.isnan(values)
                    agrees = np.corrcoef(values[known], truth[known])[0, 1]
                    cells.append([found(values, wrong), agrees])
            mean = np.mean(np.reshape(cells, (DRAWS, 4)), axis=0)
            means.append(mean)
            rows.append([name, model, *(f"{mean[place]:.2f}" for place in (0, 2, 1, 3))])
            print(*rows[-1], file=sys.stderr, flush=True)
    total = np.mean(means, axis=0)
    rows.append(["mean", "", *(f"{total[place]:.2f}" for place in (0, 2, 1, 3))])
    header = [
        "table", "model", "found: judged across", "30% held out", "correlation: judged across",
        "30% held out",
    ]  # fmt: skip
    record("Who judges", table(header, rows))


if __name__ == "__main__":
    main()
