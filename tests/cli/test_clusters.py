"""`value --clusters`: clusters first, then the rows of the worst ones."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.shell import invoke

COUNT, BUDGET = 30, 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on 300 rows, 30 of which have a wrong label, all in one corner."""
    place = tmp_path_factory.mktemp("clusters")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    label = X[:, 0] + X[:, 1] > 0
    wrong = np.argsort(X[:, 0])[:30]
    label[wrong] = ~label[wrong]
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=np.where(label, "yes", "no"))
    table.insert(0, "name", [f"n{row}" for row in range(300)])
    table.to_csv(place / "t.csv", index=False)
    np.save(place / "wrong.npy", wrong)
    done = invoke(*command(place))
    assert done.exit_code == 0, done.output
    (place / "said.txt").write_text(done.output)
    return place


def command(place, *more):
    words = ("--target", "y", "--id", "name", "--clusters", COUNT, "--budget", BUDGET)
    return ("value", place / "t.csv", *words, "--out", place / "run", *more)


def test_each_row_is_in_one_cluster_of_its_label(folder):
    rows = pd.read_csv(folder / "run/clusters.csv")
    table, values = pd.read_csv(folder / "t.csv"), pd.read_csv(folder / "run/values.csv")
    assert rows["row"].tolist() == list(range(300))
    assert rows["id"].tolist() == table["name"].tolist()
    assert rows["label"].tolist() == table["y"].tolist()
    sizes = rows["cluster"].value_counts()
    assert len(values) == COUNT
    assert dict(zip(values["group"], values["rows"], strict=True)) == sizes.to_dict()
    assert rows.groupby("cluster")["label"].nunique().max() == 1
    assert (values["group"].str.split("/").str[0] == values["label"]).all()


def test_values_of_clusters_are_those_of_groups_to_the_last_bit(folder, tmp_path):
    table = pd.read_csv(folder / "t.csv")
    table["cluster"] = pd.read_csv(folder / "run/clusters.csv")["cluster"]
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--id", "name", "--groups", "cluster", "--budget", BUDGET)
    assert invoke("value", tmp_path / "t.csv", *words, "--out", tmp_path / "run").exit_code == 0
    grouped = pd.read_csv(tmp_path / "run/values.csv")
    pd.testing.assert_frame_equal(
        grouped, pd.read_csv(folder / "run/values.csv").drop(columns="label")
    )


def test_then_the_rows_of_the_worst_clusters_are_valued(folder):
    clusters, rows = (pd.read_csv(folder / f"run/{name}.csv") for name in ("values", "clusters"))
    worst = pd.read_csv(folder / "run/worst/values.csv")
    per_row = (clusters["value"] / clusters["rows"]).to_numpy()
    opened = rows.set_index("row")["cluster"][worst["row"]].unique()
    lowest = clusters["group"].to_numpy()[np.argsort(per_row)[: len(opened)]]
    assert set(opened) == set(lowest)
    assert len(worst) == rows["cluster"].isin(opened).sum() <= BUDGET // 10
    assert sorted(worst["rank"]) == list(range(1, len(worst) + 1))
    wrong = set(np.load(folder / "wrong.npy").tolist())
    assert np.mean([row in wrong for row in worst["row"]]) > 0.5  # 0.1 of all rows are
    said = (folder / "said.txt").read_text().replace("\n", " ")
    assert f"{len(worst)} rows beside {COUNT - len(opened)} clusters" in said


def test_the_same_command_trains_nothing_and_report_and_json_say_the_same(folder):
    files = ("values.csv", "worst/values.csv", "worst/report.html", "report.html", "clusters.csv")
    before = {name: (folder / "run" / name).read_bytes() for name in files}
    done = invoke(*command(folder, "--json"))
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["players"] == COUNT
    assert said["worst"]["players"] == len(pd.read_csv(folder / "run/worst/values.csv"))
    for part in ("", "worst"):
        record = json.loads((folder / "run" / part / "run.json").read_text())
        assert record["training_seconds_now"] == 0
        assert invoke("report", folder / "run" / part).exit_code == 0
    after = {name: (folder / "run" / name).read_bytes() for name in files}
    assert after == before


