"""What every application asks of an estimate."""

from __future__ import annotations

import numpy as np

from databanzhaf.errors import InvalidInput, short
from databanzhaf.estimate import Estimate


def check_estimate(estimate: object) -> Estimate:
    """Return `estimate` if it gives each player a finite value."""
    if not isinstance(estimate, Estimate):
        raise InvalidInput(
            "`estimate` must be an Estimate",
            got=f"{type(estimate).__name__}",
            remedy="Pass what databanzhaf.value(game) returns.",
        )
    if (
        estimate.values.ndim != 1
        or not estimate.values.size
        or not np.isfinite(estimate.values).all()
    ):
        raise InvalidInput(
            "`estimate` must have one finite value per player",
            got=short(estimate.values),
            remedy="Pass what databanzhaf.value(game) returns.",
        )
    return estimate
