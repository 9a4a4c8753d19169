"""`databanzhaf apply`: a table and decisions.csv in, a corrected table out."""

import json
from pathlib import Path

import pandas as pd
import pytest

from databanzhaf.tables.decisions import Decision, Decisions, file_fingerprint, write_decisions
from tests.shell import invoke


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


TABLE = "a,y,b\r\n1,cat,x\r\n2,dog,\r\n3,cat,z\r\n4,dog,\r\n"


def decisions(*made, table="train.csv", target="y"):
    write_decisions("decisions.csv", Decisions(file_fingerprint(table), target, made))
    return "decisions.csv"


@pytest.fixture
def train():
    Path("train.csv").write_bytes(TABLE.encode())
    return "train.csv"


MADE = (
    Decision(0, "cat", "fix", "dog"),
    Decision(1, "dog", "drop"),
    Decision(2, "cat", "fix", "bird, big"),
    Decision(3, "dog", "keep"),
)


def test_apply_writes_the_table_and_says_what_changed(train):
    done = invoke("apply", train, decisions(*MADE), "--out", "train.fixed.csv")
    assert done.exit_code == 0, done.output
    fixed = 'a,y,b\r\n1,dog,x\r\n3,"bird, big",z\r\n4,dog,\r\n'
    assert Path("train.fixed.csv").read_bytes() == fixed.encode()
    said = " ".join(done.output.split())
    assert "2 labels changed, 1 row dropped, 1 row kept by decision; 0 rows without a" in said
    assert "New labels that no row of `train.csv` had: `bird, big`." in said
    assert "Written: train.fixed.csv, 3 rows; every other cell is as it was." in said
    assert "Written: train.fixed.decisions.csv, which lists the rows" in said
    assert "new label" in said
    known = pd.read_csv("train.fixed.decisions.csv", keep_default_na=False)
    assert known["row"].tolist() == [0, 1, 2]
    assert known["label"].tolist() == ["dog", "bird, big", "dog"]
    assert set(known["decision"]) == {"keep"}
    assert set(known["table"]) == {file_fingerprint("train.fixed.csv")}


def test_json(train):
    done = invoke("apply", train, decisions(*MADE[:2]), "--out", "fixed.csv", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "table": "train.csv",
        "out": "fixed.csv",
        "decisions": "fixed.decisions.csv",
        "rows": 3,
        "fixed": 1,
        "dropped": 1,
        "kept": 0,
        "undecided": 2,
        "changes": [{"label": "cat", "new_label": "dog", "rows": 1}],
        "notes": [],
    }


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(train, as_json):
    first = decisions(Decision(0, "dog", "drop"))
    there = sorted(Path().iterdir())
    cases = [
        ([train, first, "--out", "f.csv"], "must name its label, 'cat'; got 'dog'"),
        ([train, first, "--out", "train.csv"], "is the table itself"),
        ([train, first, "--out", "decisions.csv"], "already exists"),
        ([train, "none.csv", "--out", "f.csv"], "cannot be read"),
        (["none.csv", first, "--out", "f.csv"], "there is no file `none.csv`"),
        ([train, first, "--out", "f.csv", "--encoding", "utf-16"], "cannot be read as a table"),
        ([train, first, "--out", "f.csv", "--encoding", "klingon"], "`encoding` must be"),
        ([train, first, "--out", "f.csv", "--separator", ";"], "Pass --separator"),
    ]
    for words, sentence in cases:
        done = invoke("apply", *words, *as_json)
        assert done.exit_code == 2, done.output
        assert sentence in done.output
        assert len(done.output.strip().splitlines()) == 1
        assert not as_json or done.stdout == ""
        assert sorted(Path().iterdir()) == there


def test_a_table_that_changed_since_the_review_is_refused(train):
    first = decisions(*MADE)
    Path(train).write_text(TABLE.replace("x", "X"))
    done = invoke("apply", train, first, "--out", "fixed.csv")
    assert done.exit_code == 2
    assert "must be about `train.csv` as it is now" in done.output
    assert not Path("fixed.csv").exists()


def test_options_for_text_files():
    Path("t.csv").write_bytes("größe;y\r\n1,5;grün\r\n2,5;rot\r\n".encode("latin-1"))
    made = decisions(Decision(0, "grün", "fix", "rot"), table="t.csv")
    how = ("--encoding", "latin-1", "--separator", ";", "--decimal", ",")
    done = invoke("apply", "t.csv", made, "--out", "u.csv", *how)
    assert done.exit_code == 0, done.output
    assert Path("u.csv").read_bytes() == "größe;y\r\n1,5;rot\r\n2,5;rot\r\n".encode("latin-1")


def test_labels_cannot_command_the_terminal(train):
    made = decisions(Decision(0, "cat", "fix", "\x1b[31m[bold]red\n=1+1"))
    done = invoke("apply", train, made, "--out", "fixed.csv")
    assert done.exit_code == 0, done.output
    assert "\x1b" not in done.output
    assert "[bold]red" in done.output
    again = pd.read_csv("fixed.csv")
    assert again["y"].tolist() == ["\x1b[31m[bold]red\n=1+1", "dog", "cat", "dog"]


def test_many_kinds_of_changes_are_cut():
    rows = range(60)
    Path("t.csv").write_text("a,y\n" + "".join(f"{row},c{row}\n" for row in rows))
    made = decisions(*(Decision(row, f"c{row}", "fix", "c0") for row in rows[1:]), table="t.csv")
    done = invoke("apply", "t.csv", made, "--out", "u.csv")
    assert "... and 39 more kinds of changes." in done.output
    assert "59 labels changed" in done.output
