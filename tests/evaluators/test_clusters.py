"""Executors, Dask and Ray as real processes: the same ledger, row for row; workers that die; and
addresses at which nobody answers.
"""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.testing import check_evaluator
from tests.conformance.test_games import GAMES
from tests.evaluators.test_faults import disturbed, kill, rows, run, sleep, undisturbed  # noqa: F401

pytestmark = [
    pytest.mark.cluster,
    # Their own: sockets that are closed late, forks with threads, and settings to come.
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.fixture(params=["threads", "processes", "dask", "dask executor", "ray"])
def evaluator(request):
    engines = db.evaluators
    if request.param == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield engines.Executor(pool)
    elif request.param == "processes":
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            yield engines.Executor(pool)
    elif request.param == "ray":
        request.getfixturevalue("ray")
        yield engines.Ray()
    else:
        client = request.getfixturevalue("dask")
        yield (
            engines.Dask(client)
            if request.param == "dask"
            else engines.Executor(client.get_executor(), n_jobs=2)
        )


def test_an_engine_keeps_its_promises(evaluator, undisturbed, tmp_path):  # noqa: F811
    for game in (None, GAMES[0], GAMES[-1]):
        check_evaluator(evaluator, game)
    estimate, (utilities, count) = undisturbed
    found = run(disturbed(tmp_path, _nothing), tmp_path / "run.db", evaluator)
    np.testing.assert_array_equal(found.values, estimate.values)
    again, counted = rows(tmp_path / "run.db")
    np.testing.assert_array_equal(again, utilities)
    assert counted == count


def _nothing():
    pass


@pytest.mark.parametrize("engine", ["dask", "ray"])
@pytest.mark.parametrize("act", [kill, sleep])
def test_a_run_outlives_its_workers(request, engine, act, undisturbed, tmp_path):  # noqa: F811
    cluster = request.getfixturevalue(engine)
    limit = 4.0 if act is sleep else None
    evaluator = (
        db.evaluators.Dask(cluster, limit) if engine == "dask" else db.evaluators.Ray(timeout=limit)
    )
    found = run(disturbed(tmp_path, act), tmp_path / "run.db", evaluator)
    np.testing.assert_array_equal(found.values, undisturbed[0].values)
    np.testing.assert_array_equal(rows(tmp_path / "run.db")[0], undisturbed[1][0])


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_a_piece_that_kills_every_worker_is_named(request, engine, tmp_path):
    cluster = request.getfixturevalue(engine)
    evaluator = db.evaluators.Dask(cluster) if engine == "dask" else db.evaluators.Ray()
    path = tmp_path / "run.db"
    with pytest.raises(db.BackendUnavailable, match=r"died.* at evaluations? [\d, to]*4"):
        run(disturbed(tmp_path, kill, times=99), path, evaluator)
    assert rows(path)[1] > 0


def test_an_executor_whose_process_dies_ends_the_run_and_loses_nothing(undisturbed, tmp_path):  # noqa: F811
    path = tmp_path / "run.db"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        executor = db.evaluators.Executor(pool)
        with pytest.raises(db.BackendUnavailable, match=r"takes no more work.*Processes"):
            run(disturbed(tmp_path, kill), path, executor)
        with pytest.raises(db.BackendUnavailable, match="takes no more work"):
            run(disturbed(tmp_path, kill), path, executor)
    found = run(disturbed(tmp_path, kill), path, None)
    np.testing.assert_array_equal(found.values, undisturbed[0].values)


class Future:
    def __init__(self, value):
        self._value = value

    def result(self):
        return self._value


class Plain:
    """The least that an executor may be."""

    def submit(self, function, *arguments):
        return Future(function(*arguments))


def test_an_executor_needs_no_more_than_submit_and_result():
    check_evaluator(db.evaluators.Executor(Plain(), n_jobs=2))


def test_a_worker_that_stands_still_in_an_executor_is_named(tmp_path):
    pool = ThreadPoolExecutor(2)
    still = disturbed(tmp_path, lambda: time.sleep(3))
    with pytest.raises(db.BackendUnavailable, match=r"did not finish within 0\.5 s"):
        run(still, tmp_path / "run.db", db.evaluators.Executor(pool, timeout=0.5))
    pool.shutdown()


def test_a_game_that_is_wrong_is_no_matter_of_the_cluster(ray):
    game = db.games.Function(6, lambda coalitions: coalitions.sum(axis=1) * 1j, name="complex")
    with pytest.raises(db.InvalidInput, match="one number per coalition"):
        db.value(game, evaluator=db.evaluators.Ray())


def test_a_scheduler_that_is_gone(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    client = distributed.Client(cluster, timeout=5)
    path = tmp_path / "run.db"

    def close(done, total, checkpoints):
        if done:
            cluster.close()

    slow = disturbed(tmp_path, _nothing, pause=0.02)
    with pytest.raises(db.BackendUnavailable, match="connection to the Dask scheduler is lost"):
        db.value(
            slow,
            budget=2000,
            estimator="reuse",
            ledger=path,
            evaluator=db.evaluators.Dask(client),
            progress=close,
        )
    assert rows(path)[1] > 0
    client.close()


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_nobody_answers(name, undisturbed):  # noqa: F811
    pytest.importorskip({"dask": "distributed"}.get(name, name))
    evaluator = db.evaluators.cluster(f"{name}://127.0.0.1:9")
    start = time.perf_counter()
    with pytest.raises(db.BackendUnavailable, match=r"answers at .*127\.0\.0\.1:9.*address"):
        db.value(GAMES[0], evaluator=evaluator)
    assert time.perf_counter() - start < 10


def test_workers_with_another_version_are_named(dask, monkeypatch):
    monkeypatch.setattr("databanzhaf.evaluators.dask.__version__", "9.9")
    with pytest.raises(db.BackendUnavailable, match=r"must have databanzhaf 9\.9.*tcp://"):
        db.value(GAMES[0], evaluator=db.evaluators.Dask(dask))
    monkeypatch.undo()
    monkeypatch.setattr("databanzhaf.evaluators.crew.__version__", "9.9")
    with ThreadPoolExecutor(1) as pool, pytest.raises(db.BackendUnavailable, match="process"):
        db.value(GAMES[0], evaluator=db.evaluators.Executor(pool))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: db.evaluators.Executor(object()), "must have a method `submit`"),
        (lambda: db.evaluators.Executor(ThreadPoolExecutor(1), n_jobs=0), "n_jobs"),
        (lambda: db.evaluators.Processes(2, timeout=-1), "timeout"),
        (lambda: db.evaluators.Dask(0), "client"),
        (lambda: db.evaluators.Ray(gpus_per_worker=-1), "gpus_per_worker"),
        (lambda: db.evaluators.cluster("kubernetes"), "must be dask, ray"),
        (lambda: db.evaluators.cluster("dask://"), "must be dask, ray"),
    ],
)
def test_bad_input(make, sentence):
    with pytest.raises(db.InvalidInput, match=sentence):
        make()
