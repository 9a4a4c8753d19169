"""kill -9 in the middle of a run, really."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

import databanzhaf as db

SCRIPT = """
import sys, time
import numpy as np
import databanzhaf as db

def slow(coalitions, keys):
    time.sleep(0.002 * len(coalitions))
    print(len(coalitions), flush=True)
    return coalitions @ np.linspace(0, 1, 25) + db.chance.uniform(keys, 1)[:, 0]

if __name__ == "__main__":
    jobs = int(sys.argv[2])
    evaluator = db.evaluators.Processes(jobs) if jobs > 1 else None
    game = db.games.Function(25, slow, stochastic=True, name="slow")
    notions = [db.Banzhaf(), db.Shapley(), db.Beta(16, 1)]
    found = db.value(
        game,
        notions if sys.argv[3] == "three" else notions[0],
        budget=600,
        repeats=2,
        ledger=sys.argv[1],
        evaluator=evaluator,
    )
    each = found if sys.argv[3] == "three" else [found]
    numbers = [[x.values.tolist(), x.std_errors.tolist()] for x in each]
    print("done", numbers, flush=True)
"""


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT idx, rep, utility FROM evaluations ORDER BY idx, rep"
        ).fetchall()


def start(folder, path, jobs, notions):
    """The run in a process of its own, with all its workers in one group."""
    script = folder / "run.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), str(path), str(jobs), notions],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process):
    """What a run that ends by itself said last."""
    last = process.communicate(timeout=120)[0].splitlines()[-1]
    assert process.returncode == 0
    return last


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Per kind of notions, the ledger of a run of one worker that nobody killed, and its last
    line.
    """
    folder = tmp_path_factory.mktemp("whole")
    paths = {notions: folder / f"{notions}.db" for notions in ("one", "three")}
    runs = {notions: start(folder, path, 1, notions) for notions, path in paths.items()}
    return {notions: (paths[notions], finished(run)) for notions, run in runs.items()}


@pytest.mark.parametrize(("jobs", "notions"), [(1, "one"), (2, "one"), (2, "three")])
def test_a_killed_run_resumes_and_equals_an_uninterrupted_one(tmp_path, whole, jobs, notions):
    killed = tmp_path / "killed.db"

    kills = 0
    for seen_before_the_kill in (1, 9, 40):
        process = start(tmp_path, killed, jobs, notions)
        seen, deadline = 0, time.time() + 60
        while time.time() < deadline and process.poll() is None:
            line = process.stdout.readline()
            if line.strip().isdigit():
                seen += int(line)
            if seen >= seen_before_the_kill * 4:
                break
        os.killpg(process.pid, signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        process.stdout.close()
    assert kills == 3
    kept = len(rows(killed)) if killed.exists() else 0
    assert 0 < kept < 1200

    path, last = whole[notions]
    assert last.startswith("done")
    assert finished(start(tmp_path, killed, jobs, notions)) == last
    assert rows(killed) == rows(path)
    assert len(rows(path)) == 1200
    kinds = [db.Banzhaf(), db.Shapley(), db.Beta(16, 1)] if notions == "three" else [db.Banzhaf()]
    assert all(np.isfinite(each.values).all() for each in db.estimate(killed, kinds))
