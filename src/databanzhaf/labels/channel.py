r"""How likely is a label wrong, when a committee has said what it expects?

A row has a true class t and a label y. The judges' mean probabilities :math:`P_k(t)`, from models
that have not seen the row, are combined, and labels pass through a noisy channel:

.. math::

    g(t) \propto \exp\Big(b_t + \sum_k w_k \log P_k(t)\Big), \qquad
    P(y) = \sum_t g(t)\, T_{ty}, \qquad
    P(\text{wrong}) = 1 - \frac{g(y)\, T_{yy}}{P(y)}.

The weights, the offsets and T are fitted to the labels by maximum likelihood. What tells noise from
doubt is the tail: where all judges are certain, labels still differ in a share of the rows, and
that share is the channel's. It is the estimate :math:`\pi = \inf u / f_1` from positive and
unlabeled rows in a smooth form: the label of a row has no part in the models that judge it, so
that a wrong label planted there is judged by the same numbers, and :math:`f_1` needs no training.

The share of wrong labels stays uncertain, above all in small tables: answers are averaged over a
grid of shares, each with its likelihood and a weak prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from databanzhaf.protocols import FloatArray, IntArray

_FLOOR = 0.005  # of a probability: a judge is never surer than this
_SHARES = (
    0.001, 0.004, 0.01, 0.02, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.18, 0.21, 0.25,
    0.29, 0.33, 0.37, 0.41, 0.45, 0.5, 0.55, 0.6, 0.65,
)  # fmt: skip
# The prior of the share, a beta density: mean 0.18, hardly informed.
_PRIOR = (1.3, 6.0)
# Prior of the weights: they are alike, and their sum is within a fifth, in logarithms, of
#     _SUM / (1 - _UNMIXED s K / (K - 1))
# at a share s of wrong labels of K classes. Judges that learned from labels of which a share r is
# wrong are less sure by the factor in parentheses, and r is a part of s, since doubtful rows join
# less often. Right labels alone are best explained by sums of 0.9 to 2.3 (eleven kinds of tables),
# but labels of which some are wrong would make judges too sure.
#
# Chosen with _TRUST on three draws of eight tables, 200 rows with 10% wrong labels, 400 with 30%
# and 400 where 40% of one class were changed: see _APART.
_SUM, _SPREAD, _ALIKE = 1.2, 0.2, 3.0
_UNMIXED = 0.85
# The likelihood counts less than if rows were independent and judges had no faults in common. With
# 1 instead of 0.6, 27% of the flagged labels were right instead of 21% (10% wrong), and 64 instead
# of 66 of 72 intervals held the share.
_TRUST = 0.6
# The prior of the differences between the classes' rates of wrong labels: Cauchy's density, in
# logarithms. Rates are mostly alike; where they are not, as when one class is taken for another,
# they may be far apart. On the tables above, 0.45 of the wrong labels were flagged of 10%, 0.45 of
# 30% and 0.50 of 40% of one class; with one rate for all classes, one sum of weights for all shares
# and _TRUST = 1 these were 0.48, 0.31 and 0.05. A normal prior serves as well where rates differ,
# but ranks worse where all are alike.
_APART = 0.5
_RATES = (1e-4, 0.9)
# Numbers of a fit: beyond, a part of the rows says as much.
_MOST_CELLS = 500_000
_LEAST_ROWS = 500


@dataclass(frozen=True, eq=False)
class Fit:
    """A channel at one share of wrong labels: weights and offsets, T, and its probability among
    the others.
    """

    weights: FloatArray
    offsets: FloatArray
    channel: FloatArray
    probability: float

    def expected(self, logs: FloatArray) -> FloatArray:
        """g, (rows, classes), from logarithms (rows, classes, judges)."""
        return _softmax(logs @ self.weights + self.offsets)

    def posterior(self, logs: FloatArray, labels: IntArray) -> FloatArray:
        """The probability of each true class, (rows, classes), given a label for each row."""
        joint = self.expected(logs) * self.channel[:, labels].T
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Channel:
    """Fits over a grid of shares, and how likely each is."""

    fits: tuple[Fit, ...]
    shares: FloatArray

    def posterior(self, means: FloatArray, labels: IntArray) -> FloatArray:
        """The probability of each true class, (rows, classes), averaged over the fits. `means` are
        the judges' mean probabilities (judges, rows, classes).
        """
        out = np.empty((means.shape[1], means.shape[2]))
        step = max(1, 4 * _MOST_CELLS // (means.shape[0] * means.shape[2]))
        for low in range(0, len(out), step):
            rows = slice(low, low + step)
            logs = _logs(means[:, rows])
            out[rows] = sum(
                fit.probability * fit.posterior(logs, labels[rows])
                for fit in self.fits
                if fit.probability > 1e-4
            )
        return np.asarray(out / out.sum(axis=1, keepdims=True))

    @property
    def confusion(self) -> FloatArray:
        """T, averaged over the fits: (true class, label)."""
        return np.asarray(sum(fit.probability * fit.channel for fit in self.fits))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Of the share of wrong labels."""
        order = np.argsort(self.shares)
        weights = np.array([fit.probability for fit in self.fits])[order]
        middle = np.cumsum(weights) - weights / 2
        ends = np.interp(((1 - level) / 2, (1 + level) / 2), middle, self.shares[order])
        return float(ends[0]), float(ends[1])


