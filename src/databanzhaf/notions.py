r"""Value notions: which average of marginal contributions is a player's value.

A semivalue is given by weights over coalition sizes (Wang & Jia 2023, Eq. 3):

.. math:: \phi_i = \sum_{k=1}^{n} \frac{w(k)}{n} \sum_{S \not\ni i, |S| = k-1} [U(S \cup i) - U(S)],
    \qquad \sum_{k=1}^{n} \binom{n-1}{k-1} w(k) = n.

Weights live in logs, so they are finite for any n.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import betaln, gammaln, logsumexp

from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.protocols import FloatArray, IntArray, Notion

# Logs of weights as large as this are exact to 1e-7, larger ones less: what the binomial
# coefficients add would be lost.
LARGEST_LOG = 1e9


@runtime_checkable
class SizeWeighted(Notion, Protocol):
    """A semivalue: it averages marginal contributions with weights by coalition size."""

    def log_weights(self, n: int, /) -> FloatArray:
        """Log of w(k) for k = 1..n, up to one constant; float64 (n,)."""
        ...

    def weights(self, n: int) -> FloatArray:
        """C(n-1, k-1) w(k) / n for k = 1..n: the law of the size |S| + 1. Sums to 1."""
        return np.exp(self.log_size_law(n))

    def log_size_law(self, n: int) -> FloatArray:
        """Log of `weights(n)`."""
        check_count("n", n)
        given = np.asarray(self.log_weights(n))
        log_w = given.astype(np.float64) if given.dtype.kind in "biuf" else np.full(1, np.nan)
        some = log_w[log_w != -np.inf]
        if log_w.shape != (n,) or not some.size or not (np.abs(some) <= LARGEST_LOG).all():
            raise InvalidInput(
                f"`log_weights({n})` of {self.name} must be {n} numbers of at most "
                f"{LARGEST_LOG:g} in size, or -inf, and not all -inf",
                got=f"{given.dtype} of shape {given.shape}, {str(given)[:60]}",
                remedy="Return the log of w(k) for k = 1..n (-inf for a weight of 0).",
            )
        log_law = log_binomial(n - 1, np.arange(n)) + log_w
        # Dividing by the sum also removes the rounding of gammaln, about 1e-10 at n = 100,000.
        law: FloatArray = log_law - logsumexp(log_law)
        return law


def log_binomial(n: int, k: FloatArray | IntArray) -> FloatArray:
    """Log of the binomial coefficients C(n, k)."""
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), dtype=np.float64)


@dataclass(frozen=True)
class Banzhaf(SizeWeighted):
    """Every coalition weighs the same: w(k) = n / 2^(n-1). The most robust semivalue (Theorem 2).

    >>> Banzhaf().weights(3)
    array([0.25, 0.5 , 0.25])
    """

    name = "banzhaf"

    def log_weights(self, n: int, /) -> FloatArray:
        return np.full(n, np.log(n) - (n - 1) * np.log(2.0))


@dataclass(frozen=True)
class WeightedBanzhaf(SizeWeighted):
    """Every other player joins by a coin of bias p: w(k) = n p^(k-1) (1-p)^(n-k)."""

    p: float

    def __post_init__(self) -> None:
        check_between("p", self.p, 0, 1, "For p = 1 use LeaveOneOut(); p = 0.5 is Banzhaf().")

    @property
    def name(self) -> str:
        return f"weighted_banzhaf({written(self.p)})"

    def log_weights(self, n: int, /) -> FloatArray:
        k = np.arange(1, n + 1)
        return np.asarray(np.log(n) + (k - 1) * np.log(self.p) + (n - k) * np.log1p(-self.p))


@dataclass(frozen=True)
class Shapley(SizeWeighted):
    """Every size weighs the same: w(k) = 1 / C(n-1, k-1).

    >>> Shapley().weights(4)
    array([0.25, 0.25, 0.25, 0.25])
    """

    name = "shapley"

    def log_weights(self, n: int, /) -> FloatArray:
        return -log_binomial(n - 1, np.arange(n))


@dataclass(frozen=True)
class Beta(SizeWeighted):
    r"""Beta Shapley (Kwon & Zou 2022): :math:`w(k) = n B(k + \beta - 1, n - k + \alpha) / B(\alpha,
    \beta)`.

    Beta(16, 1) leans on small coalitions, Beta(1, 16) on large ones; Beta(1, 1) is the Shapley
    value.
    """

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            check_between(
                name,
                value,
                0,
                np.inf,
                "Beta(16, 1) leans on small coalitions, Beta(1, 16) on large ones.",
            )

    @property
    def name(self) -> str:
        return f"beta({written(self.alpha)},{written(self.beta)})"

    def log_weights(self, n: int, /) -> FloatArray:
        k = np.arange(1, n + 1)
        joint = betaln(k + self.beta - 1, n - k + self.alpha)
        return np.asarray(np.log(n) + joint - betaln(self.alpha, self.beta), dtype=np.float64)


@dataclass(frozen=True)
class LeaveOneOut(SizeWeighted):
    """Only the full set counts: U(N) - U(N without i), w(k) = n for k = n and 0 before."""

    name = "leave_one_out"

    def log_weights(self, n: int, /) -> FloatArray:
        return np.where(np.arange(1, n + 1) == n, np.log(n), -np.inf)


@dataclass(frozen=True)
class Semivalue(SizeWeighted):
    """Your own: `log_weights` takes n and returns the log of w(k), k = 1..n, up to one constant.

    >>> banzhaf_again = Semivalue(lambda n: np.zeros(n))
    >>> banzhaf_again.weights(3)
    array([0.25, 0.5 , 0.25])
    """

    log_weights: Callable[[int], FloatArray] = field()
    name: str = "semivalue"

    def __post_init__(self) -> None:
        if not callable(self.log_weights):
            raise InvalidInput(
                "`log_weights` must be a function of n",
                got=short(self.log_weights),
                remedy="Return log w(k) for k = 1..n.",
            )


@dataclass(frozen=True)
class LeastCore:
    """The payment that needs the smallest subsidy e so that no coalition earns more alone.

    Minimise e subject to sum(values) = U(N) and sum(values of S) + e >= U(S) for every S that has
    members. Of the payments that reach the smallest e, the one closest to equal shares. Not a
    semivalue.
    """

    name = "least_core"


@dataclass(frozen=True)
class Together:
    """Several semivalues that one run serves."""

    notions: tuple[Notion, ...]

    def __post_init__(self) -> None:
        others = [each for each in self.notions if not isinstance(each, SizeWeighted)]
        if others or not self.notions:
            raise InvalidInput(
                "one run serves several semivalues",
                got=short(getattr(others[0], "name", others[0])) if others else "none",
                remedy="Make a run of its own for the least core."
                if others and isinstance(others[0], LeastCore)
                else "Pass Banzhaf(), Shapley(), Beta(16, 1), ...",
            )
        names = [each.name for each in self.notions]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidInput(
                "`notion` must name each notion once", got=f"{twice[0]} twice", remedy="Drop one."
            )

    @property
    def name(self) -> str:
        return ", ".join(each.name for each in self.notions)


def each_of(notion: Notion) -> tuple[Notion, ...]:
    """The notions that a run is made for."""
    return notion.notions if isinstance(notion, Together) else (notion,)


# Beyond, the probabilities of an arbitrary semivalue would take minutes.
_MOST_PLAYERS = 20_000


def inclusion(notion: SizeWeighted, n: int, most: int) -> FloatArray:
    """The probability that exactly t of m given other players are in the coalition that a player
    joins, float64 (n, most + 1) for m = 0..n-1 and t = 0..most.

    Of m others exactly t: binomial where players join by coins, uniform over 0..m for the Shapley
    value, beta-binomial for Beta values. Any other semivalue begins with the law of the size,
    m = n - 1, and leaves one player out at a time,
    P_m(t) = P_{m+1}(t) (m + 1 - t) / (m + 1) + P_{m+1}(t + 1) (t + 1) / (m + 1).
    """
    from scipy.stats import betabinom, binom

    m, t = np.arange(n)[:, None], np.arange(most + 1)
    if isinstance(notion, (Banzhaf, WeightedBanzhaf)):
        return np.asarray(binom.pmf(t, m, getattr(notion, "p", 0.5)))
    if isinstance(notion, Shapley):
        return np.where(t <= m, 1.0 / (m + 1), 0.0)
    if isinstance(notion, Beta):
        return np.asarray(betabinom.pmf(t, m, notion.beta, notion.alpha))
    if isinstance(notion, LeaveOneOut):
        return np.where(t == m, 1.0, 0.0)
    if n > _MOST_PLAYERS:
        raise InvalidInput(
            f"a semivalue of your own has a closed form for up to {_MOST_PLAYERS:,} players",
            got=f"{n:,}",
            remedy="Take Banzhaf(), WeightedBanzhaf(p), Shapley() or Beta(a, b).",
        )
    return _without_one_after_the_other(notion, n, most)


def _without_one_after_the_other(notion: SizeWeighted, n: int, most: int) -> FloatArray:
    out, law = np.zeros((n, most + 1)), notion.weights(n)
    for m in range(n - 1, -1, -1):
        known = min(most + 1, m + 1)
        out[m, :known] = law[:known]
        size = np.arange(m)
        law = law[:-1] * (m - size) / max(m, 1) + law[1:] * (size + 1) / max(m, 1)
    return out


def written(number: float) -> str:
    """As short as it can be without becoming another number."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def all_named(text: str) -> Notion:
    """One notion, or several that one run serves, by names with commas between them.

    >>> all_named("banzhaf,shapley,beta(16,1)").name
    'banzhaf, shapley, beta(16,1)'
    """
    # A comma in brackets, or before a number, belongs to a notion.
    notions = [named(part) for part in re.split(r",(?![^(]*\))(?=\s*[^\W\d])", text)]
    return notions[0] if len(notions) == 1 else Together(tuple(notions))