def test_the_command_of_the_second_run_repeats_it(folder, tmp_path, monkeypatch):
    import shlex

    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_bytes((folder / "t.csv").read_bytes())
    done = invoke(*command(Path(), "--json"))
    again = shlex.split(json.loads(done.stdout)["worst"]["command"])[1:]
    assert invoke(*again[:-1], "elsewhere").exit_code == 0
    assert Path("elsewhere/values.csv").read_bytes() == Path("run/worst/values.csv").read_bytes()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--groups", "name"), "groups or in clusters"),
        (("--open", "maybe/3"), "the clusters are no/"),
        (("--open", "no/01", "--curve"), "Leave one of them out"),
        (("--open", "no/01", "--validation-fraction", "0.999"), "clusters whose rows are all held"),
    ],
)
def test_bad_input(folder, tmp_path, more, said):
    done = invoke(*command(folder)[:-1], tmp_path / "none", *more)
    assert done.exit_code == 2
    assert said in done.output.replace("\n", " ")
    assert not (tmp_path / "none").exists()


def test_open_needs_clusters(folder, tmp_path):
    words = ("--target", "y", "--open", "no/1", "--out", tmp_path / "none")
    done = invoke("value", folder / "t.csv", *words)
    assert done.exit_code == 2
    assert "number of clusters" in done.output.replace("\n", " ")


def test_a_regression(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 2))
    pd.DataFrame(X, columns=["a", "b"]).assign(y=X[:, 0] * 3 + 0.1 * X[:, 1]).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = ("--target", "y", "--clusters", 24, "--budget", 200, "--out", tmp_path / "run")
    done = invoke("value", tmp_path / "t.csv", *words)
    assert done.exit_code == 0, done.output
    assert "label" not in pd.read_csv(tmp_path / "run/values.csv")
    assert pd.read_csv(tmp_path / "run/worst/values.csv")["label"].notna().all()


def test_a_larger_budget_continues_both_runs(folder, tmp_path):
    (tmp_path / "t.csv").write_bytes((folder / "t.csv").read_bytes())
    words = command(tmp_path)[: command(tmp_path).index("--budget")]
    for budget in (300, 500):
        done = invoke(*words, "--budget", budget, "--out", tmp_path / "run", "--json")
        assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert (said["evaluations"], said["worst"]["evaluations"]) == (500, 500)


@pytest.fixture
def rare(tmp_path):
    """24 of 600 rows are of a class that is easy to tell."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    X[:24] += 5
    y = np.where(np.arange(600) < 24, "rare", "usual")
    group = np.where(np.arange(600) < 24, 0, rng.integers(1, 25, size=600))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y, group=group)
    table.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("by", [("--groups", "group"), ("--clusters", 25, "--drop", "group")])
def test_whoever_has_all_rows_of_a_class_is_worth_most(rare, by):
    """Judged by rows outside alone, it would be worth less than nothing: nobody else has the
    class, so it never improves a model that its own rows judge.
    """
    words = ("--target", "y", *by, "--budget", 500, "--out", rare / "run")
    done = invoke("value", rare / "t.csv", *words)
    assert done.exit_code == 0, done.output
    values = pd.read_csv(rare / "run/values.csv")
    has_it = values["group"].astype(str).str.match("0$|rare/")
    assert values[has_it]["value"].min() > values[~has_it]["value"].max()
    assert (values[has_it]["ci_low"] > 0).all()


def test_numbers_whose_squares_overflow(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=80) * 1e200, "b": rng.normal(size=80)})
    table.assign(y=np.where(table["b"] > 0, "yes", "no")).to_csv(tmp_path / "t.csv", index=False)
    words = ("--target", "y", "--clusters", 20, "--budget", 100, "--out", tmp_path / "run")
    done = invoke("value", tmp_path / "t.csv", *words)
    assert done.exit_code == 0, done.output


def test_where_the_second_run_is_refused_the_first_still_counts(folder, tmp_path):
    words = ("--target", "y", "--id", "name", "--clusters", COUNT, "--notion", "shapley")
    words = (*words, "--estimator", "permutation", "--out", tmp_path / "run")
    words = (*words, "--budget", 5 * (COUNT - COUNT // 5 + 1) + 20)
    done = invoke("value", folder / "t.csv", *words, "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["players"] == COUNT
    assert "must pay for" in said["worst"]["error"]
    assert len(pd.read_csv(tmp_path / "run/values.csv")) == COUNT
