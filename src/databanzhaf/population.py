"""How far values depend on which rows judge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Errors, Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.protocols import FloatArray
from databanzhaf.verdicts import places_in_folds

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
    judges). Values are linear in the utilities: what rows say stands in the place of repeats.
    """
    verdicts, folds = evaluations.verdicts, getattr(evaluations.design, "judge_folds", None)
    assert verdicts is not None
    if folds is None:
        which = np.arange(verdicts.scores.shape[2]) % _step(verdicts.scores.shape[2]) == 0
        columns = verdicts.judged_by(which).by_judge()
    else:
        place = places_in_folds(np.asarray(folds))
        parts = min(_PARTS, int(np.bincount(folds).min()))
        each = (verdicts.judged_by(place % parts == part) for part in range(parts))
        columns = np.column_stack([part.utilities().mean(axis=1) for part in each])
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
