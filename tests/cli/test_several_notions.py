"""Several notions from one run, by the shell: files, numbers, resuming, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app
from databanzhaf.live.place import find
from databanzhaf.live.values import Reader
from databanzhaf.notions import all_named
from databanzhaf.pipeline import Settings, prepare

NOTIONS = "banzhaf,shapley,beta(16,1)"
TABLES = ("values", "values-shapley", "values-beta-16-1")
BASE = ("--target", "label", "--model", "logistic", "--validation", "held.csv", "--budget", 120)


def call(*words):
    done = CliRunner().invoke(app, [*map(str, words)])
    return done.exit_code, " ".join(done.output.split())


def value(*words, notion=NOTIONS):
    code, said = call("value", "rows.csv", *BASE, "--notion", notion, *words)
    assert code == 0, said
    return said


def refused(*words):
    code, said = call(*words)
    assert code == 2, said
    assert said.count("databanzhaf: ") == 1
    return said


def tables(folder):
    return {name: pd.read_csv(Path(folder, f"{name}.csv")) for name in TABLES}


def same(folder, other):
    for name in TABLES:
        assert Path(folder, f"{name}.csv").read_bytes() == Path(other, f"{name}.csv").read_bytes()


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    label = np.where(x[:, 0] + rng.normal(size=60) > 0, "yes", "no")
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": label})
    frame["site"] = np.repeat(["n", "e", "s", "w"], 15)
    frame[:40].to_csv("rows.csv", index=False)
    frame[40:].to_csv("held.csv", index=False)
    return tmp_path


def test_values_of_each_are_those_of_the_library():
    said = value()
    assert "Note: The notions share one run: each has larger errors than a run for it alone" in said
    assert "Written: runs/rows/values.csv, runs/rows/values-shapley.csv, " in said
    assert "runs/rows/values-beta-16-1.csv" in said
    settings = Settings("rows.csv", "label", validation="held.csv", model="logistic")
    notions = [db.Banzhaf(), db.Shapley(), db.Beta(16, 1)]
    found = db.value(prepare(settings).game, notions, budget=120)
    for (name, table), estimate in zip(tables("runs/rows").items(), found, strict=True):
        np.testing.assert_array_equal(table["value"], estimate.values, err_msg=name)
        np.testing.assert_array_equal(table["std_error"], estimate.std_errors)
        np.testing.assert_array_equal(table["std_error_population"], estimate.errors.std_errors)
        suspects = np.flatnonzero(table["flag"] == "suspect")
        np.testing.assert_array_equal(suspects, np.flatnonzero(estimate.below_zero()))
    page = Path("runs/rows/report.html").read_text(encoding="utf-8")
    assert "Banzhaf values of 40 rows" in page


def test_estimate_writes_the_same_tables_again_and_further_notions():
    value()
    before = {name: Path(f"runs/rows/{name}.csv").read_bytes() for name in TABLES}
    record = json.loads(Path("runs/rows/run.json").read_text())
    stored = record["settings"]["notion"]
    assert stored == "banzhaf, shapley, beta(16,1)"
    assert all_named(stored) == Settings.parse(record["settings"]).notion
    for notion in ("banzhaf", "shapley", "beta:16,1", "loo"):
        code, said = call("estimate", "runs/rows/run.db", "--notion", notion)
        assert code == 0, said
    for name in TABLES:
        assert Path(f"runs/rows/{name}.csv").read_bytes() == before[name]
    assert Path("runs/rows/values-banzhaf.csv").read_bytes() == before["values"]
    page = Path("runs/rows/report.html").read_bytes()
    assert call("report", "runs/rows")[0] == 0
    assert Path("runs/rows/report.html").read_bytes() == page
    assert call("explain", "runs/rows", "--row", 3)[0] == 0

    Path("runs/rows/values-shapley.csv").unlink()
    code, said = call("estimate", "runs/rows", "--notion", NOTIONS)
    assert code == 0
    assert said.count("Written: ") == 3
    for name in TABLES:
        assert Path(f"runs/rows/{name}.csv").read_bytes() == before[name]
    assert "file of one notion" in refused(
        "estimate", "runs/rows", "--notion", NOTIONS, "--out", "x.csv"
    )
    read = db.estimate(
        "runs/rows", [db.Banzhaf(), db.Shapley()]
    )  # the folder stands for its ledger
    assert [each.notion.name for each in read] == ["banzhaf", "shapley"]
    said = json.loads(
        CliRunner().invoke(app, ["estimate", "runs/rows", "--notion", NOTIONS, "--json"]).stdout
    )
    assert said["notion"] == "banzhaf"
    assert [Path(name).name for name in said["other_values"]] == [
        f"{name}.csv" for name in TABLES[1:]
    ]


def test_a_budget_that_pays_for_no_further_permutation_stops_the_run_not_until():
    how = ("--estimator", "permutation", "--until", "precise:1e-9", "--budget", 60)
    said = value(*how, notion="shapley")
    assert "The 10 lowest of 40 shapley values (probability), 41 evaluations" in said
    assert "--until precise:1e-9 was not met within --budget 60." in said
    assert "41 evaluations are too few for reliable values. Raise --budget" in said


def test_estimate_says_where_it_knows_more_than_the_last_command():
    value("--until", "precise:1e-9")
    value("--until", "precise:1e-9", "--budget", 60)
    said = " ".join(call("estimate", "runs/rows", "--notion", "banzhaf")[1].split())
    assert "These values use all 120 evaluations in the ledger; values.csv has those of" in said
    assert "from 60." in said
    assert "--until" not in said


def test_the_shell_shows_every_notion_what_was_kept_and_what_is_older():
    said = value()
    assert "The 10 lowest of 40 banzhaf values (probability), 120 evaluations" in said
    assert "The 5 lowest of 40 shapley values" in said
    assert "The 5 lowest of 40 beta(16,1) values" in said
    assert "By banzhaf values, no row is below zero beyond chance." in said
    assert "By shapley values no rows are flagged" in said
    assert "have no interval yet: raise --budget." in said.split("By beta(16,1) values")[1]
    assert "-inf" not in said
    assert "kept" not in said
    assert "Left by an earlier" not in said
    code, said = call(
        "value", "rows.csv", *BASE[:-1], 150, "--notion", "beta(16,1),shapley,banzhaf"
    )
    assert code == 0
    assert "Continues from 120 of 150 evaluations, which were kept." in said
    assert "Left by an earlier command, and not updated: values-beta-16-1.csv." in said


def test_the_order_of_the_notions_decides_the_file_and_nothing_else():
    value("--out", "one")
    value("--out", "two", notion="shapley, beta:16,1, banzhaf")
    first, second = Path("one/values.csv"), Path("two/values-banzhaf.csv")
    assert first.read_bytes() == second.read_bytes()
    assert Path("one/values-shapley.csv").read_bytes() == Path("two/values.csv").read_bytes()


def test_a_larger_budget_continues_and_another_set_of_notions_is_refused():
    value("--out", "one", "--budget", 60)
    value("--out", "one")
    value("--out", "two")
    same("one", "two")
    code, said = call("value", "rows.csv", *BASE, "--notion", "banzhaf", "--out", "one")
    assert code == 2
    assert "--notion: the run has banzhaf, shapley, beta(16,1), this call has banzhaf" in said
    same("one", "two")


def test_until_must_hold_for_each():
    answer = json.loads(value("--until", "precise:0.02", "--budget", 20000, "--json"))
    assert 100 <= answer["evaluations"] < 20000
    assert [Path(name).name for name in answer["other_values"]] == [f"{x}.csv" for x in TABLES[1:]]
    for table in tables("runs/rows").values():
        assert table["std_error"].median() <= 0.02


def test_shards_and_a_merge_give_the_same_tables():
    own = ("--model", "sklearn.linear_model:LogisticRegression", "--jobs", 1)
    value(*own, "--out", "whole")
    for number in (1, 2):
        value(*own, "--out", f"s{number}", "--shard", f"{number}/2")
    Path("joined").mkdir()
    code, said = call("ledger", "merge", "s1/run.db", "s2/run.db", "--into", "joined/run.db")
    assert code == 0, said
    value(*own, "--out", "joined")
    record = json.loads(Path("joined/run.json").read_text())
    assert record["training_seconds_now"] == 0
    same("joined", "whole")


def test_plan_clusters_groups_and_a_closed_form():
    code, said = call("plan", "rows.csv", *BASE, "--notion", NOTIONS)
    assert code == 0, said
    assert "Errors and stability are those of banzhaf values" in said
    value("--groups", "site", "--out", "groups")
    answer = json.loads(Path("groups/run.json").read_text())
    assert answer["estimator"] == "exact"
    assert {len(table) for table in tables("groups").values()} == {3}
    value("--clusters", 5, "--out", "clusters")
    assert {len(table) for table in tables("clusters/worst").values()} < {*range(1, 40)}
    value("--model", "knn", "--out", "closed")
    game = prepare(Settings("rows.csv", "label", validation="held.csv", model="knn")).game
    found = db.value(game, [db.Banzhaf(), db.Shapley(), db.Beta(16, 1)])
    for table, estimate in zip(tables("closed").values(), found, strict=True):
        np.testing.assert_array_equal(table["value"], estimate.values)


def test_watch_shows_the_first():
    value()
    reader = Reader(find(Path("runs/rows")))
    reader.prepare()
    assert reader.values().subject.startswith("Banzhaf values of 40 rows")


def test_one_notion_with_numbers_is_one():
    assert all_named("beta:16,1") == db.Beta(16, 1)
    assert all_named(" beta(16, 1) ") == db.Beta(16, 1)
    assert all_named("beta:16,1,weighted_banzhaf(0.3)").notions == (
        db.Beta(16, 1),
        db.WeightedBanzhaf(0.3),
    )


@pytest.mark.parametrize(
    ("notion", "sentence"),
    [
        ("banzhaf,least-core", "one run serves several semivalues; got 'least_core'. Make a run"),
        ("banzhaf,shaply", "got 'shaply'. Did you mean shapley?"),
        ("banzhaf,,shapley", "--notion must be banzhaf"),
        ("banzhaf,", "--notion must be banzhaf"),
        ("banzhaf,banzhaf", "--notion must name each notion once; got banzhaf twice"),
        ("banzhaf,beta(16,x)", "got 'beta(16,x)'"),
    ],
)
def test_what_is_no_list_of_semivalues_is_refused(notion, sentence):
    said = refused("value", "rows.csv", *BASE, "--notion", notion)
    assert sentence in said
    assert not Path("runs").exists()


def test_a_table_in_the_folder_is_not_overwritten():
    Path("rows.csv").rename("values-shapley.csv")
    code, said = call("value", "values-shapley.csv", *BASE, "--notion", NOTIONS, "--out", ".")
    assert code == 2
    assert "would be overwritten" in said
