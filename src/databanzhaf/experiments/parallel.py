"""Parts of an experiment in processes of their own. What they find is in files, so that nothing is
lost with a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import databanzhaf as db


def in_processes(
    part: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[Any]:
    """`part` of each of the arguments, in `jobs` processes; yields what each returns, as
    they come.
    """
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, cpu_count, delayed

    jobs = min(jobs, len(arguments))
    if jobs <= 1:
        yield from (part(*each) for each in arguments)
        return
    threads = max(1, cpu_count() // jobs)
    # joblib keeps processes for the next call, with the environment in which they began.
    names = {name: value for name, value in os.environ.items() if name.startswith("DATABANZHAF")}
    try:
        with db.evaluators.worker_processes(jobs, threads):
            yield from Parallel(batch_size=1, return_as="generator_unordered")(
                delayed(_in_worker)(part, each, names) for each in arguments
            )
    except BrokenProcessPool as error:
        raise db.BackendUnavailable(
            "a worker process died (killed, or out of memory)",
            got=f"--jobs {jobs}",
            remedy="Networks that were trained are kept: run again, with fewer jobs.",
        ) from error


def _in_worker(part: Callable[..., Any], arguments: tuple[Any, ...], names: dict[str, str]) -> Any:
    os.environ.update(names)
    return part(*arguments)
