"""A cluster by one word, as a shell names it."""

from __future__ import annotations

from databanzhaf.errors import InvalidInput, short
from databanzhaf.evaluators.dask import Dask
from databanzhaf.evaluators.ray import Ray


def cluster(name: str, *, n_jobs: int = -1, timeout: float | None = None) -> Dask | Ray:
    """The evaluator named by "dask", "ray" (on this machine), "dask://host:8786" or
    "ray://host:10001".
    """
    kind, _, place = str(name).partition("://")
    if name in ("dask", "ray"):
        return Dask(n_jobs, timeout) if name == "dask" else Ray(timeout=timeout)
    if kind not in ("dask", "ray") or not place:
        raise InvalidInput(
            "`cluster` must be dask, ray, dask://host:8786 or ray://host:10001",
            got=short(name),
            remedy="Try dask, which starts workers on this machine.",
        )
    return Dask(f"tcp://{place}", timeout) if kind == "dask" else Ray(name, timeout=timeout)
