"""Hand out pieces of work to workers that may die, stand still or come and go.

Coalitions and keys are functions of the index, so a piece can be given to another worker, and gives
the same bits there. At most two tasks for each worker are on their way: one that it works on and
one that waits, so that it is never idle.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Protocol

from databanzhaf._version import __version__
from databanzhaf.errors import BackendUnavailable, DatabanzhafError, InvalidInput
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.work import Parcel, Reply, Task
from databanzhaf.protocols import Draws, Game

IN_FLIGHT = 2
# A call that killed so many workers, or in which the game raised so often, is given up.
TRIES = 3
# One that was lost so often by no fault of its own, too: workers come and go too fast.
_LOSSES = 25
_LOOK = 0.5  # seconds between two looks at those who say nothing
_PATIENCE = 60.0  # seconds that a cluster may have no worker


class Lost(Exception):
    """A task has no reply: its worker died or stood still. `blamed`: while it worked on this task,
    and not on another one. `final`: the cluster has given it to several workers.
    """

    def __init__(self, how: str, *, blamed: bool, final: bool = False) -> None:
        super().__init__(how)
        self.how, self.blamed, self.final = how, blamed, final


class Crew(Protocol):
    """Workers of one kind."""

    @property
    def places(self) -> int:
        """Tasks that may be on their way."""
        ...

    def parcel(self, game: Game, draws: Draws) -> Parcel: ...

    def submit(self, task: Task, parcel: Parcel, *, send: bool) -> Any:
        """A future with `result()`, and `add_done_callback` if it has one. With `send` the parcel
        must come along; without it the worker may have its game.
        """
        ...

    def reply(self, future: Any) -> Reply:
        """Of a future that is done; or `Lost`."""
        ...

    def look(self) -> Sequence[Any]:
        """Tasks that are lost and will not say so; an error where no worker is left."""
        ...

    def forget(self, futures: Sequence[Any]) -> None:
        """Tasks whose replies nobody waits for."""
        ...


class Roll:
    """How many workers a cluster has: they come and go, so it is asked once a second."""

    def __init__(self, whose: str, count: Callable[[], int]) -> None:
        self._whose, self._count = whose, count
        self._workers, self._seen, self._next = 1, time.monotonic(), 0.0

    @property
    def places(self) -> int:
        self.check()
        return IN_FLIGHT * self._workers

    def check(self) -> None:
        """Complain where there has been none for a minute."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1
            if count := self._count():
                self._workers, self._seen = count, now
        if now - self._seen > _PATIENCE:
            raise BackendUnavailable(
                f"the {self._whose} cluster has had no worker for {_PATIENCE:g} s",
                remedy="Evaluations already recorded are kept: run again when there are some.",
            )


