"""One BLAS thread: more threads add up in another order, and change the last bits. And one thread
of our kernels, where workers share a machine.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_limit = ExitStack()
_inside = 0
_found: tuple[int, ThreadpoolController] | None = None
_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread for the whole process; of several runs in threads the last one to leave lifts
    the limit.
    """
    global _inside
    with _lock:
        if not _inside:
            _limit.enter_context(_libraries().limit(limits=1))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.close()


def _libraries() -> ThreadpoolController:
    """The BLAS and OpenMP libraries of the process. Looking for them takes 1 to 5 ms, a third of a
    small run; only an import loads more of them.
    """
    from threadpoolctl import ThreadpoolController

    global _found
    if _found is None or _found[0] != len(sys.modules):
        _found = len(sys.modules), ThreadpoolController()
    return _found[1]


@contextmanager
def one_thread() -> Iterator[None]:
    """One BLAS thread, and one thread of the kernels that this thread calls: there is a worker for
    each core.
    """
    with one_blas_thread():
        before = _most.set(1)
        try:
            yield
        finally:
            _most.reset(before)


def most_threads() -> int | None:
    """How many threads a kernel may use here; None for as many as there are cores."""
    return _most.get()
