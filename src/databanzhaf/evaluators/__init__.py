"""Evaluators: where games run."""

from databanzhaf.evaluators.batch import play
from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.processes import Processes, worker_processes

__all__ = ["Local", "Processes", "play", "worker_processes"]
