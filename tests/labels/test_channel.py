"""The noisy channel: gradients, closed forms, and whether its probabilities mean what they say."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from databanzhaf.labels.channel import (
    Fit,
    _even,
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
    likelihood = _Likelihood(_logs(means), labels, _logs(means[:, :7]), true[:7])
    theta = np.array([0.4, 0.3, 0.7, 0.1, -0.2, 0.3])
    channel = np.array([[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.2, 0.1, 0.7]])
    numeric = approx_fprime(theta, lambda at: likelihood(at, channel)[0], 1e-6)
    np.testing.assert_allclose(likelihood(theta, channel)[1], numeric, rtol=1e-4, atol=1e-3)


def test_one_row_by_hand():
    """With weight 1 and no offset g is the judge's probability, and Bayes does the rest."""
    means = np.array([[[0.9, 0.1]]])
    fit = Fit(np.ones(1), np.zeros(2), _even(2, 0.1), 1.0)
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
    """With four labels in ten wrong, checked rows narrow the interval of the share."""
    means, _, labels, _ = judged(400, 0.4, seed=3)
    more, known, *_ = judged(300, 0.0, seed=4)
    alone = fit_channel(means, labels).interval()
    both = fit_channel(means, labels, more, known).interval()
    assert both[1] - both[0] < alone[1] - alone[0]
    assert both[0] - 0.03 <= 0.4 <= both[1] + 0.03


def test_a_large_table_is_fitted_on_a_part():
    means, _, labels, wrong = judged(60_000, 0.1, classes=3, judges=4, seed=2)
    channel = fit_channel(means, labels)
    p = 1 - channel.posterior(means, labels)[np.arange(len(labels)), labels]
    assert abs(p.mean() - 0.1) < 0.02
    assert wrong[p > 0.9].mean() == pytest.approx(p[p > 0.9].mean(), abs=0.03)
