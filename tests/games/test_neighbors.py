"""The closed form of nearest neighbours, against brute force and a published formula."""

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.experiments.baselines import knn_shapley
from databanzhaf.games import Neighbors
from databanzhaf.notions import _without_one_after_the_other, inclusion

OWN = db.Semivalue(lambda n: -0.3 * np.arange(n), name="own")
NOTIONS = [
    db.Banzhaf(),
    db.WeightedBanzhaf(0.2),
    db.Shapley(),
    db.Beta(4, 1),
    db.Beta(1, 16),
    db.LeaveOneOut(),
    OWN,
]


def rows(n, classes, seed, columns=2, judges=6):
    """On a grid, so that many are equally near; every class is there."""
    rng = np.random.default_rng(seed)
    X, X_val = (rng.integers(0, 4, size=(m, columns)).astype(float) for m in (n, judges))
    y, y_val = rng.integers(0, classes, n), rng.integers(0, classes, judges)
    y[:classes] = np.arange(classes)
    return X, y, X_val, y_val


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda each: each.name)
@pytest.mark.parametrize(
    ("n", "k", "classes"), [(1, 1, 1), (2, 5, 2), (8, 3, 2), (10, 1, 3), (5, 7, 2), (14, 5, 4)]
)
def test_values_are_those_of_brute_force(n, k, classes, notion):
    game = Neighbors(db.Dataset(*rows(n, classes, seed=n)), k)
    truth = db.value(game, notion, estimator="exact", budget=2**n)
    found = db.value(game, notion)
    assert found.estimator.name == "closed_form"
    assert found.n_evaluations == 0
    np.testing.assert_allclose(found.values, truth.values, atol=1e-14)
    assert (found.std_errors == 0).all()


@pytest.mark.parametrize("notion", NOTIONS, ids=lambda each: each.name)
def test_rows_that_judge_each_other(notion):
    """The value of row i is the mean over the other rows of its value in the game among all but
    that judge (docs/theory.md).
    """
    X, y, *_ = rows(9, 3, seed=4)
    expected, by_judge = np.zeros(9), np.full((9, 9), np.nan)
    for judge in range(9):
        others = np.arange(9) != judge
        game = Neighbors(db.Dataset(X[others], y[others], X[[judge]], y[[judge]]), 3)
        by_judge[others, judge] = db.value(game, notion, estimator="exact", budget=2**8).values
    expected = np.nansum(by_judge, axis=1) / 9
    found = db.value(Neighbors(db.Dataset(X, y), 3), notion)
    np.testing.assert_allclose(found.values, expected, atol=1e-14)
    spread = np.nanvar(by_judge, axis=1, ddof=1) * 8 / 9**2
    np.testing.assert_allclose(found.population.std_errors, np.sqrt(spread), atol=1e-14)


def test_the_published_recursion_for_shapley_values():
    rng = np.random.default_rng(1)
    X, X_val = rng.normal(size=(300, 4)), rng.normal(size=(20, 4))
    y, y_val = rng.integers(0, 3, 300), rng.integers(0, 3, 20)
    found = db.value(Neighbors(db.Dataset(X, y, X_val, y_val)), db.Shapley()).values
    np.testing.assert_allclose(found, knn_shapley(X, y, X_val, y_val, 5), atol=1e-14)


@pytest.mark.parametrize("notion", NOTIONS[:-1], ids=lambda each: each.name)
@pytest.mark.parametrize("n", [1, 2, 60])
def test_who_joins_follows_from_the_law_of_the_size(notion, n):
    found = inclusion(notion, n, 6)
    np.testing.assert_allclose(found, _without_one_after_the_other(notion, n, 6), atol=1e-13)
    np.testing.assert_allclose(inclusion(notion, n, n)[-1, :n], notion.weights(n), atol=1e-12)


