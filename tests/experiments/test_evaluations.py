"""The pages of the runs on images say what their kept evaluations say."""

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.experiments import (
    agreements,
    convergence_ranking,
    image_runs,
    pieces,
    stability_runs,
)
from databanzhaf.experiments.setting import Setting

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


def of_the_page(experiment, claim):
    claims = json.loads((PAPER / f"{experiment}.claims.json").read_text())["claims"]
    (said,) = (each["ours"] for each in claims if claim in each["claim"])
    return said


def kept_evaluations(name):
    kept = pieces.read(PAPER / "evaluations" / f"{name}-0.npz")
    known = np.flatnonzero(np.isfinite(kept["utilities"]).all(axis=1))
    design = db.designs.restore(kept["design"])
    return db.Evaluations(design, known, kept["utilities"][known], True)


def test_the_page_has_the_agreement_of_other_ways():
    said = of_the_page("instability", "another number of epochs")
    for name, way in {"as here": {}, **image_runs.OTHER_WAYS}.items():
        file = "-".join(["cifar10-2000-banzhaf", *(f"{key}-{n}" for key, n in way.items())])
        some = kept_evaluations(file).before(image_runs.OTHER_SAMPLES)
        assert len(some) == 5000
        values = db.estimate(some, db.Banzhaf(), estimator="reuse").values_by_repeat[:3]
        found = np.mean([db.ranking.spearman(*pair) for pair in combinations(values, 2)])
        assert f"{name}: {found:.3f}, projected" in said


@pytest.mark.parametrize("name", convergence_ranking.ESTIMATORS)
def test_the_page_of_rankings_has_the_numbers_of_the_evaluations(name):
    notion, estimator, _ = convergence_ranking.ESTIMATORS[name]
    evaluations = kept_evaluations(f"mnist-500-{estimator}")
    unit = {"marginal": 1000}.get(estimator, evaluations.design.unit)
    page = pd.read_csv(PAPER / "convergence_ranking.csv").query("estimator == @name")
    for line in page.iloc[
        [0, 9, 18]
    ].itertuples():  # values that are nearly the same may swap ranks
        now, later = (
            db.estimate(
                evaluations.before(count // unit * unit if count >= unit else unit),
                notion,
                estimator=estimator,
            ).values
            for count in (line.samples, line.samples + 1000)
        )
        assert line.relative_spearman == pytest.approx(db.ranking.spearman(now, later), abs=1e-4)
    assert f"{name} {page['relative_spearman'].iloc[-1]:.3f} (" in of_the_page(
        "convergence_ranking", "much faster"
    )


@pytest.mark.parametrize("experiment", ["rank_stability", "rank_stability_smoothing"])
@pytest.mark.parametrize("dataset", stability_runs.DATASETS)
def test_the_page_of_rank_stability_has_the_numbers_of_the_evaluations(experiment, dataset):
    """The page has those of the kept rounds, and these have those of the evaluations."""
    setting = Setting(scale=1.0, device="cpu")
    reference, ks = stability_runs.reference_and_ks(setting)
    kept_repeats = stability_runs.kept_repeats(dataset, setting)
    page = pd.read_csv(PAPER / f"{experiment}.csv").query("dataset == @dataset")
    lines = [json.loads(line) for line in (PAPER / agreements.FILE).read_text().splitlines()]
    (stamp,) = {
        line["stamp"]
        for line in lines
        if (line["experiment"], line["dataset"]) == (experiment, dataset)
    }
    first, shown = {}, 0
    for (notion, which), part in page.groupby(["notion", "coalitions"]):
        ledger = notion if notion in stability_runs.LEDGERS else "shapley"
        repeats = kept_repeats
        if which == "same":
            repeats = stability_runs.all_repeats(experiment, dataset, ledger, setting)
        key = {"experiment": experiment, "dataset": dataset, "notion": notion}
        key |= {"coalitions": which, "count": stability_runs.SAMPLES, "seed": 0}
        found, _ = agreements.collect(
            PAPER / agreements.FILE, key, stamp, agreements.rounds(repeats, reference), ks, None
        )
        for line in part.itertuples():
            shown += 1
            for name, number in stability_runs.summarised(line.k, found[line.k]).items():
                assert getattr(line, name) == pytest.approx(number, rel=1e-4, nan_ok=True)
        if which == "same":
            first[notion] = found
    assert shown == (2 * len(stability_runs.EVERY) - 1) * len(ks)

    rows = stability_runs.rows_of(dataset, setting)
    for notion, some in (
        ("banzhaf", ks),
        ("shapley", ks),
        # A linear program for each group takes long.
        *((("least_core", (20,)),) if dataset == "cpu" else ()),
    ):
        kept = kept_evaluations(f"{experiment}-{dataset}-{rows}-{notion}")
        assert kept.utilities.shape[1] == kept_repeats
        (low, high), (start, stop) = agreements.rounds(kept_repeats, reference)[0]
        again = agreements.of_round(
            replace(kept, utilities=kept.utilities[:, low:high]),
            replace(kept, utilities=kept.utilities[:, start:stop]),
            notion,
            some,
        )
        for k in some:
            np.testing.assert_allclose(first[notion][k][0], again[k], atol=1e-6)
    claim = f"{dataset}: Banzhaf's ranking leads them by a large margin"
    at_one = [f"{name} {first[name.lower()][1].mean():.3f}" for name in ("Banzhaf", "Shapley")]
    assert of_the_page(experiment, claim).endswith(", ".join(at_one))
