"""Shapley values by group testing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.moments import doubt
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.notions import Shapley
from databanzhaf.protocols import Notion


@dataclass(frozen=True)
class GroupTesting:
    r"""The improved group-testing estimator of the Shapley value, with a dummy player (Wang & Jia
    2023, a note).

    .. math:: \hat\phi_i = \frac{Z}{m} \sum_S U(S \setminus d)\, (1[i \in S] - 1[d \in S]),

    a mean of independent terms, which gives the standard error.
    """

    name = "group_testing"
    reads = (designs.GroupTesting,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, Shapley)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 0

    def design(self, notion: Notion, n_players: int, seed: int) -> designs.GroupTesting:
        _check(notion)
        return designs.GroupTesting(n_players, seed)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        _check(notion)
        design = evaluations.design
        if not isinstance(design, designs.GroupTesting):
            raise DesignMismatch(
                "`group_testing` needs its own coalitions",
                got=repr(design),
                remedy='Run with estimator="group_testing".',
            )
        n, m = design.n_players, len(evaluations.indices)
        columns = np.vstack([evaluations.utility, evaluations.utilities.T])
        total, squares = np.zeros((len(columns), n)), np.zeros(n)
        step = max(1, BLOCK_CELLS // n)
        for low in range(0, m, step):
            rows = slice(low, low + step)
            members = design.with_dummy(evaluations.indices[rows]).astype(np.float64)
            signs = members[:, :-1] - members[:, -1:]
            total += columns[:, rows] @ signs
            squares += columns[0, rows] ** 2 @ np.abs(signs)
        mean = design.normaliser * total / max(m, 1)
        spread = np.maximum(design.normaliser**2 * squares / max(m, 1) - mean[0] ** 2, 0.0)
        variance = spread / (m - 1) if m > 1 else np.full(n, np.inf)
        error = doubt(
            np.sqrt(variance),
            np.full(n, float(max(m, 1))),
            design.normaliser * evaluations.scale(),
            evaluations.scale(),
        )
        freedom = np.full(n, float(max(m - 1, 1)))
        return Estimate(
            mean[0],
            error,
            freedom,
            mean[1:],
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def _check(notion: Notion) -> None:
    if not isinstance(notion, Shapley):
        raise DesignMismatch(
            "`group_testing` estimates the Shapley value",
            got=f"{notion.name}",
            remedy='Use estimator="auto".',
        )
