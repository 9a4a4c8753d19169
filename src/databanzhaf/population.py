"""How far values depend on which rows judge, and what a player does to each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.designs import Coin, Complementary
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Errors, Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import BoolArray, FloatArray, IntArray
from databanzhaf.verdicts import Verdicts, places_in_folds

# Judging rows whose effects are looked at: more would add time, and hardly any precision.
_MOST_JUDGES = 500
# Parts of a jury that is cut into folds: no row of it judges all models.
_PARTS = 12


def with_jury(estimate: Estimate, evaluations: Evaluations) -> Estimate:
    r"""The estimate with standard errors that also count which rows judged.

    A value is a mean over the judging rows, :math:`\hat\phi_i = \sum_j w_j A_{ij}`, where
    :math:`A_{ij}` is the value of player i if row j judges alone. Had other rows of the same kind
    judged, it would vary by :math:`\frac{J}{J - 1} \sum_j w_j^2 (A_{ij} - \hat\phi_i)^2`. These
    effects are estimates themselves, and their noise would count as spread; so the square is the
    product of two estimates, one from every other coalition and one from the rest. The variances
    of run and jury add up, and so do their degrees of freedom, by Welch and Satterthwaite.

    A jury in folds is cut into 12 parts that have rows in every fold, and a part judges as a row
    does. The errors are NaN where a jury, or a fold of it, is a single row.
    """
    if evaluations.verdicts is None or np.isnan(estimate.std_errors).all():
        return estimate
    weights, fewer = _weights(evaluations)
    if len(weights) < 2:  # a single row cannot tell what others would say
        unknown = np.full(len(estimate.values), np.nan)
        return replace(estimate, population=Errors(unknown, unknown))
    try:
        first, second = (_effects(half, estimate) for half in _halves(evaluations))
    except DesignMismatch:  # a half that is too short for the estimator
        return estimate
    variance, seats = _spread(first, second, weights, fewer)
    run, freedom = estimate.std_errors**2, estimate.degrees_of_freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        both = run + variance
        denominator = np.where(run > 0, run**2 / freedom, 0.0) + variance**2 / (seats - 1)
        combined = np.where(denominator > 0, both**2 / denominator, freedom)
    known = np.isfinite(run)
    errors = np.where(known, np.sqrt(both), estimate.std_errors)
    return replace(estimate, population=Errors(errors, np.where(known, combined, freedom)))


@dataclass(frozen=True, eq=False)
class Effects:
    """What some players do to the score that each judging row gives, `A_ij` of `with_jury`.

    Attributes
    ----------
    effects : float64 array (players, judges)
        NaN where the row would judge itself. The weighted sum over the judging rows is the value.
    std_errors : float64 array (players, judges)
        Of the run alone; NaN where they are unknown.
    weights : float64 array (judges,)
        How much each judging row counts.
    samples : int
        Coalitions that they are known from.
    """

    effects: FloatArray
    std_errors: FloatArray
    weights: FloatArray
    samples: int

    def beyond_noise(self, level: float = 0.05) -> BoolArray:
        """Which effects differ from zero, (players, judges): by Student's t at `level` for all
        judging rows of a player together (Bonferroni), since one looks at the largest of them.
        """
        from scipy.stats import t

        limit = t.isf(level / 2 / self.effects.shape[1], max(1, self.samples - 2))
        with np.errstate(invalid="ignore"):
            return np.asarray(np.abs(self.effects) > limit * self.std_errors)


def effects(
    evaluations: Evaluations, estimate: Estimate, players: IntArray, own: IntArray | None = None
) -> Effects | None:
    r"""What some players do to the score that each judging row gives; None where that is unknown:
    outcomes that were not kept, juries in folds, the least core.

    With coin coalitions it is the difference of the mean score of row j by models with player i
    and by models without it. An estimator that adjusts values adjusts them for the jury as a
    whole: what that adds to a value is shared out in proportion to the standard errors of the
    player's effects, so that a row on which all models score the same has none, and

    .. math:: \sum_{j \ne i} w_j A_{ij} = \hat\phi_i

    up to rounding. Other designs take the estimator itself, as `with_jury` does. If more rows
    judged than are held (1,000 validation rows), effects are those of the rows held, unadjusted.

    Parameters
    ----------
    own : int64 array (players,), optional
        The place of each player in the jury, where rows judge each other; -1 if it has none.
    """
    verdicts = evaluations.verdicts
    in_folds = hasattr(evaluations.design, "judge_folds")
    if verdicts is None or in_folds or not isinstance(estimate.notion, SizeWeighted):
        return None
    try:
        if isinstance(evaluations.design, (Coin, Complementary)):
            found, errors = differences(evaluations, verdicts, players)
        else:
            found, errors = alone(evaluations, estimate, players)
    except DesignMismatch:
        return None
    if own is not None:
        itself = np.flatnonzero(own >= 0)
        found[itself, own[itself]] = errors[itself, own[itself]] = np.nan
    if verdicts.size == len(verdicts.weights):
        missing = estimate.values[players] - np.nansum(verdicts.weights * found, axis=1)
        spread = np.where(np.isfinite(errors), errors, 0.0)
        found += shares(missing, spread @ verdicts.weights)[:, None] * spread
    return Effects(found, errors, verdicts.weights, len(evaluations))


def shares(missing: FloatArray, spread: FloatArray) -> FloatArray:
    """What is missing for each unit of spread; nothing where nothing varies."""
    return np.divide(missing, spread, out=np.zeros_like(missing), where=spread > 0)


def differences(
    evaluations: Evaluations, verdicts: Verdicts, players: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Mean scores with each player minus those without it, and their standard errors, (players,
    judges). The variance of a row's scores is taken to be the same with the player and without it.
    """
    judges, m = len(verdicts.weights), len(evaluations)
    total, squares = np.zeros((2, judges))
    inside, count = np.zeros((len(players), judges)), np.zeros((len(players), 1))
    with one_blas_thread():
        for rows, said in verdicts.blocks_by_judge():
            joined = evaluations.design.coalitions(evaluations.indices[rows])[:, players]
            inside += joined.T.astype(np.float64) @ said
            count += joined.sum(axis=0)[:, None]
            total += said.sum(axis=0)
            squares += np.einsum("ij,ij->j", said, said)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = inside / count - (total - inside) / (m - count)
        variance = np.maximum(squares - total**2 / m, 0.0) / (m - 1)
        errors = np.sqrt(variance * (1 / count + 1 / (m - count)))
    seen = (count > 0) & (count < m)
    return np.where(seen, found, 0.0), np.where(seen, errors, np.inf)


