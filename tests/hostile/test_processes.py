"""Worker processes: who becomes one, who hears Ctrl-C, and who is left after a kill."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import databanzhaf as db

GAME = """
import os, signal, sys, threading, time
import numpy as np
import databanzhaf as db

def utility(coalitions, keys):
    time.sleep(0.002 * len(coalitions))
    return coalitions @ np.linspace(0, 1, 25)

game = db.games.Function(25, utility, stochastic=True, name="slow")
"""


def small_game():
    return db.games.Function(6, _sum, name="sum")


def _sum(coalitions):
    return coalitions.sum(axis=1)


def _values(n_jobs):
    return db.value(small_game(), evaluator=db.evaluators.Processes(n_jobs)).values


def handlers():
    return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_one_job_leaves_the_users_process_alone():
    before, threads = handlers(), threading.active_count()
    truth = db.value(small_game()).values
    assert np.array_equal(_values(1), truth)
    assert np.array_equal(_values(2), truth)
    assert handlers() == before
    assert threading.active_count() <= threads + 4  # joblib's own, none that ends this process


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_run_in_a_thread(n_jobs):
    found = []
    thread = threading.Thread(target=lambda: found.append(_values(n_jobs)))
    thread.start()
    thread.join(60)
    assert np.array_equal(found[0], db.value(small_game()).values)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a pool of forks")
def test_a_run_inside_a_pool_ends(tmp_path):
    script = tmp_path / "pooled.py"
    script.write_text(
        "import multiprocessing\n"
        "from tests.hostile.test_processes import _values\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.apply(_values, (2,)).tolist())\n"
    )
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": here},
    )
    assert done.stdout.strip() == str(db.value(small_game()).values.tolist()), done.stderr


def test_a_worker_that_is_replaced_does_not_hang_a_run_with_warnings_as_errors(tmp_path):
    pytest.importorskip("psutil", reason="without it loky replaces no worker that grows")
    script = tmp_path / "growing.py"
    script.write_text(
        "import sys, time, warnings\nimport numpy as np\nimport databanzhaf as db\n"
        "seen = []\n"
        "warnings.showwarning = lambda message, *where: seen.append(str(message))\n"
        "def utility(coalitions):\n"
        "    sys.__dict__.setdefault('kept', []).append(np.ones(3 * 10**7))\n"
        "    time.sleep(0.36)\n"
        "    return coalitions.sum(axis=1)\n"
        "game = db.games.Function(8, utility, name='growing')\n"
        "for _ in range(6):  # whether loky warns is a matter of chance\n"
        "    values = db.value(game, evaluator=db.evaluators.Processes(2)).values\n"
        "    if seen:\n"
        "        break\n"
        "print(*seen[:1], values.tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    truth = db.value(db.games.Function(8, _sum, name="sum")).values
    assert done.stdout.startswith("A worker stopped while some jobs"), done.stderr
    assert done.stdout.rstrip().endswith(str(truth.tolist()))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores can be chosen on Linux")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_pinned_to_one_core_a_run_can_still_be_stopped(tmp_path, number):
    script = tmp_path / "pinned.py"
    script.write_text(
        GAME + "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "def watch(done, total, checkpoints):\n    print(done, flush=True)\n"
        "db.value(game, budget=60000, evaluator=db.evaluators.Processes(-1), progress=watch)\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=_ctrl_c_is_heard,
    )
    while int(process.stdout.readline() or 10**9) < 16:
        pass
    process.send_signal(number)
    try:
        assert process.wait(20) != 0
    finally:
        process.kill()
        process.stdout.close()


def _ctrl_c_is_heard():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.skipif(sys.platform == "win32", reason="parents as on Unix")
def test_a_run_outlives_the_shell_that_began_it(tmp_path):
    """As with nohup: the shell ends, the run goes on."""
    script, out = tmp_path / "run.py", tmp_path / "out"
    script.write_text(
        GAME + "game2 = db.games.Function(25, utility, stochastic=True, name='slow')\n"
        "estimate = db.value(game2, budget=1500, evaluator=db.evaluators.Processes(1))\n"
        f"open({str(out)!r}, 'w').write('done')\n"
    )
    subprocess.run(f"nohup {sys.executable} {script} > /dev/null 2>&1 &", shell=True, check=True)
    deadline = time.time() + 60
    while not out.exists() and time.time() < deadline:
        time.sleep(0.2)
    assert out.read_text() == "done"


def alive(group):
    """Processes of a group that run, without those that wait for their parent to look."""
    lines = subprocess.run(
        ["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return sum(
        1 for line in lines if int(line.split()[0]) == group and not line.split()[1].startswith("Z")
    )


@pytest.mark.skipif(sys.platform == "win32", reason="process groups as on Unix")
@pytest.mark.parametrize("delay", [0.05, 0.4, 0.9, 1.6])
def test_workers_end_within_seconds_of_a_kill_at_any_moment(tmp_path, delay):
    script = tmp_path / "run.py"
    script.write_text(
        GAME + "if __name__ == '__main__':\n"
        "    print('go', flush=True)\n"
        "    db.value(game, budget=60000, evaluator=db.evaluators.Processes(2))\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "go\n"
    time.sleep(delay)
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.time() + 10
    while alive(process.pid) and time.time() < deadline:
        time.sleep(0.1)
    left = alive(process.pid)
    if left:
        os.killpg(process.pid, signal.SIGKILL)
    assert not left


def test_workers_are_of_our_own_making():
    """The function that silences signals runs in the pool's processes alone: no task calls it."""
    assert multiprocessing.parent_process() is None
    assert not hasattr(db.evaluators, "become_worker")
