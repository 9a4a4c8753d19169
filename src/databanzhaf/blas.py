"""One BLAS thread: more threads add up in another order, and change the last bits. And one thread
of our kernels, where workers share a machine.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

_lock = threading.Lock()
_limit = ExitStack()
_inside = 0
_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One BLAS thread for the whole process; of several runs in threads the last one to leave lifts
    the limit.
    """
    from threadpoolctl import threadpool_limits

    global _inside
    with _lock:
        if not _inside:
            _limit.enter_context(threadpool_limits(limits=1))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.close()


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
