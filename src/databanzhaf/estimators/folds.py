"""Values by juries in folds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import chance
from databanzhaf.designs import Folds, describe
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.protocols import Estimator, Notion
from databanzhaf.verdicts import Seating


@dataclass(frozen=True)
class InFolds:
    r"""Another estimator for each fold of the jury; a value is the mean over the folds that the
    player does not judge in.

    With :math:`\hat\phi_i^{(f)}` from the models that fold f judges and :math:`F_i` the folds that
    value player i,

    .. math:: \hat\phi_i = \frac{1}{|F_i|} \sum_{f \in F_i} \hat\phi_i^{(f)}, \qquad
        \mathrm{se}_i^2 = \frac{1}{|F_i|^2} \sum_{f \in F_i} \mathrm{se}_{i,f}^2.
    """

    inner: Estimator
    seating: Seating | None = None

    reads = (Folds,)

    @property
    def name(self) -> str:
        return self.inner.name

    def gives(self, notion: Notion) -> bool:
        return self.inner.gives(notion)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Folds:
        assert self.seating is not None
        folds, parts = self.seating.player_folds, []
        seeds = chance.keys(seed, chance.FOLDS, np.arange(self.seating.count)).tolist()
        for number, own in enumerate(seeds):
            left = int((folds != number).sum())
            parts.append(describe(self.inner.design(notion, left, own)))
        plain = (
            tuple(column.tolist())
            for column in (
                folds,
                self.seating.judge_folds,
                self.seating.row_folds,
                self.seating.row_players,
            )
        )
        return Folds(n_players, tuple(parts), *plain)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        design = evaluations.design
        if not isinstance(design, Folds):
            raise DesignMismatch(
                "juries in folds need evaluations in folds",
                got=repr(design),
                remedy="Make a new run, with a ledger of its own.",
            )
        n, repeats = design.n_players, evaluations.n_repeats
        total, square, fourth, count = np.zeros((4, n))
        by_repeat, inner = np.zeros((repeats, n)), self.inner
        for number, where, indices in design.by_fold(evaluations.indices):
            part = Evaluations(
                design.designs[number],
                indices,
                evaluations.utilities[where],
                evaluations.stochastic,
            )
            found = self.inner(part, notion)
            players, inner = design.players(number), found.estimator
            total[players] += found.values
            square[players] += found.std_errors**2
            with np.errstate(divide="ignore", invalid="ignore"):
                term = found.std_errors**4 / found.degrees_of_freedom
            fourth[players] += np.where(found.std_errors > 0, term, 0.0)
            by_repeat[:, players] += found.values_by_repeat
            count[players] += 1
        if not count.all():
            raise DesignMismatch(
                "every player must be valued by some fold",
                got=f"{int((count == 0).sum())} players without any",
                remedy="Raise the budget.",
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = np.where(fourth > 0, square**2 / fourth, np.inf)
        freedom = np.where(np.isnan(square), np.nan, freedom)
        return Estimate(
            total / count,
            np.sqrt(square) / count,
            freedom,
            by_repeat / count,
            evaluations.n_evaluations,
            notion,
            InFolds(inner, self.seating),
            evaluations.players,
        )
