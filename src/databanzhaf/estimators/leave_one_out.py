"""Leave-one-out values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import LeaveOneOut as LeaveOneOutNotion
from databanzhaf.protocols import Notion


@dataclass(frozen=True)
class LeaveOneOut:
    r""":math:`\phi_i = U(N) - U(N \setminus i)`, from n + 1 evaluations.

    Exact for a game without noise. For a stochastic game the standard errors need two repeats or
    more, and all values share the noise of U(N).
    """

    name = "leave_one_out"
    reads = (designs.LeaveOneOut,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, LeaveOneOutNotion)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 30 if self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> designs.LeaveOneOut:
        _check(notion)
        return designs.LeaveOneOut(n_players)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        _check(notion)
        design = evaluations.design
        if not isinstance(design, designs.LeaveOneOut) or len(evaluations.indices) != design.size:
            raise DesignMismatch(
                "`leave_one_out` needs the full set and each set without one player, "
                f"{design.n_players + 1} evaluations",
                got=f"{len(evaluations.indices)} of a {type(design).__name__} design",
                remedy='Run with estimator="leave_one_out".',
            )
        by_repeat = (evaluations.utilities[0] - evaluations.utilities[1:]).T
        noise = evaluations.noise_variance()
        variance = noise[0] + noise[1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = (evaluations.n_repeats - 1) * variance**2 / (noise[0] ** 2 + noise[1:] ** 2)
        freedom = np.where(variance > 0, freedom, np.inf)
        return Estimate(
            by_repeat.mean(axis=0),
            np.sqrt(variance),
            freedom,
            by_repeat,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def _check(notion: Notion) -> None:
    if not isinstance(notion, LeaveOneOutNotion):
        raise DesignMismatch(
            "`leave_one_out` estimates that notion alone",
            got=f"{notion.name}",
            remedy='Use estimator="auto".',
        )
