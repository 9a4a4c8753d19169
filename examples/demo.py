"""The main job on real data: flip 10% of the labels of scikit-learn's breast cancer table, value
its rows, look for the flipped ones.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

FOLDER = Path("runs/demo")
FOLDER.mkdir(parents=True, exist_ok=True)
train, out = FOLDER / "train.csv", FOLDER / "result"

table = load_breast_cancer(as_frame=True).frame
table["target"] = np.where(table["target"] == 0, "malignant", "benign")
flipped = np.sort(np.random.default_rng(0).choice(len(table), len(table) // 10, replace=False))
table.loc[flipped, "target"] = np.where(
    table.loc[flipped, "target"] == "malignant", "benign", "malignant"
)
table.to_csv(train, index=False)
print(f"{train}: {len(table)} patients; the labels of {len(flipped)} are flipped.\n")

command = ["value", str(train), "--target", "target", "--budget", "5000", "--out", str(out)]
print("$ databanzhaf", " ".join(command), flush=True)
subprocess.run([sys.executable, "-m", "databanzhaf", *command], check=True)

values = pd.read_csv(out / "values.csv")
wrong = values["row"].isin(flipped)  # the others were held out for validation
lowest = values["rank"] <= wrong.sum()
suspect = values["flag"] == "suspect"
found, guessed = (wrong & lowest).sum(), wrong.mean() * lowest.sum()
print(
    f"\n{wrong.sum()} of the {len(values)} valued rows have a flipped label. {found} of them are "
    f"among the {lowest.sum()} lowest values;"
)
chance = wrong.mean() * suspect.sum()
print(
    f"{(wrong & suspect).sum()} are among the {suspect.sum()} suspects. Guessing would find "
    f"{guessed:.0f} and {chance:.0f}."
)
