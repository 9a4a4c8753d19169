"""The rows like a row, and the judging rows that it hurts or helps."""

import numpy as np
import pytest

from databanzhaf.applications.evidence import contradictions, jury_effects, nearest
from databanzhaf.population import Effects


def brute_force(points, row, which, most):
    far = [
        (np.sqrt(((points[row] - points[other]) ** 2).sum()), other)
        for other in which
        if other != row
    ]
    return sorted(far)[:most]


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("kinds", [1, 2, 5])
def test_nearest_rows_are_those_of_brute_force(shift, kinds):
    rng = np.random.default_rng(kinds)
    points = rng.normal(size=(60, 4)) + shift
    labels = rng.choice([f"class {kind}" for kind in range(kinds)], 60)
    rows = np.array([3, 59, 17])
    for row, found in zip(rows, nearest(points, rows, labels), strict=True):
        own = labels == labels[row]
        for part, which in ((found.same, own), (found.other, ~own)):
            expected = brute_force(points, row, np.flatnonzero(which), 3)
            assert [other for other, _ in part] == [other for _, other in expected]
            np.testing.assert_allclose(
                [far for _, far in part], [far for far, _ in expected], atol=1e-9
            )


def test_nearest_rows_of_numbers_have_no_label():
    points = np.array([[0.0], [10.0], [1.0], [3.0], [6.0]])
    [found] = nearest(points, np.array([0]))
    assert [row for row, _ in found.same] == [2, 3, 4]
    assert found.other == ()


def test_equal_distances_come_in_the_order_of_the_rows():
    """Rounding does not part rows that are equally far: half of them are copies."""
    rng = np.random.default_rng(0)
    points = np.tile(rng.normal(size=(20, 7)), (2, 1))
    for row, found in enumerate(nearest(points, np.arange(40), most=4)):
        assert found.same[0] == ((row + 20) % 40, 0.0)
        pairs = [other for other, _ in found.same[1:3]]
        assert pairs[1] == pairs[0] + 20


def test_the_only_row_of_a_class_has_no_neighbor_of_its_own():
    points, labels = np.arange(4.0)[:, None], np.array(["a", "b", "b", "b"])
    [alone] = nearest(points, np.array([0]), labels)
    assert alone.same == ()
    assert [row for row, _ in alone.other] == [1, 2, 3]
    [other] = nearest(points, np.array([3]), labels)
    assert [row for row, _ in other.same] == [2, 1]
    assert [row for row, _ in other.other] == [0]


def test_one_row_and_one_class_alone():
    [found] = nearest(np.zeros((1, 2)), np.array([0]), ["a"])
    assert (found.same, found.other) == ((), ())
    [found] = nearest(np.zeros((3, 2)), np.array([1]), ["a", "a", "a"])
    assert [row for row, _ in found.same] == [0, 2]
    assert found.other == ()


def test_copies_with_other_labels_are_named_by_label():
    cells, labels = ["x", "y", "x", "x", "x", "y"], [1, 1, 2, 3, 2, 1]
    found = contradictions(cells, labels, np.arange(6))
    assert found[0] == {2: [2, 4], 3: [3]}
    assert found[2] == {1: [0], 3: [3]}
    assert found[1] == found[5] == {}
    assert contradictions(["x"], ["a"], np.array([0])) == [{}]


def effect(numbers, error=0.1, samples=1000):
    numbers = np.array([numbers], dtype=float)
    weights = np.full(numbers.shape[1], 1 / numbers.shape[1])
    [found] = jury_effects(Effects(numbers, np.full(numbers.shape, error), weights, samples))
    return found


def test_the_judging_rows_that_are_hurt_and_helped_the_most():
    found = effect([0.02, -0.9, np.nan, 0.5, -0.01, -0.2, -0.05, 0.0])
    assert (found.judges, found.hurt) == (7, 4)
    assert [judge for judge, _, _ in found.most_hurt] == [1, 5, 6]
    assert found.most_helped == ((3, 0.5, True), (0, 0.02, False))
    assert [sure for _, _, sure in found.most_hurt] == [True, False, False]
    assert (found.clearly_hurt, found.clearly_helped, found.known) == (1, 1, True)


def test_nobody_is_called_hurt_within_noise():
    found = effect(np.linspace(-0.2, 0.2, 11))
    assert (found.clearly_hurt, found.clearly_helped) == (0, 0)
    assert found.known
    unknown = effect([-3.0, 1.0], error=np.nan)
    assert (unknown.clearly_hurt, unknown.known) == (0, False)


def test_the_histogram_holds_every_judging_row_and_has_an_edge_at_zero():
    numbers = np.random.default_rng(0).normal(size=500) ** 3
    found = effect(numbers)
    edges = (found.first + np.arange(len(found.counts) + 1)) * found.width
    assert sum(found.counts) == 500
    assert 30 <= len(found.counts) <= 50
    below = np.array(found.counts)[edges[1:] <= found.width / 2].sum()
    assert below == (numbers < 0).sum()
    for low, count in zip(edges[:-1], found.counts, strict=True):
        inside = (numbers >= low - 1e-12) & (numbers < low + found.width - 1e-12)
        assert count == inside.sum()


@pytest.mark.parametrize("numbers", [[0.0, 0.0], [1.0, 2.0], [-1.0], [np.nan]])
def test_histograms_of_few_or_equal_effects(numbers):
    found = effect(numbers)
    assert sum(found.counts) == np.isfinite(numbers).sum()
    assert found.width > 0
