"""Would another run rank alike, and how much of what was seen is noise?

Everything here reads evaluations again by the estimator and the notion that an estimate holds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.designs import Coin, Complementary, Exhaustive
from databanzhaf.errors import DesignMismatch
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import LeastCore
from databanzhaf.protocols import Estimator, IntArray, Notion
from databanzhaf.ranking import expected_agreement, spearman
from databanzhaf.verdicts import places_in_folds

if TYPE_CHECKING:
    from databanzhaf.estimate import Estimate


@dataclass(frozen=True)
class Checkpoint:
    """How a run stands: its estimate, and its rank stability, the rank correlation that another
    run of this size would have with it; NaN where it is unknown.
    """

    estimate: Estimate
    stability: float

    def copied(self) -> Checkpoint:
        """The same with arrays of its own."""
        found = self.estimate
        names = ("values", "std_errors", "degrees_of_freedom", "values_by_repeat")
        arrays = {name: getattr(found, name).copy() for name in names}
        return replace(self, estimate=replace(found, **arrays))


@dataclass(frozen=True)
class Trust:
    """Five numbers, None where they are unknown.

    Attributes
    ----------
    split_half, noise_share, linear_share
        See the functions of these names.
    stability : float
        The rank correlation that another run of this size would have with this one.
    stability_of_juries : float
        The same for another run that as many other rows judge, from `split_jury`.
    """

    split_half: float | None
    noise_share: float | None
    linear_share: float | None
    stability: float | None = None
    stability_of_juries: float | None = None


@dataclass(frozen=True, eq=False)
class _Some:
    """An estimator whose values are those of some players."""

    estimator: Estimator
    players: IntArray

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        return self.estimator(evaluations, notion).of(self.players)


def examine(evaluations: Evaluations, estimate: Estimate, players: IntArray | None = None) -> Trust:
    """All of them for one run; how well rankings agree for some of its players, if asked."""
    how: tuple[Evaluations, Notion, Any] = (evaluations, estimate.notion, estimate.estimator)
    shown = estimate
    if players is not None:
        shown = estimate.of(players)
        how = (evaluations, estimate.notion, _Some(estimate.estimator, players))
    numbers = (
        split_half(*how),
        noise_share(evaluations),
        linear_share(evaluations, estimate),
        stability(shown),
        whole(split_jury(*how)),
    )
    found = [number if np.isfinite(number) else None for number in numbers]
    *_, again, juries = found
    if again is not None and juries is not None:
        # Another jury comes with another run: where two ways to tell disagree, it agrees no better.
        found[-1] = min(again, juries)
    return Trust(*found)


def checkpoint(evaluations: Evaluations, notion: Notion, estimator: Estimator) -> Checkpoint:
    """How a run stands after some of its evaluations."""
    estimate = estimator(evaluations, notion)
    return Checkpoint(estimate, stability(estimate))


def stability(estimate: Estimate, noise: float = 1.0) -> float:
    """The rank correlation that another run, judged by the same rows, would have with this one;
    `noise` scales its standard errors. NaN where they are unknown or all values are equal.
    """
    if np.ptp(estimate.values) == 0 or np.isnan(estimate.std_errors).any():
        return float("nan")
    return expected_agreement(estimate.values, estimate.std_errors, noise)


def history(
    evaluations: Evaluations, estimate: Estimate, *, stops: bool = False
) -> list[Checkpoint]:
    """The checkpoints of a run, which a condition `stops` or not; an exact run has one."""
    parts = (evaluations.before(mark) for mark in evaluations.marks(stops=stops))
    return [checkpoint(part, estimate.notion, estimate.estimator) for part in parts if len(part)]


def split_half(evaluations: Evaluations, notion: Notion, estimator: Estimator) -> float:
    """Spearman between the values from every other sample (coalition, pair, permutation) and those
    from the rest.

    Two runs of half the budget would agree about so well. Where every coalition is evaluated
    (exact, leave-one-out) the halves are repeats: 1 without training noise, NaN with a single
    repeat. NaN also where there are fewer than eight samples, where all values are equal, and for
    the least core.
    """
    design = evaluations.design
    if isinstance(notion, LeastCore):  # its halves would lack the coalitions that it stands on
        return float("nan")
    if design.size is not None:
        if not evaluations.stochastic:
            return 1.0
        runs = estimator(evaluations, notion).values_by_repeat
        halves = (runs[part::2].mean(axis=0) for part in (0, 1))
        return spearman(*halves) if len(runs) > 1 else float("nan")
    sample = evaluations.samples()
    if len(np.unique(sample)) < 8:
        return float("nan")
    parts = (evaluations.only(sample % 2 == parity) for parity in (0, 1))
    try:
        return spearman(*(estimator(part, notion).values for part in parts))
    except DesignMismatch:  # a half that is too short for the estimator, as an interrupted run has
        return float("nan")


def split_jury(evaluations: Evaluations, notion: Notion, estimator: Estimator) -> float:
    """Spearman between the values from one half of the run, judged by every other row, and those
    from the other half, judged by the rest of the rows. NaN where the rows' scores are unknown.
    """
    verdicts, design = evaluations.verdicts, evaluations.design
    judges = 0 if verdicts is None else verdicts.scores.shape[2]
    folds = np.asarray(getattr(design, "judge_folds", np.zeros(judges, np.int64)))
    if judges < 2 or np.bincount(folds).min() < 2 or isinstance(notion, LeastCore):
        return float("nan")
    place = places_in_folds(folds)  # every fold has one half of its rows in each half
    sample, halves = evaluations.samples(), []
    if design.size is None and len(np.unique(sample)) < 8:
        return float("nan")
    for parity in (0, 1):
        part = evaluations
        if design.size is None:
            part = evaluations.only(sample % 2 == parity)
        elif evaluations.n_repeats > 1:
            part = evaluations.repeated(slice(parity, None, 2))
        halves.append(part.judged_by(place % 2 == parity))
    try:
        return spearman(*(estimator(half, notion).values for half in halves))
    except DesignMismatch:  # a half that is too short for the estimator
        return float("nan")


def whole(half: float) -> float:
    """The agreement of two whole runs, from that of two halves: 2r / (1 + r), by Spearman and
    Brown.
    """
    return 2 * half / (1 + half) if half > 0 else half


def noise_share(evaluations: Evaluations) -> float:
    r"""Share of the variance of U that is training noise: :math:`\overline{s_S^2} /
    (\mathrm{var}(U) + \overline{s_S^2} (1 - 1/k))`.

    Here s_S² is the variance between the k repeats of one coalition, and U their mean, which k has
    made quieter. 0 without noise, NaN with a single repeat of a noisy game.
    """
    if not evaluations.stochastic:
        return 0.0
    k = evaluations.n_repeats
    if k < 2 or len(evaluations.indices) < 2:
        return float("nan")
    noise = float(evaluations.utilities.var(axis=1, ddof=1).mean())
    total = float(evaluations.utility.var(ddof=1)) + noise * (1 - 1 / k)
    return noise / total if total > 0 else 0.0


def linear_share(evaluations: Evaluations, estimate: Estimate) -> float:
    r"""R² of the best additive game, in which each player is worth its value whoever else is there.

    For fair-coin coalitions, or all of them, and Banzhaf values it is
    :math:`\sum_i (\hat\phi_i^2 - \mathrm{se}_i^2) / (4\, \mathrm{var}(U))`: values are the
    coefficients of the best linear fit, a fair coin has variance 1/4, and squared errors would
    count as signal. Low: players depend on each other, or U is mostly noise. NaN for other designs
    and notions.
    """
    design = evaluations.design
    fair = isinstance(design, (Exhaustive, Complementary)) or (
        isinstance(design, Coin) and design.p == 0.5
    )
    if not fair or estimate.notion.name != "banzhaf" or not np.isfinite(estimate.std_errors).all():
        return float("nan")
    total = (
        float(evaluations.utility.var(ddof=0 if isinstance(design, Exhaustive) else 1))
        if len(evaluations.indices) > 1
        else 0.0
    )
    if total <= 0:
        return float("nan")
    return float(
        np.clip(np.sum(estimate.values**2 - estimate.std_errors**2) / (4 * total), 0.0, 1.0)
    )
