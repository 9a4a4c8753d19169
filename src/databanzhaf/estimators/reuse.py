"""Banzhaf values by maximum sample reuse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.designs import Coin
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators.moments import doubt
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import Banzhaf, WeightedBanzhaf
from databanzhaf.protocols import Notion


@dataclass(frozen=True)
class Reuse:
    r"""Banzhaf values by maximum sample reuse (MSR; Wang & Jia 2023, Eq. 6).

    When every player joins by a coin of bias p, each evaluation informs every player:

    .. math:: \hat\phi_i = \bar U(S \ni i) - \bar U(S \not\ni i).

    The standard error is that of a difference of two means (Welch). A player that is in all or in
    none of the coalitions gets 0 and an infinite standard error.
    """

    name = "reuse"
    reads = (Coin,)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (Banzhaf, WeightedBanzhaf))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 10 if self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Coin:
        return Coin(n_players, seed, _bias(notion))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        design, p = evaluations.design, _bias(notion)
        if not isinstance(design, Coin) or design.p != p:
            raise DesignMismatch(
                f"{notion.name} values by `reuse` need coalitions drawn by a coin of bias {p:g}",
                got=repr(design),
                remedy="Make a new run for this notion, with a ledger of its own.",
            )
        # Centring leaves differences of means as they are and keeps their squares free of
        # cancellation.
        centre = evaluations.utility.mean() if len(evaluations.indices) else 0.0
        utility = evaluations.utility - centre
        columns = np.vstack(
            [np.ones_like(utility), utility, utility**2, (evaluations.utilities - centre).T]
        )
        inside = np.zeros((len(columns), design.n_players))
        for rows, coalitions in evaluations.blocks():
            inside += columns[:, rows] @ coalitions.astype(np.float64)
        outside = columns.sum(axis=1, keepdims=True) - inside

        n_in, n_out = inside[0], outside[0]
        seen = (n_in > 0) & (n_out > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(seen, inside[1:] / n_in - outside[1:] / n_out, 0.0)
            in_part = (inside[2] - inside[1] ** 2 / n_in) / (n_in - 1) / n_in
            out_part = (outside[2] - outside[1] ** 2 / n_out) / (n_out - 1) / n_out
            in_part, out_part = np.maximum(in_part, 0.0), np.maximum(out_part, 0.0)
            variance = in_part + out_part
            freedom = variance**2 / (in_part**2 / (n_in - 1) + out_part**2 / (n_out - 1))
        measured = (n_in > 1) & (n_out > 1)
        error = doubt(
            np.sqrt(variance), np.minimum(n_in, n_out), evaluations.scale(), evaluations.scale()
        )
        return Estimate(
            means[0],
            np.where(measured, error, np.inf),
            np.where(measured & (variance > 0), freedom, 1.0),
            means[2:],
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def _bias(notion: Notion) -> float:
    if isinstance(notion, Banzhaf):
        return 0.5
    if isinstance(notion, WeightedBanzhaf):
        return notion.p
    raise DesignMismatch(
        "fair-coin coalitions and `reuse` give Banzhaf values only (paper, Appendix C.2)",
        got=f"{notion.name}",
        remedy='Make a new run for this notion with estimator="auto" and a ledger of its own.',
    )
