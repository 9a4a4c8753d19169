"""How far a run's values can be trusted."""

from __future__ import annotations

import numpy as np

from databanzhaf.notions import Notion
from databanzhaf.ranking import spearman
from databanzhaf.run import estimate
from databanzhaf.types import Evaluations


def split_half(evaluations: Evaluations, notion: Notion) -> float:
    """Spearman between the values from every other sample (coalition, pair, permutation) and those from the rest.

    Two runs of half the budget would agree about so well; the whole run is more precise. Where every coalition is evaluated (exact,
    leave-one-out) the halves are repeats: 1 without training noise, NaN with a single repeat. NaN also where there are fewer than four
    samples, or all values are equal.
    """
    design = evaluations.design
    if design.size is not None:
        if not evaluations.stochastic:
            return 1.0
        by_repeat = estimate(evaluations, notion).values_by_repeat
        return spearman(by_repeat[::2].mean(axis=0), by_repeat[1::2].mean(axis=0)) if len(by_repeat) > 1 else float("nan")
    sample = evaluations.indices // design.unit
    if len(np.unique(sample)) < 4:
        return float("nan")
    return spearman(*(estimate(evaluations.only(sample % 2 == parity), notion).values for parity in (0, 1)))
