"""Errors that lean to one side: densities, and that they are not taken for wrong targets."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import t as student

from databanzhaf.labels.judged import flagged
from databanzhaf.labels.spread import Shape, fit_spread


@pytest.mark.parametrize(
    ("lean", "middle", "left", "right"), [(1.0, 0.0, 4.0, 4.0), (1.6, -0.7, 20.0, 2.5)]
)
def test_a_shape_is_a_density_of_two_halves(lean, middle, left, right):
    shape = Shape(0.8, lean, middle, left, right)

    def density(error):
        return float(np.exp(shape.log_density(np.array([error]), np.array([1.5]))[0]))

    mode, unit = middle * 0.8 * 1.5, 0.8 * 1.5
    assert quad(density, -np.inf, mode)[0] + quad(density, mode, np.inf)[0] == pytest.approx(1)
    for side, width, tail in ((-1, 1 / lean, left), (1, lean, right)):
        expected = student(tail).pdf(2 / width) / student(tail).pdf(0)
        assert density(mode + side * 2 * unit) / density(mode) == pytest.approx(expected)


@pytest.mark.parametrize("n", [600, 20_000])
@pytest.mark.parametrize("law", ["lognormal", "exponential", "normal"])
def test_skewed_errors_are_not_wrong_targets(n, law):
    """Where no target is wrong hardly any is flagged; of those that were swapped with others the
    flagged ones are mostly wrong, and their number is known.
    """
    rng = np.random.default_rng(0)
    expected = 3 * rng.normal(size=n)
    errors = getattr(rng, law)(size=n)
    means = expected + errors.mean() + 0.2 * rng.normal(size=(3, n))
    clean = fit_spread(means, expected + errors)
    assert clean.wrong.mean() < 0.01
    assert flagged(clean.wrong, 0.2).sum() <= 1
    some = rng.choice(n, n // 20, replace=False)
    targets = expected + errors
    targets[some] = targets[rng.permutation(some)]
    found = fit_spread(means, targets)
    flags = flagged(found.wrong, 0.2)
    assert flags.sum() > n // 60
    assert np.isin(np.flatnonzero(flags), some).mean() > 0.8
    assert 0.03 < found.wrong.mean() < 0.08
