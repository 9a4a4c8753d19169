"""The pages of the runs on images say what their kept evaluations say."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.experiments import pieces

PAPER = Path(__file__).parents[2] / "docs" / "paper"
RUNS = {
    "banzhaf": (db.Banzhaf(), "reuse"),
    "shapley": (db.Shapley(), "permutation"),
    "loo": (db.LeaveOneOut(), "leave_one_out"),
}
TRAININGS = 5


@pytest.mark.parametrize("name", RUNS)
def test_the_page_of_five_trainings_has_the_numbers_of_the_evaluations(name):
    notion, estimator = RUNS[name]
    kept = pieces.read(PAPER / "evaluations" / f"cifar10-2000-{name}-0.npz")
    design, utilities = db.designs.restore(kept["design"]), kept["utilities"]
    whole = np.isfinite(utilities).all(axis=0).sum() // TRAININGS * TRAININGS
    evaluations = db.Evaluations(
        design, np.arange(len(utilities)), utilities[:, :whole], stochastic=True
    )
    values = db.estimate(evaluations, notion, estimator=estimator).values_by_repeat
    values = values.reshape(TRAININGS, -1, design.n_players).mean(axis=1)
    page = pd.read_csv(PAPER / "instability.csv").query("notion == @name")
    shown = page[[f"run_{run + 1}" for run in range(TRAININGS)]].to_numpy().T
    np.testing.assert_allclose(shown, values, rtol=1e-4, atol=1e-9)

    agreement = np.mean([db.ranking.spearman(*pair) for pair in combinations(values, 2)])
    claims = json.loads((PAPER / "instability.claims.json").read_text())["claims"]
    (said,) = (c["ours"] for c in claims if c["claim"].lower().endswith(f"runs, {name}"))
    assert said == f"{agreement:.3f}"

    consistent = pd.read_csv(PAPER / "top_bottom.csv").query("notion == @name")
    for line in consistent.itertuples():
        assert line.consistent == pytest.approx(
            db.ranking.consistent(values, line.share, line.side), rel=1e-4
        )
