"""Any semivalue, and several from one run, by coalitions of random sizes and a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.designs import Sized
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate, Fit
from databanzhaf.estimators.ridge import fits_in_memory, noise_share
from databanzhaf.estimators.size_fit import SizeFit
from databanzhaf.estimators.size_laws import identified, shares
from databanzhaf.estimators.size_plan import SizePlan
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import (
    Banzhaf,
    LeaveOneOut,
    SizeWeighted,
    Together,
    WeightedBanzhaf,
    each_of,
)
from databanzhaf.protocols import FloatArray, Notion

FEWEST = 8
# A fit holds about eleven matrices with so many rows and columns (18 GB).
LARGEST = 14_000
# Coalitions drawn for the notion alone that a run must be worth, for errors to be known.
FEWEST_KNOWN = 10.0
# The fits that are tried: powers of the weights by which a coalition counts for the notion.
POWERS = 1.0, 0.5, 0.0
# So many coalitions at most choose among them.
MOST_CHOOSE = 10_000


@dataclass(frozen=True)
class SizeRegression:
    r"""Semivalues by regression-adjusted sample reuse, from coalitions whose sizes follow a law.

    With the notion's size law :math:`\pi`, sizes drawn by q and the factors

    .. math:: z_{ti} = \begin{cases} \frac{n}{s} \frac{\pi_{s-1}}{q_s} & i \in S_t, \\
        -\frac{n}{n - s} \frac{\pi_s}{q_s} & i \notin S_t, \end{cases} \qquad s = |S_t|,

    a value is :math:`\phi_i = E[U z_i]`. As in `Regression`, a fit is taken out of U and its own
    value put back:

    .. math:: f(S) = g(s) + \sum_k h_k(s) \sum_i \beta_{ki} (1_{i \in S} - s / n),

    with a curve g over the sizes that is linear between some of them, and up to four profiles
    :math:`h_k`, polynomials of the share of coalitions that are smaller: a player may help small
    coalitions more than large ones. The fit's own value is

    .. math:: \phi_i(f) = \sum_s \pi_s (g(s + 1) - g(s)) + \sum_k \beta_{ki} \sum_s \pi_s
        \frac{(n - 1 - s) h_k(s + 1) + s h_k(s)}{n - 1},

    and

    .. math:: \psi_{ti} = \phi_i(f^{(-t)}) + z_{ti} (U_t - f^{(-t)}(S_t))

    is unbiased, since the fit :math:`f^{(-t)}` has not seen the coalition. The penalties of the
    slopes come from other coalitions, too: a part of the variance for each profile, and none for a
    profile that chance alone could explain. The profiles may be turned first, to those along which
    the slopes of the players vary most: where all slopes change with the size alike, one is enough;
    where they are the same at all sizes, the first profile is already that one, exactly.

    What makes the sum of the variances small is a fit that weighs coalitions by
    :math:`\sum_i z_{ti}^2`, but none by more than three times the mean; where the game is much the
    same at all sizes, one that weighs all alike, since it learns from more of them. The estimate is
    that of the least estimated variance of these two and one in between, each with profiles turned
    and not; choosing it adds a bias of order 1/m.

    Shapley values add up to what all players earn together. The estimates do so up to a fraction
    of their errors, and the rest is dealt out equally.

    `size_laws` says by which law sizes are drawn. The run of one notion is read by that of another
    with a larger error; one whose sizes were hardly drawn is refused.
    """

    name = "regression:sizes"
    reads = (Sized,)
    fewest = FEWEST

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (SizeWeighted, Together))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        own = isinstance(notion, (Banzhaf, WeightedBanzhaf, LeaveOneOut))
        usable = fits_in_memory(n_players, budget or n_players, LARGEST)
        # with few players permutations need few coalitions, too
        enough = not budget or budget >= 2 * FEWEST_KNOWN or budget <= n_players
        return 11 if self.gives(notion) and not own and usable and enough else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Sized:
        semivalues = [_semivalue(each) for each in each_of(notion)]
        return Sized(n_players, seed, shares(semivalues, n_players))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        fit, unit, enough = self._fit(evaluations, notion)
        errors, freedom = fit.errors()
        return Estimate(
            fit.values[0] * unit,
            np.where(fit.seen() & enough, errors * unit, np.inf),
            freedom,
            fit.values[1:] * unit,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
            Fit(fit.explained, noise_share(evaluations, unit), "utilities"),
        )

    def by_columns(
        self, evaluations: Evaluations, notion: Notion, columns: FloatArray
    ) -> FloatArray:
        """The values that other utilities of the same coalitions would give, (columns, n), by the
        fit that is best for the evaluations' own: so they are linear in the utilities.
        """
        fit, unit, _ = self._fit(evaluations, notion, columns)
        return fit.values[1:] * unit

    def _fit(
        self, evaluations: Evaluations, notion: Notion, others: FloatArray | None = None
    ) -> tuple[SizeFit, float, bool]:
        """The best of the fits in units of a power of two, the unit, and whether its errors are
        known. `others` stand in the place of the repeats.
        """
        semivalue, design = _semivalue(notion), evaluations.design
        if not isinstance(design, Sized):
            raise DesignMismatch(
                f"`{self.name}` needs coalitions whose sizes follow a law",
                got=repr(design),
                remedy=f'Run with estimator="{self.name}".',
            )
        m, n = len(evaluations), design.n_players
        if m < FEWEST or not fits_in_memory(n, m, LARGEST):
            few = m < FEWEST
            raise DesignMismatch(
                f"`{self.name}` needs at least {FEWEST} coalitions"
                if few
                else f"`{self.name}` needs too much memory for so many players",
                got=f"{m:,}" if few else f"{n:,} players and {m:,} coalitions",
                remedy="Raise the budget." if few else 'Use estimator="permutation".',
            )
        share = identified(semivalue, design.law)
        utility = evaluations.utility
        columns = np.column_stack([utility, evaluations.utilities if others is None else others])
        columns -= columns[0]  # values are differences
        # so that squares are neither too large for a number nor too small; no bit is lost
        unit = 2.0 ** np.floor(np.log2(np.abs(columns).max() or 1.0))
        columns /= unit
        with one_blas_thread():
            plans = (SizePlan.of(semivalue, design, m, share, power) for power in POWERS)
            tried = [each for plan in plans for each in _tried(evaluations, columns, plan)]
            _, best = min(tried, key=itemgetter(0))
            fit = SizeFit(evaluations, columns, best)
        fit.values += _missing_from_the_total(evaluations, semivalue, columns, fit.values)
        return fit, unit, bool(m * share >= FEWEST_KNOWN and evaluations.scale() > 0)


def _semivalue(notion: Notion) -> SizeWeighted:
    if not isinstance(notion, SizeWeighted):
        raise DesignMismatch(
            f"`{SizeRegression.name}` is for semivalues, and {notion.name} is not one",
            remedy="Make a run of its own for it.",
        )
    return notion


def _tried(
    evaluations: Evaluations, columns: FloatArray, plan: SizePlan
) -> Iterator[tuple[float, SizePlan]]:
    """The plan, and the same with turned profiles, each with the sum of the variances, by penalties
    that all samples choose at once.
    """
    first = np.arange(len(evaluations)) < MOST_CHOOSE
    some = evaluations if first.all() else evaluations.only(first)
    like: SizeFit | None = None
    for each in (plan, replace(plan, turned=True)):
        like = SizeFit(some, columns[first, :1], each, folds=1, like=like)
        yield float((like.errors()[0] ** 2).sum()), each


def _missing_from_the_total(
    evaluations: Evaluations, notion: SizeWeighted, columns: FloatArray, values: FloatArray
) -> FloatArray:
    """For Shapley values what each needs for its row of `values` to add up to the score of all
    players less that of none, (rows, 1); 0 for others, and where one of these was not drawn.
    """
    n, law = evaluations.n_players, notion.weights(evaluations.n_players)
    sizes = np.concatenate([inside.sum(axis=1) for _, inside in evaluations.blocks()])
    everyone, nobody = sizes == n, sizes == 0
    missing = np.zeros((len(values), 1))
    if np.allclose(law, 1 / n) and everyone.any() and nobody.any():
        total = columns[everyone].mean(axis=0) - columns[nobody].mean(axis=0)
        missing[:, 0] = (total - values.sum(axis=1)) / n
    return missing
