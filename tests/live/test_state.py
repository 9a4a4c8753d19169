"""What a watch says of runs: finished, going on, not begun, damaged; and what it leaves alone."""

import json
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.live import Watch, find, watch
from databanzhaf.live.budget import Budget
from databanzhaf.live.counts import Counts, Speed, look
from databanzhaf.live.values import Values
from databanzhaf.pipeline.standing import Standing, Start, read_standing
from tests.live.conftest import looked, settled
from tests.shell import invoke

RUN = Path("runs/t")


def tile(state, name):
    return dict(state["tiles"]).get(name)


def lowest_of(folder):
    """The first lines of values.csv, by rank."""
    table = pd.read_csv(folder / "values.csv", keep_default_na=False)
    return table.sort_values("rank").head(20)


def test_a_finished_run_is_shown_as_its_files_have_it(value):
    value("--budget", 400)
    _, state = looked(RUN)
    lowest = lowest_of(RUN)
    shown = state["values"]
    assert shown["columns"] == ("row", "id", "y", "value", "std. error", "flag")
    rows = [list(row) for row in shown["rows"]]
    assert [row[:3] for row in rows] == lowest[["row", "id", "label"]].astype(str).values.tolist()
    for row, number, error in zip(
        rows, lowest["value"], lowest["std_error_population"], strict=True
    ):
        digits = len(row[3].split(".")[1])
        assert row[3] == f"{number:+.{digits}f}"
        assert row[4] == f"{error:.{digits}f}"
    assert [row[5] for row in rows] == lowest["flag"].tolist()
    assert (state["stage"], state["problem"], state["notes"]) == ("finished", "", [])
    assert (state["done"], state["total"], tile(state, "evaluations")) == (400, 400, "400")
    assert float(tile(state, "a second, overall").replace(",", "")) > 0
    assert "60 rows for predicting y by logistic" in state["subject"]
    assert "values.csv" in state["said"]
    assert shown["made"] == "Computed just now from 400 evaluations."
    assert "also count which rows judged" in shown["errors"]
    json.dumps(state, allow_nan=False)


def test_suspects_and_stability_are_those_of_the_terminal(value):
    said = json.loads(value("--budget", 400, "--flag", "lowest:0.1", "--json").stdout)
    _, state = looked(RUN / "run.db")
    assert tile(state, "rank stability") == f"{said['stability']:.2f}"
    assert tile(state, "suspects") == "6"
    assert sum(state["values"]["suspect"]) == 6
    assert [int(row[0]) for row in state["values"]["rows"][:6]] == said["suspects"]
    assert "--flag lowest:0.1" in state["values"]["rule"]


def test_the_curve_ends_with_the_values_and_keeps_the_checkpoints(value):
    value("--budget", 400)
    made, state = looked(RUN)
    series = state["values"]["series"]
    assert series["evaluations"] == [100, 200, 400]
    assert series["std_error"][0] > series["std_error"][-1] > 0
    value("--budget", 410)
    made._computed = watch._Computed(made._computed.values)  # it is time again
    assert settled(made)["values"]["series"]["evaluations"] == [100, 200, 400, 410]
    value("--budget", 411)
    made._computed = watch._Computed(made._computed.values)
    again = settled(made)["values"]["series"]
    assert again["evaluations"] == [100, 200, 400, 411]  # 410 was too near to be kept
    assert again["stability"][:2] == series["stability"][:2]


def test_rows_keep_their_numbers_where_others_are_held_out(value):
    value("--budget", 150, "--validation-fraction", 0.3)
    _, state = looked(RUN)
    lowest = lowest_of(RUN)
    assert [int(row[0]) for row in state["values"]["rows"]] == lowest["row"].tolist()


