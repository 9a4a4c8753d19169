"""On anything that has `submit`: pools of threads or processes, MPI, and others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from databanzhaf.errors import BackendUnavailable, InvalidInput, check_count, first_line, short
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.crew import IN_FLIGHT, Lost, hand_out
from databanzhaf.evaluators.processes import check_timeout
from databanzhaf.evaluators.work import Parcel, Reply, Task, pack, work
from databanzhaf.protocols import Draws, EvaluatePieces, Game


@dataclass(frozen=True)
class Executor:
    """Evaluate on an executor: an object with ``submit(function, *arguments)`` whose result has
    ``result()``, such as those of `concurrent.futures`, loky, `mpi4py.futures`, or Dask's
    ``client.get_executor()``.

    Parameters
    ----------
    executor : object
        It stays open.
    n_jobs : int, optional
        How many workers it has, if it does not say.
    timeout : float, optional
        Seconds for a piece of work (about a second's worth, and one call of the game at least).
        An executor cannot end a worker, so a run stops where one takes longer.

    The game travels once to each worker, then indices only. If the executor is broken (a process
    of `ProcessPoolExecutor` was killed), the run stops; `Processes` replaces its processes.
    """

    executor: Any
    n_jobs: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.executor, "submit", None)):
            raise InvalidInput(
                "`executor` must have a method `submit`",
                got=short(self.executor),
                remedy="Pass concurrent.futures.ProcessPoolExecutor(), for example.",
            )
        if self.n_jobs is not None:
            check_count("n_jobs", self.n_jobs)
        check_timeout(self.timeout)

    @property
    def workers(self) -> int:
        from joblib import cpu_count

        known = (getattr(self.executor, name, None) for name in ("_max_workers", "num_workers"))
        said = next((each for each in known if isinstance(each, int) and each > 0), None)
        return self.n_jobs or said or int(cpu_count())

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluatePieces]:
        def run(draws: Draws, pieces: Iterable[Piece]) -> Iterator[Sequence[tuple[Piece, Batch]]]:
            crew = _Crew(self.executor, self.workers, self.timeout)
            return hand_out(crew, game, draws, pieces, keep_outcomes, None)

        yield run


class _Crew:
    def __init__(self, executor: Any, workers: int, timeout: float | None) -> None:
        self._executor, self._workers, self._timeout = executor, workers, timeout
        self._sent = 0
        self._began: dict[Any, float] = {}

    @property
    def places(self) -> int:
        return IN_FLIGHT * self._workers

    def parcel(self, game: Game, draws: Draws) -> Parcel:
        return pack(game, draws)

    def submit(self, task: Task, parcel: Parcel, *, send: bool) -> Any:
        first = self._sent < self._workers
        self._sent += 1
        try:
            future = self._executor.submit(work, task, parcel.content if send or first else None)
        except (BrokenExecutor, RuntimeError) as error:
            raise _broken(error) from error
        self._began[future] = time.monotonic()
        return future

    def reply(self, future: Any) -> Reply:
        self._began.pop(future)
        try:
            reply: Reply = future.result()
        except CancelledError as error:
            raise Lost("a task was cancelled", blamed=False) from error
        except BrokenExecutor as error:
            raise _broken(error) from error
        return reply

    def look(self) -> Sequence[Any]:
        # A task waits for the one before it.
        longest = time.monotonic() - min(self._began.values(), default=time.monotonic())
        if self._timeout is not None and longest > IN_FLIGHT * self._timeout:
            raise BackendUnavailable(
                f"a worker of the executor did not finish within {self._timeout:g} s",
                remedy="Evaluations already recorded are kept. evaluators.Processes ends such "
                "workers and replaces them.",
            )
        return ()

    def forget(self, futures: Sequence[Any]) -> None:
        for future in futures:
            if hasattr(future, "cancel"):
                future.cancel()


def _broken(error: BaseException) -> BackendUnavailable:
    return BackendUnavailable(
        f"the executor takes no more work ({first_line(error)})",
        remedy="Evaluations already recorded are kept: run again with a new executor, or with "
        "evaluators.Processes, which replaces processes that die.",
    )
