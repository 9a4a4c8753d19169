"""In several processes of this machine (joblib's loky)."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.errors import BackendUnavailable, InvalidInput, check_count
from databanzhaf.evaluations import Batch, Failure
from databanzhaf.evaluators.batch import evaluate, join
from databanzhaf.protocols import BoolArray, EvaluateBatch, Game, IntArray, KeyArray

# More pieces than workers even out slow coalitions; each costs 0.15 ms to send.
_PIECES_PER_WORKER = 4


@dataclass(frozen=True)
class Processes:
    """Evaluate in `n_jobs` processes (-1: one for each core), one BLAS thread each: the same bits
    as `Local`.
    """

    n_jobs: int = 2

    def __post_init__(self) -> None:
        if self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs)

    @property
    def workers(self) -> int:
        from joblib import cpu_count

        return int(cpu_count()) if self.n_jobs == -1 else self.n_jobs

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluateBatch]:
        from concurrent.futures.process import BrokenProcessPool
        from pickle import PicklingError

        from joblib import Parallel, delayed

        with worker_processes(self.workers, threads=1), Parallel(batch_size=1) as pool:
            with _without_interrupts():
                pool(delayed(os.getpid)() for _ in range(self.workers))

            def run(coalitions: BoolArray, keys: KeyArray, starts: IntArray) -> Batch:
                pieces = np.array_split(starts, min(len(starts), self.workers * _PIECES_PER_WORKER))
                ends = [int(piece[0]) for piece in pieces[1:]] + [len(keys)]
                tasks = (
                    delayed(_in_worker)(
                        game,
                        coalitions[piece[0] : end],
                        keys[piece[0] : end],
                        piece - piece[0],
                        keep_outcomes,
                    )
                    for piece, end in zip(pieces, ends, strict=True)
                )
                try:
                    return join(pool(tasks))
                except PicklingError as error:
                    raise InvalidInput(
                        f"the game cannot be sent to worker processes ({error})",
                        remedy="Build it from importable pieces, or use evaluators.Local().",
                    ) from error
                except BrokenProcessPool as error:
                    if "un-serialize" in str(error):
                        raise InvalidInput(
                            "the game cannot be rebuilt in worker processes: they cannot import "
                            "what it is made of",
                            remedy="Put it where Python finds it, or use one job.",
                        ) from error
                    raise BackendUnavailable(
                        "a worker process died (killed, or out of memory)",
                        remedy="A ledger keeps what was done: run again, with fewer jobs.",
                    ) from error

            yield run


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back for a moment. Processes that start meanwhile never see it; this
    one gets it afterwards.
    """
    import signal

    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker as standard

    from joblib.externals.loky.backend import resource_tracker as own

    for tracker in (standard, own):  # started later, they would let Ctrl-C through again
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def worker_processes(n_jobs: int, threads: int) -> Iterator[None]:
    """joblib's settings for worker processes that leave signals to this process, and end
    with it.
    """
    from joblib import parallel_config

    # loky replaces a worker that was idle for long or whose memory grew by 300 MB, and warns of it
    # in the thread that hands out the work. Where warnings are errors, that thread would die of it
    # and the run would wait for ever.
    warnings.filterwarnings("default", message="A worker stopped while some jobs were given")
    with parallel_config(
        "loky",
        n_jobs=n_jobs,
        inner_max_num_threads=threads,
        initializer=_become_worker,
        initargs=(os.getpid(),),
    ):
        yield


def _become_worker(parent: int) -> None:
    """The first thing that a worker process does: it leaves Ctrl-C and SIGTERM, which a terminal or
    a service manager sends to all, to its parent, and ends when that is gone (kill -9), since the
    work would be lost. Run by the pool when it starts the process, never by a task: joblib runs
    tasks in the user's own process where it can start no other (one job, one core, a daemon).
    """
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_worker(
    game: Game, coalitions: BoolArray, keys: KeyArray, starts: IntArray, keep_outcomes: bool
) -> Batch:
    with one_blas_thread():
        batch = evaluate(game, coalitions, keys, starts, keep_outcomes)
    if batch.failure is None:
        return batch
    # A user's exception need not survive pickling; its text does.
    return replace(batch, failure=Failure(batch.failure.position, batch.failure.reason))
