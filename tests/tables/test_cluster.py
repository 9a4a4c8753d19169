"""Clusters of similar rows: a partition within classes, in proportion, and always the same."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from threadpoolctl import threadpool_limits

from databanzhaf.errors import InvalidInput
from databanzhaf.tables import clusters


@pytest.fixture(scope="module")
def flowers():
    rows, labels = load_iris(return_X_y=True, as_frame=True)
    return rows, np.array(["a", "b", "c"])[labels]


def test_clusters_lie_within_classes_and_share_them_in_proportion(flowers):
    rows, labels = flowers
    keep = np.r_[0:50, 50:75, 100:125]  # a has half of the rows
    found = clusters(rows.iloc[keep], labels[keep], 12)
    assert len(np.unique(found)) == 12
    assert all(name.split("/")[0] == label for name, label in zip(found, labels[keep], strict=True))
    assert [sum(name.startswith(c) for name in np.unique(found)) for c in "abc"] == [6, 3, 3]


def test_like_rows_are_together():
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=50, size=(8, 3))
    which = rng.integers(8, size=400)
    rows = pd.DataFrame(centers[which] + rng.normal(size=(400, 3)), columns=list("xyz"))
    found = clusters(rows, np.where(which < 4, "no", "yes"), 8, seed=1)
    # k-means may merge two of the eight and cut another: at most one of them is not whole
    pure = [len(np.unique(which[found == name])) == 1 for name in np.unique(found)]
    assert sum(pure) >= 7


def test_a_class_without_differences_gets_one_cluster_and_a_small_one_too():
    rows = pd.DataFrame({"x": [1.0] * 20 + [2.0, 3.0, 4.0], "t": ["u"] * 22 + [None]})
    found = clusters(rows, np.array(["same"] * 20 + ["few"] * 3), 10)
    assert set(found[:20]) == {"same/1"}
    assert len(set(found[20:])) in (1, 2, 3)


def test_targets_are_cut_into_parts():
    rows, targets = load_diabetes(return_X_y=True, as_frame=True)
    found = clusters(rows, targets.to_numpy(), 40, classifies=False)
    parts = np.array([int(name.split("/")[0].removeprefix("part ")) for name in found])
    assert np.bincount(parts)[1:].tolist() == [45, 44, 44, 44, 44, 45, 44, 44, 44, 44]
    for part in range(1, 10):
        assert targets[parts == part].max() <= targets[parts == part + 1].min()


def test_the_same_whatever_the_number_of_threads_and_another_by_another_seed(flowers):
    with threadpool_limits(1):
        one = clusters(*flowers, 20)
    with threadpool_limits(2):
        assert (clusters(*flowers, 20) == one).all()
    assert (clusters(*flowers, 20, seed=1) != one).any()


def test_more_rows_than_centers_are_found_among(monkeypatch, flowers):
    monkeypatch.setattr("databanzhaf.tables.cluster.MOST_FITTED", 20)
    found = clusters(*flowers, 15)
    assert len(np.unique(found)) == 15


@pytest.mark.parametrize("count", [0, 2, 151, 2.5])
def test_bad_counts_are_refused(flowers, count):
    with pytest.raises(InvalidInput, match="clusters"):
        clusters(*flowers, count)


def test_a_rare_class_has_two_clusters_if_there_are_enough():
    """Rows of one of them then judge models that have seen the other."""
    rows = pd.DataFrame({"x": np.arange(600.0)})
    labels = np.where(np.arange(600) < 24, "rare", "usual")
    names = np.unique(clusters(rows, labels, 25))
    assert sum(name.startswith("rare/") for name in names) == 2
    assert len(names) == 25
    assert np.unique(clusters(rows, labels, 3)).tolist() == ["rare/1", "usual/1", "usual/2"]