def test_groups_that_need_all_coalitions_have_values_at_the_end(value):
    table = pd.read_csv("t.csv").assign(site=np.arange(60) % 4)
    table.to_csv("t.csv", index=False)
    value("--budget", 200, "--groups", "site")
    state = looked(RUN)[1]
    assert state["values"]["columns"][:2] == ("group", "rows")
    assert state["values"]["heading"] == "The 4 lowest of 4 values"
    with db.Ledger(RUN / "run.db") as ledger, db.Ledger("half.db") as other:  # as one that began
        other.bind(ledger.game, ledger.design, seed=0, stochastic=True, keep="utilities")
        first = np.arange(7)
        other.append(first, 0 * first, np.linspace(0, 1, 7), np.ones(7))
    state = looked(Path("half.db"))[1]
    assert state["values"] is None
    assert "come at the end" in state["notes"][0]


def test_rows_of_opened_clusters_are_shown_without_the_other_clusters(value):
    value("--budget", 100, "--clusters", 6)
    lowest = lowest_of(RUN / "worst")
    state = looked(RUN / "worst")[1]
    assert [int(row[0]) for row in state["values"]["rows"]] == lowest["row"].tolist()
    assert state["values"]["columns"][0] == "row"


@pytest.mark.parametrize("names", [None, ["a", "b", "c", "d", "e", "f", "g", "h"]])
def test_a_ledger_of_python_needs_no_run_json(names):
    weights = np.linspace(-1, 1, 8)
    game = db.games.Function(8, lambda coalitions: coalitions @ weights, name="sum", players=names)
    db.value(game, estimator="reuse", budget=300, ledger="own.db")
    state = looked(Path("own.db"))[1]
    assert state["stage"] == "running"  # it may go on: nobody says
    assert state["total"] is None
    assert tile(state, "evaluations") == "300"
    assert state["values"]["rows"][0][0] == ("0" if names is None else "a")
    assert tile(state, "suspects") == str(int(db.estimate("own.db").below_zero().sum()))


def test_without_its_table_a_run_is_shown_by_numbers_of_players(value):
    value("--budget", 150)
    Path("t.csv").rename("moved.csv")
    state = looked(RUN)[1]
    assert state["values"]["columns"][0] == "player"
    assert "Labels are not shown" in state["notes"][0]
    assert "t.csv" in state["notes"][0]
    pd.read_csv("moved.csv").assign(a=0).to_csv("t.csv", index=False)
    assert "has changed since" in looked(RUN)[1]["notes"][0]


def test_a_run_of_mislabels_says_how_far_it_is():
    done = invoke(
        "mislabels", "t.csv", "--target", "y", "--id", "name", "--budget", 20, "--model", "logistic"
    )
    assert done.exit_code == 0, done.output
    folder = Path("runs/t-labels")
    state = looked(folder)[1]
    assert (state["stage"], state["done"], state["values"]) == ("finished", 20, None)
    assert "mislabels.csv" in state["said"]
    record = json.loads((folder / "run.json").read_text())
    assert record["start"]["total"] == 20
    (folder / "run.json").write_text(json.dumps({**record, "status": "running"}))
    with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
        connection.execute("DELETE FROM outcomes WHERE idx = 19")
        connection.execute("DELETE FROM evaluations WHERE idx = 19")
        connection.execute("UPDATE total SET count = 19")
    state = looked(folder)[1]
    assert state["stage"] == "running"
    assert tile(state, "evaluations") == "19 of at most 20"
    assert tile(state, "time left").startswith("at most")
    assert "each of the 1 judges" in state["notes"][0]
    assert "comes at the end" in state["notes"][0]


def test_a_run_that_has_not_begun_is_waited_for(value):
    made, state = looked(RUN)
    assert state["stage"] == "waiting"
    assert "no run in runs/t yet" in state["said"]
    assert state["tiles"] == []
    assert not Path("runs").exists()
    RUN.mkdir(parents=True)
    assert looked(RUN)[1]["stage"] == "waiting"
    value("--budget", 120)
    assert settled(made)["stage"] == "finished"
    assert len(made.state()["values"]["rows"]) == 20


