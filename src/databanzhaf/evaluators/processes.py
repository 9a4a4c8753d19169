"""In several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databanzhaf.errors import check_between, check_count
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.crew import IN_FLIGHT, Lost, hand_out
from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.work import Parcel, Reply, Task, pack, work
from databanzhaf.protocols import Draws, EvaluatePieces, Game

_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
    ),
    "1",
)
# A process that had nothing to do for so many seconds ends; starting one takes about a second.
_IDLE = 300
_DIED = "a worker process died (killed, or out of memory)"


@dataclass(frozen=True)
class Processes:
    """Evaluate in `n_jobs` processes (-1: one for each core), one thread each: the same bits as
    `Local`.

    A process that dies is replaced, and its work is done again; after three have died of the same
    evaluations the run stops and names them. With `timeout` a process that takes more seconds for
    a piece of work (about a second's worth, and one call of the game at least) is ended and
    replaced.
    """

    n_jobs: int = 2
    timeout: float | None = None

    def __post_init__(self) -> None:
        if self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs)
        check_timeout(self.timeout)

    @property
    def workers(self) -> int:
        from joblib import cpu_count

        return int(cpu_count()) if self.n_jobs == -1 else self.n_jobs

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluatePieces]:
        # A daemonic process can start no other.
        alone = self.workers == 1 and self.timeout is None
        if alone or multiprocessing.current_process().daemon:
            with Local().session(game, keep_outcomes) as run:
                yield run
            return
        with _shared_folder() as folder, _Pool(self.workers, self.timeout, folder) as pool:

            def run(
                draws: Draws, pieces: Iterable[Piece]
            ) -> Iterator[Sequence[tuple[Piece, Batch]]]:
                return hand_out(pool, game, draws, pieces, keep_outcomes, None)

            yield run


def check_timeout(timeout: object) -> None:
    if timeout is not None:
        check_between("timeout", timeout, 0, float("inf"), "Give seconds, or leave it out.")


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """A temporary folder that is removed even if this process is killed."""
    from joblib.externals.loky.backend import resource_tracker

    with tempfile.TemporaryDirectory(prefix="databanzhaf-") as name:
        resource_tracker.register(name, "folder")
        try:
            yield Path(name)
        finally:
            resource_tracker.unregister(name, "folder")


class _Seat:
    """A process with its queue. An executor of one process tells which task it died of."""

    def __init__(self) -> None:
        from joblib.externals.loky import ProcessPoolExecutor

        self.executor = ProcessPoolExecutor(
            1, timeout=_IDLE, initializer=_become_worker, initargs=(os.getpid(),), env=_ONE_THREAD
        )
        self.owner = os.getpid()
        self.tasks: deque[Any] = deque()
        self.began = 0.0
        with _without_interrupts():
            self.up = self.executor.submit(os.getpid)  # done once the process has started
        self.lost: tuple[str, Any] | None = None

    def submit(self, *call: Any) -> Any:
        with _without_interrupts():  # it may start the process
            future = self.executor.submit(*call)
        if not self.tasks:
            self.began = time.monotonic()
        self.tasks.append(future)
        return future

    def lose(self, how: str) -> None:
        """It died, or is to: the task that it worked on is to blame."""
        self.lost = how, self.tasks[0] if self.tasks else None

    def close(self) -> None:
        self.executor.shutdown(wait=False, kill_workers=True)


# Processes without work, for the next run.
_idle: list[_Seat] = []
_taking = threading.Lock()


class _Pool:
    def __init__(self, count: int, timeout: float | None, folder: Path) -> None:
        self._count, self._timeout, self._folder = count, timeout, folder
        self._seats: list[_Seat] = []
        self._of: dict[Any, _Seat] = {}

    def __enter__(self) -> _Pool:
        # loky replaces a process whose memory grew by 300 MB, and warns of it in the thread that
        # hands out the work. Where warnings are errors, that thread would die of it and the run
        # would wait for ever.
        warnings.filterwarnings("default", message="A worker stopped while some jobs were given")
        with _taking:
            while len(self._seats) < self._count and _idle:
                seat = _idle.pop()
                if seat.owner == os.getpid():
                    self._seats.append(seat)
        while len(self._seats) < self._count:
            self._seats.append(_Seat())
        return self

    def __exit__(self, *_: object) -> None:
        for seat in self._seats:
            if seat.tasks or seat.lost:
                seat.close()
        with _taking:
            _idle.extend(seat for seat in self._seats if not seat.tasks and not seat.lost)

    @property
    def places(self) -> int:
        return IN_FLIGHT * self._count

    def parcel(self, game: Game, draws: Draws) -> Parcel:
        return pack(game, draws, self._folder)

    def submit(self, task: Task, parcel: Parcel, *, send: bool) -> Any:
        while True:
            seat = min(self._seats, key=lambda each: len(each.tasks))
            try:
                future = seat.submit(work, task, parcel.content)
            except BrokenExecutor:  # it died since; what it had is lost
                seat.lose(_DIED)
                self._replace(seat)
                continue
            self._of[future] = seat
            return future

    def reply(self, future: Any) -> Reply:
        seat = self._of.pop(future)
        if seat.lost is None:
            try:
                reply: Reply = future.result()
            except BrokenExecutor:
                seat.lose(_DIED)
                self._replace(seat)
            else:
                seat.tasks.remove(future)
                seat.began = time.monotonic()
                return reply
        assert seat.lost is not None
        how, task = seat.lost
        raise Lost(how, blamed=future is task)

    def look(self) -> Sequence[Any]:
        if self._timeout is None:
            return ()
        now, late = time.monotonic(), []
        for seat in self._seats:
            if not seat.up.done():
                seat.began = now
            elif seat.tasks and not seat.tasks[0].done() and now - seat.began > self._timeout:
                late.append(seat)
        for seat in late:
            seat.lose(f"a worker process did not finish within {self._timeout:g} s")
            self._replace(seat)
        return [task for seat in late for task in seat.tasks]

    def forget(self, futures: Sequence[Any]) -> None:
        for future in futures:
            self._of.pop(future)

    def _replace(self, seat: _Seat) -> None:
        seat.close()
        self._seats[self._seats.index(seat)] = _Seat()


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
    work would be lost. Run by the pool when it starts the process, never by a task.
    """
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
