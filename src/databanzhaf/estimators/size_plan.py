"""What a fit of `size_regression` makes of each size of a coalition."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from databanzhaf.designs import Sized
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import FloatArray

# A fit may weigh a coalition by so many times the mean: a larger weight would let one coalition
# decide the fit, and its leave-one-out residual explode (a game of neighbours, 60 players, 1,200
# coalitions: no limit 2.0, a limit of 10 0.4, of 3 0.3 in units of the values).
HEAVIEST = 3.0
# The curve over sizes has up to so many pieces with as many coalitions each, at least so many, and
# further ones towards no player and towards all, each at least so many times the one before.
MOST_PIECES, COALITIONS_PER_PIECE, GROWTH = 16, 20, 1.5
# The curve is a straight line and rises upon it; they are shrunk as if so many coalitions had shown
# none, so that the curve is straight where nothing was drawn.
SHRINKAGE_OF_THE_LINE, SHRINKAGE_OF_A_RISE = 1e-4, 0.01
# A player's slope may follow the size by so many profiles; where they make the fit large, by as
# many as give it this many unknowns.
MOST_PROFILES, MOST_UNKNOWNS = 4, 2_000


@dataclass(frozen=True, eq=False)
class SizePlan:
    """What a fit makes of each size s = 0..n: the factors z of a player that is in and of one that
    is not, the weight, the line and the rises of the curve (n + 1, 1 + pieces) and the profiles
    (K, n + 1) of the slopes; the own value and the shrinkage of the line and of each rise, and the
    own value of each profile for a slope of 1. Whether the profiles are turned to those along which
    the slopes vary most.
    """

    inside: FloatArray
    outside: FloatArray
    weight: FloatArray
    rises: FloatArray
    profiles: FloatArray
    worth: FloatArray
    shrinkage: FloatArray
    worth_of_slopes: FloatArray
    turned: bool = False

    @staticmethod
    def of(notion: SizeWeighted, design: Sized, m: int, share: float, power: float) -> SizePlan:
        n, drawn, law = design.n_players, design.law, notion.weights(design.n_players)
        size = np.arange(n + 1)
        inside, outside = np.zeros((2, n + 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            inside[1:] = np.where(law > 0, law * n / (drawn[1:] * size[1:]), 0.0)
            outside[:-1] = np.where(law > 0, law * n / (drawn[:-1] * (n - size[:-1])), 0.0)
        weight = (size * inside**2 + (n - size) * outside**2) ** power
        for most in (HEAVIEST, np.inf):
            weight = np.minimum(weight / (drawn @ weight), most)
        weight = np.maximum(weight, 1e-9)
        rises = _rises(drawn * np.sqrt(weight), m * (share if power else 1.0), m)
        count = MOST_PROFILES if m <= n else MOST_UNKNOWNS // n
        count = int(np.clip(min(count, n // 4), 1, MOST_PROFILES))
        profiles = _profiles(drawn * weight, count)
        others, k = size[:-1], max(n - 1, 1)
        lifted = (profiles[:, 1:] * (n - 1 - others) + profiles[:, :-1] * others) @ law / k
        shrinkage = np.full(rises.shape[1], SHRINKAGE_OF_A_RISE)
        shrinkage[0] = SHRINKAGE_OF_THE_LINE
        worth = law @ np.diff(rises, axis=0)
        return SizePlan(inside, outside, weight, rises, profiles, worth, shrinkage, lifted)


def _rises(mass: FloatArray, of_the_notion: float, m: int) -> FloatArray:
    """A line over the sizes, and pieces of a curve: 0 before one of them, 1 after it, linear
    within.
    """
    n = len(mass) - 1
    count = int(np.clip(of_the_notion / COALITIONS_PER_PIECE, 1, MOST_PIECES))
    alike = np.searchsorted(np.cumsum(mass) / mass.sum(), np.arange(1, count) / count)
    steps = int(min(m / (2 * COALITIONS_PER_PIECE), np.log(max(n / 2, 1)) / np.log(GROWTH)))
    first = np.round(np.geomspace(1, max(n / 2, 1), steps + 1)[:-1]).astype(np.int64)
    ends = np.unique(np.concatenate([[0, n], alike, first, n - first]))
    size = np.arange(n + 1)
    pieces = [np.clip((size - a) / (b - a), 0.0, 1.0) for a, b in pairwise(ends)]
    return np.stack([size / n, *pieces], axis=1)


def _profiles(law: FloatArray, most: int) -> FloatArray:
    """Polynomials of the share of the law below a size, (K, n + 1): the columns of n slopes,
    1 where a player is in less the share of players that are, have a variance of n in all by each,
    and none in common.
    """
    n = len(law) - 1
    size, law = np.arange(n + 1), law / law.sum()
    below = np.cumsum(law) - law / 2
    length = law * size * (n - size)
    profiles: list[FloatArray] = []
    for degree in range(min(most, max(n - 1, 1))):
        profile: FloatArray = below**degree
        for _ in range(2):  # twice, against rounding
            for each in profiles:
                profile = profile - (length @ (profile * each)) / n**2 * each
        norm = np.sqrt(length @ profile**2) / n
        if degree and norm < 1e-6:
            break  # hardly more than so many sizes are drawn
        profiles.append(profile / norm if norm > 0 else profile)
    return np.stack(profiles)
