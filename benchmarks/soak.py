"""Kills, for as long as it is told: of workers on local Dask and Ray clusters and of processes, and
of the driver; the ledger is checked after each. And how many evaluations a second one driver
commits.

    python benchmarks/soak.py            two minutes for each engine
    python benchmarks/soak.py 1200       seconds for each engine (three make an hour)
    python benchmarks/soak.py capacity   the driver's limit
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path

import numpy as np

ENGINES = ("processes", "dask", "ray")
N, BUDGET, REPEATS = 40, 1500, 2
SECONDS_EACH = 0.004


def game():
    import databanzhaf as db

    spent, n = SECONDS_EACH, N

    def noisy(coalitions, keys):
        time.sleep(spent * len(coalitions))
        return coalitions @ np.linspace(0, 1, n) + db.chance.uniform(keys, 1)[:, 0]

    return db.games.Function(n, noisy, stochastic=True, name="noisy", call_size=8)


def drive(engine, ledger):
    """The driver: one run, to its end."""
    import databanzhaf as db

    evaluator = {
        "processes": lambda: db.evaluators.Processes(2),
        "dask": lambda: db.evaluators.Dask(2),
        "ray": db.evaluators.Ray,
    }[engine]()
    estimate = db.value(
        game(),
        estimator="reuse",
        budget=BUDGET,
        repeats=REPEATS,
        ledger=ledger,
        evaluator=evaluator,
    )
    print(estimate.values.sum())


def children(pid):
    """All processes below one."""
    lines = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [line.split(maxsplit=2) for line in lines]
    below, found = {str(pid)}, []
    while more := [row for row in rows if row[1] in below and row[0] not in below]:
        below |= {row[0] for row in more}
        found += more
    return found


def workers(pid, engine):
    """Those that evaluate: not the helpers that start or watch them."""
    marks = {
        "processes": "loky",
        "dask": "spawn_main",
        "ray": "ray::",
    }
    helpers = ("resource_tracker", "raylet", "gcs_server", "monitor", "Agent")
    return [
        int(row[0])
        for row in children(pid)
        if marks[engine] in row[2] and not any(each in row[2] for each in helpers)
    ]


def soak(engine, seconds, seed=0):
    """Runs one after the other until the time is over, each killed at random: its workers, or the
    driver with all that it started.
    """
    import databanzhaf as db

    rng = np.random.default_rng(seed)
    truth = db.Ledger(keep="utilities")
    db.value(fast(), estimator="reuse", budget=BUDGET, repeats=REPEATS, ledger=truth)
    expected = truth.utilities()
    tally = dict.fromkeys(("runs", "workers", "drivers", "lost", "wrong", "repeated"), 0)
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            path = Path(folder) / f"run-{tally['runs']}.db"
            if one_run(engine, path, rng, expected, tally, end):
                tally["runs"] += 1
            path.unlink(missing_ok=True)
    return tally


def fast():
    """The same game without sleep: the same bits."""
    import databanzhaf as db

    def noisy(coalitions, keys):
        return coalitions @ np.linspace(0, 1, N) + db.chance.uniform(keys, 1)[:, 0]

    return db.games.Function(N, noisy, stochastic=True, name="noisy", call_size=8)


def one_run(engine, path, rng, expected, tally, end):
    """Whether it came to its end."""
    before = 0
    while time.monotonic() < end:
        driver = subprocess.Popen(
            [sys.executable, __file__, "drive", engine, str(path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        kills = int(rng.integers(1, 4))
        kill_driver = rng.random() < 0.4
        for _ in range(kills):
            time.sleep(float(rng.uniform(0.5, 4.0)))
            if driver.poll() is not None:
                break
            there = workers(driver.pid, engine)
            if there:
                victim = there[int(rng.integers(len(there)))]
                try:
                    os.kill(victim, signal.SIGKILL)
                    tally["workers"] += 1
                except ProcessLookupError:
                    pass
        if kill_driver and driver.poll() is None:
            below = [int(row[0]) for row in children(driver.pid)]
            driver.kill()
            driver.wait()
            tally["drivers"] += 1
            # Ray and Dask leave theirs behind, as on a machine of their own.
            for pid in below:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        else:
            try:
                driver.wait(max(1.0, end - time.monotonic() + 60))
            except subprocess.TimeoutExpired:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
        before = check(path, expected, before, tally)
        if driver.returncode == 0:
            return True
        if driver.returncode > 0:  # an error, after three kills of one piece
            tally.setdefault("given up", 0)
            tally["given up"] += 1
    return False


def check(path, expected, before, tally):
    """Count what was committed before and is gone, and what is not as it should be."""
    import databanzhaf as db

    if not path.exists():
        return 0
    with db.Ledger(path) as ledger:
        found, count = ledger.utilities(), ledger.count()  # reads every row and its checksum
    tally["lost"] += max(0, before - count)
    there = ~np.isnan(found)
    tally["wrong"] += int((found[there] != expected[: len(found), : found.shape[1]][there]).sum())
    tally["repeated"] += count - int(there.sum())
    return count


class Simulated:
    """An executor of many workers that take no time and no core: what is left is the driver."""

    def __init__(self, workers):
        self._max_workers = workers

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


def capacity():
    """Committed evaluations a second from simulated workers, in pieces of one evaluation and of
    100.
    """
    from record import record, table

    import databanzhaf as db
    from databanzhaf import loop

    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for workers_, size in ((1, 1), (8, 1), (64, 1), (1, 100), (8, 100), (64, 100)):
            loop.LARGEST_PIECE = size
            budget = 20_000 if size == 1 else 400_000
            small = db.games.Function(
                50, lambda inside: inside.sum(axis=1), name="sum", call_size=size
            )
            start = time.perf_counter()
            with db.Ledger(Path(folder) / f"{workers_}-{size}.db") as ledger:
                db.value(
                    small,
                    estimator="reuse",
                    budget=budget,
                    ledger=ledger,
                    evaluator=db.evaluators.Executor(Simulated(workers_)),
                )
            rate = budget / (time.perf_counter() - start)
            lines.append([f"{workers_}", f"{size}", f"{rate:,.0f}", f"{rate / size:,.0f}"])
            print(lines[-1], file=sys.stderr, flush=True)
    head = ["simulated workers", "evaluations in a piece", "evaluations a second", "pieces"]
    record(
        "Soak: capacity",
        f"{table(head, lines)}\n\nOne driver with a ledger on disk; the workers answer at once, in "
        "the driver's own process, so that packing, coalitions and commits are all that takes "
        "time. A piece is about a second of a worker's time in a real run.",
    )


def main(seconds):
    from record import record, table

    lines = []
    for engine in ENGINES:
        tally = soak(engine, seconds)
        lines.append(
            [engine, *(f"{tally[name]:,}" for name in ("runs", "workers", "drivers")),
             f"{tally.get('given up', 0):,}",
             *(f"{tally[name]:,}" for name in ("lost", "wrong", "repeated"))]
        )  # fmt: skip
        print(lines[-1], file=sys.stderr, flush=True)
    head = [
        "engine", "runs ended", "workers killed", "drivers killed", "runs given up",
        "evaluations lost", "wrong", "twice",
    ]  # fmt: skip
    record(
        "Soak",
        f"{table(head, lines)}\n\n{seconds:g} seconds for each engine: runs of "
        f"{BUDGET * REPEATS:,} evaluations on two workers, killed by SIGKILL every 0.5 to 4 s, "
        "resumed until they end. After each end of a driver every row of the ledger is read, "
        "verified by its checksum, and compared with an undisturbed run. Given up: three workers "
        "died of one piece, since the kills met it; the run was repeated and went on.",
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1:2] == ["drive"]:
        drive(*sys.argv[2:])
    elif sys.argv[1:2] == ["capacity"]:
        capacity()
    else:
        main(float((sys.argv[1:] or ["120"])[0]))
