"""How far a run's values can be trusted."""

from __future__ import annotations

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.estimators import Estimator
from databanzhaf.notions import Notion
from databanzhaf.ranking import spearman
from databanzhaf.types import Evaluations


def split_half(evaluations: Evaluations, notion: Notion, estimator: Estimator) -> float:
    """Spearman between the values from every other coalition (whole permutations, pairs) and those from the rest.

    Two runs of half the budget would agree about so well; the whole run is more precise. NaN where all values are equal.
    """
    if evaluations.design.size is not None:
        raise InvalidInput(f"{type(evaluations.design).__name__} evaluates each of its coalitions once; it has no halves to compare.")
    number = evaluations.indices // evaluations.design.unit
    if len(np.unique(number)) < 4:
        raise InvalidInput(f"two halves need four independent samples or more; got {len(np.unique(number))}. Raise the budget.")
    halves = []
    for parity in (0, 1):
        which = number % 2 == parity
        half = Evaluations(
            evaluations.design, evaluations.indices[which], evaluations.utilities[which], evaluations.stochastic, evaluations.players
        )
        halves.append(estimator(half, notion).values)
    return spearman(*halves)
