"""Evaluators: where games run."""

from databanzhaf.evaluators.local import Local
from databanzhaf.evaluators.processes import Processes

__all__ = ["Local", "Processes"]
