"""The paper, reproduced: one module for each table and figure."""

from databanzhaf.experiments.registry import NAMES, reproduce, summarise, verdicts
from databanzhaf.experiments.setting import Setting

__all__ = ["NAMES", "Setting", "reproduce", "summarise", "verdicts"]