def fit_channel(
    means: FloatArray,
    labels: IntArray,
    checked_means: FloatArray | None = None,
    checked_labels: IntArray | None = None,
    before: IntArray | None = None,
    *,
    coarse: bool = False,
) -> Channel:
    """Fit the channel to the labels, and to rows whose labels were checked: these pass through no
    noise. `before` has the label that a checked row had before its review, -1 where that is
    unknown: it did pass through the channel, so that a review does not hide how many labels were
    wrong. A coarse fit takes every other share and one sweep: for deciding who joins next.
    """
    rows = _part(means, labels)
    logs, labels = _logs(means[:, rows]), labels[rows]
    n_classes = logs.shape[1]
    if checked_means is None or checked_labels is None or not len(checked_labels):
        nothing = np.empty(0, dtype=np.int64)
        known = np.empty((0, *logs.shape[1:])), nothing, nothing
    else:
        some = _part(checked_means, checked_labels)
        was = np.full(len(some), -1) if before is None else before[some]
        known = _logs(checked_means[:, some]), checked_labels[some], was
    shares = np.array([share for share in _SHARES if share < _limit(n_classes)])
    shares = shares[::2] if coarse else shares
    likelihood = _Likelihood(logs, labels, *known)
    found = _sweep(likelihood, shares, 1.0)
    if not coarse:  # there may be two tops: many wrong labels, or judges that are unsure
        back = _sweep(likelihood, shares[::-1], 3.0)[::-1]
        found = [min(pair, key=lambda each: each[0]) for pair in zip(found, back, strict=True)]
    losses = np.array([loss for loss, *_ in found])
    a, b = _PRIOR
    log_weights = -_TRUST * losses + (a - 1) * np.log(shares) + (b - 1) * np.log1p(-shares)
    log_weights += np.log(np.gradient(shares))
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    fits = tuple(
        Fit(*likelihood.known_by(theta), channel, float(weight))
        for (_, theta, channel, _), weight in zip(found, weights, strict=True)
    )
    return Channel(fits, np.array([wrong for *_, wrong in found]))


def _limit(n_classes: int) -> float:
    """More wrong labels than this, and the right ones are no longer the most frequent."""
    return 0.46 if n_classes == 2 else 0.9 - 1 / n_classes


