r"""The paper's theory in closed form: robustness of a semivalue, and how many samples suffice.

All sums run in logs, so n = 100,000 is as exact as n = 10. With the size law
:math:`g(k) = \binom{n-1}{k-1} w(k) / n` (`notion.weights(n)`) the paper's sums become

.. math:: \binom{n-2}{k-1} (w(k) + w(k+1)) = n \frac{(n-k) g(k) + k\, g(k+1)}{n - 1}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.evaluations import Evaluations
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.notions import Banzhaf, SizeWeighted, WeightedBanzhaf, log_binomial
from databanzhaf.protocols import FloatArray, Notion

_TABLE_LIMIT = 24


def safety_margin(
    notion: Notion,
    n: int,
    tau: float = 1.0,
    log: bool = False,
    *,
    noise: FloatArray | None = None,
) -> float:
    r"""How much utility noise (l2 norm) a semivalue's ranking survives: the paper's safety margin
    (Lemma 1).

    .. math:: \tau \frac{\sum_k \binom{n-2}{k-1} (w(k) + w(k+1))}
        {\sqrt{\sum_k \binom{n-2}{k-1} (w(k) + w(k+1))^2}}, \quad k = 1..n-1

    This is the lemma as printed. Its proof counts the squared norm of the vector a with D(U) = a·U
    once for each S, but a has two entries for each S, at S + i and at S + j. So the smallest noise
    that ties a pair which U tells apart by tau is this margin divided by sqrt(2), for every
    semivalue alike; comparisons between semivalues are not touched.

    Where the training noise of a utility depends on the size of its coalition, `noise` has its
    standard deviation for the sizes 1..n-1 and the margin is in units of it: the squared weights in
    the root are multiplied by the variances.

    >>> from databanzhaf import Banzhaf, LeaveOneOut
    >>> round(safety_margin(Banzhaf(), 10), 9), round(safety_margin(LeaveOneOut(), 10), 9)
    (16.0, 1.0)
    """
    log_f = _log_pair_weights(notion, n)
    check_between("tau", tau, 0, math.inf, "Try tau=1.")
    log_choose = log_binomial(n - 2, np.arange(n - 1))
    log_noise = np.zeros(n - 1) if noise is None else np.log(_check_noise(noise, n))
    spread = logsumexp(log_choose + 2 * (log_f + log_noise))
    log_margin = math.log(tau) + logsumexp(log_choose + log_f) - 0.5 * spread
    return _answer("safety_margin", log_margin, n, log)


def _check_noise(noise: FloatArray, n: int) -> FloatArray:
    given = np.asarray(noise, dtype=np.float64)
    if given.shape != (n - 1,) or not (np.isfinite(given) & (given > 0)).all():
        raise InvalidInput(
            f"`noise` must have {n - 1} positive numbers, for coalitions of 1 to {n - 1} players",
            got=f"shape {given.shape}, {str(given)[:60]}",
            remedy="Leave it out where the noise is the same for all sizes.",
        )
    return given


@dataclass(frozen=True)
class RobustP:
    """The weighted Banzhaf value that the training noise of a run disturbs least.

    Attributes
    ----------
    p, std_error : float
        The probability with which every other player joins, and what the run leaves open.
    notion : WeightedBanzhaf
        Its values; a run for them draws its coalitions by the same coin.
    noise : float64 array (n - 1,)
        The fitted standard deviation of a training's noise, for coalitions of 1 to n - 1 players.
    gain : float
        Its safety margin, in units of that noise, divided by that of the Banzhaf value (p = 1/2).
    """

    p: float
    std_error: float
    notion: WeightedBanzhaf
    noise: FloatArray
    gain: float

    def __str__(self) -> str:
        small, large = self.noise[0], self.noise[-1]
        unsure = abs(self.p - 0.5) < 2 * self.std_error
        near = " That is not distinguishable from the Banzhaf value, p = 0.5." if unsure else ""
        margin = (
            "the noise, in units of what each size of coalition has, that must be added to "
            "utilities before two players that they tell apart can change places"
        )
        return (
            f"p = {self.p:.4f} ± {self.std_error:.4f} has the largest safety margin of all "
            f"weighted Banzhaf values: {margin}. It is {self.gain:.3f} times that of p = 0.5. The "
            f"noise of a training goes from {small:.3g} for one player to {large:.3g} for all but "
            f"one, fitted as log-linear in the size.{near}"
        )


def most_robust_p(source: str | Path | Ledger | Evaluations) -> RobustP:
    r"""The p whose weighted Banzhaf values have the largest safety margin under the noise that a
    run has measured by repeated trainings.

    With the variance :math:`\sigma^2(s) = e^{a + b s}` of a training on s players, fitted to the
    variances of the repeats by maximum likelihood (each is a chi-squared variable), the squared
    margin is in proportion to

    .. math:: \Big[\sum_k \binom{n-2}{k-1} p^{2(k-1)} (1-p)^{2(n-1-k)} e^{b k}\Big]^{-1}
        = e^{-b} \left(p^2 e^b + (1-p)^2\right)^{-(n-2)},

    which is largest at :math:`p = 1 / (1 + e^b)`. Noise that is the same for all sizes gives the
    Banzhaf value; noise that falls with the size gives p above one half, but the slope b is per
    player, so that with many players p stays close to it. The line is fitted to the sizes that the
    run has drawn, and holds for others as far as the noise goes on like that: a run for several
    notions, or Shapley values, draws more of them than one for Banzhaf values. The standard error
    counts the noise of the variances, not a bend of the line.

    Parameters
    ----------
    source : ledger's path, Ledger or Evaluations
        Of a run with ``repeats=2`` or more, of a game with training noise.
    """
    evaluations = read_evaluations(source)
    n = evaluations.n_players
    if n < 2 or not evaluations.stochastic or evaluations.n_repeats < 2:
        raise InvalidInput(
            "the noise of trainings must be measured by repeats",
            got=f"{evaluations.n_repeats} training of each coalition"
            if evaluations.stochastic
            else "a game without noise",
            remedy="Run with repeats=2 or more."
            if evaluations.stochastic
            else "Take any notion: trainings of this model do not differ, and disturb none.",
        )
    sizes = np.concatenate([inside.sum(axis=1) for _, inside in evaluations.blocks()])
    variances = evaluations.utilities.var(axis=1, ddof=1)
    among = (sizes > 0) & (sizes < n)
    sizes, variances = sizes[among].astype(np.float64), variances[among]
    if len(sizes) < 3 or np.ptp(sizes) == 0 or not variances.any():
        raise InvalidInput(
            "noise by size needs coalitions of several sizes, and noise",
            got=f"{len(np.unique(sizes))} sizes, variances up to {variances.max(initial=0.0):.3g}",
            remedy="Raise the budget."
            if variances.any() or not len(variances)
            else "Take any notion: trainings of this model do not differ.",
        )
    slope, error, level = _log_linear(sizes, variances, evaluations.n_repeats - 1)
    p = float(1 / (1 + np.exp(slope)))
    noise = np.exp((level + slope * np.arange(1, n)) / 2)
    notion = WeightedBanzhaf(p)
    margins = [safety_margin(each, n, log=True, noise=noise) for each in (notion, Banzhaf())]
    gain = math.exp(margins[0] - margins[1])
    return RobustP(p, p * (1 - p) * error, notion, noise, gain)


def _log_linear(
    sizes: FloatArray, variances: FloatArray, freedom: int
) -> tuple[float, float, float]:
    """Slope, its standard error and level of log variance over size, by maximum likelihood: each
    variance is a gamma variable with `freedom` / 2 as its shape.
    """
    from scipy.optimize import minimize_scalar

    middle = sizes.mean()
    centred = sizes - middle

    def loss(slope: float) -> float:  # with the best level for it
        return float(np.log((variances * np.exp(-slope * centred)).mean()))

    reach = 20 / np.abs(centred).max()
    slope = float(minimize_scalar(loss, bounds=(-reach, reach), method="bounded").x)
    level = loss(slope) - slope * middle
    error = math.sqrt(2 / freedom / float(centred @ centred))
    return slope, error, level


def lipschitz(notion: Notion, n: int, log: bool = False) -> float:
    r"""The smallest L with ``|phi(U) - phi(U')| <= L |U - U'|`` in l2: the norm of the semivalue's
    matrix.

    .. math:: L^2 = \frac{2}{n^2} \sum_{k=1}^{n} \binom{n-1}{k-1} w(k)^2
        + \frac{n-1}{n^2} \sum_{k=1}^{n-1} \binom{n-2}{k-1} (w(k+1) - w(k))^2

    >>> from databanzhaf import Banzhaf
    >>> round(lipschitz(Banzhaf(), 10), 9)
    0.0625
    """
    log_w = _log_normal_weights(notion, n)
    terms = [math.log(2) + log_binomial(n - 1, np.arange(n)) + 2 * log_w]
    if n > 1:
        high = np.maximum(log_w[1:], log_w[:-1])
        low = np.minimum(log_w[1:], log_w[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            # log |e^a - e^b|; both weights 0 or equal: log 0.
            gap = np.where(high > low, high + np.log(-np.expm1(low - high)), -np.inf)
        terms.append(math.log(n - 1) + log_binomial(n - 2, np.arange(n - 1)) + 2 * gap)
    log_constant = 0.5 * float(logsumexp(np.concatenate(terms))) - math.log(n)
    return _answer("lipschitz", log_constant, n, log)


def samples_needed(
    n: int,
    epsilon: float,
    delta: float,
    norm: str | float = "inf",
    estimator: str = "reuse",
    *,
    noisy: bool = False,
) -> int:
    r"""How many coalitions make every Banzhaf estimate epsilon-close with probability 1 - delta,
    for utilities in [0, 1].

    `reuse` (Theorem 4): :math:`5 n \exp(-m \epsilon^2 / 32) \le \delta`; with `noisy` utilities
    (Theorem 6)
    :math:`10 n \exp(-m \epsilon^2 / 128) \le \delta`, beside the error that `noise_floor` gives.
    `marginal` (Theorem 3): m pairs for each of the n players, 2 n m coalitions, by Hoeffding's
    inequality on [-1, 1], :math:`2 n \exp(-m \epsilon^2 / 2) \le \delta`. (The paper's proof prints
    exp(-2 m epsilon^2), the inequality for an interval of length 1; a marginal contribution lies in
    one of length 2.) For ``norm="l2"`` epsilon becomes epsilon / sqrt(n). The answer counts
    coalitions, as `budget` does.

    >>> samples_needed(n=200, epsilon=0.1, delta=0.05)
    31692
    """
    factor, rate, cost = _bound(n, norm, estimator, noisy)
    check_between("epsilon", epsilon, 0, math.inf, "Try epsilon=0.1.")
    check_between("delta", delta, 0, 1, "Try delta=0.05.")
    exactly = (math.log(factor) - math.log(delta)) / rate / epsilon / epsilon
    if not math.isfinite(exactly):
        raise InvalidInput(
            "`epsilon` must leave a number of coalitions that can be counted",
            got=short(epsilon),
            remedy="Try epsilon=0.1.",
        )
    return (
        math.ceil(exactly * (1 - 1e-12)) * cost
    )  # so that rounding does not add a sample to what error_bound inverts


def error_bound(
    n: int,
    m: int,
    delta: float,
    norm: str | float = "inf",
    estimator: str = "reuse",
    *,
    noisy: bool = False,
) -> float:
    """The epsilon that `m` coalitions guarantee with probability 1 - delta: the inverse of
    `samples_needed`.
    """
    factor, rate, cost = _bound(n, norm, estimator, noisy)
    check_count("m", m)
    check_between("delta", delta, 0, 1, "Try delta=0.05.")
    if m < cost:
        raise InvalidInput(
            f"`m` must pay for one sample of every player, {cost} coalitions",
            got=f"{m}",
            remedy="Raise m.",
        )
    return math.sqrt((math.log(factor) - math.log(delta)) / (rate * (m // cost)))


def noise_floor(n: int, gamma: float, norm: str | float = "inf") -> float:
    """What utility noise of l2 norm `gamma` adds to the error of `reuse`, samples or no samples
    (Theorem 6).
    """
    check_count("n", n)
    if gamma < 0:
        raise InvalidInput(
            "`gamma` must be 0 or more", got=short(gamma), remedy="It is the norm of the noise."
        )
    floor = gamma * math.exp2(1 - n / 2)
    return floor * math.sqrt(n) if _is_l2(norm) else floor


def lower_bound(epsilon: float, delta: float) -> float:
    """Evaluations that any Banzhaf estimator needs for an epsilon-close answer (Theorem 5): (1 - 2
    delta) / (2 epsilon).

    >>> lower_bound(0.01, 0.1)
    40.0
    """
    if not 0 < epsilon < 1:
        raise InvalidInput(
            "`epsilon` must lie strictly between 0 and 1",
            got=short(epsilon),
            remedy="Utilities are in [0, 1].",
        )
    if not 0 < delta < 0.5:
        raise InvalidInput(
            "`delta` must lie strictly between 0 and 1/2", got=short(delta), remedy="Try 0.05."
        )
    return (1 - 2 * delta) / (2 * epsilon)


def worst_perturbation(notion: Notion, n: int, tau: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """The worst noise at the safety margin: tables (U, U_hat), float64 (2**n,), for `games.Table`.

    U tells players 0 and 1 apart by exactly tau at every size. U_hat lies at the safety margin from
    U, in the direction that costs the pair most, and reverses it. At 1 / sqrt(2) of that distance
    the two tie (see `safety_margin`): no shorter noise does so.
    """
    if check_count("n", n) > _TABLE_LIMIT:
        raise InvalidInput(
            f"`n` must be at most {_TABLE_LIMIT}, since a table has 2**n entries",
            got=f"{n}",
            remedy="Take a smaller n.",
        )
    weights = np.exp(_log_pair_weights(notion, n))
    check_between("tau", tau, 0, math.inf, "Try tau=1.")
    position = np.arange(2**n)
    apart = (position & 1) - (position >> 1 & 1)
    size = np.bitwise_count(position).astype(np.int64)
    direction = apart * weights[np.clip(size - 1, 0, n - 2)]
    utility = np.where(apart > 0, tau, 0.0)
    tie = -(direction @ utility) / (direction @ direction) * direction
    return utility, utility + math.sqrt(2) * tie


def _log_normal_weights(notion: Notion, n: int) -> FloatArray:
    """Log of w(k), scaled so that sum C(n-1, k-1) w(k) = n."""
    check_count("n", n)
    if isinstance(notion, type) or not isinstance(notion, SizeWeighted):
        raise InvalidInput(
            "`notion` must be a semivalue, with weights over sizes",
            got=short(notion),
            remedy="Pass Banzhaf(), Shapley(), ...",
        )
    return notion.log_size_law(n) - log_binomial(n - 1, np.arange(n)) + math.log(n)


def _log_pair_weights(notion: Notion, n: int) -> FloatArray:
    """Log of w(k) + w(k+1), k = 1..n-1."""
    if check_count("n", n) < 2:
        raise InvalidInput(
            "`n` must be 2 or more, since a margin is about pairs of players",
            got="1",
            remedy="Raise n.",
        )
    log_w = _log_normal_weights(notion, n)
    return np.logaddexp(log_w[:-1], log_w[1:])


def _bound(n: int, norm: str | float, estimator: str, noisy: bool) -> tuple[float, float, int]:
    """(c, rate, cost) of the bound c exp(-rate m epsilon^2), one m costing `cost` coalitions."""
    check_count("n", n)
    if estimator == "reuse":
        factor, rate, cost = (10.0 * n, 1 / 128, 1) if noisy else (5.0 * n, 1 / 32, 1)
    elif estimator == "marginal" and not noisy:
        factor, rate, cost = 2.0 * n, 1 / 2, 2 * n
    else:
        raise InvalidInput(
            '`estimator` must be "reuse", or "marginal" without noise: the paper proves bounds '
            "for these",
            got=f"{short(estimator)}, noisy={noisy}",
            remedy="For other estimators read the standard errors.",
        )
    return factor, rate / n if _is_l2(norm) else rate, cost


def _answer(name: str, log_value: float, n: int, log: bool) -> float:
    if log:
        return float(log_value)
    if abs(log_value) > 700:
        raise InvalidInput(
            f"`{name}` at n = {n} is exp({log_value:.6g}), beyond what a float64 holds",
            remedy="Pass log=True for its logarithm.",
        )
    return math.exp(log_value)


def _is_l2(norm: str | float) -> bool:
    if norm in ("inf", math.inf):
        return False
    if norm in ("l2", "2", 2):
        return True
    raise InvalidInput(
        '`norm` must be "inf" or "l2"', got=short(norm), remedy='"inf" bounds the worst player.'
    )