@dataclass(eq=False)
class _Flight:
    """A piece on its way, and what happened to it."""

    piece: Piece
    send: bool = False
    raised: int = 0
    killed: int = 0
    lost: int = 0

    def again(self, lost: Lost) -> list[_Flight]:
        """What to give out once more. A piece that a worker died of is cut in two, so that in the
        end one call is known to be deadly; that is given up after three deaths.
        """
        self.lost += 1
        starts = self.piece.starts
        if (lost.blamed or lost.final) and len(starts) > 1:
            middle, end = int(starts[len(starts) // 2]), len(self.piece)
            parts = self.piece.part(0, middle), self.piece.part(middle, end)
            return [_Flight(part, self.send, lost=self.lost) for part in parts]
        self.killed += TRIES if lost.final else lost.blamed
        if self.killed >= TRIES or self.lost >= _LOSSES:
            times = f"{self.killed} workers" if self.killed >= TRIES else f"{self.lost} times"
            raise BackendUnavailable(
                f"{lost.how}, {times} one after the other, at {_name(self.piece)}",
                remedy="Evaluations already recorded are kept. Look at what these coalitions ask "
                "of a machine (memory, time), and run again.",
            )
        return [self]


def hand_out(
    crew: Crew,
    game: Game,
    draws: Draws,
    pieces: Iterable[Piece],
    keep_outcomes: bool,
    limit: float | None,
) -> Iterator[Sequence[tuple[Piece, Batch]]]:
    """Pieces with their batches, as they come. After a failure nothing new is begun; what was begun
    comes first, then the failure.
    """
    parcel, source = crew.parcel(game, draws), iter(pieces)
    flying: dict[Any, _Flight] = {}
    waiting: deque[_Flight] = deque()
    done: SimpleQueue[Any] = SimpleQueue()
    failed: list[tuple[Piece, Batch]] = []
    error: DatabanzhafError | None = None
    try:
        while True:
            while len(flying) < crew.places:
                if waiting:
                    flight = waiting.popleft()
                elif failed or error or (piece := next(source, None)) is None:
                    break
                else:
                    flight = _Flight(piece)
                task = Task(__version__, parcel.token, keep_outcomes, flight.piece, limit)
                future = crew.submit(task, parcel, send=flight.send)
                flying[future] = flight
                _call_back(future, done)
            if not flying:
                break
            made = []
            for future in _finished(done, crew):
                if future not in flying:  # given up before
                    continue
                flight = flying.pop(future)
                try:
                    reply = crew.reply(future)
                    batch = reply.batch
                    if batch is None:
                        flight.send = _may_send(reply, flight.send)
                        waiting.append(flight)
                        continue
                except Lost as lost:
                    try:
                        waiting.extend(flight.again(lost))
                    except DatabanzhafError as given_up:
                        error = error or given_up
                    continue
                except DatabanzhafError as other:
                    error = error or other
                    continue
                piece, failure = flight.piece, batch.failure
                if failure is None:
                    made.append((piece, batch))
                elif failure.raised and (failure.position or flight.raised + 1 < TRIES):
                    at = failure.position
                    if at:
                        made.append((piece.part(0, at), batch.first(at)))
                    rest = piece.part(at, len(piece))
                    # Where it got further, another call raised, for the first time.
                    waiting.append(_Flight(rest, raised=1 if at else flight.raised + 1))
                else:
                    failed.append((piece, batch))
            if made:
                yield made
    finally:
        if flying:
            crew.forget(list(flying))
    if failed:
        failed.sort(key=lambda each: int(each[0].indices[0]))
        if further := failed[1:]:
            yield [(piece, replace(batch, failure=None)) for piece, batch in further]
        yield failed[:1]
    if error is not None:
        raise error


def _call_back(future: Any, done: SimpleQueue[Any]) -> None:
    """Put a future into a queue when it is done."""
    if hasattr(future, "add_done_callback"):
        future.add_done_callback(done.put)
        return

    def wait() -> None:
        with suppress(BaseException):  # whoever reads the reply sees it
            future.result()
        done.put(future)

    Thread(target=wait, daemon=True).start()


def _finished(done: SimpleQueue[Any], crew: Crew) -> list[Any]:
    """All that are done, one at least; or that are lost."""
    while True:
        found = []
        try:
            found.append(done.get(timeout=_LOOK))
            while True:
                found.append(done.get_nowait())
        except Empty:
            pass
        found += crew.look()
        if found:
            return found


def _may_send(reply: Reply, sent: bool) -> bool:
    """Whether the parcel must come along next time; what no second try would change is an
    error.
    """
    if reply.lacks == "version":
        raise BackendUnavailable(
            f"workers must have databanzhaf {__version__}, as this process",
            got=f"{reply.detail} in {reply.who}",
            remedy="Install the same version there.",
        )
    if reply.lacks == "rebuild" or sent:
        raise InvalidInput(
            "the game cannot be rebuilt in worker processes: they cannot import what it is made "
            f"of ({reply.who}: {reply.detail})",
            remedy="Put it where Python finds it there, or use one job.",
        )
    return True


def _name(piece: Piece) -> str:
    first, last = int(piece.indices.min()), int(piece.indices.max())
    return f"evaluations {first:,} to {last:,}" if last > first else f"evaluation {first:,}"
