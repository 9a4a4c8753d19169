"""On a Ray cluster."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from databanzhaf._version import __version__
from databanzhaf.errors import BackendUnavailable, DatabanzhafError, InvalidInput, first_line, short
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.crew import Lost, Roll, hand_out
from databanzhaf.evaluators.processes import check_timeout
from databanzhaf.evaluators.work import Parcel, Reply, Task, pack, work
from databanzhaf.protocols import Draws, EvaluatePieces, Game

_CONNECTING = 5.0  # seconds


@dataclass(frozen=True)
class Ray:
    """Evaluate on a Ray cluster, one core and one thread for each task.

    Parameters
    ----------
    address : str, optional
        "ray://host:10001" or "auto"; by default the Ray that this process is connected to, or one
        that is started on this machine.
    gpus_per_worker : float
        GPUs for each task, which then needs no core of its own.
    timeout : float, optional
        Seconds for a piece of work (about a second's worth, and one call of the game at least):
        a worker that takes longer ends itself, and Ray starts another one.

    The work of a worker that died is done by another one. Needs the extra `ray`.
    """

    address: str | None = None
    gpus_per_worker: float = 0
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.gpus_per_worker, (int, float)) or self.gpus_per_worker < 0:
            raise InvalidInput(
                "`gpus_per_worker` must be a number, 0 or more",
                got=short(self.gpus_per_worker),
                remedy="Try 1.",
            )
        check_timeout(self.timeout)

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluatePieces]:
        with _connected(self.address) as ray:
            crew = _Crew(ray, self.gpus_per_worker)

            def run(
                draws: Draws, pieces: Iterable[Piece]
            ) -> Iterator[Sequence[tuple[Piece, Batch]]]:
                return hand_out(crew, game, draws, pieces, keep_outcomes, self.timeout)

            yield run


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    try:
        import ray
    except ImportError as error:
        raise BackendUnavailable.missing("evaluators.Ray needs", "ray", "ray") from error
    if ray.is_initialized() and address is None:
        yield ray
        return
    if address is not None and address.startswith("ray://"):
        _check_answers(address)
    own: dict[str, Any] = {} if address else {"include_dashboard": False}
    try:
        ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **own)
    except (ConnectionError, OSError, ValueError, RuntimeError, TimeoutError) as error:
        raise _no_answer(address or "this machine", error) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray itself waits for half a minute."""
    try:
        place = urlsplit(address)
        socket.create_connection((place.hostname or "", place.port or 10001), _CONNECTING).close()
    except (OSError, ValueError) as error:
        raise _no_answer(address, error) from error


def _no_answer(address: str, error: BaseException) -> BackendUnavailable:
    return BackendUnavailable(
        f"no Ray cluster answers at {address} ({first_line(error)})",
        remedy="Check the address: `ray start --head` prints it.",
    )


class _Crew:
    def __init__(self, ray: Any, gpus: float) -> None:
        self._ray, self._gpus = ray, gpus
        how = {"num_gpus": gpus, "num_cpus": 0} if gpus else {"num_cpus": 1}
        self._work = ray.remote(max_retries=0, **how)(work)
        self._sent: dict[str, Any] = {}
        self._refs: dict[Any, Any] = {}
        self._roll = Roll("Ray", self._count)

    @property
    def places(self) -> int:
        return self._roll.places

    def _count(self) -> int:
        there = self._ray.cluster_resources()
        return int(there.get("GPU", 0) / self._gpus if self._gpus else there.get("CPU", 0))

    def parcel(self, game: Game, draws: Draws) -> Parcel:
        return pack(game, draws)

    def submit(self, task: Task, parcel: Parcel, *, send: bool) -> Any:
        if send or parcel.token not in self._sent:
            self._sent[parcel.token] = self._ray.put(parcel.content)
        ref = self._work.remote(task, self._sent[parcel.token])
        future = ref.future()
        self._refs[future] = ref
        return future

    def reply(self, future: Any) -> Reply:
        from ray import exceptions

        self._refs.pop(future)
        try:
            reply: Reply = future.result()
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError) as error:
            raise Lost(f"a worker died ({first_line(error)})", blamed=True) from error
        except (exceptions.ObjectLostError, exceptions.NodeDiedError) as error:
            self._sent.clear()
            raise Lost("the cluster lost a task", blamed=False) from error
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, DatabanzhafError):
                raise error.cause from None
            raise BackendUnavailable(
                f"a worker of the cluster cannot run databanzhaf ({_last_line(error)})",
                remedy=f"Install version {__version__} there.",
            ) from error
        except exceptions.RayError as error:
            raise BackendUnavailable(
                f"the Ray cluster fails ({first_line(error)})",
                remedy="Evaluations already recorded are kept: run again when it is back.",
            ) from error
        return reply

    def look(self) -> Sequence[Any]:
        self._roll.check()
        return ()

    def forget(self, futures: Sequence[Any]) -> None:
        for future in futures:
            with suppress(Exception):  # it may be done
                self._ray.cancel(self._refs.pop(future), force=True)


def _last_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]
