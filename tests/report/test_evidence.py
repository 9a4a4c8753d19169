"""What the rows of a report show when they are opened, without a browser."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from databanzhaf.cli import app
from databanzhaf.pipeline import reread
from databanzhaf.population import effects
from databanzhaf.report.build import content_of


def table(n=60, seed=0):
    """Numbers, gaps and categories; rows 1 and 2 have the cells of row 0, row 2 another label."""
    rng = np.random.default_rng(seed)
    made = pd.DataFrame(
        {
            "name": [f"n{row}" for row in range(n)],
            "x": rng.normal(size=n).round(2),
            "city": rng.choice(["Basel", "Turin", None], n),
            "note": [f"note {row}" for row in range(n)],
        }
    )
    made.loc[3::7, "x"] = np.nan
    made["label"] = np.where(made["x"].fillna(0) + rng.normal(size=n) > 0, "yes", "no")
    for row in (1, 2):
        made.loc[row, ["x", "city"]] = made.loc[0, ["x", "city"]]
    made.loc[[0, 1, 2], "label"] = ["yes", "yes", "no"]
    return made


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """A function: table and options → the data of its page."""
    monkeypatch.chdir(tmp_path)

    def value(frame, *words):
        frame.to_csv("t.csv", index=False)
        usual = ["--model", "logistic", "--budget", "250", "--jobs", "1"]
        done = CliRunner().invoke(app, ["value", "t.csv", "--target", "label", *usual, *words])
        assert done.exit_code == 0, done.output
        page = Path("runs/t/report.html").read_text()
        found = re.search(r'id="data">(.*?)</script>', page, flags=re.DOTALL)
        return json.loads(found[1])

    return value


def lines(data, pairs):
    return [data["table"]["rows"][line][0] for line, *_ in pairs]


DROPS = ("--id", "name", "--drop", "note")


def test_nearest_rows_by_label_and_copies_that_contradict(shown):
    data = shown(table(), *DROPS)
    proof, frame = data["evidence"], table()
    assert sorted(map(int, proof["rows"])) == list(range(60))
    assert data["table"]["columns"][proof["label"]] == "label"
    for line, each in proof["rows"].items():
        own = frame["label"][int(line)]
        assert set(frame["label"][lines(data, each["same"])]) == {own}
        assert own not in set(frame["label"][lines(data, each["other"])])
        assert int(line) not in lines(data, each["same"])
        assert len(each["same"]) == len(each["other"]) == 3
        distances = [far for _, far in each["same"]]
        assert distances == sorted(distances)
    assert proof["rows"]["0"]["same"][0] == [1, 0.0]
    assert proof["rows"]["0"]["other"][0] == [2, 0.0]
    assert ["no", [2], 1] in proof["rows"]["0"]["copies"]
    assert ["yes", [0, 1], 2] in proof["rows"]["2"]["copies"]


def test_a_gap_is_not_the_same_cell_as_the_median(shown):
    """Distances fill gaps by the median; rows that are called copies have the same cells."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, np.nan, np.nan], "label": list("abaab")})
    proof = shown(pd.concat([frame] * 6, ignore_index=True).iloc[:26])["evidence"]
    gap = proof["rows"]["3"]
    assert {label for label, *_ in gap["copies"]} == {"b"}
    assert all(row % 5 == 4 for _, rows, _ in gap["copies"] for row in rows)
    assert gap["other"][0][1] == 0.0  # row 1 has the median


def test_the_only_row_of_a_class(shown):
    frame = table()
    frame.loc[5, "label"] = "rare"
    rare = shown(frame, *DROPS)["evidence"]["rows"]["5"]
    assert rare["same"] == []
    assert len(rare["other"]) == 3


def test_the_effects_are_those_of_the_run(shown):
    """Counts, extremes and the mean; the row itself does not judge."""
    data = shown(table(), *DROPS)
    result = reread(Path("runs/t"), as_recorded=True)
    players = np.arange(60)
    found = effects(result.evaluations, result.estimate, players, players)
    means = np.nansum(found.effects, axis=1) / 60
    np.testing.assert_allclose(means, result.estimate.values, atol=1e-12)
    assert data["evidence"]["note"] == ""
    assert data["evidence"]["across"]
    for player in players:
        jury, own = data["evidence"]["rows"][str(player)]["jury"], found.effects[player]
        assert jury["judges"] == 59
        assert jury["hurt"] == (own < 0).sum()
        assert sum(jury["bars"][2]) == 59
        assert lines(data, jury["worst"]) == np.argsort(own)[:3].tolist()
        assert [effect for _, effect, _ in jury["best"]] == pytest.approx(
            np.sort(own[~np.isnan(own)])[::-1][:3], rel=6e-3
        )
        clear = found.beyond_noise()[player]
        assert jury["clear"] == [(clear & (own < 0)).sum(), (clear & (own > 0)).sum()]
        swayed, moved = data["evidence"]["rows"][str(player)]["swayed"], found.effects[:, player]
        assert lines(data, swayed["worst"]) == np.argsort(moved)[:3].tolist()
        assert lines(data, swayed["best"]) == np.argsort(-moved)[:3].tolist()
        assert [effect for _, effect, _ in swayed["worst"]] == pytest.approx(
            np.sort(moved)[:3], rel=6e-3
        )