def test_paths_without_a_run_are_refused():
    Path("other").mkdir()
    Path("other/notes.txt").write_text("no run")
    for path, got in (("t.csv", "not a ledger"), ("other", "without run.db")):
        with pytest.raises(db.InvalidInput, match=rf"no run in `{path}`; got .*{got}.*runs/"):
            find(Path(path))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE evaluations SET utility = utility + 1 WHERE idx = 3",
        "DROP TABLE evaluations",
        "DELETE FROM total",
        None,
    ],
)
def test_a_damaged_ledger_is_named_and_the_page_goes_on_when_it_is_restored(value, damage):
    value("--budget", 150)
    ledger = RUN / "run.db"
    made, before = looked(RUN)
    shutil.copy(ledger, "copy.db")
    if damage is None:
        ledger.write_text("not a ledger at all, but a text of some length")
    else:
        with closing(sqlite3.connect(ledger)) as connection, connection:
            connection.execute(damage)
    made._computed = watch._Computed(made._computed.values)
    state = settled(made)
    assert "run.db" in state["problem"]
    assert state["values"]["rows"] == before["values"]["rows"]
    shutil.copy("copy.db", ledger)
    made._computed = watch._Computed(made._computed.values, problem=made._computed.problem)
    state = settled(made)
    assert (state["problem"], state["stage"]) == ("", "finished")


def test_looking_makes_changes_and_locks_nothing(value):
    value("--budget", 150)
    before = {path: path.stat().st_mtime_ns for path in RUN.iterdir()}
    looked(RUN)
    assert {path: path.stat().st_mtime_ns for path in RUN.iterdir()} == before
    with db.Ledger.looking(RUN / "run.db") as reader:
        value("--budget", 160)  # while somebody reads
        with pytest.raises(db.LedgerFailed, match="looked at"):
            reader.bind(reader.game, reader.design, seed=0, stochastic=True)


def test_a_run_is_read_while_it_writes():
    """The log holds what is new, and belongs to the writer."""
    game = db.games.Function(5, lambda coalitions: coalitions.sum(axis=1) * 1.0, name="sum")
    seen = []

    def progress(done, total, checkpoints):
        if done:
            seen.append((done, look(find(Path("live.db"))).evaluations))
        if done > 1000 and not Path("killed").exists():
            Path("killed").mkdir()
            for path in Path().glob("live.db*"):
                shutil.copy(path, "killed")
            seen.append((done, look(find(Path("killed/live.db"))).evaluations))

    db.value(game, estimator="reuse", budget=3000, ledger="live.db", progress=progress)
    assert len(seen) > 2
    assert all(done == counted for done, counted in seen)
    assert sorted(path.name for path in Path().glob("live.db*")) == ["live.db", "live.db.lock"]
    left = sorted(path.name for path in Path("killed").iterdir())
    assert left == ["live.db", "live.db-shm", "live.db-wal", "live.db.lock"]


class Slow:
    """Stands for a reader whose values take 20 ms of the processor."""

    calls = 0

    def prepare(self):
        pass

    def values(self):
        self.calls += 1
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return Values(used=5)


def test_nothing_is_computed_where_nobody_asks_or_nothing_is_new(value, monkeypatch):
    value("--budget", 150)
    monkeypatch.setattr(watch, "_PAUSE", 0.0)
    threads = threading.active_count()
    made = Watch(find(RUN))
    made._reader = Slow()
    time.sleep(0.1)
    assert (made._task, made._reader.calls) == (None, 0)
    for _ in range(5):
        settled(made)
    assert made._reader.calls == 1
    assert threading.active_count() <= threads
    value("--budget", 160)
    settled(made)
    assert made._reader.calls == 2
    monkeypatch.setattr(Counts, "stage", lambda self, now: "running")
    value("--budget", 170)
    settled(made)
    assert made._reader.calls == 2  # 60 ms would be more than a hundredth of the run


def seen(evaluations, start=0.0, total=10_000):
    standing = Standing("value", "begun", Start(start, 0, total), None, False)
    return Counts(evaluations, 0.0, 0, standing)


