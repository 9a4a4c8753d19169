"""The noisy channel: gradients, closed forms, and whether its probabilities mean what they say."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from databanzhaf.labels.channel import (
    Fit,
    Rates,
    _evenly,
    _Likelihood,
    _logs,
    fit_channel,
)


def judged(n, flips, classes=2, judges=3, seed=0, sharp=6.0):
    """Judges of whom all are right in the same rows, true classes, labels, and which are wrong. The
    probability of a class is proportional to exp(1.5 times the mean of their logarithms).
    """
    rng = np.random.default_rng(seed)
    true = rng.integers(0, classes, n)
    scores = rng.normal(size=(n, classes)) * np.sqrt(sharp * 1.5)
    scores[np.arange(n), true] += sharp
    means = []
    for _ in range(judges):
        odds = np.exp((scores + 0.3 * rng.normal(size=scores.shape)) / 2.25)
        means.append(odds / odds.sum(axis=1, keepdims=True))
    labels = true.copy()
    wrong = rng.random(n) < flips
    labels[wrong] = (true[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    return np.array(means), true, labels, wrong


def test_the_gradient_is_that_of_the_loss():
    means, true, labels, _ = judged(40, 0.2, classes=3)
    was = np.array([-1, 0, 1, -1, 2, 2, 1])
    likelihood = _Likelihood(_logs(means), labels, _logs(means[:, :7]), true[:7], was)
    theta = np.array([0.4, 0.3, 0.7, 0.1, -0.2, 0.3, 0.5, -0.4, 0.2])
    to = np.array([[0.0, 0.7, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0]])
    rates = Rates(0.2, np.array([0.5, 0.3, 0.2]), to)
    channel = rates.channel(theta[6:])
    np.testing.assert_allclose(channel.sum(axis=1), 1)
    assert (1 - np.diag(channel)) @ rates.of_classes == pytest.approx(0.2)
    numeric = approx_fprime(theta, lambda at: likelihood(at, rates)[0], 1e-6)
    np.testing.assert_allclose(likelihood(theta, rates)[1], numeric, rtol=1e-4, atol=1e-3)


def test_one_row_by_hand():
    """With weight 1 and no offset g is the judge's probability, and Bayes does the rest."""
    means = np.array([[[0.9, 0.1]]])
    even = Rates(0.1, np.full(2, 0.5), _evenly(2)).channel(np.zeros(2))
    fit = Fit(np.ones(1), np.zeros(2), even, 1.0)
    posterior = fit.posterior(_logs(means), np.array([1]))
    right, wrong = 0.1 * 0.9, 0.9 * 0.1
    np.testing.assert_allclose(posterior, [[wrong / (wrong + right), right / (wrong + right)]])


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("flips", [0.0, 0.1, 0.3])
def test_probabilities_are_calibrated_and_the_share_is_found(classes, flips):
    counts = np.zeros((10, 2))
    shares, inside = [], []
    for seed in range(6):
        means, _, labels, wrong = judged(600, flips, classes, seed=seed)
        channel = fit_channel(means, labels)
        p = 1 - channel.posterior(means, labels)[np.arange(600), labels]
        shares.append(p.mean())
        low, high = channel.interval()
        inside.append(low - 0.02 <= wrong.mean() <= high + 0.02)
        bins = np.minimum((p * 10).astype(int), 9)
        np.add.at(counts, bins, np.column_stack([np.ones(600), wrong]))
    assert abs(np.mean(shares) - flips) < 0.03
    assert sum(inside) >= 5
    for place, (rows, wrong) in enumerate(counts):
        if rows >= 40:
            error = 4 * np.sqrt(0.25 / rows)  # four standard errors of a binomial
            assert place / 10 - error <= wrong / rows <= (place + 1) / 10 + error, (place, counts)


def test_confusions_of_one_kind_are_seen():
    """Only class 0 is ever called 1."""
    means, true, _, _ = judged(3000, 0.0, classes=3)
    rng = np.random.default_rng(1)
    labels = np.where((true == 0) & (rng.random(3000) < 0.3), 1, true)
    confusion = fit_channel(means, labels).confusion
    assert 0.15 < confusion[0, 1] < 0.4
    assert np.delete(confusion - np.diag(np.diag(confusion)), 0, axis=0).max() < 0.06


def test_checked_rows_tell_a_noisy_table_from_unsure_judges():
    """With four labels in ten wrong, checked rows bring the share closer to the truth."""
    errors, inside = [], 0
    for seed in range(6):
        means, _, labels, wrong = judged(400, 0.4, seed=2 * seed + 3)
        more, known, *_ = judged(300, 0.0, seed=2 * seed + 4)
        fits = fit_channel(means, labels), fit_channel(means, labels, more, known)
        low, high = fits[1].interval()
        inside += low - 0.01 <= wrong.mean() <= high + 0.01
        errors.append([np.mean(fit.interval()) - wrong.mean() for fit in fits])
    alone, checked = np.abs(errors).mean(axis=0)
    assert checked < alone
    assert inside >= 5


def test_a_large_table_is_fitted_on_a_part():
    means, _, labels, wrong = judged(60_000, 0.1, classes=3, judges=4, seed=2)
    channel = fit_channel(means, labels)
    p = 1 - channel.posterior(means, labels)[np.arange(len(labels)), labels]
    assert abs(p.mean() - 0.1) < 0.02
    assert wrong[p > 0.9].mean() == pytest.approx(p[p > 0.9].mean(), abs=0.03)