def _part(means: FloatArray, labels: IntArray) -> IntArray:
    """Rows spread evenly over each class, as many as a fit needs."""
    n_judges, n, n_classes = means.shape
    most = max(_LEAST_ROWS, _MOST_CELLS // (n_judges * n_classes))
    if n <= most:
        return np.arange(n)
    order = np.argsort(labels, kind="stable")
    return np.sort(order[np.asarray((np.arange(most) + 0.5) * (n / most), dtype=np.int64)])


def _logs(means: FloatArray) -> FloatArray:
    """(rows, classes, judges)."""
    return np.ascontiguousarray(np.moveaxis(np.log(np.maximum(means, _FLOOR)), 0, 2))


def _softmax(scores: FloatArray) -> FloatArray:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Rates:
    r"""How often labels of each class are wrong: classes differ by :math:`d_t`, and the mean over
    the classes, of which a share p is in each, is the given share,

    .. math:: r_t = s\, e^{d_t} \Big/ \sum_u p_u e^{d_u}.

    `to` says which label a wrong one becomes, (true class, label), with zeros on its diagonal.
    """

    share: float
    of_classes: FloatArray
    to: FloatArray

    def channel(self, apart: FloatArray) -> FloatArray:
        """T, for differences between the classes."""
        rates = np.clip(self._rates(apart), *_RATES)
        return np.asarray(rates[:, None] * self.to + np.diag(1 - rates))

    def slopes(self, apart: FloatArray, by_cell: FloatArray) -> FloatArray:
        """The gradient by the differences, from that by the cells of T."""
        rates = self._rates(apart)
        by_rate = (by_cell * self.to).sum(axis=1) - np.diag(by_cell)
        by_rate = np.where((rates > _RATES[0]) & (rates < _RATES[1]), rates * by_rate, 0.0)
        part = self.of_classes * np.exp(apart)
        return np.asarray(by_rate - part / part.sum() * by_rate.sum())

    def _rates(self, apart: FloatArray) -> FloatArray:
        odds = np.exp(apart)
        return np.asarray(self.share * odds / (self.of_classes * odds).sum())


class _Likelihood:
    """Minus the log-likelihood of weights, offsets and differences between the classes' rates, with
    their priors, and its gradient.
    """

    def __init__(
        self,
        logs: FloatArray,
        labels: IntArray,
        known_logs: FloatArray,
        known: IntArray,
        was: IntArray | None = None,
    ) -> None:
        self.logs, self.labels, self.known_logs, self.known = logs, labels, known_logs, known
        reviewed = np.zeros(len(known), dtype=np.bool_) if was is None else was >= 0
        self.reviewed = known[reviewed], np.empty(0, int) if was is None else was[reviewed]
        self.n_judges = logs.shape[2]
        self.n_classes = logs.shape[1]
        self._ones = (np.arange(self.n_classes)[:, None] == labels).astype(np.float64)

    def known_by(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights and offsets; behind them is how far the classes' rates are apart."""
        end = self.n_judges + self.n_classes
        return theta[: self.n_judges], theta[self.n_judges : end]

    def __call__(self, theta: FloatArray, rates: Rates) -> tuple[float, FloatArray]:
        (weights, offsets), apart = self.known_by(theta), theta[self.n_judges + self.n_classes :]
        channel = rates.channel(apart)
        expected = _softmax(self.logs @ weights + offsets)
        joint = expected * channel[:, self.labels].T
        total = joint.sum(axis=1) + 1e-300
        loss = -float(np.log(total).sum())
        slopes = expected - joint / total[:, None]
        gradient = self._back(slopes, self.logs)
        by_cell = -(self._ones @ (expected / total[:, None])).T
        if len(self.known):
            expected = _softmax(self.known_logs @ weights + offsets)
            here = np.arange(len(self.known)), self.known
            loss -= float(np.log(expected[here] + 1e-300).sum())
            expected[here] -= 1
            gradient += self._back(expected, self.known_logs)
        loss -= float(np.log(channel[self.reviewed] + 1e-300).sum())
        np.add.at(by_cell, self.reviewed, -1 / (channel[self.reviewed] + 1e-300))
        square = (apart / _APART) ** 2
        by_class = rates.slopes(apart, by_cell) + 2 * apart / _APART**2 / (1 + square)
        loss += self._prior(weights, offsets, gradient, rates.share) + float(np.log1p(square).sum())
        return loss, np.concatenate([gradient, by_class])

    def _back(self, slopes: FloatArray, logs: FloatArray) -> FloatArray:
        by_weight = slopes.reshape(-1) @ logs.reshape(-1, self.n_judges)
        return np.concatenate([by_weight, slopes.sum(axis=0)])

    def _prior(
        self, weights: FloatArray, offsets: FloatArray, gradient: FloatArray, share: float
    ) -> float:
        mean = float(weights.mean())
        apart = (weights - mean) / mean
        usual = _SUM / (1 - _UNMIXED * share * self.n_classes / (self.n_classes - 1))
        log_sum = np.log(mean * self.n_judges / usual) / _SPREAD
        gradient[: self.n_judges] += 2 * _ALIKE * (
            apart - (apart**2).sum() / self.n_judges
        ) / mean + log_sum / (_SPREAD * mean * self.n_judges)
        gradient[self.n_judges :] += 0.2 * offsets
        return float(_ALIKE * (apart**2).sum() + 0.5 * log_sum**2 + 0.1 * (offsets**2).sum())


def _sweep(
    likelihood: _Likelihood, shares: FloatArray, start: float
) -> list[tuple[float, FloatArray, FloatArray, float]]:
    """Fits along the grid, each from the one before: loss, parameters, channel, share of wrong
    labels.
    """
    n_judges, n_classes = likelihood.n_judges, likelihood.n_classes
    theta = np.concatenate([np.full(n_judges, start * _SUM / n_judges), np.zeros(2 * n_classes)])
    bounds = [(1e-3, None)] * n_judges + [(-20.0, 20.0)] * n_classes + [(-6.0, 6.0)] * n_classes
    labels, out = likelihood.labels, []
    of_labels = np.bincount(labels, minlength=n_classes) / len(labels)
    for share in shares:
        rates = Rates(share, of_labels, _evenly(n_classes))
        for again in (True, False):
            found = minimize(
                likelihood,
                theta,
                args=(rates,),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": 40},
            )
            theta = found.x
            channel = rates.channel(theta[n_judges + n_classes :])
            fit = Fit(*likelihood.known_by(theta), channel, 1.0)
            posterior = fit.posterior(likelihood.logs, labels)
            if again:
                to = _towards(posterior, labels, of_labels, likelihood.reviewed)
                rates = Rates(share, posterior.mean(axis=0), to)
        wrong = 1 - posterior[np.arange(len(labels)), labels].mean()
        out.append((float(found.fun), theta, channel, float(wrong)))
    return out


def _evenly(n_classes: int) -> FloatArray:
    return (1 - np.eye(n_classes)) / (n_classes - 1)


def _towards(
    posterior: FloatArray, labels: IntArray, of_labels: FloatArray, reviewed: tuple[Any, Any]
) -> FloatArray:
    """Which label a wrong one becomes, by the confusions that the run sees, drawn towards the
    labels' frequencies.
    """
    n_classes = len(of_labels)
    counts = np.zeros((n_classes, n_classes))
    for label in range(n_classes):
        counts[:, label] = posterior[labels == label].sum(axis=0)
    np.add.at(counts, reviewed, 1.0)
    usual = np.tile(of_labels, (n_classes, 1)) + 1 / n_classes
    for part in (counts, usual):
        np.fill_diagonal(part, 0.0)
    to = counts + 5 * usual / usual.sum(axis=1, keepdims=True)
    return np.asarray(to / to.sum(axis=1, keepdims=True))
