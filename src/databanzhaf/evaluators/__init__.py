"""Evaluators: where games run."""

from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.processes import Processes, become_worker

__all__ = ["Local", "Processes", "become_worker"]
