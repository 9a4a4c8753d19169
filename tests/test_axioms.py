"""The axioms of semivalues, as properties of random games; and an independent library as oracle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import databanzhaf as db

from .test_notions import SEMIVALUES

numbers = st.floats(-10, 10, allow_subnormal=False)
games = st.integers(1, 6).flatmap(lambda n: arrays(np.float64, 2**n, elements=numbers))
notions = st.sampled_from(SEMIVALUES)


def exact(utility, notion):
    return db.value(db.games.Table(utility), notion, estimator="exact").values


def positions(n):
    return np.arange(2**n)


@given(games, notions, st.data())
def test_dummy_player_gets_what_it_adds(utility, notion, data):
    n = len(utility).bit_length() - 1
    dummy, gift = data.draw(st.integers(0, n - 1)), data.draw(numbers)
    without = utility[positions(n) & ~(1 << dummy)]
    utility = without + gift * (positions(n) >> dummy & 1)
    assert exact(utility, notion)[dummy] == pytest.approx(gift, abs=1e-9)


@given(st.integers(2, 6).flatmap(lambda n: arrays(np.float64, 2**n, elements=numbers)), notions)
def test_symmetric_players_get_the_same(utility, notion):
    n = len(utility).bit_length() - 1
    both = positions(n) & 3
    swapped = np.where((both == 1) | (both == 2), positions(n) ^ 3, positions(n))
    values = exact((utility + utility[swapped]) / 2, notion)
    assert values[0] == pytest.approx(values[1], abs=1e-9)


@given(games, notions, numbers, numbers, st.randoms(use_true_random=False))
def test_linearity(utility, notion, a, b, random):
    other = np.array([random.uniform(-1, 1) for _ in utility])
    combined = exact(a * utility + b * other, notion)
    np.testing.assert_allclose(
        combined, a * exact(utility, notion) + b * exact(other, notion), atol=1e-8
    )


@given(games)
def test_shapley_is_efficient(utility):
    assert exact(utility, db.Shapley()).sum() == pytest.approx(utility[-1] - utility[0], abs=1e-8)


def test_banzhaf_is_not_efficient():
    """The control: the property above is one that a semivalue can fail."""
    assert exact([0, 0, 0, 0, 0, 0, 0, 1.0], db.Banzhaf()).sum() == pytest.approx(0.75)


@given(games, notions)
def test_the_definition_by_plain_loops(utility, notion):
    n = len(utility).bit_length() - 1
    from math import comb

    law = notion.weights(n)
    values = np.zeros(n)
    for i in range(n):
        for s in range(2**n):
            if not s >> i & 1:
                size = s.bit_count()
                values[i] += law[size] / comb(n - 1, size) * (utility[s | 1 << i] - utility[s])
    np.testing.assert_allclose(exact(utility, notion), values, atol=1e-9)


@settings(deadline=None, max_examples=25)
@given(games)
def test_least_core_is_feasible_and_symmetric(utility):
    n = len(utility).bit_length() - 1
    values = db.value(db.games.Table(utility), db.LeastCore(), estimator="exact").values
    assert values.sum() == pytest.approx(utility[-1], abs=1e-7)
    flipped = utility[[int(f"{position:0{n}b}"[::-1], 2) for position in range(2**n)]]
    np.testing.assert_allclose(
        db.value(db.games.Table(flipped), db.LeastCore(), estimator="exact").values[::-1],
        values,
        atol=1e-5,
    )


@pytest.mark.parametrize("n", [2, 5, 8])
def test_shapiq_agrees(n, rng):
    from shapiq import ExactComputer

    utility = rng.normal(size=2**n)
    bits = 1 << np.arange(n)

    computer = ExactComputer(game=lambda coalitions: utility[coalitions @ bits], n_players=n)
    for notion, index in ((db.Shapley(), "SV"), (db.Banzhaf(), "BV")):
        oracle = computer(index, order=1).get_n_order_values(1)
        np.testing.assert_allclose(exact(utility, notion), oracle, atol=1e-10)
