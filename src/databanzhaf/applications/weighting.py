"""Values as sample weights."""

from __future__ import annotations

import numpy as np

from databanzhaf.applications.checks import check_estimate
from databanzhaf.estimate import Estimate
from databanzhaf.protocols import FloatArray


def weights(estimate: Estimate) -> FloatArray:
    r"""Weights in [0, 1], one per player (paper, "Learning with Weighted Samples").

    .. math:: w_i = \frac{\phi_i - \min_j \phi_j}{\max_j \phi_j - \min_j \phi_j},

    and 1 for everybody where all values are equal. The paper minimises the weighted loss and also
    draws rows in proportion to their weight: ``games.Network(dataset,
    sample_weight=weights(estimate), weighting="loss")``, or ``"sampling"``. The lowest player has
    weight 0 and is left out. Where players are groups, a row has the weight of its group.

    >>> from databanzhaf import games, value
    >>> weights(value(games.Table([0, 1, 2, 3, 5, 6, 7, 8])))
    array([0.  , 0.25, 1.  ])
    """
    values = check_estimate(estimate).values
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.ones(len(values))