@pytest.mark.parametrize("rate", [1, 10, 100, 1000])
@pytest.mark.parametrize("cost", [1e-6, 1e-5, 1e-4, 1e-3])
def test_values_take_a_hundredth_of_one_core_of_the_whole_run(rate, cost):
    """Seconds for each evaluation, of a run of so many evaluations a second."""
    budget, looks, end = Budget(), [], 10_000 / rate
    for second in np.arange(1, end, 5.0):
        counts = seen(int(second * rate))
        if budget.allows(counts, second, end - second):
            budget.took(counts, cost * counts.evaluations)
            looks.append(counts.evaluations)
    first, *later = looks
    assert first == rate  # what nobody has measured is tried once
    assert cost * sum(later) <= 0.01 * end
    if cost * rate < 1e-4:  # it costs nearly nothing, and follows every look
        assert len(looks) > 0.9 * end / 5
    if cost * 10_000 < 0.005 * end:
        assert later[-1] > 5_000


def test_another_command_has_another_budget():
    budget = Budget()
    assert budget.allows(seen(100), 10.0, 90.0)
    budget.took(seen(100), 5.0)
    assert not budget.allows(seen(110), 20.0, 80.0)
    assert not budget.allows(seen(250), 30.0, 80.0)  # a hundredth of 110 s is less than 5 s
    assert budget.allows(seen(250, start=40.0, total=10**6), 50.0, 2000.0)
    bare = Budget()
    assert bare.allows(Counts(100, 0.0), 10.0, 0.0)
    bare.took(Counts(100, 0.0), 0.1)
    assert not bare.allows(Counts(150, 0.0), 25.0, 0.0)
    assert bare.allows(Counts(150, 0.0), 36.0, 0.0)


def test_stages():
    start = Start(1000.0, 100, 500)

    def stage(status, evaluations, recorded, now):
        standing = Standing("value", status, start, None, False)
        return Counts(evaluations, recorded, 0, standing).stage(now)

    assert stage("begun", 0, None, 1000) == "waiting"
    assert stage("begun", 150, 1010, 1011) == "running"
    assert stage("begun", 150, 1010, 1080) == "quiet"
    assert stage("begun", 101, 1100, 1900) == "running"  # one evaluation takes 100 s
    assert stage("begun", 500, 1010, 1020) == "computing"
    assert stage("stopped", 150, 1010, 1011) == "stopped"
    assert stage("finished", 500, 1010, 9999) == "finished"


def test_speeds():
    speed = Speed()
    speed.add(100, now=0.0)
    assert speed.recent is None
    speed.add(150, now=10.0)
    assert speed.recent == 5.0
    speed.add(250, now=65.0)  # the first look was more than a minute ago
    assert speed.recent == pytest.approx(100 / 55)
    speed.add(7, now=66.0)
    assert speed.recent is None
    standing = Standing("value", "begun", Start(1000.0, 100, 500), None, False)
    assert Counts(300, 1040.0, 0, standing).overall == 5.0
    assert Counts(100, 1040.0, 0, standing).overall is None


def test_run_json_tells_the_start_and_what_is_damaged_tells_nothing(value):
    value("--budget", 100)
    value("--budget", 150)
    standing = read_standing(RUN)
    assert (standing.command, standing.status, standing.until) == ("value", "finished", False)
    assert (standing.start.evaluations, standing.start.total) == (100, 150)
    assert abs(standing.start.time - time.time()) < 60
    stored = json.loads((RUN / "run.json").read_text())
    for start in (None, 5, {}, {"time": "soon", "evaluations": 1, "total": 2}, {"time": 3}):
        (RUN / "run.json").write_text(json.dumps({**stored, "start": start}))
        assert read_standing(RUN).start is None
    for text in ("", "[]", "{", "\xff"):
        (RUN / "run.json").write_text(text)
        assert read_standing(RUN) is None
    assert looked(RUN)[1]["stage"] == "running"
