"""What a new user gets: `databanzhaf value` with its defaults on eight tables.

Each table has 10% wrong labels (another class at random; targets of another row for a regression).
Found: the share of the wrong rows among as many lowest values. Suspects: rows flagged, and how many
of them are wrong. Shuffled: suspects on copies of the table whose labels are shuffled, where every
flag is false; "with" counts the copies that have one. Stability: the rank correlation with another
run that the run claims, and that of a run with another seed; "of juries" is what the run claims for
other judging rows too.

    python benchmarks/defaults.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from record import record, table
from scipy.stats import spearmanr
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_classification,
    make_moons,
)

import databanzhaf as db
from databanzhaf import pipeline

SHUFFLES = 5


def tables():
    """(name, frame with the column `target`, whether it is a regression)."""
    rng = np.random.default_rng(0)

    def frame(X, y, rows=None):
        order = rng.permutation(len(y))[:rows]
        columns = [f"x{i}" for i in range(X.shape[1])]
        return pd.DataFrame(X[order], columns=columns).assign(target=np.asarray(y)[order])

    yield "breast cancer", frame(*load_breast_cancer(return_X_y=True)), False
    yield "wine", frame(*load_wine(return_X_y=True)), False
    yield "digits", frame(*load_digits(return_X_y=True), 400), False
    source = db.datasets.load("suppliers")
    mixed = source.X.drop(columns=["id", "supplier"]).assign(target=source.y)
    yield "suppliers (own errors)", mixed, False
    X, y = make_classification(
        500, 12, n_informative=5, weights=[0.87], flip_y=0.0, class_sep=1.2, random_state=1
    )
    yield "13% yes", frame(X, np.where(y, "yes", "no")), False
    X, y = make_moons(300, noise=0.2, random_state=2)
    yield "moons", frame(np.c_[X, rng.normal(size=(300, 3))], y), False
    X, y = make_classification(1000, 20, n_informative=8, n_classes=3, random_state=3)
    yield "1,000 rows", frame(X, y), False
    yield "diabetes (regression)", frame(*load_diabetes(return_X_y=True)), True


def planted(name, source, regression, rng):
    """The table with wrong labels, and which rows have them."""
    if name.startswith("suppliers"):
        wrong = np.zeros(len(source), bool)
        wrong[db.datasets.flipped_suppliers()] = True
        return source, wrong
    wrong = np.zeros(len(source), bool)
    wrong[rng.choice(len(source), len(source) // 10, replace=False)] = True
    labels = source["target"].to_numpy().copy()
    if regression:
        labels[wrong] = np.roll(labels[wrong], 1)
    else:
        classes = np.unique(labels)
        place = np.searchsorted(classes, labels[wrong])
        labels[wrong] = classes[(place + rng.integers(1, len(classes), wrong.sum())) % len(classes)]
    return source.assign(target=labels), wrong


def run(frame, folder, seed=0):
    path = folder / "t.csv"
    frame.to_csv(path, index=False)
    start = time.perf_counter()
    job = pipeline.prepare(pipeline.Settings(str(path), "target", seed=seed))
    result = pipeline.run(job, folder / f"run{seed}-{time.time_ns()}")
    return result, time.perf_counter() - start


def main():
    rows, gaps = [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, source, regression in tables():
            rng = np.random.default_rng(7)
            frame, wrong = planted(label, source, regression, rng)
            first, seconds = run(frame, folder)
            second, _ = run(frame, folder, seed=1)
            order, k = first.estimate.ranking(), int(wrong.sum())
            seen = spearmanr(first.estimate.values, second.estimate.values).statistic
            flags = []
            for _ in range(SHUFFLES):
                shuffled = frame.assign(target=rng.permutation(frame["target"].to_numpy()))
                flags.append(len(run(shuffled, folder)[0].suspects))
            suspects, trust = first.suspects, first.trust
            gaps.append(abs(trust.stability - seen))
            rows.append(
                [
                    label,
                    len(frame),
                    f"{seconds:.1f}",
                    f"{wrong[order[:k]].mean():.2f}",
                    f"{len(suspects)} ({wrong[suspects].sum()})",
                    f"{sum(flags)} (with: {np.count_nonzero(flags)} of {SHUFFLES})",
                    f"{trust.stability:.2f}",
                    f"{seen:.2f}",
                    "" if trust.stability_of_juries is None else f"{trust.stability_of_juries:.2f}",
                ]
            )
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    header = [
        "table", "rows", "seconds", "wrong rows found", "suspects (wrong)", "suspects, shuffled",
        "stability claimed", "seen", "of juries",
    ]  # fmt: skip
    words = f"Largest gap between stability claimed and seen: {max(gaps):.2f}."
    cells = [[str(cell) for cell in row] for row in rows]
    record("Defaults", f"{table(header, cells)}\n\n{words}")


if __name__ == "__main__":
    main()
