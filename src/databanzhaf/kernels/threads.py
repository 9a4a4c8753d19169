"""Models in Python threads that hold no lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from joblib import cpu_count

from databanzhaf.blas import most_threads


def in_threads(work: Callable[[int, int], None], models: int, threads: int | None) -> None:
    """Call work(worker, workers) for each worker: one for each of `threads` or cores, and no more
    than there are models, or than a worker process may have.
    """
    workers = min(threads or cpu_count(), models, most_threads() or models)
    if workers == 1:
        work(0, 1)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda worker: work(worker, workers), range(workers)))
