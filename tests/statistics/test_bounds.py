"""The paper's sample bound for MSR holds on seeded runs."""

import numpy as np

import databanzhaf as db
from databanzhaf import theory
from tests import closed_forms


def errors(game, truth, m, runs=200):
    values = [db.value(game, estimator="reuse", budget=m, seed=seed).values for seed in range(runs)]
    return np.array(values) - truth


def test_the_msr_error_bound_holds_on_200_runs():
    form, delta = closed_forms.voting(), 0.1
    for m in (200, 2000):
        error = errors(form.game(), form.banzhaf, m)
        assert np.mean(np.abs(error).max(axis=1) > theory.error_bound(form.n, m, delta)) <= delta
        assert (
            np.mean(np.linalg.norm(error, axis=1) > theory.error_bound(form.n, m, delta, "l2"))
            <= delta
        )


def test_the_noisy_bound_holds():
    """Theorem 6: noise of norm gamma adds at most its floor; the table is one fixed draw
    of noise.
    """
    form, m, delta = closed_forms.voting(), 1000, 0.1
    rng = np.random.default_rng(5)
    table = form.function(np.arange(2**form.n)[:, None] >> np.arange(form.n) & 1) * 1.0
    noisy = np.clip(table + rng.normal(scale=0.2, size=table.shape), 0, 1)
    gamma = np.linalg.norm(noisy - table)
    bound = theory.error_bound(form.n, m, delta, noisy=True) + theory.noise_floor(form.n, gamma)
    error = errors(db.games.Table(noisy), form.banzhaf, m)
    assert np.mean(np.abs(error).max(axis=1) > bound) <= delta


def test_error_falls_with_the_square_root_of_the_samples():
    form = closed_forms.voting()
    coarse, fine = (
        np.sqrt((errors(form.game(), form.banzhaf, m) ** 2).mean()) for m in (250, 4000)
    )
    assert 3.4 < coarse / fine < 4.6


def test_reuse_beats_simple_monte_carlo_at_the_same_cost():
    """Not by the paper's factor n on any game (pairs cancel what they share), but clearly when
    noise dominates.
    """
    game, weights = closed_forms.noisy_additive(n=10, noise=2.0)
    simple = [
        db.value(game, estimator="marginal", budget=1000, seed=seed).values - weights
        for seed in range(50)
    ]
    reuse = [
        db.value(game, estimator="reuse", budget=1000, seed=seed).values - weights
        for seed in range(50)
    ]
    assert np.std(reuse) * 2 < np.std(simple)
