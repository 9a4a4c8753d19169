"""Utility as players are removed or added by their values, beside random orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from databanzhaf import chance
from databanzhaf.applications.checks import check_estimate
from databanzhaf.crossed import fixed_jury
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.estimate import Estimate
from databanzhaf.evaluators import Local, play
from databanzhaf.protocols import BoolArray, Evaluator, FloatArray, Game, IntArray

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.95
_SHOWN = 12


@dataclass(frozen=True, repr=False, eq=False)
class Curve:
    r"""Utility after some players were removed (or added), beside random orders.

    `random_low` and `random_high` bound a further random order with probability 95%: for k random
    orders with mean m and standard deviation s,

    .. math:: m \pm t_{0.975, k-1}\, s \sqrt{1 + 1/k},

    so that an order outside of the band is no ordinary one at that count. The band is NaN for fewer
    than two random orders.

    Attributes
    ----------
    counts : int64 array (steps,)
        Players removed, or added.
    utility : float64 array (steps,)
        In the order of the values.
    random : float64 array (orders, steps)
        In random orders.
    change : "removed" or "added"
    lowest_first : bool
    """

    counts: IntArray
    utility: FloatArray
    random: FloatArray
    change: str
    lowest_first: bool

    @property
    def random_mean(self) -> FloatArray:
        """Mean over the random orders, (steps,); NaN if there are none."""
        if not len(self.random):
            return np.full(len(self.counts), np.nan)
        mean: FloatArray = self.random.mean(axis=0)
        return mean

    @property
    def random_low(self) -> FloatArray:
        """Lower end of the band of random orders, (steps,)."""
        return self.random_mean - self._half_band()

    @property
    def random_high(self) -> FloatArray:
        """Upper end of the band of random orders, (steps,)."""
        return self.random_mean + self._half_band()

    def _half_band(self) -> FloatArray:
        from scipy.stats import t

        orders = len(self.random)
        if orders < 2:
            return np.full(len(self.counts), np.nan)
        scale = t.ppf(0.5 + _LEVEL / 2, orders - 1) * np.sqrt(1 + 1 / orders)
        return np.asarray(scale * self.random.std(axis=0, ddof=1))

    def to_frame(self) -> pd.DataFrame:
        """One row per step: count, utility, random_mean, random_low, random_high."""
        import pandas as pd

        columns = {"count": self.counts, "utility": self.utility}
        bands = {
            "random_mean": self.random_mean,
            "random_low": self.random_low,
            "random_high": self.random_high,
        }
        return pd.DataFrame(columns | bands)

    def __repr__(self) -> str:
        which = "lowest" if self.lowest_first else "highest"
        head = (
            f"Curve: utility with players {self.change}, {which} value first, beside "
            f"{len(self.random)} random orders (95% band)"
        )
        steps = len(self.counts)
        shown = (
            np.arange(steps)
            if steps <= _SHOWN
            else np.unique(np.rint(np.linspace(0, steps - 1, _SHOWN)).astype(np.int64))
        )
        band = zip(
            self.counts,
            self.utility,
            self.random_mean,
            self.random_low,
            self.random_high,
            strict=True,
        )
        lines = [
            f"  {count:>8} {utility:>11.5g} {mean:>11.5g}  [{low:.5g}, {high:.5g}]"
            for count, utility, mean, low, high in band
        ]
        return "\n".join(
            [
                head,
                f"  {self.change:>8} {'utility':>11} {'random':>11}  band",
                *(lines[i] for i in shown),
            ]
        )


def removal_curve(
    game: Game,
    estimate: Estimate,
    *,
    steps: int | Sequence[int] = 21,
    lowest_first: bool = True,
    repeats: int = 1,
    random_orders: int = 10,
    seed: int = 0,
    evaluator: Evaluator | None = None,
) -> Curve:
    """Utility of the players that stay when those with the lowest values leave first.

    Good values keep the curve above the random orders, since what hurts leaves first; with
    ``lowest_first=False`` below them, since what helps leaves first. Judge by rows that the values
    have not seen: pass the game with other validation rows.

    Parameters
    ----------
    game : Game
        Of the same players as `estimate`.
    estimate : Estimate
    steps : int or sequence of int
        How many counts, evenly from 0 to n players (each count at most once); or the counts
        themselves, increasing.
    lowest_first : bool
        Equal values leave in the players' order.
    repeats : int
        Trainings of each coalition, with different keys; their utilities are averaged.
    random_orders : int
        Orders to compare with; trainings are steps * (1 + random_orders) * repeats.
    seed : int
        Decides the random orders and every training. A point of the curve is the same whatever the
        other steps, the number of orders, the worker count or the machine.
    evaluator : optional
        ``evaluators.Processes(n_jobs=2)``; by default this process.

    >>> from databanzhaf import games, value
    >>> game = games.Function(4, lambda coalitions: coalitions @ [1.0, -3.0, 0.9, -1.0])
    >>> curve = removal_curve(game, value(game))
    >>> curve.counts, curve.utility
    (array([0, 1, 2, 3, 4]), array([-2.1,  0.9,  1.9,  1. ,  0. ]))
    """
    return _curve(
        game, estimate, "removed", steps, lowest_first, repeats, random_orders, seed, evaluator
    )


def addition_curve(
    game: Game,
    estimate: Estimate,
    *,
    steps: int | Sequence[int] = 21,
    lowest_first: bool = False,
    repeats: int = 1,
    random_orders: int = 10,
    seed: int = 0,
    evaluator: Evaluator | None = None,
) -> Curve:
    """Utility of the players that have joined when those with the highest values join first.

    The parameters are those of `removal_curve`, but the highest values come first unless
    ``lowest_first=True``: good values keep both curves above the random orders.

    >>> from databanzhaf import games, value
    >>> game = games.Function(4, lambda coalitions: coalitions @ [1.0, -3.0, 0.9, -1.0])
    >>> addition_curve(game, value(game), steps=[1, 2, 3]).utility
    array([1. , 1.9, 0.9])
    """
    return _curve(
        game, estimate, "added", steps, lowest_first, repeats, random_orders, seed, evaluator
    )


def _curve(
    game: Game,
    estimate: Estimate,
    change: str,
    steps: int | Sequence[int],
    lowest_first: bool,
    repeats: int,
    random_orders: int,
    seed: int,
    evaluator: Evaluator | None,
) -> Curve:
    values = check_estimate(estimate).values
    n = len(values)
    if not isinstance(game, Game):
        raise InvalidInput(
            "`game` must turn coalitions into utility",
            got=f"{type(game).__name__}",
            remedy="Pass a databanzhaf.games object.",
        )
    game = fixed_jury(game)
    if game.n_players != n:
        raise InvalidInput(
            "`game` and `estimate` must have the same players",
            got=f"{game.n_players} and {n}",
            remedy="Pass the game that was valued, or one with other validation rows.",
        )
    if not isinstance(lowest_first, (bool, np.bool_)):
        raise InvalidInput(
            "`lowest_first` must be True or False",
            got=short(lowest_first),
            remedy="Pass lowest_first=True.",
        )
    if evaluator is not None and (
        isinstance(evaluator, type) or not isinstance(evaluator, Evaluator)
    ):
        raise InvalidInput(
            "`evaluator` must be a databanzhaf.evaluators object",
            got=short(evaluator),
            remedy="Try evaluators.Processes(2).",
        )
    counts = _counts(steps, n)
    repeats, random_orders, seed = (
        check_count("repeats", repeats),
        check_count("random_orders", random_orders, 0),
        chance.check_seed(seed),
    )
    words = chance.words(chance.keys(seed, chance.CURVE_ORDERS, np.arange(random_orders)), n)
    orders = np.concatenate(
        [
            [np.argsort(values if lowest_first else -values, kind="stable")],
            np.argsort(words, axis=1, kind="stable"),
        ]
    )
    utility = _evaluate(
        game, orders, counts, change == "removed", repeats, seed, evaluator or Local()
    )
    return Curve(counts, utility[0], utility[1:], change, bool(lowest_first))


def _counts(steps: object, n: int) -> IntArray:
    if isinstance(steps, (int, float, str, np.number)):
        even = np.linspace(0, n, min(check_count("steps", steps, 2), n + 1))
        return np.unique(np.rint(even).astype(np.int64))
    counts = np.asarray(steps)
    increase = (
        counts.ndim == 1
        and counts.size
        and counts.dtype.kind in "iu"
        and (np.diff(counts.astype(np.int64)) > 0).all()
    )
    if not increase or counts[0] < 0 or counts[-1] > n:
        raise InvalidInput(
            f"`steps` must be a number of steps, or increasing whole numbers from 0 to {n}",
            got=short(steps),
            remedy=f"Try steps=21 or steps=range({n + 1}).",
        )
    return counts.astype(np.int64)


def _evaluate(
    game: Game,
    orders: IntArray,
    counts: IntArray,
    removes: bool,
    repeats: int,
    seed: int,
    evaluator: Evaluator,
) -> FloatArray:
    """Mean utility over the repeats, (orders, steps).

    The evaluation of the first `count` players of an order has index order * (n + 1) + count, which
    decides its training. Calls of the game begin at multiples of its call size in the list of all
    evaluations, whatever the batch and the worker count.
    """
    n = orders.shape[1]
    places = np.empty_like(orders)
    np.put_along_axis(places, orders, np.arange(n)[None, :], axis=1)
    shape = (repeats, len(orders), len(counts))
    repeat, order, step = (part.astype(np.int64) for part in np.indices(shape).reshape(3, -1))
    indices = order * (n + 1) + counts[step]

    def coalitions(positions: IntArray) -> BoolArray:
        first = places[order[positions]] < counts[step[positions]][:, None]
        return ~first if removes else first

    keys = chance.keys(seed, chance.CURVE_TRAINING, indices, repeat)
    batch = play(game, evaluator, coalitions, keys, indices, repeat)
    mean: FloatArray = batch.utilities.reshape(shape).mean(axis=0)
    return mean
