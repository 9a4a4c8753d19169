"""No certainty without evidence: equal samples of one player are no proof while others vary."""

import numpy as np
import pytest

import databanzhaf as db

MAJORITY = db.games.Function(
    200, lambda coalitions: coalitions.sum(axis=1) > 100, name="majority of 200"
)
VOTING = db.games.Function(8, lambda c: c @ [5, 4, 3, 2, 2, 1, 1, 1] >= 10, name="voting")


def covers(estimate, truth):
    low, high = estimate.interval(0.95)
    return (low <= truth) & (truth <= high)


def test_a_rare_pivot_is_not_reported_as_certainly_worthless():
    estimate = db.value(MAJORITY, db.Shapley())
    assert (estimate.std_errors > 0).all()
    assert covers(estimate, 1 / 200).mean() > 0.9


@pytest.mark.parametrize(
    ("estimator", "budget"),
    [("marginal", 160), ("permutation", 90), ("reuse", 40), ("group_testing", 100)],
)
def test_intervals_cover_where_few_samples_differ(estimator, budget):
    notion = db.Banzhaf() if estimator == "reuse" else db.Shapley()
    truth = db.value(VOTING, notion, estimator="exact").values
    hits = [
        covers(db.value(VOTING, notion, estimator=estimator, budget=budget, seed=seed), truth)
        for seed in range(200)
    ]
    assert np.mean(hits) > 0.92


def test_utilities_that_never_differ_say_nothing():
    game = db.games.Function(30, lambda c: c.all(axis=1), name="unanimity of 30")
    estimate = db.value(game, estimator="reuse", budget=5000, until=db.until.precise(1e-6))
    assert estimate.n_evaluations == 5000
    assert np.isinf(estimate.std_errors).all()


def test_an_additive_game_is_known_exactly_after_two_permutations():
    game = db.games.Function(
        12, lambda c: np.where(c, np.arange(12.0), 0).sum(axis=1), name="additive"
    )
    estimate = db.value(game, db.Shapley(), estimator="permutation", budget=26)
    assert estimate.values == pytest.approx(np.arange(12.0))
    assert (estimate.std_errors == 0).all()