def test_copies_with_the_right_label_share_what_there_is():
    """Whichever of a hundred copies is nearest: each has a hundredth of the whole."""
    rng = np.random.default_rng(2)
    X = np.repeat(rng.normal(size=(1, 7)), 100, axis=0)
    game = Neighbors(db.Dataset(X, np.ones(100), rng.normal(size=(5, 7)), np.ones(5)), 3)
    np.testing.assert_allclose(db.value(game, db.Shapley()).values, 0.01, atol=1e-15)


def test_a_ledger_or_another_estimator_evaluates():
    game = Neighbors(db.Dataset(*rows(10, 2, seed=3)), 3)
    ledger = db.Ledger()
    sampled = db.value(game, estimator="reuse", budget=4000, ledger=ledger)
    truth = db.value(game)
    assert ledger.count() == 4000
    assert (np.abs(sampled.values - truth.values) < 4 * sampled.std_errors).all()
    assert db.value(game, budget=2000, ledger=db.Ledger()).n_evaluations == 1024


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Neighbors([[1.0]], 5), "must be a databanzhaf.Dataset"),
        (lambda: Neighbors(db.Dataset(*rows(5, 2, 0)), 0), "`k`"),
        (lambda: Neighbors(db.Dataset([["a"], ["b"]], [0, 1]), 1), "need numbers"),
        (lambda: Neighbors(db.Dataset([[np.nan], [1.0]], [0, 1]), 1), "finite numbers"),
        (lambda: Neighbors(db.Dataset([[0.0], [1.0]], [0.5, 1.5]), 1), "no class labels"),
        (
            lambda: Neighbors(db.Dataset([[0.0], [1.0]], [0, 1], groups=["a", "a"]), 1),
            "player of its own",
        ),
        (lambda: db.value(Neighbors(db.Dataset([[0.0], [1.0]], [0, 1]), 1), db.LeastCore(),
                          budget=4), "in closed form only"),
        (lambda: db.value(db.games.Table([0, 1]), estimator="closed_form"), "semivalues of games"),
        (lambda: inclusion(OWN, 20_001, 5), "up to 20,000 players"),
    ],
)  # fmt: skip
def test_bad_input(make, sentence):
    with pytest.raises(db.InvalidInput, match=sentence):
        make()


def test_votes_are_the_score_of_all_rows_but_oneself():
    X, y, X_val, y_val = rows(9, 3, seed=7)
    held = Neighbors(db.Dataset(X, y, X_val, y_val), 4)
    everyone = held.utility(np.ones((1, 9), dtype=bool), np.zeros(1, np.uint64))
    assert held.votes().mean() == pytest.approx(everyone[0])
    across = Neighbors(db.Dataset(X, y), 4)
    for judge, said in enumerate(across.votes()):
        others = np.arange(9) != judge
        alone = Neighbors(db.Dataset(X[others], y[others], X[[judge]], y[[judge]]), 4)
        assert said == alone.votes()[0]
    assert Neighbors(db.Dataset(X[:2], y[:2]), 4).votes().tolist() == [0, 0]  # y differs


def test_rows_far_away_have_no_value_that_rounding_made():
    """The values of rows that are never near are as small as they are, and nobody is flagged."""
    rng = np.random.default_rng(5)
    X, X_val = rng.normal(size=(3000, 2)), rng.normal(size=(60, 2))
    y, y_val = rng.integers(0, 2, 3000), rng.integers(0, 2, 60)
    far = np.linalg.norm(X, axis=1) > 3
    found = db.value(Neighbors(db.Dataset(X, y, X_val, y_val)))
    assert np.abs(found.values[far]).min() < 1e-30
    assert not found.below_zero()[np.abs(found.values) < 1e-12].any()


def test_p_values_of_a_closed_form_are_those_of_the_jury():
    from scipy.stats import t

    found = db.value(Neighbors(db.Dataset(*rows(30, 2, seed=6, judges=40)), 3))
    errors = found.population.std_errors
    some = errors > 0
    expected = t.cdf(found.values[some] / errors[some], 39)
    np.testing.assert_allclose(found.p_values()[some], expected)
