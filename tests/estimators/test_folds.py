"""Juries in folds: values by brute force, and what a run in folds promises."""

import itertools

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.estimators.folds import InFolds
from tests.judged_toys import Toy
from tests.statistics.test_judged_across import arbitrary, rows

N = 7
LABELS = np.arange(N) % 2


def toy(**how):
    return Toy(rows(N, LABELS), arbitrary(N), **how)


def by_brute_force(game, notion):
    """The mean over the folds that do not hold the player: its value in the game of the other
    rows that the fold's rows judge.
    """
    seating, values, count = game.seating, np.zeros(N), np.zeros(N)
    for fold in range(seating.count):
        players = np.flatnonzero(seating.player_folds != fold)
        judges = np.flatnonzero(seating.player_folds == fold)
        table = []
        for inside in itertools.product([False, True], repeat=len(players)):
            coalition = np.zeros((1, N), bool)
            coalition[0, players] = inside[::-1]  # bit i of the index is player i
            table.append(game.said(coalition)[0, judges].mean())
        values[players] += db.value(db.games.Table(table), notion, estimator="exact").values
        count[players] += 1
    return values / count


@pytest.mark.parametrize("notion", [db.Banzhaf(), db.Shapley(), db.Beta(4, 1)], ids=str)
def test_exact_values_are_those_of_brute_force(notion):
    game = toy()
    estimate = db.value(game, notion, estimator="exact")
    np.testing.assert_allclose(estimate.values, by_brute_force(game, notion), atol=1e-6)
    assert (estimate.std_errors == 0).all()
    # Folds of one or two rows cannot tell what other rows would say.
    assert np.isnan(estimate.errors.std_errors).all()
    assert not estimate.below_zero().any()


@pytest.mark.parametrize("estimator", ["permutation", "marginal", "group_testing"])
def test_sampled_values_are_unbiased_and_their_intervals_cover(estimator):
    game = toy()
    truth = by_brute_force(game, db.Shapley())
    runs = [
        db.value(game, db.Shapley(), estimator=estimator, budget=1500, seed=seed)
        for seed in range(40)
    ]
    values = np.array([run.values for run in runs])
    error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(values.mean(axis=0) - truth) < 4 * error).all()
    low, high = zip(*(run.interval(errors=run.run_errors) for run in runs), strict=True)
    covered = ((np.array(low) <= truth) & (truth <= np.array(high))).mean()
    assert 0.88 <= covered <= 0.995  # 280 intervals
    assert all(isinstance(run.estimator, InFolds) for run in runs)


def test_leave_one_out_and_the_least_core_run_in_folds():
    game = toy()
    left_out = db.value(game, db.LeaveOneOut())
    np.testing.assert_allclose(left_out.values, by_brute_force(game, db.LeaveOneOut()), atol=1e-6)
    assert np.isfinite(db.value(game, db.LeastCore(), budget=400).values).all()


def test_few_groups_are_judged_by_rows_of_all_of_them(tmp_path):
    """Four groups: in each fold rows of every group judge, and no model has seen its judges."""
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(80, 3)).astype(np.float32), np.arange(80) % 4
    y = (X[:, 0] > 0).astype(int)
    y[groups == 2] = 1 - y[groups == 2]
    data = db.Dataset(X, y, groups=groups)
    game = db.games.Forest(data, trees=5)
    seating = game.seating
    for fold in range(seating.count):
        assert set(groups[seating.judge_folds == fold]) == {0, 1, 2, 3}
    path = tmp_path / "run.db"
    estimate = db.value(game, budget=400, repeats=None, ledger=path)
    assert estimate.ranking()[0] == 2
    assert estimate.players == [0, 1, 2, 3]
    assert estimate.estimator.name == "exact"
    again = db.value(game, budget=400, repeats=None, ledger=path)  # nothing is trained twice
    assert np.array_equal(again.values, estimate.values)
    assert np.array_equal(db.estimate(path, game=game).values, estimate.values)
    with db.Ledger(path) as ledger:
        design = db.designs.restore(ledger.design)
    indices = np.arange(design.size)
    trained, judging = design.coalitions(indices), design.judging(indices)
    assert not (trained & judging).any()


def test_a_run_in_folds_resumes_and_continues(tmp_path):
    def run(path, budget):
        how = {"estimator": "permutation", "seed": 3}
        return db.value(toy(), db.Shapley(), budget=budget, ledger=tmp_path / path, **how)

    run("parts.db", 200)
    assert np.array_equal(run("parts.db", 900).values, run("whole.db", 900).values)
    other = db.estimate(tmp_path / "whole.db", db.Banzhaf(), game=toy())
    assert np.isfinite(other.values).all()
    with pytest.raises(db.InvalidInput, match="one for each fold of the jury"):
        run("short.db", 9)