def named(text: str) -> Notion:
    """A notion by its short name (banzhaf, weighted-banzhaf:0.3, shapley, beta:16,1, loo,
    least-core), or by its `name`.

    >>> named("beta:16,1")
    Beta(alpha=16.0, beta=1.0)
    """
    kind, _, numbers = (
        text.strip().lower().replace("_", "-").replace("(", ":").rstrip(")").partition(":")
    )
    plain: dict[str, Callable[[], Notion]] = {
        "banzhaf": Banzhaf,
        "shapley": Shapley,
        "loo": LeaveOneOut,
        "leave-one-out": LeaveOneOut,
        "least-core": LeastCore,
    }
    if kind in plain and not numbers:
        return plain[kind]()
    try:
        given = [float(number) for number in numbers.split(",")]
    except ValueError:
        given = []
    if kind == "beta" and len(given) == 2:
        return Beta(*given)
    if kind == "weighted-banzhaf" and len(given) == 1:
        return WeightedBanzhaf(*given)
    near = difflib.get_close_matches(kind, [*plain, "beta:16,1", "weighted-banzhaf:0.3"], 1)
    raise InvalidInput(
        "`notion` must be banzhaf, weighted-banzhaf:0.3, shapley, beta:16,1, loo or least-core",
        got=short(text),
        remedy=f"Did you mean {near[0]}?" if near else "Try banzhaf.",
    )
