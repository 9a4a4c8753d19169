"""How far a run's values can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf import stability
from databanzhaf.designs import Coin, Exhaustive
from databanzhaf.notions import Notion
from databanzhaf.run import estimate
from databanzhaf.types import Estimate, Evaluations


@dataclass(frozen=True)
class Trust:
    """Three numbers, None where they are unknown: see `split_half`, `noise_share` and `linear_share`."""

    split_half: float | None
    noise_share: float | None
    linear_share: float | None

    @property
    def stability(self) -> float | None:
        """The rank correlation that another run of this size would have with this one."""
        return None if self.split_half is None else stability.whole(self.split_half)


def examine(evaluations: Evaluations, notion: Notion) -> Trust:
    """All three for one run."""
    found = estimate(evaluations, notion)
    numbers = (split_half(evaluations, notion), noise_share(evaluations), linear_share(evaluations, found))
    return Trust(*(number if np.isfinite(number) else None for number in numbers))


def split_half(evaluations: Evaluations, notion: Notion) -> float:
    """Spearman between the values from every other sample and those from the rest; see `stability.split_half`."""
    return stability.split_half(evaluations, notion, estimate)


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
