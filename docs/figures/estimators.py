"""The picture of `choosing`: error against evaluations for every estimator of Banzhaf values, from
the numbers that `benchmarks/estimators.py` has measured.
"""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__)
CELLS = HERE.parents[2] / "benchmarks" / "estimators.csv"
STYLES = {
    "reuse": ("#7a8ca3", "-", "o", "reuse (MSR, also pyDVL)"),
    "regression": ("#d1495b", "-", "o", "regression"),
    "regression:paired": ("#8c1c3a", "--", "s", "regression:paired"),
    "marginal": ("#c9a227", "-", "^", "marginal"),
    "permutation": ("#5b8e55", "-", "v", "permutation"),
    "shapiq RegressionFBII": ("#2b6cb0", "-", "x", "shapiq RegressionFBII"),
    "shapiq RegressionFBII, pairs": ("#2b6cb0", "--", "+", "shapiq RegressionFBII, pairs"),
    "shapiq SHAPIQ": ("#9467bd", ":", "d", "shapiq SHAPIQ"),
    "shapiq SVARM": ("#333333", ":", "*", "shapiq SVARM"),
}
LOWEST, HIGHEST = 0.01, 10.0


def curves():
    """Root mean squared error over the seeds: game -> estimator -> (coalitions, errors)."""
    groups = defaultdict(list)
    with CELLS.open(newline="") as stream:
        for row in csv.DictReader(stream):
            key = row["game"], row["estimator"], int(row["coalitions"])
            groups[key].append(float(row["error"]))
    found = defaultdict(lambda: defaultdict(list))
    for (game, estimator, m), errors in groups.items():
        found[game][estimator].append((m, np.sqrt(np.mean(np.square(errors)))))
    return {
        game: {name: np.array(sorted(points)).T for name, points in lines.items()}
        for game, lines in found.items()
    }


def in_columns(games):
    """The games with known values in the first row, then a row for each metric."""
    networks = [game for metric in METRICS for game in games if game.endswith(metric)]
    return [game for game in games if ", " not in game] + networks


METRICS = ("probability", "accuracy")
plt.rcParams.update(
    {
        "svg.hashsalt": "databanzhaf",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)
measured = curves()
figure, panels = plt.subplots(3, 3, figsize=(9, 8), sharex=True, sharey=True, layout="constrained")
for axes, game in zip(panels.ravel(), in_columns(list(measured)), strict=True):
    for name, (colour, line, marker, label) in STYLES.items():
        m, error = measured[game][name]
        axes.loglog(
            m, error, line, color=colour, marker=marker, markersize=4, linewidth=1.3, label=label
        )
    axes.set(title=game, ylim=(LOWEST, HIGHEST))
    axes.grid(color="#dddddd", linewidth=0.5)
for axes in panels[-1]:
    axes.set_xlabel("coalitions evaluated")
for axes in panels[:, 0]:
    axes.set_ylabel("relative error")
handles, labels = panels[0, 0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
figure.savefig(HERE.with_suffix(".svg"), metadata={"Date": None})
