"""What clusters are worth on large tables: values of rows directly, or of clusters and then of the
rows in the worst ones, with half of the evaluations each.

Data: a folder with the paper's tables as .npz files (X, y); 10% of the labels flipped.

    python benchmarks/clusters.py FOLDER
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from record import record, table

from databanzhaf import pipeline

TABLES = ("2dplanes", "pol", "wind", "cpu")
ROWS, BUDGET, CLUSTERS = 5000, 5000, 200


def draw(folder, name, seed=0):
    stored = np.load(folder / f"{name}.npz")
    X, y = stored["X"].astype(np.float64), stored["y"].astype(int)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))[:ROWS]
    X, y = X[order], y[order].copy()
    wrong = np.zeros(len(y), dtype=bool)
    wrong[rng.choice(len(y), len(y) // 10, replace=False)] = True
    y[wrong] = 1 - y[wrong]
    return pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(y=y), wrong


def valued(settings, out):
    start = time.perf_counter()
    result = pipeline.run(pipeline.prepare(settings), out)
    return result, time.perf_counter() - start


def first(result, wrong, count=100):
    rows = result.table.sort_values("rank")["row"].to_numpy()[:count]
    return f"{wrong[rows].mean():.2f}"


def main(folder):
    lines = []
    for name in TABLES:
        with TemporaryDirectory() as place:
            rows, wrong = draw(folder, name)
            path = Path(place) / "table.csv"
            rows.to_csv(path, index=False)
            plain = pipeline.Settings(str(path), "y", budget=BUDGET)
            directly, seconds = valued(plain, Path(place) / "rows")
            half = pipeline.Settings(str(path), "y", budget=BUDGET // 2, clusters=CLUSTERS)
            clusters, more = valued(half, Path(place) / "clusters")
            third = Path(place) / "worst"
            worst, last = valued(pipeline.worst_clusters(clusters, third), third)
        opened = worst.job.rows
        lines.append(
            [name, f"{len(wrong):,}", f"{directly.trust.stability:.2f}", first(directly, wrong),
             f"{seconds:,.0f}", f"{clusters.trust.stability:.2f}", f"{wrong[opened].mean():.2f} of "
             f"{len(opened)}", first(worst, wrong), f"{more + last:,.0f}"]
        )  # fmt: skip
        print(lines[-1], flush=True)
    return (
        table(
            ["table", "rows", "rows: stability", "wrong among 100 lowest", "seconds",
             "clusters: stability", "wrong in the worst clusters", "wrong among 100 lowest of them",
             "seconds"],
            lines,
        )
        + f"\n\nDefaults but for --budget: {BUDGET:,} evaluations of rows, or {BUDGET // 2:,} of "
        f"{CLUSTERS} clusters and {BUDGET // 2:,} of the rows in the worst clusters. 10% of the "
        "labels are wrong. Stability: the expected rank correlation with another run."
    )  # fmt: skip


if __name__ == "__main__":
    record("Clusters", main(Path(sys.argv[1])))
