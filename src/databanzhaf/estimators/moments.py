"""Standard errors of means: of marginal contributions, and of samples with and without a player."""

from __future__ import annotations

import numpy as np

from databanzhaf.protocols import FloatArray, IntArray


def player_means(samples: FloatArray, player: IntArray, n_players: int) -> FloatArray:
    """Each player's mean of the samples (m,) that belong to `player` (m,); 0 without a sample."""
    count = np.bincount(player, minlength=n_players)
    total = np.bincount(player, weights=samples, minlength=n_players)
    return np.divide(total, count, out=np.zeros(n_players), where=count > 0)


def contribution_errors(
    samples: FloatArray,
    size: IntArray,
    player: IntArray,
    n_players: int,
    law: FloatArray,
    scale: float,
) -> FloatArray:
    r"""Standard error of each player's mean contribution, (n,).

    A contribution depends on the size k of the coalition it is made to, above all where returns
    diminish: a player that never came early in a few permutations has seen none of the large ones,
    and the spread of its own samples would understate the error. But the size
    is known, its law g is known, and all players show how contributions depend on it. So with the
    mean contribution c(k) over all players (its sampling noise shrunk away), each sample is split
    into :math:`a_i c(k)` and a rest, and

    .. math:: \mathrm{Var} = a_i^2 \mathrm{Var}_g[c(k)] + \mathrm{Var}[\text{rest}],

    where a_i is fitted to the player's own samples with one pseudo-sample at a = 1.

    Samples of one player that are all equal are `doubt`-ed. Fewer than two samples: infinite.

    Parameters
    ----------
    samples : contributions (m,), times their weight if the sizes were drawn by a law other than the
        notion's
    size : int64 (m,), counted from 0
    law : probabilities (sizes,) with which sizes were drawn
    scale : how far the utilities lie apart
    """
    count = np.bincount(player, minlength=n_players).astype(np.float64)
    curve = _curve(samples, size, law)
    curve = curve - law @ curve
    power = float(law @ curve**2)

    def sums(values: FloatArray) -> FloatArray:
        return np.bincount(player, weights=values, minlength=n_players).astype(np.float64)

    def centred(values: FloatArray) -> FloatArray:
        return values - player_means(values, player, n_players)[player]

    at, own = centred(curve[size]), centred(samples)
    share = (sums(at * own) + power) / (sums(at**2) + power) if power > 0 else np.ones(n_players)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = sums(own**2) / (count - 1)
        variance = (share**2 * power + sums((own - share[player] * at) ** 2) / (count - 1)) / count
    farthest = float(np.abs(own).max(initial=0.0))
    if farthest <= 1e-12 * scale:
        variance = np.zeros(n_players)  # every player's samples are equal, as in an additive game
    error = np.sqrt(variance)
    level = np.where(spread > (1e-12 * farthest) ** 2, error, 0.0)
    return np.where(count > 1, np.maximum(error, doubt(level, count, farthest, scale)), np.inf)


def _curve(samples: FloatArray, size: IntArray, law: FloatArray) -> FloatArray:
    """Mean contribution by size, (sizes,): interpolated where no sample is, shrunk towards its mean
    by its share of sampling noise.
    """
    count = np.bincount(size, minlength=len(law))
    seen = np.flatnonzero(count)
    if not seen.size:
        return np.zeros(len(law))
    mean = np.bincount(size, weights=samples, minlength=len(law))[seen] / count[seen]
    within = np.bincount(size, weights=samples**2, minlength=len(law))[seen] - count[seen] * mean**2
    noise = max(float(within.sum()), 0.0) / max(int((count[seen] - 1).sum()), 1)
    curve = np.interp(np.arange(len(law)), seen, mean)
    centre = law @ curve
    variance = float(law @ (curve - centre) ** 2)
    mass = float(law[seen].sum())
    blur = float((law[seen] * noise / count[seen]).sum() / mass) if mass > 0 else 0.0
    kept = max(0.0, variance - blur) / variance if variance > 0 else 0.0
    shrunk: FloatArray = centre + kept * (curve - centre)
    return shrunk


def doubt(error: FloatArray, count: FloatArray, spread: float, scale: float) -> FloatArray:
    """Standard errors that do not claim certainty where chance showed no spread.

    Equal samples of one player prove nothing while other players' samples vary: as many samples
    more could hold one as far off as the farthest seen (`spread`), so the error is at least spread
    / count. Without any spread at all the values are exact for an additive game; but if not even
    the utilities differ (`scale` 0), nothing was learned and the error is infinite.
    """
    if scale == 0:
        return np.full_like(error, np.inf)
    if spread <= 1e-12 * scale:
        return error
    with np.errstate(divide="ignore"):
        return np.where(error <= 1e-12 * spread, spread / count, error)


def two_part_errors(
    parts: FloatArray, farthest: FloatArray, count: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Standard errors and degrees of freedom (n,) of a sum of two means: over the samples with a
    player and over those without it (Welch).

    A few samples with a rare player may all lie close together although a rare coalition of it is
    far off. An event that k samples miss with even odds has the rate ln 2 / k; so each mean counts
    the variance of such an event, as far off as the farthest sample of all: ln 2 (farthest / k)².
    Fewer than two samples in a part, or utilities that are all equal: infinite.

    Parameters
    ----------
    parts : variance that the samples with and without the player show, (2, n)
    farthest : how far from their mean a sample may lie, (2, n)
    count : samples with and without the player, (2, n)
    scale : how far the utilities lie apart
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = parts + np.log(2) * (farthest / count) ** 2
        variance = parts.sum(axis=0)
        freedom = variance**2 / (parts**2 / (count - 1)).sum(axis=0)
    known = (count > 1).all(axis=0) & (scale > 0)
    return (
        np.where(known, np.sqrt(variance), np.inf),
        np.where(known & (variance > 0), freedom, 1.0),
    )
