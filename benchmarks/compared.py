"""Wrong labels found, and seconds, beside cleanlab, pyDVL, OpenDataVal and a plain forest.

Four of the paper's tables (as .npz files in a folder) and scikit-learn's breast cancer data: 300
rows, 10% of the labels flipped, three draws. Found: the share of the wrong rows among as many
lowest values, over the rows that a method values. Validation rows: none; 90 of the 300 rows, held
out, as noisy as the rest and without a value; or 200 further rows with checked labels. Seconds are
those of the processor, so that other work on the machine counts little; every method has one
thread. The others run beside ours, in an environment of their own.

    make .venv-compared/.ready
    python benchmarks/compared.py FOLDER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from judging import draw
from record import record, table
from sklearn.datasets import load_breast_cancer

import databanzhaf as db
from databanzhaf.tables import held_out

HERE = Path(__file__).parent
OTHERS = HERE.parent / ".venv-compared" / "bin" / "python"
TABLES = ("pol", "wind", "2dplanes", "creditcard", "breast cancer")
DRAWS, CHECKED = 3, 200
OURS = {
    "databanzhaf: forest (default)": {"estimator": "forest"},
    "databanzhaf: logistic": {"estimator": "logistic"},
    "databanzhaf: logistic, 1,000 models": {"estimator": "logistic", "budget": 1000},
    "databanzhaf: logistic, 1,000 models, accuracy": {
        "estimator": "logistic",
        "budget": 1000,
        "metric": "accuracy",
    },
}
FEATURES = """\
Seconds are those of one valuation on one core, without imports and compilation. databanzhaf trains
5,000 models unless noted and scores them by probability; pyDVL and OpenDataVal train 1,000 for
Banzhaf values and score them by accuracy, and OpenDataVal 1,000 trees for Data-OOB. Forests of
scikit-learn have 100 trees. Versions: """


def drawn(folder, name, seed):
    """Rows, labels, which of them are wrong, checked rows and their labels."""
    if name != "breast cancer":
        X, y, wrong, X_more, y_more = draw(folder, name, seed)
        return X, y, wrong, X_more[:CHECKED], y_more[:CHECKED]
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    X = ((X - X[:300].mean(axis=0)) / X[:300].std(axis=0)).astype(np.float32)
    wrong = np.zeros(300, bool)
    wrong[rng.choice(300, 30, replace=False)] = True
    return X[:300], np.where(wrong, 1 - y[:300], y[:300]), wrong, X[300:500], y[300:500]


def ours(X, y, held, checked):
    """(name, who judges, values, seconds)."""
    for name, how in OURS.items():
        for judges, given in (
            ("none", (X, y)),
            ("held out", (X[~held], y[~held], X[held], y[held])),
            ("checked", (X, y, *checked)),
        ):
            db.DataBanzhaf(**{**how, "budget": 100}, device="cpu").fit(*given)  # compiles
            start = time.process_time()
            fitted = db.DataBanzhaf(**how, device="cpu").fit(*given)
            seconds = time.process_time() - start
            yield name, judges, fitted.values_, seconds


def others(X, y, held, checked, folder):
    """Start them; a function that waits and gives the same as `ours`."""
    path, said = folder / "rows.npz", folder / "said.jsonl"
    np.savez(path, X=X, y=y, held=held, X_checked=checked[0], y_checked=checked[1])
    with said.open("w") as out:
        started = subprocess.Popen([OTHERS, HERE / "baseline_compared.py", path], stdout=out)

    def wait():
        if started.wait():
            raise SystemExit("baseline_compared.py failed: see above")
        for line in map(json.loads, said.read_text().splitlines()):
            yield line["name"], line["judges"], np.array(line["values"]), line["seconds"]

    return wait


def versions():
    names = ("cleanlab", "pydvl", "opendataval", "scikit-learn")
    code = f"from importlib.metadata import version; print(*map(version, {names}))"
    done = subprocess.run([OTHERS, "-c", code], capture_output=True, text=True, check=True)
    said = zip(names, done.stdout.split(), strict=True)
    return ", ".join(f"{name} {version}" for name, version in said)


def main(folder):
    scores = {}
    for place, name in enumerate(TABLES):
        for seed in range(DRAWS):
            X, y, wrong, *checked = drawn(folder, name, seed)
            held = held_out(y, 0.3, seed, by_class=True)
            with tempfile.TemporaryDirectory() as temporary:
                wait = others(X, y, held, checked, Path(temporary))
                lines = [*ours(X, y, held, checked), *wait()]
            for method, judges, values, seconds in lines:
                is_wrong = wrong if len(values) == len(y) else wrong[~held]
                lowest = np.argsort(values, kind="stable")[: is_wrong.sum()]
                cells = scores.setdefault((method, judges), [[] for _ in TABLES])
                cells[place].append((is_wrong[lowest].mean(), seconds))
        print(name, {k: round(v[place][0][0], 2) for k, v in scores.items()}, flush=True)
    rows = []
    for (method, judges), cells in scores.items():
        found, seconds = np.mean(cells, axis=1).T
        shown = [f"{each:.2f}" for each in (*found, found.mean())]
        rows.append([method, judges, *shown, f"{seconds.mean():.2f}"])
    order = ["none", "held out", "checked"]
    rows.sort(key=lambda row: (order.index(row[1]), -float(row[-2])))
    head = ["method", "validation rows", *TABLES, "mean", "seconds"]
    record("Compared", f"{table(head, rows)}\n\n{FEATURES.replace(chr(10), ' ')}{versions()}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
