"""How far a run's values can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.designs import Coin, Exhaustive
from databanzhaf.notions import LeastCore, Notion
from databanzhaf.ranking import spearman
from databanzhaf.run import estimate
from databanzhaf.types import Estimate, Evaluations


@dataclass(frozen=True)
class Trust:
    """Three numbers, None where they are unknown: see `split_half`, `noise_share` and `linear_share`."""

    split_half: float | None
    noise_share: float | None
    linear_share: float | None


def examine(evaluations: Evaluations, notion: Notion) -> Trust:
    """All three for one run."""
    found = estimate(evaluations, notion)
    numbers = (split_half(evaluations, notion), noise_share(evaluations), linear_share(evaluations, found))
    return Trust(*(number if np.isfinite(number) else None for number in numbers))


def split_half(evaluations: Evaluations, notion: Notion) -> float:
    """Spearman between the values from every other sample (coalition, pair, permutation) and those from the rest.

    Two runs of half the budget would agree about so well; the whole run is more precise. Where every coalition is evaluated (exact,
    leave-one-out) the halves are repeats: 1 without training noise, NaN with a single repeat. NaN also where there are fewer than four
    samples, where all values are equal, and for the least core.
    """
    design = evaluations.design
    if isinstance(notion, LeastCore):  # its halves would lack the coalitions that it stands on
        return float("nan")
    if design.size is not None:
        if not evaluations.stochastic:
            return 1.0
        by_repeat = estimate(evaluations, notion).values_by_repeat
        return spearman(by_repeat[::2].mean(axis=0), by_repeat[1::2].mean(axis=0)) if len(by_repeat) > 1 else float("nan")
    sample = evaluations.indices // design.unit
    if len(np.unique(sample)) < 4:
        return float("nan")
    return spearman(*(estimate(evaluations.only(sample % 2 == parity), notion).values for parity in (0, 1)))


def noise_share(evaluations: Evaluations) -> float:
    r"""Share of the variance of U that is training noise: :math:`\overline{s_S^2} / (\mathrm{var}(U) + \overline{s_S^2} (1 - 1/k))`.

    Here s_S² is the variance between the k repeats of one coalition, and U their mean, which k has made quieter. 0 without noise, NaN with
    a single repeat of a noisy game.
    """
    if not evaluations.stochastic:
        return 0.0
    k = evaluations.n_repeats
    if k < 2 or len(evaluations.indices) < 2:
        return float("nan")
    noise = float(evaluations.utilities.var(axis=1, ddof=1).mean())
    total = float(evaluations.utility.var(ddof=1)) + noise * (1 - 1 / k)
    return noise / total if total > 0 else 0.0


def linear_share(evaluations: Evaluations, found: Estimate) -> float:
    r"""R² of the best additive game, in which each player is worth its value whoever else is there.

    For fair-coin coalitions, or all of them, and Banzhaf values it is
    :math:`\sum_i (\hat\phi_i^2 - \mathrm{se}_i^2) / (4\, \mathrm{var}(U))`: values are the coefficients of the best linear fit, a fair
    coin has variance 1/4, and squared errors would count as signal. Low: players depend on each other, or U is mostly noise. NaN for
    other designs and notions.
    """
    design = evaluations.design
    fair = isinstance(design, Exhaustive) or (isinstance(design, Coin) and design.p == 0.5)
    if not fair or found.notion != "banzhaf" or not np.isfinite(found.std_errors).all():
        return float("nan")
    total = float(evaluations.utility.var(ddof=0 if isinstance(design, Exhaustive) else 1)) if len(evaluations.indices) > 1 else 0.0
    if total <= 0:
        return float("nan")
    return float(np.clip(np.sum(found.values**2 - found.std_errors**2) / (4 * total), 0.0, 1.0))
