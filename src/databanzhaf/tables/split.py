"""Which rows are held out for validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.protocols import BoolArray


def held_out(labels: Any, fraction: float, seed: int, *, by_class: bool) -> BoolArray:
    """Which rows to keep for validation: a share of each class, at least one row of it for
    training; a pure function of its arguments.
    """
    n = len(labels)
    luck = chance.uniform(chance.keys(chance.check_seed(seed), chance.SPLIT, np.arange(n)), 1)[:, 0]
    classes = np.unique(labels, return_inverse=True)[1] if by_class else np.zeros(n, dtype=np.int64)
    chosen = np.zeros(n, dtype=np.bool_)
    for number in range(classes.max() + 1):
        rows = np.flatnonzero(classes == number)
        share = min(round(fraction * len(rows)), len(rows) - 1)
        chosen[rows[np.argsort(luck[rows], kind="stable")[:share]]] = True
    return chosen
