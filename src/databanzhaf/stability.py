"""Rank stability: would another run like this one rank the players alike?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from databanzhaf.notions import LeastCore, Notion
from databanzhaf.ranking import spearman
from databanzhaf.types import Checkpoint, Estimate, Evaluations

Estimating: TypeAlias = Callable[[Evaluations, Notion], Estimate]


def split_half(evaluations: Evaluations, notion: Notion, estimate: Estimating) -> float:
    """Spearman between the values from every other sample (coalition, pair, permutation) and those from the rest.

    Two runs of half the budget would agree about so well. Where every coalition is evaluated (exact, leave-one-out) the halves are
    repeats: 1 without training noise, NaN with a single repeat. NaN also where there are fewer than four samples, where all values are
    equal, and for the least core.
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


def whole(half: float) -> float:
    """The agreement of two whole runs, from that of two halves: 2r / (1 + r), by Spearman and Brown."""
    return 2 * half / (1 + half) if half > 0 else half


def checkpoint(evaluations: Evaluations, notion: Notion, estimate: Estimating) -> Checkpoint:
    """How a run stands after some of its evaluations."""
    return Checkpoint(estimate(evaluations, notion), whole(split_half(evaluations, notion, estimate)))
