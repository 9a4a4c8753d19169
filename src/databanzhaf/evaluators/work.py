"""What a worker does, on whatever machine it is: unpack a game once, then evaluate pieces."""

from __future__ import annotations

import io
import os
import platform
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from databanzhaf._version import __version__
from databanzhaf.blas import one_thread
from databanzhaf.errors import InvalidInput, first_line
from databanzhaf.evaluations import Batch, Failure, Piece
from databanzhaf.evaluators.batch import evaluate
from databanzhaf.protocols import Draws, Game

# Games that a worker keeps: that of a run, and of one after it.
_KEPT = 2
_LARGE = 1 << 20  # bytes of an array that processes of one machine share


@dataclass(frozen=True)
class Parcel:
    """A game and its draws, packed once for all workers; `token` is a digest of them."""

    token: str
    content: bytes | str
    size: int


@dataclass(frozen=True)
class Task:
    """One piece of work, of the game with this token. `limit` is how many seconds the worker has,
    after which it ends itself.
    """

    version: str
    token: str
    keep_outcomes: bool
    piece: Piece
    limit: float | None = None


@dataclass(frozen=True)
class Reply:
    """What came of a task: a batch, or what is in the way of one ("game": the worker does not have
    it; "version": its package is another one; "rebuild": the game cannot be unpacked there).
    """

    who: str
    batch: Batch | None = None
    lacks: str | None = None
    detail: str = ""


def pack(game: Game, draws: Draws, folder: Path | None = None) -> Parcel:
    """With `folder` for workers of this machine: large arrays become files there that all of them
    share.
    """
    import hashlib

    buffer = io.BytesIO()
    try:
        _Packing(buffer, folder).dump((game, draws))
    except Exception as error:  # pickling calls what the objects define
        raise InvalidInput(
            f"the game cannot be sent to workers ({first_line(error)})",
            remedy="Build it from importable pieces, or use evaluators.Local().",
        ) from error
    packed = buffer.getvalue()
    token = hashlib.sha256(packed).hexdigest()[:32]
    if folder is None:
        return Parcel(token, packed, len(packed))
    path = folder / f"{token}.pickle"
    path.write_bytes(packed)
    return Parcel(token, str(path), len(packed))


class _Packing(cloudpickle.CloudPickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, folder: Path | None) -> None:
        super().__init__(file)
        self._folder, self._count = folder, 0

    def reducer_override(self, obj: Any) -> Any:
        large = type(obj) is np.ndarray and obj.nbytes > _LARGE and not obj.dtype.hasobject
        if self._folder is None or not large:
            return super().reducer_override(obj)
        self._count += 1
        path = self._folder / f"{id(self)}-{self._count}.npy"
        np.save(path, obj)
        return _opened, (str(path),)


def _opened(path: str) -> Any:
    """An array in pages that all processes share until one writes to them."""
    return np.load(path, mmap_mode="c").view(np.ndarray)


def work(task: Task, content: bytes | str | None) -> Reply:
    """Evaluate a piece. `content` is that of the parcel, if it came along."""
    who = f"{socket.gethostname()}, process {os.getpid()}"
    if task.version != __version__:
        return Reply(who, lacks="version", detail=__version__)
    with one_thread(), _limited(task.limit):
        try:
            held = _held(task.token, content)
        except Exception as error:  # unpickling imports whatever the game is made of
            python = platform.python_version()
            return Reply(who, lacks="rebuild", detail=f"{first_line(error)}; Python {python}")
        if held is None:
            return Reply(who, lacks="game")
        batch = evaluate(*held, task.piece, task.keep_outcomes)
    if batch.failure is not None:
        # A user's exception need not survive pickling; its text does.
        failure = batch.failure
        batch = replace(
            batch, failure=Failure(failure.position, failure.reason, None, failure.raised)
        )
    return Reply(who, batch)


_games: OrderedDict[str, tuple[Game, Draws]] = OrderedDict()
_unpacking = threading.Lock()


def _held(token: str, content: bytes | str | None) -> tuple[Game, Draws] | None:
    """The game with this token, unpacked if it came along."""
    with _unpacking:
        if token not in _games and content is not None:
            packed = content if isinstance(content, bytes) else Path(content).read_bytes()
            _games[token] = cloudpickle.loads(packed)
            while len(_games) > _KEPT:
                _games.popitem(last=False)
        return _games.get(token)


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """End this process, which stands still, after so many seconds: whoever watches over workers
    starts another one.
    """
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, os._exit, (1,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
