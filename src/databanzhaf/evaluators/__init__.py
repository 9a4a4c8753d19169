"""Evaluators: where games run."""

from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.processes import Processes, worker_processes

__all__ = ["Local", "Processes", "worker_processes"]
