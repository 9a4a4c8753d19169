"""Estimators: evaluations → Estimate. Each knows the design it needs and refuses any other."""

from __future__ import annotations

from typing import Protocol

from databanzhaf.estimators.exact import Exact
from databanzhaf.estimators.group_testing import GroupTesting
from databanzhaf.estimators.least_core import LeastCore
from databanzhaf.estimators.leave_one_out import LeaveOneOut
from databanzhaf.estimators.marginal import Marginal
from databanzhaf.estimators.permutation import Permutation
from databanzhaf.estimators.reuse import Reuse
from databanzhaf.notions import Notion
from databanzhaf.types import Design, Estimate, Evaluations

__all__ = ["Estimator", "Exact", "GroupTesting", "LeastCore", "LeaveOneOut", "Marginal", "Permutation", "Reuse"]


class Estimator(Protocol):
    """A frozen dataclass that is called with evaluations and a notion."""

    @property
    def name(self) -> str: ...

    def design(self, notion: Notion, n_players: int, seed: int) -> Design:
        """The design whose evaluations identify the notion."""
        ...

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate: ...
