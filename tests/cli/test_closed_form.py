"""`--model knn`: exact values by a closed form where there is one, and trained models elsewhere."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app
from databanzhaf.games import Neighbors
from databanzhaf.pipeline import Settings, prepare

SENTENCE = "exact values by a closed form for 5 nearest neighbours; no model was trained"
KNN = ("--target", "label", "--id", "id", "--model", "knn")


def call(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    return done.exit_code, " ".join(done.output.split())


def value(*words):
    code, said = call("value", "rows.csv", *KNN, *words)
    assert code == 0, said
    return said


def refused(*words):
    code, said = call(*words)
    assert code == 2, said
    assert said.count("databanzhaf: ") == 1
    return said


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    """80 rows of two columns, one of them a category, and 30 validation rows; ten labels wrong."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(110, 2))
    label = np.where(x[:, 0] > 0, "yes", "no")
    label[:10] = np.where(label[:10] == "yes", "no", "yes")
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(110)],
            "a": x[:, 0].round(3),
            "b": x[:, 1].round(3),
            "site": rng.choice(["north", "south"], 110),
            "label": label,
        }
    )
    frame[:80].to_csv("rows.csv", index=False)
    frame[80:].to_csv("held.csv", index=False)
    frame.assign(amount=x[:, 0]).to_csv("amounts.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("more", [(), ("--validation", "held.csv"), ("--validation-fraction", 0.3)])
@pytest.mark.parametrize("notion", ["banzhaf", "shapley", "loo"])
def test_values_are_those_of_the_game_of_neighbours(more, notion):
    said = value(*more, "--notion", notion)
    assert SENTENCE in said
    assert "The 5 nearest of " in said
    folder = Path("runs/rows")
    names = ["report.html", "run.json", "values.csv"]
    assert sorted(path.name for path in folder.iterdir()) == names
    options = {
        name.strip("-").replace("-", "_"): given
        for name, given in zip(more[::2], more[1::2], strict=True)
    }
    job = prepare(Settings("rows.csv", "label", id="id", model="knn", **options))
    found = db.value(Neighbors(job.dataset, k=5), db.notions.named(notion))
    table = pd.read_csv(folder / "values.csv")
    np.testing.assert_array_equal(table["value"], found.values)
    assert (table["std_error"] == 0).all()
    np.testing.assert_array_equal(table["std_error_population"], found.population.std_errors)
    low, high = found.interval(0.95)
    np.testing.assert_array_equal(table["ci_low"], low)
    np.testing.assert_array_equal(table["ci_high"], high)
    record = json.loads((folder / "run.json").read_text())
    assert (record["estimator"], record["evaluations"]) == ("closed_form", 0)
    assert record["fingerprint"]["k"] == "5"


def test_wrong_labels_are_flagged_by_the_errors_of_the_jury():
    said = value("--flag", "fdr:0.2")
    table = pd.read_csv("runs/rows/values.csv")
    suspects = table.loc[table["flag"] == "suspect", "row"]
    assert len(suspects) >= 3
    assert (suspects < 10).all()
    assert "the score tends to be lower with them" in said
    assert "trained with" not in said


def test_the_score_is_that_of_all_other_rows():
    value()
    scores = json.loads(Path("runs/rows/run.json").read_text())["scores"]
    job = prepare(Settings("rows.csv", "label", id="id", model="knn"))
    # The Shapley values share out the score of all rows: no rows have 0.
    total = db.value(job.game, db.Shapley()).values.sum()
    assert scores["all"] == pytest.approx(total, abs=1e-12)
    share = (job.dataset.y == "yes").mean()
    assert scores["none"] == pytest.approx(share**2 + (1 - share) ** 2)


def test_the_same_command_writes_the_same_files():
    def files():
        value("--out", "same")
        return {name: Path("same", name).read_bytes() for name in ("values.csv", "report.html")}

    assert files() == files()


def test_the_report_says_that_nothing_was_trained_and_nothing_of_trainings():
    value()
    page = Path("runs/rows/report.html").read_text(encoding="utf-8")
    text = page.split("<script type")[0].split("</style>")[1]
    sentence = "The values are exact: a closed form for nearest neighbours; no model was trained."
    assert text.count(sentence) == 1
    for word in ("training", "evaluations", "coalition", "stability", "two halves"):
        assert word not in text
    assert "The effect on single judging rows is not part of the closed form" in page
    before = page
    assert call("report", "runs/rows")[0] == 0
    assert Path("runs/rows/report.html").read_text(encoding="utf-8") == before


def test_other_notions_by_the_folder_or_by_the_ledger_that_is_not_there():
    value()
    for where in ("runs/rows", "runs/rows/run.db"):
        code, said = call("estimate", where, "--notion", "shapley")
        assert code == 0, said
        assert SENTENCE in said
    job = prepare(Settings("rows.csv", "label", id="id", model="knn"))
    table = pd.read_csv("runs/rows/values-shapley.csv")
    np.testing.assert_array_equal(table["value"], db.value(job.game, db.Shapley()).values)
    assert "--notion least_core" in refused("estimate", "runs/rows", "--notion", "least-core")
    assert "--metric accuracy" in refused("estimate", "runs/rows", "--metric", "accuracy")
    Path("rows.csv").write_text(Path("rows.csv").read_text().replace("yes", "no", 1))
    assert "has changed since the run in `runs/rows`" in refused("report", "runs/rows")


def test_json_plan_explain_and_curve():
    answer = json.loads(value("--json", "--curve"))
    assert (answer["estimator"], answer["evaluations"]) == ("closed_form", 0)
    assert answer["ledger"] is None
    assert answer["command"].endswith("--curve")
    assert Path("runs/rows/curve.json").exists()
    assert "Does removing them help?" in Path("runs/rows/report.html").read_text(encoding="utf-8")
    code, said = call("plan", "rows.csv", *KNN)
    assert (code, "Nothing needs to be planned" in said) == (0, True)
    plan = json.loads(call("plan", "rows.csv", *KNN, "--json")[1])
    assert plan["options"] == []
    said = refused("explain", "runs/rows", "--row", 3)
    assert "a closed form for nearest neighbours that trains none" in said
    assert "there is nothing to watch in `runs/rows`" in refused("watch", "runs/rows")


TRAINED = {
    "a metric": ("--metric", "accuracy"),
    "groups": ("--groups", "site"),
    "an estimator": ("--estimator", "regression"),
    "a condition": ("--until", "minutes:5"),
    "the least core": ("--notion", "least-core"),
}


@pytest.mark.parametrize("name", TRAINED)
def test_models_are_trained_where_there_is_no_closed_form(name):
    said = value("--budget", 64, *TRAINED[name], "--jobs", 1)
    assert "closed form" not in said
    with db.Ledger("runs/rows/run.db") as ledger:
        assert ledger.count() >= 20
        assert ledger.game["game"] == "learner"


def test_numbers_and_clusters_train_models():
    amounts = Settings("amounts.csv", "amount", model="knn")
    clusters = Settings("rows.csv", "label", model="knn", clusters=8)
    assert not prepare(amounts).closed
    assert not prepare(clusters).closed
    assert prepare(Settings("rows.csv", "label", model="knn", metric="probability")).closed


@pytest.mark.parametrize(
    ("more", "got"),
    [
        (("--model", "forest"), "got --model forest"),
        (("--metric", "accuracy"), "got --metric accuracy"),
        (("--groups", "site"), "got --groups"),
        (("--until", "stable"), "got --until stable"),
        (("--notion", "least-core"), "got --notion least_core"),
        (("--cluster", "dask"), "got --cluster dask"),
    ],
)
def test_a_closed_form_that_there_is_none_of_is_refused(more, got):
    said = refused("value", "rows.csv", *KNN, "--estimator", "closed_form", *more)
    assert "--estimator closed_form needs --model knn" in said
    assert got in said
    assert not Path("runs").exists()


def test_a_closed_form_may_be_asked_for():
    value("--estimator", "closed_form")
    assert "--estimator closed_form" in Path("runs/rows/report.html").read_text(encoding="utf-8")
    assert call("report", "runs/rows")[0] == 0


def test_a_shard_of_nothing_is_refused():
    assert "--shard shares trainings" in refused("value", "rows.csv", *KNN, "--shard", "1/2")


def test_a_run_of_an_earlier_version_is_read_by_its_models_and_not_overwritten():
    """It has the same settings, and a ledger of models that were trained."""
    value("--estimator", "regression", "--budget", 100, "--jobs", 1, "--out", "old")
    path = Path("old/run.json")
    record = json.loads(path.read_text())
    record["settings"]["estimator"] = "auto"
    path.write_text(json.dumps(record))
    before = pd.read_csv("old/values.csv")
    code, said = call("estimate", "old", "--notion", "banzhaf")
    assert (code, "closed form" in said) == (0, False)
    pd.testing.assert_frame_equal(pd.read_csv("old/values-banzhaf.csv"), before)
    assert call("report", "old")[0] == 0
    assert call("estimate", "old", "--metric", "accuracy")[0] == 0
    said = refused("value", "rows.csv", *KNN, "--out", "old")
    assert "holds models that were trained" in said
    pd.testing.assert_frame_equal(pd.read_csv("old/values.csv"), before)
    value("--estimator", "regression", "--budget", 120, "--jobs", 1, "--out", "old")
