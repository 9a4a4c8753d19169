"""What a run says about its own reliability, against games where it is known."""

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.diagnostics import examine, linear_share, noise_share, split_half, stability
from databanzhaf.ledger import read_evaluations
from tests.closed_forms import noisy_additive

WORTH = np.linspace(-1, 1, 20)


def run(utility, budget=4000, repeats=1, stochastic=False, n=20, **options):
    ledger = db.Ledger()
    game = db.games.Function(n, utility, stochastic=stochastic, name="known")
    found = db.value(game, budget=budget, repeats=repeats, ledger=ledger, **options)
    return read_evaluations(ledger), found


def halves(evaluations, found):
    return split_half(evaluations, found.notion, found.estimator)


def noise(keys):
    luck = db.chance.uniform(keys, 2)
    return np.sqrt(-2 * np.log(luck[:, 0] + 1e-300)) * np.cos(2 * np.pi * luck[:, 1])


def test_an_additive_game_is_linear_and_its_halves_agree():
    evaluations, found = run(lambda c: c @ WORTH, estimator="reuse")
    assert linear_share(evaluations, found) == pytest.approx(1, abs=0.03)
    assert halves(evaluations, found) > 0.98
    assert noise_share(evaluations) == 0


def test_parity_is_not_linear_at_all():
    evaluations, found = run(lambda c: c.sum(axis=1) % 2, estimator="reuse")
    assert linear_share(evaluations, found) < 0.02
    assert abs(halves(evaluations, found)) < 0.8


@pytest.mark.parametrize("repeats", [2, 5])
@pytest.mark.parametrize("scale", [0.3, 2.0])
def test_the_noise_share_is_that_of_one_training_whatever_the_repeats(scale, repeats):
    signal = float((WORTH**2).sum() / 4)
    evaluations, _ = run(
        lambda c, keys: c @ WORTH + scale * noise(keys),
        repeats=repeats,
        stochastic=True,
        budget=3000,
        estimator="reuse",
    )
    assert noise_share(evaluations) == pytest.approx(scale**2 / (scale**2 + signal), abs=0.03)


def test_what_is_unknown_is_none():
    evaluations, found = run(
        lambda c, keys: c @ WORTH + noise(keys), stochastic=True, budget=200, estimator="reuse"
    )
    assert examine(evaluations, found).noise_share is None
    permutations, found = run(
        lambda c: c @ WORTH, budget=210, notion=db.Shapley(), estimator="permutation"
    )
    assert np.isnan(linear_share(permutations, found))
    assert halves(permutations, found) == pytest.approx(1)
    few = run(lambda c: c @ WORTH, budget=42, notion=db.Shapley(), estimator="permutation")
    assert np.isnan(halves(*few))


def test_halves_of_an_exact_run_are_repeats():
    small = WORTH[:6]
    assert halves(*run(lambda c: c @ small, n=6)) == 1.0
    loud = run(lambda c, keys: c @ small + noise(keys), n=6, stochastic=True, budget=64, repeats=40)
    assert 0.5 < halves(*loud) <= 1
    once = run(lambda c, keys: c @ small + noise(keys), n=6, stochastic=True, budget=64)
    assert np.isnan(halves(*once))


def test_the_linear_share_is_the_signals_part_of_the_variance():
    signal = float((WORTH**2).sum() / 4)
    evaluations, found = run(
        lambda c, keys: c @ WORTH + np.sqrt(signal) * noise(keys),
        stochastic=True,
        estimator="reuse",
    )
    assert linear_share(evaluations, found) == pytest.approx(0.5, abs=0.05)


def test_the_linear_share_of_all_coalitions_is_least_squares(rng):
    """Against NumPy's own fit of U by who is in."""
    table = rng.normal(size=16) + np.arange(16) % 2
    evaluations = db.Evaluations(
        db.designs.Exhaustive(4), np.arange(16), table[:, None], False, None
    )
    who = db.designs.Exhaustive(4).coalitions(np.arange(16))
    fit, *_ = np.linalg.lstsq(np.column_stack([np.ones(16), who]), table, rcond=None)
    residual = table - np.column_stack([np.ones(16), who]) @ fit
    assert linear_share(evaluations, db.estimate(evaluations)) == pytest.approx(
        1 - residual.var() / table.var()
    )


@pytest.mark.parametrize(
    ("notion", "noise"), [(db.Banzhaf(), 3.0), (db.Shapley(), 3.0)], ids=["banzhaf", "shapley"]
)
def test_the_stability_is_how_two_whole_runs_agree(notion, noise):
    """Predicted from the halves of one run, and measured between runs of other seeds."""
    game, _ = noisy_additive(40, noise=noise)
    predicted, runs = [], []
    for seed in range(24):
        estimate = db.value(game, notion, budget=1640, seed=seed)
        runs.append(estimate.values)
        predicted.append(stability(estimate))
    measured = [db.ranking.spearman(a, b) for a, b in zip(runs[::2], runs[1::2], strict=True)]
    assert 0.5 < np.mean(measured) < 0.95
    assert np.mean(predicted) == pytest.approx(np.mean(measured), abs=0.06)


def test_some_players_are_examined_alone():
    """Ten rows that differ beside ten giants that do not: only the rows' ranking counts."""
    worth = np.r_[np.linspace(-1, 1, 10), np.full(10, 30.0)]
    noisy = lambda c, keys: c @ worth + 20 * noise(keys)  # noqa: E731
    evaluations, found = run(noisy, budget=1000, stochastic=True, estimator="reuse")
    rows = np.arange(10)
    everyone, few = examine(evaluations, found), examine(evaluations, found, rows)
    assert few.stability == examine_alone(found, rows)
    assert few.stability < everyone.stability
    assert few.split_half != everyone.split_half
    assert few.linear_share == everyone.linear_share


def test_another_jury_in_another_run_agrees_no_better(monkeypatch):
    from databanzhaf import diagnostics

    evaluations, found = run(lambda c: c @ WORTH + c.sum(axis=1) % 2, budget=200)
    for juries in (0.0, 0.999):
        monkeypatch.setattr(diagnostics, "whole", lambda _, juries=juries: juries)
        trust = examine(evaluations, found)
        assert 0 < trust.stability < 0.99
        assert trust.stability_of_juries == min(juries, trust.stability)


def examine_alone(found, rows):
    from databanzhaf.ranking import expected_agreement

    return expected_agreement(found.values[rows], found.std_errors[rows])
