"""On a Dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from databanzhaf._version import __version__
from databanzhaf.errors import BackendUnavailable, check_count, first_line
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.crew import Lost, Roll, hand_out
from databanzhaf.evaluators.processes import check_timeout
from databanzhaf.evaluators.work import Parcel, Reply, Task, pack, work
from databanzhaf.protocols import Draws, EvaluatePieces, Game

_CONNECTING = 5.0  # seconds


@dataclass(frozen=True)
class Dask:
    """Evaluate on a Dask cluster, one thread for each task.

    Parameters
    ----------
    client : distributed.Client, str, or int
        A client, which stays open; the address of a scheduler ("tcp://host:8786"); or how many
        worker processes to start on this machine (-1: one for each core).
    timeout : float, optional
        Seconds for a piece of work (about a second's worth, and one call of the game at least):
        a worker that takes longer ends itself, and its nanny starts another one.

    Workers may die, join and leave. Dask gives the work of one that died to another, and gives up
    a piece of work that killed several (its setting ``distributed.scheduler.allowed-failures``).
    Needs the extra `dask`.
    """

    client: Any = -1
    timeout: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.client, int) and self.client != -1:
            check_count("client", self.client)
        check_timeout(self.timeout)

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluatePieces]:
        with _connected(self.client) as client:
            _check_workers(client)

            def run(
                draws: Draws, pieces: Iterable[Piece]
            ) -> Iterator[Sequence[tuple[Piece, Batch]]]:
                return hand_out(_Crew(client), game, draws, pieces, keep_outcomes, self.timeout)

            yield run


@contextmanager
def _connected(client: Any) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise BackendUnavailable.missing("evaluators.Dask needs", "distributed", "dask") from error
    if isinstance(client, int):
        from joblib import cpu_count

        count = int(cpu_count()) if client == -1 else client
        how: dict[str, Any] = {"n_workers": count, "threads_per_worker": 1}
        with (
            LocalCluster(**how, dashboard_address=None, silence_logs=50) as cluster,
            Client(cluster) as own,
        ):
            yield own
    elif isinstance(client, str):
        try:
            own = Client(client, timeout=_CONNECTING)
        except (OSError, ValueError, TimeoutError) as error:
            raise BackendUnavailable(
                f"no Dask scheduler answers at {client} ({first_line(error)})",
                remedy="Check the address: the scheduler prints it when it starts.",
            ) from error
        with own:
            yield own
    else:
        yield client


def _check_workers(client: Any) -> None:
    """Refuse workers without this package, or with another version of it, by name."""
    said = client.run(eval, "__import__('databanzhaf').__version__", on_error="return")
    other = {worker: found for worker, found in said.items() if found != __version__}
    if other:
        worker, found = next(iter(other.items()))
        what = first_line(found) if isinstance(found, BaseException) else f"databanzhaf {found}"
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        raise BackendUnavailable(
            f"workers must have databanzhaf {__version__}, as this process",
            got=f"{what} on {worker}{more}",
            remedy="Install the same version there.",
        )


def _the_same(content: bytes) -> bytes:
    return content


class _Crew:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: dict[str, Any] = {}
        self._roll = Roll("Dask", self._count)

    @property
    def places(self) -> int:
        return self._roll.places

    def _count(self) -> int:
        with _reached(self._client):
            return sum(self._client.nthreads().values())

    def parcel(self, game: Game, draws: Draws) -> Parcel:
        return pack(game, draws)

    def submit(self, task: Task, parcel: Parcel, *, send: bool) -> Any:
        with _reached(self._client):
            return self._submitted(task, parcel, send)

    def _submitted(self, task: Task, parcel: Parcel, send: bool) -> Any:
        if send or parcel.token not in self._sent:
            # A task, whose result workers fetch from each other: if all that had it died, Dask
            # makes it again. Scattered data would be lost.
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
                self._sent[parcel.token] = self._client.submit(_the_same, parcel.content)
        return self._client.submit(work, task, self._sent[parcel.token], pure=False)

    def reply(self, future: Any) -> Reply:
        from distributed import KilledWorker

        try:
            reply: Reply = future.result()
        except KilledWorker as error:
            raise Lost(f"workers died ({first_line(error)})", blamed=True, final=True) from error
        except (CancelledError, OSError) as error:
            self._sent.clear()
            raise Lost("the cluster lost a task", blamed=False) from error
        except ImportError as error:
            raise BackendUnavailable(
                f"a worker of the cluster has no databanzhaf ({first_line(error)})",
                remedy=f"Install version {__version__} there.",
            ) from error
        return reply

    def look(self) -> Sequence[Any]:
        if self._client.status in ("closed", "closing"):
            raise _gone()
        self._roll.check()
        return ()

    def forget(self, futures: Sequence[Any]) -> None:
        with suppress(Exception):  # the scheduler may be gone, or the client closed
            self._client.cancel(list(futures), force=True)


@contextmanager
def _reached(client: Any) -> Iterator[None]:
    """A scheduler that does not answer, in our words."""
    try:
        yield
    except Exception as error:  # which one depends on where Dask notices it
        if client.status == "running" and not isinstance(error, (OSError, TimeoutError)):
            raise
        raise _gone() from error


def _gone() -> BackendUnavailable:
    return BackendUnavailable(
        "the connection to the Dask scheduler is lost",
        remedy="Evaluations already recorded are kept: run again when it is back.",
    )