def alone(
    evaluations: Evaluations, estimate: Estimate, players: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The values that each judging row alone would give, and their standard errors, (players,
    judges).
    """
    assert evaluations.verdicts is not None
    everyone = np.ones(len(evaluations.verdicts.weights), dtype=np.bool_)
    found = by_row(evaluations, estimate, everyone)[players]
    errors = of_halves(evaluations, estimate, everyone)[players]
    return found, np.repeat(errors[:, None], found.shape[1], axis=1)


def of_halves(evaluations: Evaluations, estimate: Estimate, which: BoolArray) -> FloatArray:
    """The standard error of each player's effects that two halves of the run show, for these
    judging rows together (n,).
    """
    first, second = _halves(evaluations)
    if first is second:
        return np.full(len(estimate.values), np.nan if evaluations.stochastic else 0.0)
    parts = [by_row(half, estimate, which) for half in (first, second)]
    return np.asarray(np.sqrt(((parts[0] - parts[1]) ** 2).mean(axis=1)) / 2)


def some_judges(judges: int) -> BoolArray:
    """As many judging rows as are looked at."""
    return np.asarray(np.arange(judges) % _step(judges) == 0)


def _halves(evaluations: Evaluations) -> tuple[Evaluations, Evaluations]:
    """Every other sample and the rest; where all coalitions are needed every other repeat, and
    with one repeat all evaluations twice: then noise counts as spread.
    """
    if evaluations.design.size is None:
        sample = evaluations.samples()
        return evaluations.only(sample % 2 == 0), evaluations.only(sample % 2 == 1)
    if evaluations.n_repeats < 2:
        return evaluations, evaluations
    return evaluations.repeated(slice(0, None, 2)), evaluations.repeated(slice(1, None, 2))


def _step(judges: int) -> int:
    return -(-judges // _MOST_JUDGES)


def _effects(evaluations: Evaluations, estimate: Estimate) -> FloatArray:
    """The values that each judging row alone, or each part of the jury, would give, (players,
    judges).
    """
    verdicts, folds = evaluations.verdicts, getattr(evaluations.design, "judge_folds", None)
    assert verdicts is not None
    if folds is None:
        return by_row(evaluations, estimate, some_judges(verdicts.scores.shape[2]))
    place = places_in_folds(np.asarray(folds))
    parts = min(_PARTS, int(np.bincount(folds).min()))
    each = (verdicts.judged_by(place % parts == part) for part in range(parts))
    columns = np.column_stack([part.utilities().mean(axis=1) for part in each])
    return _by_column(evaluations, estimate, columns)


def by_row(evaluations: Evaluations, estimate: Estimate, which: BoolArray) -> FloatArray:
    """The values that each of some judging rows alone would give, (players, judges)."""
    assert evaluations.verdicts is not None
    columns = evaluations.verdicts.judged_by(which).by_judge()
    return _by_column(evaluations, estimate, columns)


def _by_column(evaluations: Evaluations, estimate: Estimate, columns: FloatArray) -> FloatArray:
    """The values by each column of utilities, (players, columns). Values are linear in the
    utilities: columns stand in the place of repeats.
    """
    if by_columns := getattr(estimate.estimator, "by_columns", None):
        found: FloatArray = by_columns(evaluations, estimate.notion, columns).T
        return found
    alone = replace(evaluations, utilities=columns, verdicts=None)
    return estimate.estimator(alone, estimate.notion).values_by_repeat.T


def _weights(evaluations: Evaluations) -> tuple[FloatArray, float]:
    """How much each of the effects counts, and by how many times fewer they are than the jury."""
    verdicts, folds = evaluations.verdicts, getattr(evaluations.design, "judge_folds", None)
    assert verdicts is not None
    if folds is not None:
        return np.ones(min(_PARTS, int(np.bincount(folds).min()))), 1.0
    weights = verdicts.weights[:: _step(len(verdicts.weights))]
    return weights, verdicts.size / len(weights)


def _spread(
    first: FloatArray, second: FloatArray, weights: FloatArray, fewer: float
) -> tuple[FloatArray, int]:
    """The variance of the weighted mean of the effects over juries that are `fewer` times as large,
    and how many effects it is known from.
    """
    share, seats = weights / weights.sum(), len(weights)
    deviations = [effects - (effects @ share)[:, None] for effects in (first, second)]
    product = (deviations[0] * deviations[1]) @ share**2
    return np.maximum(product * seats / (seats - 1) / fewer, 0.0), seats
