"""The boosting kernel against its plain twin on odd tables; the twin against scikit-learn."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from databanzhaf.kernels import boosting, boosting_reference
from databanzhaf.kernels.trees import Boosted, binned, make_table


def odd_table(rng, n, n_val, d, n_classes, bins):
    columns = []
    for _ in range(d):
        x = rng.normal(size=n + n_val)
        if rng.random() < 0.5:
            x = rng.integers(0, 4, n + n_val).astype(float)
        if rng.random() < 0.5:
            x[rng.random(n + n_val) < rng.choice([0.3, 1.0])] = np.nan
        columns.append(binned(x, n, spread=False, most=bins))
    labels = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n)
    return make_table(columns, labels, n_classes)


@pytest.mark.parametrize("n_classes", [0, 1, 2, 3, 6])
def test_the_kernel_is_its_twin(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(25):
        n, n_val, d = (int(rng.choice(sizes)) for sizes in ([1, 3, 12, 40], [1, 5], [1, 2, 4]))
        bins = int(rng.choice([4, 64]))
        table = odd_table(rng, n, n_val, d, n_classes, bins)
        members = rng.random((3, n)) < rng.choice([0.3, 0.7])
        members[~members.any(axis=1), 0] = True
        recipe = Boosted(
            trees=5,
            learning_rate=0.3,
            max_leaves=int(rng.choice([2, 4, 8])),
            min_samples_leaf=int(rng.choice([1, 3])),
            l2=float(rng.choice([0.0, 1.0])),
            bins=bins,
        )
        predicted, outside = boosting.boost(recipe, table, members, unseen=True, threads=1)
        twin, twin_outside = boosting_reference.boost(recipe, table, members, unseen=True)
        # Probabilities in float32; targets in steps of 2^-42.
        tolerance = {"atol": 1e-6} if n_classes else {"atol": 1.0, "rtol": 1e-12}
        np.testing.assert_allclose(predicted, twin, **tolerance)
        np.testing.assert_allclose(outside, twin_outside, **tolerance)
        alone, nothing = boosting.boost(recipe, table, members, threads=3)
        assert nothing is None
        assert np.array_equal(alone, predicted)


@pytest.mark.parametrize("leaves", [2, 5, 8])
def test_one_round_of_squared_loss_is_scikit_learns_tree(leaves):
    """With a whole step a boosted tree is a regression tree, grown best first."""
    rng = np.random.default_rng(leaves)
    n = 60
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    table = make_table([binned(np.tile(c, 2), n, spread=False, most=64) for c in X.T], y, 0)
    recipe = Boosted(1, 1.0, leaves, 4, 0.0, 64)
    predicted, _ = boosting.boost(recipe, table, np.ones((1, n), bool))
    tree = DecisionTreeRegressor(max_leaf_nodes=leaves, min_samples_leaf=4).fit(X, y)
    ours = table.center + table.unit * predicted[0, :, 0]
    np.testing.assert_allclose(ours, tree.predict(X), atol=1e-9)


def test_newtons_step_of_two_leaves():
    """Ten rows left of the cut with three of class 1, ten right with eight: each leaf steps by
    -sum(p - y) / sum(p (1 - p)), with p the share of class 1.
    """
    x = np.repeat([0.0, 1.0], 10)
    y = np.concatenate([np.arange(10) < 3, np.arange(10) < 8]).astype(int)
    table = make_table([binned(np.tile(x, 2), 20, spread=False, most=64)], y, 2)
    predicted, _ = boosting.boost(Boosted(1, 0.5, 2, 1, 0.0, 64), table, np.ones((1, 20), bool))
    p = 11 / 20
    for side, ones in ((slice(0, 10), 3), (slice(10, 20), 8)):
        score = np.log(p / (1 - p)) + 0.5 * (ones - 10 * p) / (10 * p * (1 - p))
        np.testing.assert_allclose(predicted[0, side, 1], 1 / (1 + np.exp(-score)), atol=1e-6)


def test_gaps_go_where_they_gain():
    x = np.concatenate([np.zeros(10), np.ones(10), np.full(10, np.nan)])
    for like in (0, 1):
        y = np.concatenate([np.zeros(10), np.ones(10), np.full(10, like)]).astype(int)
        table = make_table([binned(np.tile(x, 2), 30, spread=False, most=64)], y, 2)
        recipe = Boosted(20, 0.5, 2, 1, 0.0, 64)
        predicted, _ = boosting.boost(recipe, table, np.ones((1, 30), bool))
        assert (predicted[0, np.arange(30), y] > 0.95).all()
