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
# Prior of the weights: their sum is about this, within a quarter of its logarithm, and they are
# alike. Trials on eight tables with 0 to 20% flipped labels: with 1.8 instead of 1.5 lists of 200
# rows were expected to hold 237 wrong labels and held 192 (185 and 161 with 1.5); of 1,000 rows 431
# and 418 (380 and 375).
_SUM, _SPREAD, _ALIKE = 1.5, 0.25, 3.0
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
    log_weights = -losses + (a - 1) * np.log(shares) + (b - 1) * np.log1p(-shares)
    log_weights += np.log(np.gradient(shares))
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    fits = tuple(
        Fit(theta[: logs.shape[2]], theta[logs.shape[2] :], channel, float(weight))
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


class _Likelihood:
    """Minus the log-likelihood of weights and offsets, and its gradient, for a given channel."""

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

    def __call__(self, theta: FloatArray, channel: FloatArray) -> tuple[float, FloatArray]:
        weights, offsets = np.split(theta, [self.n_judges])
        expected = _softmax(self.logs @ weights + offsets)
        joint = expected * channel[:, self.labels].T
        total = joint.sum(axis=1) + 1e-300
        loss = -float(np.log(total).sum())
        slopes = expected - joint / total[:, None]
        gradient = self._back(slopes, self.logs)
        if len(self.known):
            expected = _softmax(self.known_logs @ weights + offsets)
            here = np.arange(len(self.known)), self.known
            loss -= float(np.log(expected[here] + 1e-300).sum())
            expected[here] -= 1
            gradient += self._back(expected, self.known_logs)
        loss -= float(np.log(channel[self.reviewed] + 1e-300).sum())
        return loss + self._prior(weights, offsets, gradient), gradient

    def _back(self, slopes: FloatArray, logs: FloatArray) -> FloatArray:
        by_weight = slopes.reshape(-1) @ logs.reshape(-1, self.n_judges)
        return np.concatenate([by_weight, slopes.sum(axis=0)])

    def _prior(self, weights: FloatArray, offsets: FloatArray, gradient: FloatArray) -> float:
        mean = float(weights.mean())
        apart = (weights - mean) / mean
        log_sum = np.log(mean * self.n_judges / _SUM) / _SPREAD
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
    theta = np.concatenate([np.full(n_judges, start * _SUM / n_judges), np.zeros(n_classes)])
    bounds = [(1e-3, None)] * n_judges + [(-20.0, 20.0)] * n_classes
    labels, out = likelihood.labels, []
    of_labels = np.bincount(labels, minlength=n_classes) / len(labels)
    for share in shares:
        channel = _even(n_classes, share)
        for again in (True, False):
            found = minimize(
                likelihood,
                theta,
                args=(channel,),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": 40},
            )
            theta = found.x
            fit = Fit(theta[:n_judges], theta[n_judges:], channel, 1.0)
            posterior = fit.posterior(likelihood.logs, labels)
            if again:
                channel = _refined(posterior, labels, of_labels, share, likelihood.reviewed)
        wrong = 1 - posterior[np.arange(len(labels)), labels].mean()
        out.append((float(found.fun), theta, channel, float(wrong)))
    return out


def _even(n_classes: int, share: float) -> FloatArray:
    channel = np.full((n_classes, n_classes), share / (n_classes - 1))
    np.fill_diagonal(channel, 1 - share)
    return channel


def _refined(
    posterior: FloatArray,
    labels: IntArray,
    of_labels: FloatArray,
    share: float,
    reviewed: tuple[IntArray, IntArray],
) -> FloatArray:
    """T by the confusions that the run sees, drawn towards the same share for each class and
    towards the labels' frequencies; the mean share stays.
    """
    n_classes = len(of_labels)
    counts = np.zeros((n_classes, n_classes))
    for label in range(n_classes):
        counts[:, label] = posterior[labels == label].sum(axis=0)
    np.add.at(counts, reviewed, 1.0)
    total = counts.sum(axis=1)
    off = counts - np.diag(np.diag(counts))
    towards = np.tile(of_labels, (n_classes, 1)) + 1 / n_classes
    np.fill_diagonal(towards, 0.0)
    towards /= towards.sum(axis=1, keepdims=True)
    to = off + 5 * towards
    to /= to.sum(axis=1, keepdims=True)
    wrong = (off.sum(axis=1) + 20 * share) / (total + 20)
    wrong *= share / ((wrong * total).sum() / total.sum())
    wrong = np.clip(wrong, 1e-4, 0.9)
    return np.asarray(wrong[:, None] * to + np.diag(1 - wrong))
