"""Each design draws from the law that its estimator assumes. Tolerances are five standard
deviations, over all cells.
"""

from math import comb, factorial

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs


def frequencies(coalitions):
    n = coalitions.shape[1]
    return np.bincount(coalitions @ (1 << np.arange(n)), minlength=2**n) / len(coalitions)


def assert_law(seen, law, m):
    assert law.sum() == pytest.approx(1)
    assert (np.abs(seen - law) <= 5 * np.sqrt(law * (1 - law) / m) + 1e-12).all()


@pytest.mark.parametrize("p", [0.5, 0.2, 0.9])
def test_coin(p):
    m, n = 200_000, 5
    coalitions = designs.Coin(n, 1, p).coalitions(np.arange(m))
    size = np.bitwise_count(np.arange(2**n))
    assert_law(frequencies(coalitions), p**size * (1 - p) ** (n - size), m)


def test_anchored_starts_with_nobody_and_everybody():
    coalitions = designs.Anchored(9, 2).coalitions(np.arange(50))
    assert not coalitions[0].any()
    assert coalitions[1].all()
    assert np.array_equal(coalitions[2:], designs.Coin(9, 2).coalitions(np.arange(2, 50)))


@pytest.mark.parametrize(
    "notion",
    [db.Banzhaf(), db.Shapley(), db.Beta(4, 1), db.LeaveOneOut()],
    ids=lambda notion: notion.name,
)
def test_paired_draws_the_notions_sizes_and_uniform_sets(notion):
    n, pairs = 5, 200_000
    coalitions = designs.Paired(n, 1, tuple(notion.weights(n))).coalitions(np.arange(2 * pairs))
    without, with_player = coalitions[::2], coalitions[1::2]
    player = np.arange(pairs) % n
    rows = np.arange(pairs)
    assert not without[rows, player].any()
    assert with_player[rows, player].all()
    assert np.array_equal((without ^ with_player).sum(axis=1), np.ones(pairs))
    for i in range(n):
        seen = frequencies(np.delete(without[player == i], i, axis=1))
        size = np.bitwise_count(np.arange(2 ** (n - 1)))
        law = notion.weights(n)[size] / np.array([comb(n - 1, k) for k in range(n)])[size]
        assert_law(seen, law, pairs // n)


def test_permutation_chains_grow_by_one_player_in_uniform_order():
    n, t = 4, 60_000
    design = designs.Permutation(n, 1)
    coalitions = design.coalitions(np.arange(t * (n + 1))).reshape(t, n + 1, n)
    assert np.array_equal(coalitions.sum(axis=2), np.broadcast_to(np.arange(n + 1), (t, n + 1)))
    assert (coalitions[:, 1:] >= coalitions[:, :-1]).all()
    orders = design.orders(np.arange(t))
    assert np.array_equal((coalitions[:, 1:] ^ coalitions[:, :-1]).argmax(axis=2), orders)
    seen = np.unique(orders @ n ** np.arange(n), return_counts=True)[1] / t
    assert len(seen) == factorial(n)
    assert_law(seen, np.full(factorial(n), 1 / factorial(n)), t)


def test_group_testing_has_the_stated_sizes():
    n, m = 4, 200_000
    design = designs.GroupTesting(n, 1)
    coalitions = design.with_dummy(np.arange(m))
    big = n + 1
    assert design.normaliser == pytest.approx(2 * sum(1 / k for k in range(1, big)))
    law = np.zeros(2**big)
    for position in range(2**big):
        k = position.bit_count()
        if 0 < k < big:
            law[position] = (1 / k + 1 / (big - k)) / design.normaliser / comb(big, k)
    assert_law(frequencies(coalitions), law, m)


def test_truncation_stops_where_the_utility_is_near_that_of_everybody():
    design = designs.Permutation(4, 0, truncation=0.1)
    nan = np.nan
    chains = np.array(
        [
            [nan] * 5,
            [nan, nan, nan, nan, 1.0],
            [0.0, 0.95, nan, nan, 1.0],
            [0.0, 0.5, nan, nan, 1.0],
            [0, 1, 2, 3, 9.0],
        ]
    )
    filled, following = design.fill(chains)
    assert following.tolist() == [4, 0, 5, 2, 5]
    assert filled[2].tolist() == [0.0, 0.95, 0.95, 0.95, 0.95]
    assert design.wave(chains).tolist() == [4, 5, 3 * 5 + 2]


@pytest.mark.parametrize(
    "make",
    [
        lambda: designs.Coin(0, 0),
        lambda: designs.Coin(3, -1),
        lambda: designs.Coin(3, 0, 1.0),
        lambda: designs.Exhaustive(25),
        lambda: designs.LeaveOneOut(0),
        lambda: designs.Paired(3, 0, (0.5, 0.5)),
        lambda: designs.Paired(2, 0, (0.5, 0.6)),
        lambda: designs.Permutation(3, 0, -1.0),
        lambda: designs.GroupTesting(0, 0),
    ],
)
def test_bad_designs_are_refused(make):
    with pytest.raises(db.InvalidInput):
        make()
