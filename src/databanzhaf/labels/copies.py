"""Rows with the same cells."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np

from databanzhaf.protocols import IntArray

# Up to so many copies join together. More are a frequent record: models that have seen none of it
# know nothing of it, and its rows, right as they were, all looked wrong (60 copies among 500 rows).
MOST_TOGETHER = 3


def copies_of(X: Any, numbers: Any, n: int) -> tuple[IntArray, tuple[IntArray, ...]]:
    """A number for each row, the same for a few copies, and the copies among the first n rows whose
    labels differ. Rows after them (checked ones) are nobody's copies.
    """
    keys = digests(X)
    _, units = np.unique(keys[:n], return_inverse=True)
    first = int(units.max()) + 1
    units = np.concatenate([units, first + np.arange(len(keys) - n)]).astype(np.int64)
    order = np.argsort(units[:n], kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(units[:n][order])) + 1)
    many = np.concatenate([*(part for part in parts if len(part) > MOST_TOGETHER), []]).astype(int)
    units[many] = units.max() + 1 + np.arange(len(many))
    units = np.unique(units, return_inverse=True)[1].astype(np.int64)
    differing = (part for part in parts if len(part) > 1 and np.ptp(numbers[part]) > 0)
    return units, tuple(sorted(map(np.sort, differing), key=lambda part: int(part[0])))


def digests(X: Any) -> Any:
    """One key for each row, the same for rows with the same cells."""
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.util.hash_pandas_object(X, index=False).to_numpy()
    if hasattr(X, "tocsr"):
        return _of_sparse(X.tocsr())
    rows = np.asarray(X)
    if rows.dtype.kind in "UO":
        import pandas as pd

        frame = pd.DataFrame(rows.reshape(len(rows), -1).astype(str))
        return pd.util.hash_pandas_object(frame, index=False).to_numpy()
    flat = np.ascontiguousarray(rows.reshape(len(rows), -1))
    flat = flat + 0 if flat.dtype.kind == "f" else flat  # -0.0 is 0.0
    return flat.view([("", f"V{flat.dtype.itemsize * flat.shape[1]}")]).ravel()


def _of_sparse(X: Any) -> Any:
    """By the cells that are not zero."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    starts = X.indptr
    keys = [
        hashlib.blake2b(
            X.indices[low:high].astype(np.int64).tobytes() + X.data[low:high].tobytes(),
            digest_size=8,
        ).digest()
        for low, high in pairwise(starts)
    ]
    return np.frombuffer(b"".join(keys), dtype=np.uint64)
