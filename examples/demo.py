"""The main job on real data: flip 10% of the labels of scikit-learn's breast cancer table, find
them, review the list, correct the table, and see what that does to a model; then value its rows.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier

FOLDER = Path("runs/demo")
train, fixed = FOLDER / "train.csv", FOLDER / "train.fixed.csv"
decisions, labels, values = FOLDER / "decisions.csv", FOLDER / "labels", FOLDER / "values"


def run(*words):
    command = [str(word) for word in words]
    print("\n$ databanzhaf", " ".join(command), flush=True)
    subprocess.run([sys.executable, "-m", "databanzhaf", *command], check=True)


def accuracy(path, clean):
    """Of boosting trained on a table, on rows with the true labels."""
    table = pd.read_csv(path)
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(table.drop(columns="target"), table["target"])
    return model.score(clean.drop(columns="target"), clean["target"])


def review(true):
    """What a person who knows each patient would decide of the flagged labels, in the file that the
    page saves.
    """
    from databanzhaf.tables.decisions import (
        Decision,
        Decisions,
        file_fingerprint,
        write_decisions,
    )

    found = pd.read_csv(labels / "mislabels.csv")
    made = []
    for line in found[found["flag"] == "wrong?"].itertuples():
        kept = line.label == true[line.row]
        made.append(
            Decision(line.row, line.label, "keep")
            if kept
            else Decision(line.row, line.label, "fix", true[line.row])
        )
    write_decisions(decisions, Decisions(file_fingerprint(train), "target", tuple(made)))
    return len(made), sum(decision.decision == "fix" for decision in made)


FOLDER.mkdir(parents=True, exist_ok=True)
for old in (fixed, fixed.with_name("train.fixed.decisions.csv")):
    old.unlink(missing_ok=True)
rng = np.random.default_rng(0)
table = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0)
table["target"] = np.where(table["target"] == 0, "malignant", "benign")
clean, table = table[:200], table[200:].reset_index(drop=True)
true = table["target"].to_numpy().copy()
flipped = np.sort(rng.choice(len(table), len(table) // 10, replace=False))
table.loc[flipped, "target"] = np.where(true[flipped] == "malignant", "benign", "malignant")
table.to_csv(train, index=False)
print(f"{train}: {len(table)} patients; the labels of {len(flipped)} are flipped.")

run("mislabels", train, "--target", "target", "--out", labels)
found = pd.read_csv(labels / "mislabels.csv")
first = found.sort_values("rank")["row"][: len(flipped)]
print(
    f"\n{np.isin(first, flipped).sum()} of the {len(flipped)} are among the first {len(flipped)}."
)

count, wrong = review(true)
print(f"A person looks at the {count} flagged labels and corrects {wrong} of them.")
run("apply", train, decisions, "--out", fixed)
before, after = accuracy(train, clean), accuracy(fixed, clean)
print(f"\nAccuracy of boosting on 200 clean rows: {before:.3f} before, {after:.3f} after.")

run("value", fixed, "--target", "target", "--budget", "3000", "--out", values)
print(f"\nOpen {labels / 'report.html'} to review labels, {values / 'report.html'} for the values.")
