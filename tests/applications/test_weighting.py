import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.applications import weights
from tests.applications.test_detection import estimated


def test_weights_are_the_papers_line(rng):
    values = rng.normal(size=50)
    weight = weights(estimated(values))
    np.testing.assert_allclose(weight, (values - values.min()) / (values.max() - values.min()))
    assert (weight.min(), weight.max(), weight.dtype) == (0, 1, np.float64)
    assert np.array_equal(np.argsort(weight), np.argsort(values))


def test_weights_do_not_depend_on_shift_and_scale(rng):
    values = rng.normal(size=20)
    np.testing.assert_allclose(weights(estimated(3 * values - 7)), weights(estimated(values)))
    np.testing.assert_allclose(weights(estimated(-values)), 1 - weights(estimated(values)))


def test_equal_values_weigh_one():
    assert weights(estimated([0.3] * 4)).tolist() == [1, 1, 1, 1]
    assert weights(estimated([-5.0])).tolist() == [1]


def test_a_network_takes_the_weights_and_leaves_the_lowest_row_out(rng):
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    data = db.Dataset(X, y, X, y)
    weight = weights(estimated(rng.normal(size=12)))
    game = db.games.Network(data, (3,), epochs=2, sample_weight=weight, device="cpu")
    every = np.ones((2, 12), dtype=bool)
    every[1, np.argmin(weight)] = False
    assert np.ptp(game.utility(every, np.zeros(2, np.uint64))) == 0


def test_bad_input_is_refused():
    with pytest.raises(db.InvalidInput, match="`estimate` must be an Estimate"):
        weights(np.ones(3))
    with pytest.raises(db.InvalidInput, match="finite value"):
        weights(estimated([0.0, np.inf]))
