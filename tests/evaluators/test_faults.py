"""Workers that die, stand still or fail once; a full disk; a clock that jumps. Nothing that was
recorded is lost, nothing is counted twice, and values are those of an undisturbed run.
"""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import databanzhaf as db

N = 16


def disturbed(folder, act, times=1, call_size=4, pause=0.0):
    """A noisy game; the call with index 40 acts as `act` says, so many times."""
    key = int(db.chance.keys(0, db.chance.TRAINING, np.array([40]))[0])

    def utility(coalitions, keys):
        time.sleep(pause)
        if key in keys:
            for number in range(times):
                try:
                    (folder / f"act-{number}").touch(exist_ok=False)
                except FileExistsError:
                    continue
                act()
                break
        return coalitions @ np.linspace(0, 1, N) + db.chance.uniform(keys, 1)[:, 0]

    return db.games.Function(N, utility, stochastic=True, name="noisy", call_size=call_size)


def rows(path):
    with db.Ledger(path) as ledger:
        return ledger.utilities(), ledger.count()


def run(game, path, evaluator):
    return db.value(game, budget=200, estimator="reuse", ledger=path, evaluator=evaluator)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    game = disturbed(folder, lambda: None)
    estimate = run(game, folder / "run.db", None)
    return estimate, rows(folder / "run.db")


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def stop():
    os.kill(os.getpid(), signal.SIGSTOP)


def sleep():
    time.sleep(1000)


def fail():
    raise OSError("the connection was reset")


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
@pytest.mark.parametrize(
    ("act", "times", "timeout"),
    [(kill, 1, None), (kill, 2, None), (fail, 2, None), (sleep, 1, 3.0), (stop, 2, 3.0)],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_run_goes_on_after(undisturbed, tmp_path, act, times, timeout):
    estimate, (utilities, count) = undisturbed
    game = disturbed(tmp_path, act, times)
    found = run(game, tmp_path / "run.db", db.evaluators.Processes(2, timeout=timeout))
    assert len(list(tmp_path.glob("act-*"))) == times
    np.testing.assert_array_equal(found.values, estimate.values)
    again, counted = rows(tmp_path / "run.db")
    np.testing.assert_array_equal(again, utilities)
    assert counted == count


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
@pytest.mark.parametrize(
    ("act", "timeout", "sentence"),
    [
        (kill, None, r"a worker process died .*, 3 workers .* at evaluations 40 to 43"),
        (sleep, 2.0, r"did not finish within 2 s, 3 workers .* at evaluations 40 to 43"),
        (fail, None, r"evaluation 40 .*connection was reset"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_run_gives_up_after_three_times_and_keeps_the_rest(
    undisturbed, tmp_path, act, timeout, sentence
):
    estimate, (utilities, _) = undisturbed
    path = tmp_path / "run.db"
    deadly = disturbed(tmp_path, act, times=99)
    with pytest.raises(db.DatabanzhafError, match=sentence):
        run(deadly, path, db.evaluators.Processes(2, timeout=timeout))
    # A piece of a few calls is cut until the deadly call is alone.
    assert 3 <= len(list(tmp_path.glob("act-*"))) <= 7
    kept, count = rows(path)
    assert count > 0
    there = ~np.isnan(kept)
    np.testing.assert_array_equal(kept[there], utilities[: len(kept)][there])
    healthy = run(disturbed(tmp_path, lambda: None), path, db.evaluators.Processes(2))
    np.testing.assert_array_equal(healthy.values, estimate.values)


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
def test_a_worker_that_dies_while_the_driver_is_busy_is_replaced(undisturbed, tmp_path):
    """Its executor is broken by the time that the driver gives it more work."""
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        found = db.value(
            disturbed(folder, kill),
            budget=200,
            estimator="reuse",
            evaluator=db.evaluators.Processes(2),
            progress=lambda done, total, checkpoints: time.sleep(0.1),
        )
        np.testing.assert_array_equal(found.values, undisturbed[0].values)


def test_every_call_may_raise_once(undisturbed, tmp_path):
    def flaky(coalitions, keys):
        for key in keys.tolist():
            try:
                (tmp_path / str(key)).touch(exist_ok=False)
            except FileExistsError:
                continue
            raise OSError("the connection was reset")
        return coalitions @ np.linspace(0, 1, N) + db.chance.uniform(keys, 1)[:, 0]

    game = db.games.Function(N, flaky, stochastic=True, name="noisy", call_size=1)
    found = run(game, None, db.evaluators.Processes(2))
    np.testing.assert_allclose(found.values, undisturbed[0].values, rtol=1e-12)
    assert len(list(tmp_path.iterdir())) == 200


@pytest.mark.skipif(sys.platform == "win32", reason="limits as on Unix")
def test_a_full_disk_loses_nothing_that_was_recorded(tmp_path):
    """The file may not grow beyond so many bytes; then the disk has room again."""
    script = tmp_path / "run.py"
    script.write_text(
        "import resource, signal, sys\n"
        "import numpy as np\nimport databanzhaf as db\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "def utility(coalitions, keys):\n"
        "    return coalitions.sum(axis=1) + db.chance.uniform(keys, 1)[:, 0]\n"
        "game = db.games.Function(12, utility, stochastic=True, name='noisy')\n"
        "if sys.argv[2] != 'all':\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try:\n"
        "    found = db.value(game, budget=4000, estimator='reuse', ledger=sys.argv[1])\n"
        "    print(found.values.tolist())\n"
        "except db.LedgerFailed as error:\n"
        "    print(error)\n"
    )

    def start(name, size):
        done = subprocess.run(
            [sys.executable, str(script), str(tmp_path / name), size],
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.stdout + done.stderr

    truth = start("whole.db", "all")
    assert "cannot be used" in start("full.db", "150000")
    with db.Ledger(tmp_path / "full.db") as ledger:
        kept = ledger.utilities()
    assert 0 < len(kept) < 4000
    assert start("full.db", "all") == truth


def test_a_clock_that_jumps_changes_nothing(undisturbed, tmp_path, monkeypatch):
    estimate, _ = undisturbed
    now = time.time()
    jumps = iter(np.random.default_rng(0).integers(-(10**6), 10**6, 10**6))
    monkeypatch.setattr(time, "time", lambda: now + float(next(jumps)))
    with db.Ledger(tmp_path / "run.db") as ledger:
        found = db.value(
            disturbed(tmp_path, lambda: None),
            budget=200,
            estimator="reuse",
            ledger=ledger,
            evaluator=db.evaluators.Processes(2, timeout=20),
            progress=lambda done, total, checkpoints: None,
        )
        assert ledger.seconds() > 0
    np.testing.assert_array_equal(found.values, estimate.values)
