from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

import databanzhaf as db
from databanzhaf import ranking


def test_spearman_equals_scipys(rng):
    for _ in range(20):
        a, b = rng.integers(0, 6, size=(2, 30))
        assert ranking.spearman(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert ranking.spearman([1, 2, 3], [3, 2, 1]) == -1
    assert np.isnan(ranking.spearman([1, 1, 1], [1, 2, 3]))
    assert np.isnan(ranking.spearman([1], [2]))


def test_relative_spearman_compares_neighbours(rng):
    steps = rng.normal(size=(5, 12))
    expected = [spearmanr(steps[i], steps[i + 1]).statistic for i in range(4)]
    np.testing.assert_allclose(ranking.relative_spearman(steps), expected)


def test_consistent_is_the_share_in_every_runs_top(rng):
    values = rng.normal(size=(4, 50))
    for k in (1, 5, 20, 50):
        top = set.intersection(*({int(i) for i in np.argsort(run)[-k:]} for run in values))
        bottom = set.intersection(*({int(i) for i in np.argsort(run)[:k]} for run in values))
        assert ranking.consistent(values, k) == len(top) / k
        assert ranking.consistent(values, k, side="bottom") == len(bottom) / k
    assert ranking.consistent(values, 0.1) == ranking.consistent(values, 5)
    assert ranking.consistent(np.tile(values[0], (3, 1)), 7) == 1


def test_equal_values_are_put_in_order_by_chance_anew_in_each_run():
    values = np.array([[0, 1, 1, 1, 2], [1, 0, 1, 3, 3]])
    for side, sign in (("bottom", 1), ("top", -1)):
        for k in (1, 2, 3, 4, 5):
            # Brute force: all orders of five rows decide among equals in one run, and all in the
            # other.
            picked = [
                [
                    set(np.lexsort((luck, sign * run))[:k].tolist())
                    for luck in permutations(range(5))
                ]
                for run in values
            ]
            expected = np.mean([len(a & b) for a in picked[0] for b in picked[1]]) / k
            assert ranking.consistent(values, k, side) == pytest.approx(expected)
    assert ranking.consistent(np.zeros((5, 1000)), 0.1) == pytest.approx(
        0.1**4
    )  # all equal: nobody is told apart
    np.testing.assert_allclose(
        ranking.among_lowest([0.1 + 0.2, 0.3, 0.0], 2), [0.5, 0.5, 1]
    )  # equal but for rounding
    np.testing.assert_array_equal(ranking.among_lowest([-np.inf, np.inf, 0, 5], 2), [1, 0, 1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: ranking.spearman([1, 2], [1, 2, 3]),
        lambda: ranking.spearman([1, np.nan], [1, 2]),
        lambda: ranking.consistent([[1, 2]], 1),
        lambda: ranking.consistent([[1, 2], [1, 2]], 3),
        lambda: ranking.consistent([[1, 2], [1, 2]], 0),
        lambda: ranking.consistent([[1, 2], [1, 2]], 1.5),
        lambda: ranking.consistent([[1, 2], [1, 2]], 1, side="left"),
        lambda: ranking.relative_spearman([1, 2, 3]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(db.InvalidInput):
        call()


@pytest.mark.parametrize("n", [50, 400, 3000])
@pytest.mark.parametrize("kind", ["noise", "normal", "few stand out", "unequal errors"])
def test_the_expected_agreement_is_that_of_two_further_runs(kind, n):
    claimed, seen = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        errors = np.ones(n) if kind != "unequal errors" else np.exp(rng.normal(size=n))
        truth = {
            "noise": np.zeros(n),
            "normal": rng.normal(size=n),
            "few stand out": np.where(rng.random(n) < 0.1, -6.0, 0.0),
            "unequal errors": 3 * rng.normal(size=n),
        }[kind]
        first, second = (truth + errors * rng.normal(size=n) for _ in range(2))
        claimed.append(ranking.expected_agreement(first, errors))
        seen.append(ranking.spearman(first, second))
    # A fit never finds less than nothing; what it credits noise with shrinks with the values.
    room = {50: 0.14, 400: 0.08, 3000: 0.06}[n]
    assert np.mean(claimed) == pytest.approx(np.mean(seen), abs=room)


def test_the_expected_agreement_grows_with_the_run_and_knows_its_limits():
    rng = np.random.default_rng(1)
    values, errors = 2 * rng.normal(size=300), np.ones(300)
    grows = [ranking.expected_agreement(values, errors, noise) for noise in (4.0, 1.0, 0.25, 0.01)]
    assert (np.diff(grows) > 0).all()
    assert grows[-1] > 0.99
    assert ranking.expected_agreement(values, 0 * errors) == 1
    assert ranking.expected_agreement(values, 1e-12 * errors) == pytest.approx(1, abs=1e-3)
    assert np.isnan(ranking.expected_agreement(values, np.full(300, np.nan)))
    assert np.isnan(ranking.expected_agreement(values, np.full(300, np.inf)))
