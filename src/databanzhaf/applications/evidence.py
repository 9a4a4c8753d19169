"""Why a row has its value: the rows like it, and the judging rows that it hurts or helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf.population import Effects
from databanzhaf.protocols import BoolArray, FloatArray, IntArray

# Rows named of each kind.
MOST = 3
# Bars of the histogram of effects, about.
BARS = 40
# Cells of a block of distances: 4 million are 32 MiB.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Neighbors:
    """The nearest rows of one row, nearest first, as (row, distance)."""

    same: tuple[tuple[int, float], ...]
    other: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class JuryEffect:
    """What one row does to the scores that the judging rows give.

    Attributes
    ----------
    judges, hurt : int
        Rows that judge it, and how many of them have an effect below zero.
    clearly_hurt, clearly_helped : int
        Those whose effect is beyond noise.
    known : bool
        Whether the noise is known at all.
    most_hurt, most_helped : tuples of (judge, effect, whether it is beyond noise)
        The largest effects first; judges by their place in the jury.
    first, width, counts : int, float, tuple of int
        A histogram: bar k holds the effects from (first + k) width on. Zero is an edge.
    """

    judges: int
    hurt: int
    clearly_hurt: int
    clearly_helped: int
    known: bool
    most_hurt: tuple[tuple[int, float, bool], ...]
    most_helped: tuple[tuple[int, float, bool], ...]
    first: int
    width: float
    counts: tuple[int, ...]


def nearest(
    points: FloatArray, rows: IntArray, labels: Any = None, most: int = MOST, toward: Any = None
) -> list[Neighbors]:
    r"""The nearest rows of some rows, by Euclidean distance; equal distances in the rows' order.

    With labels, those of the row's own label and those of any other, or of the label that `toward`
    has for each of `rows`; without, all in `same`.

    One matrix product, :math:`d_{ij}^2 = |x_i|^2 + |x_j|^2 - 2 x_i \cdot x_j`, finds the few that
    may be nearest; their distances are then sums of squared differences, so that copies have
    distance zero and rows that are equally far stay so.

    >>> nearest(np.array([[0.0], [1.0], [3.0]]), np.array([0]), ["a", "b", "a"], most=1)
    [Neighbors(same=((2, 3.0),), other=((1, 1.0),))]
    """
    points = np.asarray(points, dtype=np.float64)
    points = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", points, points)
    doubt = 1e-9 * float(squares.max(initial=0.0))
    column = None if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]
    wanted = None
    if toward is not None:
        wanted = np.searchsorted(np.unique(np.asarray(labels)), np.asarray(toward))
    found, step = [], max(1, _BLOCK // len(points))
    for low in range(0, len(rows), step):
        block = rows[low : low + step]
        distances = squares[block][:, None] + squares - 2 * points[block] @ points.T
        for place, (row, far) in enumerate(zip(block.tolist(), distances, strict=True), start=low):
            alike = np.ones(len(points), np.bool_) if column is None else column == column[row]
            others = ~alike if wanted is None else column == wanted[place]
            alike[row] = False
            found.append(
                Neighbors(
                    *(_first(points, row, far, which, most, doubt) for which in (alike, others))
                )
            )
    return found


def _first(
    points: FloatArray, row: int, far: FloatArray, which: BoolArray, most: int, doubt: float
) -> tuple[tuple[int, float], ...]:
    """The `most` nearest of some rows; `far` are squared distances, right to within `doubt`."""
    places = np.flatnonzero(which)
    places = places[_up_to(far[places], most, doubt)]
    distances = np.sqrt(((points[places] - points[row]) ** 2).sum(axis=1))
    order = np.argsort(distances, kind="stable")[:most]
    return tuple((int(places[at]), float(distances[at])) for at in order)


def _up_to(values: FloatArray, most: int, doubt: float = 0.0) -> IntArray:
    """The places of the `most` smallest values, and of all that equal the last of them to within
    `doubt`, in their order.
    """
    if len(values) <= most:
        return np.arange(len(values))
    return np.flatnonzero(values <= np.partition(values, most - 1)[most - 1] + doubt)


def contradictions(cells: Any, labels: Any, rows: IntArray) -> list[dict[Any, list[int]]]:
    """Of some rows: label → the rows that have the same cells and that other label.

    `cells` has one digest for each row.

    >>> contradictions(["x", "x", "y", "x"], ["no", "yes", "no", "yes"], np.array([0, 2]))
    [{'yes': [1, 3]}, {}]
    """
    _, digest = np.unique(np.asarray(cells), return_inverse=True)
    names, label = np.unique(np.asarray(labels), return_inverse=True)
    order = np.argsort(digest, kind="stable")
    ends = np.searchsorted(digest[order], np.arange(digest.max(initial=-1) + 2))
    found = []
    for row in rows:
        twins = order[ends[digest[row]] : ends[digest[row] + 1]]
        twins = twins[label[twins] != label[row]]
        found.append(
            {
                names[which].item(): twins[label[twins] == which].tolist()
                for which in np.unique(label[twins])
            }
        )
    return found


def jury_effects(effects: Effects, most: int = MOST) -> list[JuryEffect]:
    """What the effects of each player are, in a few numbers."""
    clear = effects.beyond_noise()
    return [
        _jury_effect(*each, most)
        for each in zip(effects.effects, clear, effects.std_errors, strict=True)
    ]


def _jury_effect(
    effects: FloatArray, clear: BoolArray, errors: FloatArray, most: int
) -> JuryEffect:
    judges = np.flatnonzero(~np.isnan(effects))

    def extreme(sign: int) -> tuple[tuple[int, float, bool], ...]:
        places = judges[_up_to(sign * effects[judges], most)]
        order = places[np.argsort(sign * effects[places], kind="stable")][:most]
        found = (judge for judge in order if sign * effects[judge] < 0)
        return tuple((int(judge), float(effects[judge]), bool(clear[judge])) for judge in found)

    worst, best = extreme(1), extreme(-1)
    return JuryEffect(
        len(judges),
        int((effects[judges] < 0).sum()),
        int((clear & (effects < 0)).sum()),
        int((clear & (effects > 0)).sum()),
        bool(np.isfinite(errors[judges]).any()),
        worst,
        best,
        *_histogram(effects[judges]),
    )


def _histogram(effects: FloatArray) -> tuple[int, float, tuple[int, ...]]:
    """The first bar, the width of a bar, and how many effects each holds; zero is an edge."""
    low, high = min(0.0, effects.min(initial=0.0)), max(0.0, effects.max(initial=0.0))
    width = float(f"{(high - low) / BARS or 1.0:.2g}")
    bars = np.floor(effects / width).astype(np.int64)
    if not len(bars):
        return 0, width, ()
    first = min(int(bars.min()), 0)
    return first, width, tuple(np.bincount(bars - first).tolist())
