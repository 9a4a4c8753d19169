"""Random subsets of a given size: the piece that `paired` and `group_testing` share."""

from __future__ import annotations

import numpy as np

from databanzhaf import chance
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, KeyArray


def draw_sizes(keys: KeyArray, law: FloatArray, counter: int) -> IntArray:
    """One position of `law` per key, drawn with its probabilities by inversion; uses word
    `counter`.
    """
    edges = np.cumsum(law)
    position = np.searchsorted(
        edges / edges[-1], chance.uniform(keys, 1, counter)[:, 0], side="right"
    )
    return np.minimum(position, len(law) - 1).astype(np.int64)


def smallest(words: KeyArray, sizes: IntArray) -> BoolArray:
    """The `sizes[j]` smallest of row j's words: a uniformly random subset of that size, bool (m,
    n).
    """
    ordered = np.sort(words, axis=1)
    bar = ordered[np.arange(len(words)), np.maximum(sizes, 1) - 1]
    return np.asarray((words <= bar[:, None]) & (sizes > 0)[:, None])
