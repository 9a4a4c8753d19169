"""Ledgers of one run that are joined, and what must not be joined."""

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.ledger import merge, rows
from tests.ledger.contents import append, bound, contents, evaluations, made

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shards(given, count, **run):
    """One ledger for each share of the indices."""
    owner = given[0] // 8 % count
    return [made(f"part-{shard}.db", given, owner == shard, **run) for shard in range(count)]


@pytest.mark.parametrize("size", [None, 300, 9000], ids=["utilities", "outcomes", "large ones"])
@pytest.mark.parametrize("portion", [7, 1 << 14])
def test_shards_are_joined_to_the_ledger_of_one_run(monkeypatch, size, portion):
    monkeypatch.setattr(rows, "_PORTION", portion)
    given = evaluations(200 if size is None else 60, repeats=2, size=size)
    names = [f"player {number}" for number in range(12)]
    whole = made("whole.db", given, players=names)
    parts = shards(given, 5, players=names)
    done = merge(parts[:3], "run.db")
    assert done.coverage.missing[0] == (24, 39)
    done = merge(parts[2:], "run.db")
    assert contents("run.db") == contents(whole)
    assert (done.files, done.known) == (3, int((given[0] // 8 % 5 == 2).sum()))
    again = merge(parts, "run.db")
    assert (again.added, again.known) == (0, len(given[0]))
    assert again.coverage.missing == again.coverage.fewer == ()
    assert contents("run.db") == contents(whole)


def test_portions_end_before_outcomes_fill_the_memory(monkeypatch):
    monkeypatch.setattr(rows, "_PORTION_BYTES", 20_000)
    given = evaluations(60, size=9000)
    made("whole.db", given)
    with db.Ledger("whole.db") as ledger:
        sizes = [sum(map(len, portion.outcomes)) for portion in ledger.portions()]
    assert len(sizes) > 5
    assert max(sizes) < 29_000


def test_a_run_continues_with_what_was_merged():
    asked = []

    def play(coalitions):
        asked.append(len(coalitions))
        return coalitions.mean(axis=1)

    game = db.games.Function(30, play, name="mean")
    truth = db.value(game, budget=300, ledger="whole.db")
    with db.Ledger("whole.db") as whole:
        given = (*whole.evaluations(), None)
        for name, which in (("a.db", given[0] < 100), ("b.db", (given[0] >= 120))):
            with db.Ledger(name) as part:
                part.bind(whole.game, whole.design, seed=0, stochastic=False)
                append(part, given, which)
    done = merge(["a.db", Path("b.db")], Path("run.db"))
    assert done.coverage.missing == ((100, 119),)
    asked.clear()
    again = db.value(game, budget=300, ledger="run.db")
    assert sum(asked) == 20
    assert np.array_equal(again.values, truth.values)


def test_of_evaluations_that_agree_the_first_is_kept():
    given = evaluations(40)
    slower = (*given[:3], given[3] + 1, None)
    made("a.db", given, slice(0, 30))
    made("b.db", slower, slice(20, 40))
    done = merge(["a.db", "b.db"], "run.db")
    assert (done.added, done.known) == (40, 10)
    with db.Ledger("run.db") as ledger:
        assert np.array_equal(ledger.evaluations()[3][:30], given[3][:30])
        assert np.array_equal(ledger.evaluations()[3][30:], slower[3][30:])


def test_evaluations_that_differ_are_refused_by_name():
    given = evaluations(1300, repeats=2)
    other = (*given[:2], given[2].copy(), *given[3:])
    place = int(np.flatnonzero((given[0] == 1234) & (given[1] == 1))[0])
    other[2][place] = np.nextafter(other[2][place], 9)
    made("a.db", given)
    made("b.db", other, slice(place, None))
    with pytest.raises(db.LedgerMismatch) as error:
        merge(["a.db", "b.db"], "run.db")
    said = str(error.value)
    assert "`b.db` have a different utility for index 1,234, repeat 1" in said
    assert repr(float(given[2][place])) in said
    assert repr(float(other[2][place])) in said
    assert contents("run.db") == contents("a.db")


def test_outcomes_that_differ_are_refused_by_name():
    given = evaluations(30, size=300)
    other = (*given[:4], [*given[4][:9], b"another", *given[4][10:]])
    made("a.db", given)
    made("b.db", other)
    with pytest.raises(db.LedgerMismatch, match="different outcome for index 9, repeat 0"):
        merge(["a.db", "b.db"], "run.db")


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ({"seed": 1}, ["seed", "0", "1"]),
        ({"game": {"metric": "auc"}}, ["metric", "accuracy", "auc"]),
        ({"players": list("abcdefghijkl")}, ["names of the players", "nothing", '"a", "b"']),
        ({"keep": "outcomes"}, ["keep", "utilities", "outcomes"]),
    ],
    ids=["seed", "metric", "players", "keep"],
)
def test_strangers_are_refused_and_nothing_is_written(other, shown):
    given = evaluations(10)
    made("a.db", given)
    packed = (*given[:4], [b"x"] * 10) if "keep" in other else given
    made("b.db", packed, **{name: each for name, each in other.items() if name != "keep"})
    with pytest.raises(db.LedgerMismatch) as error:
        merge(["a.db", "b.db"], "run.db")
    assert str(error.value).startswith("`b.db` belongs to another run than `a.db`:")
    assert all(word in str(error.value) for word in shown)
    assert not Path("run.db").exists()
    shutil.copy("b.db", "run.db")
    with pytest.raises(db.LedgerMismatch, match=r"`a\.db` belongs to another run than `run\.db`"):
        merge(["a.db"], "run.db")
    assert contents("run.db") == contents("b.db")


def test_versions_may_differ_and_the_first_stays():
    given = evaluations(20)
    made("a.db", given, slice(0, 10))
    with db.Ledger("a.db") as first, db.Ledger("b.db") as later:
        later.claim()
        later.begin({**first.facts, "version": '"7.0"'})
        append(later, given, slice(10, 20))
    with pytest.warns(db.DatabanzhafWarning, match=r"`b.db` was begun by databanzhaf 7.0, and"):
        merge(["a.db", "b.db"], "run.db")
    assert contents("run.db") == contents(made("whole.db", given))


def test_ledgers_without_evaluations_are_passed_over():
    given = evaluations(20)
    made("a.db", given)
    bound("empty.db", seed=3).close()
    Path("nothing.db").touch()
    with pytest.warns(db.DatabanzhafWarning, match="holds no evaluations yet"):
        assert merge(["empty.db", "a.db", "nothing.db"], "run.db").added == 20
    with (
        pytest.warns(db.DatabanzhafWarning),
        pytest.raises(db.InvalidInput, match="at least one of the ledgers must hold evaluations"),
    ):
        merge(["empty.db"], "other.db")
    assert not Path("other.db").exists()
    merge(["a.db"], "empty.db")  # one without evaluations may be bound to any run
    assert contents("empty.db") == contents("a.db")


def test_a_part_must_not_be_the_target():
    made("a.db", evaluations(20))
    Path("link.db").symlink_to("a.db")
    for into in ("a.db", "link.db", Path.cwd() / "a.db"):
        with pytest.raises(db.InvalidInput, match="`into` must not be one of the ledgers"):
            merge(["a.db"], into)


@pytest.mark.parametrize("parts", [[], "a.db"])
def test_parts_are_a_list_of_paths(parts):
    with pytest.raises(db.InvalidInput, match="`parts` must be"):
        merge(parts, "run.db")


def test_odd_paths_get_one_sentence():
    made("a.db", evaluations(20))
    for part in ("nowhere.db", Path.cwd(), "a\0b.db", "l" * 300, 5):
        with pytest.raises(db.InvalidInput):
            merge([part], "run.db")
    for into in (None, ":memory:", 5):
        with pytest.raises(db.InvalidInput):
            merge(["a.db"], into)
    for into in ("nowhere/run.db", Path.cwd()):
        with pytest.raises(db.LedgerFailed):
            merge(["a.db"], into)


def test_a_ledger_of_0_1_is_not_merged():
    shutil.copy(next((FILES / "run_0_1").glob("*.sqlite")), "old.db")
    with pytest.raises(db.LedgerFailed, match=r"databanzhaf 0\.1\.0, which kept no checksums"):
        merge(["old.db"], "run.db")
    assert not Path("run.db").exists()


def test_a_damaged_part_is_refused_and_what_is_whole_can_be_merged():
    given = evaluations(400)
    made("a.db", given, slice(0, 200))
    made("b.db", given, slice(200, 400))
    with db.Ledger("b.db") as ledger:
        ledger._storage.connection.execute("UPDATE evaluations SET utility = 9 WHERE idx = 300")
    with pytest.raises(db.LedgerFailed, match=r"`b.db` is damaged: 1 of its .* ledger repair"):
        merge(["a.db", "b.db"], "run.db")
    assert contents("run.db") == contents("a.db")
    db.ledger.repair("b.db", "c.db")
    assert merge(["a.db", "c.db"], "run.db").coverage.missing == ((300, 300),)


def test_a_part_whose_rows_are_gone_is_refused():
    made("a.db", evaluations(40))
    with db.Ledger("a.db") as ledger:
        ledger._storage.connection.execute("DELETE FROM evaluations WHERE idx > 30")
    with pytest.raises(db.LedgerFailed, match="40 evaluations were written, and it holds 31"):
        merge(["a.db"], "run.db")


def test_a_run_may_be_writing_to_a_part_and_none_to_the_target():
    given = evaluations(100)
    with bound("a.db") as live:
        append(live, given, slice(0, 60))
        log = Path("a.db-wal").read_bytes()
        assert merge(["a.db"], "run.db").added == 60
        assert Path("a.db-wal").read_bytes() == log
        append(live, given, slice(60, 100))
        assert merge(["a.db"], "run.db").added == 40
        made("b.db", given)
        with pytest.raises(db.LedgerBusy):
            merge(["b.db"], "a.db")


def test_a_snapshot_is_read_though_the_run_goes_on(monkeypatch):
    """What a run commits between two portions is left for the next merge."""
    monkeypatch.setattr(rows, "_PORTION", 20)
    given = evaluations(100)
    with bound("a.db") as live:
        append(live, given, slice(0, 60))
        portions = db.Ledger.looking("a.db").portions()
        first = next(portions)
        append(live, given, slice(60, 100))
        assert len(first.indices) + sum(len(each.indices) for each in portions) == 60


KILLED = """
import sys, time
import databanzhaf as db
from databanzhaf.ledger import merge, rows

rows._PORTION = 30
append = db.Ledger.append

def slow(self, *given):
    append(self, *given)
    print("portion", flush=True)
    time.sleep(0.01)

db.Ledger.append = slow
merge(sys.argv[1:-1], sys.argv[-1])
"""


@pytest.mark.parametrize("size", [None, 300], ids=["utilities", "outcomes"])
def test_a_killed_merge_is_continued(size):
    given = evaluations(500, repeats=2, size=size)
    whole = made("whole.db", given)
    parts = shards(given, 3)
    before = 0
    for portions in (1, 6, 9):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, *map(str, parts), "run.db"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(portions):
            assert process.stdout.readline() == "portion\n"
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        with db.Ledger("run.db") as ledger:
            there = ledger.count()
        assert before < there < len(given[0])
        before = there
    done = merge(parts, "run.db")
    assert done.added == len(given[0]) - before
    assert contents("run.db") == contents(whole)


def test_two_merges_at_once_are_one_after_the_other_or_refused():
    given = evaluations(300)
    parts, gate, ends = shards(given, 3), threading.Barrier(3), []

    def one():
        gate.wait()
        try:
            ends.append(merge(parts, "run.db").added)
        except db.LedgerBusy:
            ends.append(None)

    threads = [threading.Thread(target=one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(end or 0 for end in ends) == 300
    assert contents("run.db") == contents(made("whole.db", given))
