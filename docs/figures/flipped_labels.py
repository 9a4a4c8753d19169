"""The README's picture: rows of the breast cancer data, 10% of their labels flipped, sorted by
Banzhaf value.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import databanzhaf as db

N, FLIPPED = 200, 20
X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
X, y = X[order], y[order]
labels = y[:N].copy()
labels[:FLIPPED] = 1 - labels[:FLIPPED]
scaler = StandardScaler().fit(X[:N])
data = db.Dataset(scaler.transform(X[:N]), labels, scaler.transform(X[N:]), y[N:])
estimate = db.value(
    db.games.Learner(LogisticRegression(), data), budget=4000, evaluator=db.evaluators.Processes(2)
)

ranked = estimate.ranking()
low, high = estimate.interval(0.95)
flipped = ranked < FLIPPED
found = int(flipped[:FLIPPED].sum())

plt.rcParams.update(
    {
        "svg.hashsalt": "databanzhaf",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
place = np.arange(N)
for mask, colour, name in (
    (~flipped, "#7a8ca3", "label as recorded"),
    (flipped, "#d1495b", "label flipped"),
):
    axes.vlines(
        place[mask], low[ranked][mask], high[ranked][mask], color=colour, alpha=0.45, linewidth=1.5
    )
    axes.plot(
        place[mask], estimate.values[ranked][mask], "o", color=colour, markersize=3.5, label=name
    )
axes.axhline(0, color="#333333", linewidth=0.8)
axes.axvline(FLIPPED - 0.5, color="#333333", linewidth=0.8, linestyle=":")
axes.set(
    xlabel=f"{N} training rows, lowest value first",
    ylabel="Banzhaf value",
    title=f"{found} of the {FLIPPED} flipped rows are among the {FLIPPED} lowest values "
    f"({estimate.n_evaluations:,} trainings)",
)
axes.legend(frameon=False, loc="lower right")
figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})
print(f"{found} of {FLIPPED} flipped rows are among the {FLIPPED} lowest values")
