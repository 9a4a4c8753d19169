"""One BLAS thread: more threads add up in another order, and change the last bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_lock = threading.Lock()
_limit = ExitStack()
_inside = 0


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
