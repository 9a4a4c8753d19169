"""`databanzhaf mislabels`: a list and a review page out; and the way back by `apply`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.cli.labels import _cell
from databanzhaf.tables.decisions import Decision, Decisions, file_fingerprint, write_decisions
from tests.shell import invoke

FOLDER = Path("runs/train-labels")
FILES = ("mislabels.csv", "report.html", "run.db", "run.json")


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(n=90, seed=0):
    rng = np.random.default_rng(seed)
    true = np.arange(n) % 2
    return pd.DataFrame(
        {
            "name": [f"r{row}" for row in range(n)],
            "a": (true * 4 + rng.normal(size=n)).round(3),
            "colour": np.where(rng.random(n) < 0.5, "red", "blue"),
            "y": np.where(true == 1, "yes", "no"),
        }
    )


@pytest.fixture
def train():
    table = rows()
    flipped = table["y"].replace({"yes": "no", "no": "yes"})
    table.loc[[3, 40, 77], "y"] = flipped[[3, 40, 77]]
    table.to_csv("train.csv", index=False)
    return "train.csv"


def content(page):
    """The data inside a page."""
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1))


def test_the_list_the_files_and_what_is_said(train):
    done = invoke("mislabels", train, "--target", "y", "--id", "name", "--budget", "50")
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in FOLDER.iterdir() if path.suffix != ".lock") == sorted(FILES)
    table = pd.read_csv(FOLDER / "mislabels.csv", keep_default_na=False)
    assert list(table.columns) == [
        "row", "id", "label", "suggested", "p_wrong", "p_suggested", "agreement", "margin",
        "rank", "flag",
    ]  # fmt: skip
    assert len(table) == 90
    assert set(table.sort_values("rank")["row"][:3]) == {3, 40, 77}
    assert table["id"][3] == "r3"
    said = " ".join(done.output.split())
    assert "90 labels of `y` to judge; classification by linear model" in said
    assert "Classes of `y`" in said
    assert "expect about" in said
    assert "Of 100 labels changed at random" in said
    assert "databanzhaf mislabels train.csv --target y --id name --budget 50 --out" in said
    record = json.loads((FOLDER / "run.json").read_text())
    assert record["status"] == "finished"
    assert record["settings"]["target"] == "y"
    page = (FOLDER / "report.html").read_text()
    assert file_fingerprint(train) in page
    again = invoke("mislabels", train, "--target", "y", "--id", "name", "--budget", "50", "--quiet")
    assert "labels of `y` to judge" not in again.output
    assert "Nothing was trained now" in again.output
    assert "trained now" not in done.output
    assert pd.read_csv(FOLDER / "mislabels.csv", keep_default_na=False).equals(table)


@pytest.mark.parametrize("command", ["report", "estimate"])
def test_a_folder_of_labels_has_no_values(train, command):
    assert invoke("mislabels", train, "--target", "y", "--budget", "5").exit_code == 0
    done = invoke(command, FOLDER / "run.db")
    assert done.exit_code == 2
    assert "which `databanzhaf mislabels` wrote" in " ".join(done.output.split())


def test_json_and_checked_rows(train):
    more = rows(40, seed=5)
    more.to_csv("checked.csv", index=False)
    words = ["mislabels", train, "--target", "y", "--drop", "name", "--budget", "50", "--json"]
    done = invoke(*words, "--checked", "checked.csv")
    said = json.loads(done.stdout)
    assert {row["row"] for row in said["flagged"]} == {3, 40, 77}
    assert said["checked_rows"] == 40
    assert said["learned"]
    assert 0 <= said["wrong"]["low"] <= said["wrong"]["share"] <= said["wrong"]["high"]
    assert "--checked checked.csv" in said["command"]
    before = (FOLDER / "run.json").read_bytes()
    other = invoke(*words)
    assert (FOLDER / "run.json").read_bytes() == before  # another run's folder is not touched
    assert other.exit_code == 2
    assert "belongs to another run" in other.output
    assert "another --out" in other.output


def test_reviewed_rows_count_as_checked_in_the_corrected_copy(train):
    assert invoke("mislabels", train, "--target", "y", "--budget", "50").exit_code == 0
    made = (Decision(3, "yes", "fix", "no"), Decision(5, "yes", "keep"), Decision(9, "yes", "drop"))
    table = pd.read_csv(train)
    made = tuple(
        Decision(
            each.row,
            table["y"][each.row],
            each.decision,
            {"yes": "no", "no": "yes"}[table["y"][each.row]] if each.new_label else "",
        )
        for each in made
    )
    write_decisions("decisions.csv", Decisions(file_fingerprint(train), "y", made))
    assert invoke("apply", train, "decisions.csv", "--out", "train.fixed.csv").exit_code == 0
    done = invoke("mislabels", "train.fixed.csv", "--target", "y", "--budget", "50")
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "2 rows were decided in an earlier review" in said
    assert "with 2 checked rows" in said
    found = pd.read_csv("runs/train.fixed-labels/mislabels.csv", keep_default_na=False)
    assert found["flag"][[3, 5]].tolist() == ["checked", "checked"]
    assert found["p_wrong"][[3, 5]].tolist() == [0, 0]
    assert set(found.sort_values("rank")["row"][:2]) == {39, 76}  # a row before them was dropped
    with open("train.fixed.csv", "a") as file:
        file.write("r90,0.1,red,no\n")
    words = ["mislabels", "train.fixed.csv", "--target", "y", "--budget", "5", "--out", "later"]
    said = " ".join(invoke(*words).output.split())
    assert "no row counts as checked: `train.fixed.csv` has changed since" in said


def test_a_review_of_all_rows_leaves_nothing_to_do(train):
    table = pd.read_csv(train)
    made = tuple(Decision(row, label, "keep") for row, label in enumerate(table["y"][:85]))
    write_decisions("decisions.csv", Decisions(file_fingerprint(train), "y", made))
    assert invoke("apply", train, "decisions.csv", "--out", "done.csv").exit_code == 0
    done = invoke("mislabels", "done.csv", "--target", "y")
    assert done.exit_code == 2
    assert "got n_samples = 5, and 85 checked rows" in " ".join(done.output.split())


def test_numbers_with_a_decimal_comma_are_fixed():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    table = pd.DataFrame({"a": a, "y": (5 * a + 0.1 * rng.normal(size=60)).round(2)})
    table.to_csv("t.csv", index=False, sep=";", decimal=",")
    row = content_of("t.csv")["rows"][0]
    old, new = row["label"], row["suggested"]
    made = (Decision(row["row"], old, "fix", new),)
    write_decisions("decisions.csv", Decisions(file_fingerprint("t.csv"), "y", made))
    done = invoke("apply", "t.csv", "decisions.csv", *COMMAS, "--out", "fixed.csv")
    assert done.exit_code == 0, done.output
    fixed = pd.read_csv("fixed.csv", sep=";", decimal=",")
    assert fixed["y"][row["row"]] == float(new)


COMMAS = ("--separator", ";", "--decimal", ",")


def content_of(name):
    """The first row of a review page."""
    assert invoke("mislabels", name, "--target", "y", "--budget", "5", *COMMAS).exit_code == 0
    data = content((Path("runs/t-labels") / "report.html").read_text())
    first = dict(zip(data["fields"], data["rows"][0], strict=True))
    number, _, label, _ = data["pool"][0]
    texts = data["labels"]
    return {
        "rows": [{"row": number, "label": texts[label], "suggested": texts[first["suggested"]]}]
    }


def test_a_regression_and_the_value_of_a_row(train):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = 5 * X[:, 0] + 0.3 * rng.normal(size=120)
    y[7] += 12
    pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_csv("prices.csv", index=False)
    assert invoke("value", "prices.csv", "--target", "y", "--budget", "100").exit_code == 0
    done = invoke("mislabels", "prices.csv", "--target", "y", "--budget", "50")
    assert done.exit_code == 0, done.output
    table = pd.read_csv("runs/prices-labels/mislabels.csv", keep_default_na=False)
    assert table.sort_values("rank")["row"].iloc[0] == 7
    assert {"expected", "low", "high"} <= set(table.columns)
    values = pd.read_csv("runs/prices/values.csv")
    assert f"{values['value'][7]:+.3g}" in (Path("runs/prices-labels") / "report.html").read_text()


def test_nothing_is_said_to_be_certain():
    shown = [_cell("p_wrong", p) for p in (0.5, 0.99989, 0.99996, 1.0)]
    assert shown == ["0.5", "0.9999", "> 0.9999", "> 0.9999"]
    assert [_cell("label", each) for each in (3.0, "yes")] == ["3", "yes"]


def test_pictures_and_long_texts_have_a_place_on_the_page():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = (40 * y[:, None, None] + rng.integers(0, 60, (60, 8, 8))).astype(np.uint8)
    np.savez("images.npz", X=X, y=y)
    done = invoke("mislabels", "images.npz", "--target", "y", "--budget", "10")
    assert done.exit_code == 0, done.output
    assert "data:image/png" in Path("runs/images-labels/report.html").read_text()
    words = {0: ["sun", "sea", "sand"], 1: ["snow", "ice", "frost"]}
    texts = [
        " ".join(rng.choice(words[label], 60)) + f" on day {row}" for row, label in enumerate(y)
    ]
    labels = y.copy()
    labels[4] = 1 - labels[4]
    pd.DataFrame({"review": texts, "y": labels}).to_csv("texts.csv", index=False)
    done = invoke("mislabels", "texts.csv", "--target", "y", "--budget", "20")
    assert "free text" in done.output
    table = pd.read_csv("runs/texts-labels/mislabels.csv")
    assert table.sort_values("rank")["row"].iloc[0] == 4
    assert texts[4][:300] in Path("runs/texts-labels/report.html").read_text()


def test_noise_is_called_noise():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 3)), columns=list("abc"))
    table["y"] = rng.integers(0, 2, 120)
    table.to_csv("noise.csv", index=False)
    done = invoke("mislabels", "noise.csv", "--target", "y", "--budget", "50")
    said = " ".join(done.output.split())
    assert "no better than a guess, so nothing is flagged" in said
    assert "are wrong (95%" not in said
    data = content((Path("runs/noise-labels") / "report.html").read_text())
    assert {row[data["fields"].index("p_wrong")] for row in data["rows"]} == {None}
    assert data["curve"] is None
    assert not data["histogram"]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["--target", "z"], "must be a column"),
        (["--target", "y", "--checked", "nowhere.csv"], "nowhere.csv"),
        (["--target", "y", "--checked", "other.csv"], "class"),
        (["--target", "y", "--checked", "narrow.csv"], "must have the table's columns"),
        (["--target", "y", "--model", "forst"], "Did you mean forest"),
        (["--target", "y", "--fdr", "3"], "fdr"),
        (["--target", "y", "--drop", "a", "--drop", "colour", "--drop", "name"], "predict the"),
        (["--target", "y", "--budget", "0"], "budget"),
        (["--target", "name"], "share labels"),
        (["--target", "y", "--out", "train.csv"], "train.csv"),
    ],
)
def test_bad_input_writes_nothing(train, words, match):
    rows(12).assign(y="perhaps").to_csv("other.csv", index=False)
    rows(12).drop(columns="a").to_csv("narrow.csv", index=False)
    before = sorted(Path().iterdir())
    done = invoke("mislabels", train, *words)
    assert done.exit_code == 2
    assert match in " ".join(done.output.split())
    assert sorted(Path().iterdir()) == before


def test_a_killed_run_goes_on_where_it_was(train):
    table = pd.concat([rows(400, seed=seed) for seed in range(3)], ignore_index=True)
    table.to_csv("large.csv", index=False)
    words = ["mislabels", "large.csv", "--target", "y", "--drop", "name", "--budget", "150"]
    command = [sys.executable, "-m", "databanzhaf", *words, "--out", "killed"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ledger, deadline = Path("killed/run.db"), time.time() + 60
    while time.time() < deadline and process.poll() is None:
        if ledger.exists() and _count(ledger) >= 50:
            break
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert _count(ledger) >= 50
    assert invoke(*words, "--out", "killed").exit_code == 0
    assert invoke(*words, "--out", "whole").exit_code == 0
    assert Path("killed/mislabels.csv").read_bytes() == Path("whole/mislabels.csv").read_bytes()


def _count(path):
    try:
        with db.Ledger(path) as ledger:
            return 0 if ledger.is_new else ledger.count()
    except db.DatabanzhafError:
        return 0