def test_regression_has_nearest_rows_with_their_targets(shown):
    frame = table().drop(columns="note").assign(label=np.random.default_rng(1).normal(size=60))
    data = shown(frame, "--id", "name", "--model", "linear")
    proof = data["evidence"]
    assert not proof["classes"]
    row = proof["rows"]["0"]
    assert len(row["same"]) == 3
    assert row["other"] == []
    assert [copies[1] for copies in row["copies"]] in ([[1], [2]], [[2], [1]])
    assert row["jury"]["judges"] == 59


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--keep", "scores", "--validation-fraction", "0.3"), "--keep predictions"),
        (("--notion", "shapley"), "folds"),
        (("--metric", "roc_auc", "--validation-fraction", "0.3"), "--metric probability"),
        (("--notion", "least-core", "--validation-fraction", "0.3"), "Least core"),
    ],
)
def test_one_sentence_says_why_there_is_no_effect_over_the_jury(shown, words, why):
    proof = shown(table(), *DROPS, *words)["evidence"]
    assert why in proof["note"]
    assert proof["note"].endswith(".")
    assert all(each["jury"] is None for each in proof["rows"].values())
    assert len(proof["rows"]["0"]["same"]) == 3


def test_groups_have_no_evidence(shown):
    frame = table().assign(team=np.arange(60) % 6)
    assert shown(frame, *DROPS, "--groups", "team")["evidence"] is None
    assert "without --groups" in Path("runs/t/report.html").read_text()


def test_rows_held_out_are_named_by_their_number_in_the_table(shown):
    data, frame = shown(table(), *DROPS, "--validation-fraction", "0.3"), table()
    valued = {row[0] for row in data["table"]["rows"]}
    judges = data["evidence"]["judges"]
    assert judges
    for name, label in judges:
        number = int(name.removeprefix("row "))
        assert number not in valued
        assert frame["label"][number] == label
    named = {judge for each in data["evidence"]["rows"].values() for judge, *_ in _heard(each)}
    assert named == set(range(len(judges)))


def _heard(each):
    return [*each["jury"]["worst"], *each["jury"]["best"]]


def test_rows_of_a_validation_file_are_named_by_their_number_in_it(shown):
    checked = table(seed=5)
    checked.to_csv("checked.csv", index=False)
    data = shown(table(), *DROPS, "--validation", "checked.csv", "--notion", "shapley")
    assert not data["evidence"]["across"]
    for name, label in data["evidence"]["judges"]:
        assert checked["label"][int(name.removeprefix("validation row "))] == label


def test_of_many_validation_rows_a_part_is_looked_at(shown):
    checked = table(n=1500, seed=5)
    checked.to_csv("checked.csv", index=False)
    data = shown(table(), *DROPS, "--validation", "checked.csv")
    assert data["evidence"]["note"].startswith("These are 1,000 of the 1,500 judging rows")
    for name, label in data["evidence"]["judges"]:
        assert checked["label"][int(name.removeprefix("validation row "))] == label
    jury = data["evidence"]["rows"]["0"]["jury"]
    assert jury["judges"] == sum(jury["bars"][2]) == 1000


def test_rows_that_the_table_does_not_list_are_named_with_their_cells(shown, monkeypatch):
    monkeypatch.setattr("databanzhaf.report.build.MOST_LINES", 20)
    monkeypatch.setattr("databanzhaf.report.evidence.LOWEST", 8)
    monkeypatch.setattr("databanzhaf.report.evidence.HIGHEST", 4)
    data = shown(table(), *DROPS, "--flag", "lowest:0.2")
    proof, listed = data["evidence"], data["table"]["rows"]
    assert len(listed) == 20
    assert len(proof["rows"]) == 12  # the suspects; the highest are not listed
    assert set(map(int, proof["rows"])) == set(data["table"]["suspects"])
    everyone = [*listed, *proof["cells"]]
    assert len({row[0] for row in everyone}) == len(everyone)
    frame = table()
    for row in everyone:
        assert (row[1], row[2]) == (frame["name"][row[0]], frame["label"][row[0]])
    lines = [line for each in proof["rows"].values() for line, *_ in _heard(each) + each["other"]]
    assert max(lines) >= 20
    assert max(lines) < len(everyone)


def test_the_same_page_again_also_with_a_model_of_the_users_own(shown, monkeypatch):
    Path("own.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "def model():\n    return LogisticRegression(C=0.5)\n"
    )
    monkeypatch.syspath_prepend(".")
    shown(table(), *DROPS, "--model", "own:model")
    before = Path("runs/t/report.html").read_bytes()
    done = CliRunner().invoke(app, ["report", "runs/t"])
    assert done.exit_code == 0, done.output
    assert Path("runs/t/report.html").read_bytes() == before


def test_the_report_names_how_many_rows_judged(shown):
    shown(table(), *DROPS)
    content = content_of(reread(Path("runs/t"), as_recorded=True), Path("runs/t"))
    assert content.facts["rows that judged"] == "60"
    shown(table(), *DROPS, "--validation-fraction", "0.3", "--out", "runs/held")
    content = content_of(reread(Path("runs/held"), as_recorded=True), Path("runs/held"))
    judged = content.facts["rows that judged"]
    assert int(judged) + len(content.values) == 60
    assert f"judged by {judged} validation rows" in content.subject
