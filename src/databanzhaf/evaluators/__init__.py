"""Evaluators: where games run."""

from databanzhaf.evaluators.batch import Drawn, play
from databanzhaf.evaluators.cluster import cluster
from databanzhaf.evaluators.dask import Dask
from databanzhaf.evaluators.executor import Executor
from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.processes import Processes, worker_processes
from databanzhaf.evaluators.ray import Ray

__all__ = [
    "Dask",
    "Drawn",
    "Executor",
    "Local",
    "Processes",
    "Ray",
    "cluster",
    "play",
    "worker_processes",
]
