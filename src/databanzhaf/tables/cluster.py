"""Rows of one class put together by similarity, for tables with more rows than a run can rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf import chance
from databanzhaf.blas import one_blas_thread
from databanzhaf.errors import InvalidInput, check_count
from databanzhaf.protocols import FloatArray, IntArray
from databanzhaf.tables.encode import Encoder

if TYPE_CHECKING:
    import pandas as pd

# Centers are found among so many rows of a class, evenly spaced; all rows go to the nearest.
MOST_FITTED = 20_000
# Targets of a regression are cut into so many parts of equal size, which take the place of classes.
PARTS = 10


def clusters(
    table: pd.DataFrame, y: Any, count: int, *, classifies: bool = True, seed: int = 0
) -> Any:
    """The name of each row's cluster: rows of one class that are alike, or of like targets.

    Columns are scaled and categories get a column each, as for a network; then k-means (Lloyd 1982)
    within each class, which gets clusters in proportion to its rows. The names are CLASS/NUMBER,
    or `part 7/NUMBER` for a regression: the targets cut into ten parts of equal size.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"x": [0.0, 0.1, 5.0, 5.1, 0.0, 0.2]})
    >>> clusters(rows, np.array(["a", "a", "a", "a", "b", "b"]), 3).tolist()
    ['a/1', 'a/1', 'a/2', 'a/2', 'b/1', 'b/1']
    """
    count = check_count("clusters", count)
    names, part_of_row = _parts(y, classifies)
    if not len(names) <= count <= len(part_of_row):
        what = "classes" if classifies else "parts of the targets"
        raise InvalidInput(
            f"`clusters` must be between the number of {what}, {len(names)}, and that of the rows, "
            f"{len(part_of_row):,}",
            got=f"{count:,}",
            remedy=f"Try {max(len(names), min(200, len(part_of_row) // 20))}.",
        )
    points = np.asarray(Encoder(table)(table), dtype=np.float64)
    shares = _in_proportion(np.bincount(part_of_row), count)
    found = np.empty(len(part_of_row), dtype=object)
    for part, (name, share) in enumerate(zip(names, shares.tolist(), strict=True)):
        rows = np.flatnonzero(part_of_row == part)
        numbers = 1 + _alike(points[rows], share, seed, part)
        digits = len(str(numbers.max()))
        found[rows] = [f"{name}/{number:0{digits}}" for number in numbers.tolist()]
    return found.astype(str)


def _parts(y: Any, classifies: bool) -> tuple[list[str], IntArray]:
    """What separates the rows before similarity does: names, and which of them each row has."""
    if classifies:
        labels, which = np.unique(np.asarray(y), return_inverse=True)
        return [str(label) for label in labels], which
    places = np.argsort(np.argsort(np.asarray(y), kind="stable"), kind="stable")
    count = min(PARTS, len(places))
    return [f"part {number}" for number in range(1, count + 1)], places * count // len(places)


def _in_proportion(sizes: IntArray, count: int) -> IntArray:
    """Whole shares of `count`, by the largest remainders; at least two for each if there are
    enough, so that rows of a class can judge models that have seen others of it.
    """
    wanted = count * sizes / sizes.sum()
    least = np.minimum(sizes, 2 if 2 * len(sizes) <= count else 1)
    shares: IntArray = np.clip(np.floor(wanted).astype(np.int64), least, sizes)
    while shares.sum() < count:
        shares[np.argmax(np.where(shares < sizes, wanted - shares, -np.inf))] += 1
    while shares.sum() > count:
        shares[np.argmax(np.where(shares > least, shares - wanted, -np.inf))] -= 1
    return shares


def _alike(points: FloatArray, count: int, seed: int, part: int) -> IntArray:
    """A cluster number for each row, fewer than `count` if not so many rows differ. One thread:
    the order of sums must not depend on the machine's cores.
    """
    from sklearn.cluster import KMeans

    step = -(-len(points) // MOST_FITTED)
    fitted = points[::step]
    count = min(count, len(np.unique(fitted, axis=0)))
    key = int(chance.keys(seed, chance.CLUSTERS, np.array([part]))[0])
    with one_blas_thread():
        model = KMeans(count, n_init=1, max_iter=50, random_state=key % 2**32).fit(fitted)
        found = model.predict(points)
    # Numbered as they come in the table.
    _, first, which = np.unique(found, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]
