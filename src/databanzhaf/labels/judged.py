"""From what a committee said to what it means: for classes and for numbers, in one form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from databanzhaf import chance
from databanzhaf.labels.channel import Channel, fit_channel
from databanzhaf.labels.spread import Spread, fit_spread
from databanzhaf.labels.tally import Tally
from databanzhaf.protocols import BoolArray, FloatArray, IntArray

# Planted errors from which the share that a list would find is computed.
_PLANTS = 20_000
_WIDE = 0.9  # of an interval of expected targets
_LEAST = 1e-6  # of a side of it, in spreads


@dataclass(frozen=True, eq=False)
class Judged:
    """What a committee makes of each row: `suggested` is a class number, or the expected number.
    `low` and `high` bound it for a regression. `says`, `own` and `other` are (judges, rows): what
    each judge expects, and its probabilities of the row's own label and of the suggested one.
    `skill` says by how many standard errors the judges are better than a guess.
    """

    wrong: FloatArray
    suggested: Any
    p_suggested: FloatArray
    agreement: FloatArray
    margin: FloatArray
    share: tuple[float, float, float]
    says: Any
    own: FloatArray
    other: FloatArray
    skill: float
    spread: str = ""
    low: FloatArray | None = None
    high: FloatArray | None = None


class Rule(Protocol):
    """How a tally becomes probabilities."""

    def wrong(self, tally: Tally) -> FloatArray:
        """How likely each label is wrong."""
        ...

    def judged(self, tally: Tally) -> Judged: ...

    def found(self, threshold: float) -> float:
        """The share of planted errors that would be at least as doubtful."""
        ...


class OfClasses:
    """Classes, by the noisy channel; checked rows, the last of the committee's, are right. `before`
    has their labels before a review, -1 where unknown.
    """

    def __init__(self, labels: IntArray, n: int, seed: int, before: IntArray) -> None:
        self.labels, self.n, self.seed, self.before = labels, n, seed, before

    def _fit(self, tally: Tally, *, coarse: bool = False) -> tuple[FloatArray, Channel]:
        means, n = tally.means(), self.n
        some = np.flatnonzero(tally.count[n:] > 0) + n
        checked = means[:, some], self.labels[some], self.before[some - n]
        return means[:, :n], fit_channel(means[:, :n], self.labels[:n], *checked, coarse=coarse)

    def wrong(self, tally: Tally) -> FloatArray:
        means, channel = self._fit(tally, coarse=True)
        labels = self.labels[: self.n]
        return 1 - channel.posterior(means, labels)[np.arange(self.n), labels]

    def judged(self, tally: Tally) -> Judged:
        self._means, self._channel = means, channel = self._fit(tally)
        here, labels = np.arange(self.n), self.labels[: self.n]
        posterior = channel.posterior(means, labels)
        wrong = 1 - posterior[here, labels]
        # No model that has not seen the only row of a class knows the class.
        alone = np.bincount(self.labels)[labels] == 1
        if alone.any() and not alone.all():
            wrong[alone] = wrong[~alone].mean()
        self._wrong = wrong
        others = posterior.copy()
        others[here, labels] = -1.0
        suggested = others.argmax(axis=1)
        own, other = means[:, here, labels], means[:, here, suggested]
        return Judged(
            wrong,
            suggested,
            posterior[here, suggested],
            (other > own).mean(axis=0),
            (own - other).mean(axis=0),
            _share(wrong, channel.interval()),
            means.argmax(axis=2),
            own,
            other,
            _skill(own.mean(axis=0) - (np.bincount(labels) / self.n)[labels]),
        )

    def found(self, threshold: float) -> float:
        """Errors planted by the confusions that the run sees. A planted label changes nothing in
        the models that have not seen its row, so that none is trained again.
        """
        rows, draws = _plants(self.n, self._wrong, self.seed)
        channel = self._channel.confusion
        odds = channel / np.maximum(1 - np.diag(channel), 1e-12)[:, None]
        np.fill_diagonal(odds, 0.0)
        cumulative = np.cumsum(odds, axis=1)
        true = self.labels[: self.n][rows]
        planted = (draws[:, None] * cumulative[true, -1:] > cumulative[true]).sum(axis=1)
        planted = np.minimum(planted, len(channel) - 1)
        means = self._means[:, rows]
        doubt = 1 - self._channel.posterior(means, planted)[np.arange(len(rows)), planted]
        return float((doubt >= threshold).mean())


class OfNumbers:
    """Numbers, by a mixture of errors."""

    def __init__(self, targets: FloatArray, n: int, seed: int, before: Any = None) -> None:
        self.targets, self.n, self.seed = targets, n, seed

    def _fit(self, tally: Tally) -> tuple[FloatArray, Spread]:
        unit = float(np.std(self.targets)) or 1.0
        means = tally.means()[:, : self.n, 0] * unit
        return means, fit_spread(means, self.targets[: self.n])

    def wrong(self, tally: Tally) -> FloatArray:
        return self._fit(tally)[1].wrong

    def judged(self, tally: Tally) -> Judged:
        means, fit = self._fit(tally)
        self._spread, self._wrong = fit, fit.wrong
        targets = self.targets[: self.n]
        errors, wrong = targets - fit.expected, fit.wrong
        sides = (1 - _WIDE) / 2, (1 + _WIDE) / 2
        below, above = (
            _weighted_quantile(errors / fit.spread, 1 - wrong, side) * fit.spread for side in sides
        )
        below, above = (
            np.minimum(below, -_LEAST * fit.spread),
            np.maximum(above, _LEAST * fit.spread),
        )
        theirs = np.abs(targets - means)
        wide = np.array([_weighted_quantile(each, 1 - wrong, _WIDE) for each in theirs])
        middle = np.median(targets)
        return Judged(
            wrong,
            fit.expected,
            wrong,
            (theirs > wide[:, None]).mean(axis=0),
            1 - errors / np.where(errors > 0, above, below),
            _share(wrong, fit.interval()),
            means,
            theirs,
            np.broadcast_to(wide[:, None], theirs.shape),
            _skill(np.sign(np.abs(targets - middle) - np.abs(errors))),
            fit.name,
            fit.expected + below,
            fit.expected + above,
        )

    def found(self, threshold: float) -> float:
        """Errors planted by giving a row the target of another."""
        rows, draws = _plants(self.n, self._wrong, self.seed)
        other = self.targets[: self.n][(draws * self.n).astype(np.int64)]
        changed = other != self.targets[: self.n][rows]
        doubt = self._spread.planted(rows[changed], other[changed])
        return float((doubt >= threshold).mean()) if changed.any() else float("nan")


def _plants(n: int, wrong: FloatArray, seed: int) -> tuple[IntArray, FloatArray]:
    """Rows to plant errors in, likely right ones more often, and a number in [0, 1) for each."""
    draws = chance.uniform(chance.keys(seed, chance.PLANTS, np.arange(_PLANTS)), 2)
    right = np.cumsum(1 - wrong)
    rows = np.searchsorted(right, draws[:, 0] * right[-1], side="right")
    return np.minimum(rows, n - 1), draws[:, 1]


def _share(wrong: FloatArray, interval: tuple[float, float]) -> tuple[float, float, float]:
    """The share of wrong labels and its interval: that of the fit, widened by the luck of which
    labels became wrong.
    """
    share = float(wrong.mean())
    luck = 1.96 * float(np.sqrt((wrong * (1 - wrong)).sum())) / len(wrong)
    low, high = (min(interval[0], share), max(interval[1], share))
    return (
        share,
        max(0.0, share - np.hypot(share - low, luck)),
        share + np.hypot(high - share, luck),
    )


def _skill(gains: FloatArray) -> float:
    """The mean gain over a guess, in standard errors."""
    spread = float(gains.std(ddof=1)) / np.sqrt(len(gains))
    return float(gains.mean()) / spread if spread > 0 else 0.0


def _weighted_quantile(values: FloatArray, weights: FloatArray, level: float) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    place = int(np.searchsorted(total, level * total[-1]))
    return float(values[order][min(place, len(values) - 1)]) or 1e-12


def flagged(wrong: FloatArray, fdr: float) -> BoolArray:
    """The longest list, most doubtful first, of labels that are wrong rather than right and of
    which a share of `fdr` at most is expected to be right.
    """
    order = np.argsort(-wrong, kind="stable")
    right = np.cumsum(1 - wrong[order]) / np.arange(1, len(wrong) + 1)
    good = np.flatnonzero((right <= fdr) & (wrong[order] > 0.5))
    out = np.zeros(len(wrong), dtype=np.bool_)
    out[order[: int(good[-1]) + 1 if good.size else 0]] = True
    return out


def spread_out(said: Judged, rows: IntArray, own: Any) -> Judged:
    """The judged rows at their places in the table; the others, whose labels are known, are right:
    `own` has the labels.
    """
    n = len(own)
    if len(rows) == n:
        return said

    def placed(part: Any, otherwise: Any) -> Any:
        out = np.empty((*part.shape[:-1], n), dtype=part.dtype)
        out[...] = otherwise
        out[..., rows] = part
        return out

    return replace(
        said,
        wrong=placed(said.wrong, 0.0),
        suggested=placed(said.suggested, own),
        p_suggested=placed(said.p_suggested, 1.0),
        agreement=placed(said.agreement, 0.0),
        margin=placed(said.margin, 1.0),
        says=placed(said.says, own),
        own=placed(said.own, np.nan),
        other=placed(said.other, np.nan),
        low=None if said.low is None else placed(said.low, own),
        high=None if said.high is None else placed(said.high, own),
    )
