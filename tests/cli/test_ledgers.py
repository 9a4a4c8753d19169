"""`databanzhaf ledger check | repair | merge | export`."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.ledger.contents import contents, evaluations, made
from tests.shell import invoke


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(done):
    return " ".join(done.output.split())


@pytest.fixture
def damaged():
    made("whole.db", evaluations(400))
    made("run.db", evaluations(400))
    with closing(sqlite3.connect("run.db", isolation_level=None)) as connection:
        connection.execute("UPDATE evaluations SET utility = 9 WHERE idx IN (7, 20, 21, 22)")
    return "run.db"


def test_check_of_a_whole_ledger():
    made("run.db", evaluations(50, 2, 300))
    done = invoke("ledger", "check", "run.db")
    assert done.exit_code == 0, done.output
    assert said(done).startswith(
        "run.db is whole: It holds 100 evaluations of 50 coalitions with up to 2 repeats, each "
        "with its outcome;"
    )
    assert all(word in done.output for word in ("Coin", "accuracy", "seed", "outcomes"))
    done = invoke("ledger", "check", "run.db", "--json")
    found = json.loads(done.stdout)
    assert found["whole"] is True
    assert (found["evaluations"], found["outcomes"], found["lost"]) == (100, 100, 0)
    assert found["run"]["design"]["n_players"] == 12
    assert found["missing"] == []
    assert found["repair"] is None


def test_check_of_a_damaged_ledger(damaged):
    done = invoke("ledger", "check", damaged)
    assert done.exit_code == 1
    assert "run.db is damaged: 4 of its evaluations from index 0 to 399 do not match" in said(done)
    assert (
        "Lost: 4 of 400 written evaluations; the run evaluates what is lost again." in done.output
    )
    assert "Missing up to index 399: 7, 20 to 22 (4 in all)." in done.output
    command = "databanzhaf ledger repair run.db --out run.repaired.db"
    assert f"To keep what is whole: {command}" in done.output
    done = invoke("ledger", "check", damaged, "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["whole"], found["lost"], found["repair"]) == (False, 4, command)
    assert found["missing"] == [[7, 7], [20, 22]]


def test_repair_writes_what_is_whole_and_says_how_to_resume(damaged):
    done = invoke("ledger", "repair", damaged, "--out", "run.repaired.db")
    assert done.exit_code == 0, done.output
    assert "Written: run.repaired.db, 396 evaluations of 396 coalitions." in done.output
    assert "Lost: 4 of 400 written evaluations; the run" in done.output
    assert "move run.db to another folder, rename run.repaired.db to run.db" in said(done)
    assert invoke("ledger", "check", "run.repaired.db").exit_code == 0
    done = invoke("ledger", "repair", damaged, "--out", "run.repaired.db")
    assert done.exit_code == 2
    assert "`run.repaired.db` already exists" in done.output
    done = invoke("ledger", "repair", damaged, "--out", "b.db", "--like", "whole.db", "--json")
    assert json.loads(done.stdout)["lost"] == 4


def test_a_log_beside_a_damaged_ledger_is_to_be_moved_with_it(damaged):
    Path("run.db-wal").write_bytes(b"the rest of a log")
    done = invoke("ledger", "repair", damaged, "--out", "out.db")
    assert "move run.db and run.db-wal to another folder" in said(done)


def test_the_option_that_helps_is_named(damaged):
    with closing(sqlite3.connect(damaged, isolation_level=None)) as connection:
        connection.execute("UPDATE facts SET value = '1' WHERE name = 'seed'")
    done = invoke("ledger", "repair", damaged, "--out", "out.db")
    assert done.exit_code == 2
    assert "nothing in `run.db` can be repaired" in done.output
    assert "--like old.db" in done.output
    done = invoke("ledger", "check", damaged)
    assert done.exit_code == 1
    assert "nothing says what its run is" in said(done)
    assert (
        invoke("ledger", "repair", damaged, "--out", "out.db", "--like", "whole.db").exit_code == 0
    )


def test_merge_says_what_is_new_and_what_is_missing():
    given = evaluations(4000)
    share = given[0] // 100 % 8
    made("a.db", given, share < 3)
    made("b.db", given, (share > 2) & (share != 5))
    done = invoke("ledger", "merge", "a.db", "b.db", "--into", "run.db")
    assert done.exit_code == 0, done.output
    assert "Added 3,500 evaluations from 2 ledgers; 0 were there already." in said(done)
    assert "Written: run.db, 3,500 evaluations of 3,500 coalitions." in done.output
    assert "Missing up to index 3,999: 500 to 599, 1,300 to 1,399," in said(done)
    made("c.db", given, (share == 5) | (given[0] == 0))
    done = invoke("ledger", "merge", "a.db", "c.db", "--into", "run.db", "--json")
    found = json.loads(done.stdout)
    assert (found["added"], found["known"], found["missing"]) == (500, 1501, [])
    assert contents("run.db") == contents(made("whole.db", given))


def test_many_ranges_are_counted():
    given = evaluations(100)
    made("a.db", given, given[0] % 2 == 0)
    done = invoke("ledger", "merge", "a.db", "--into", "run.db")
    assert "1, 3, 5, 7, 9, and 44 more ranges (49 in all)" in said(done)


def test_merge_refuses_strangers_in_one_sentence():
    made("a.db", evaluations(20))
    made("b.db", evaluations(20), seed=1)
    done = invoke("ledger", "merge", "a.db", "b.db", "--into", "run.db")
    assert done.exit_code == 2
    assert "`b.db` belongs to another run than `a.db`:" in done.output
    assert "seed: `a.db` has 0, `b.db` has 1" in done.output
    done = invoke("ledger", "merge", "a.db", "--into", "a.db")
    assert done.exit_code == 2
    assert "--into must not be one of the ledgers that are merged" in said(done)


def test_export_writes_files_and_says_what_they_hold():
    made("run.db", evaluations(50))
    done = invoke("ledger", "export", "run.db", "--out", "files")
    assert done.exit_code == 0, done.output
    assert "50 evaluations; 50 coalitions of 12 players." in done.output
    assert "files/masks.npy" in done.output
    done = invoke("ledger", "export", "run.db", "--out", "more", "--json")
    found = json.loads(done.stdout)
    assert found["players"] == 12
    assert all(Path(file).is_file() for file in found["files"])


def test_ctrl_c_says_what_is_kept(monkeypatch):
    made("run.db", evaluations(50))

    def interrupted(*given):
        raise KeyboardInterrupt

    for name in ("check", "repair", "merge", "export"):
        monkeypatch.setattr(f"databanzhaf.ledger.{name}", interrupted)
    into = {"repair": ["--out", "o.db"], "merge": ["--into", "o.db"], "export": ["--out", "o"]}
    for name in ("check", "repair", "merge", "export"):
        done = invoke("ledger", name, "run.db", *into.get(name, []))
        assert done.exit_code == 130
        assert done.output.startswith("Stopped; ")


def test_the_group_has_help():
    for words in (["ledger"], ["ledger", "--help"], ["ledger", "merge", "-h"]):
        assert "merge" in invoke(*words).output
