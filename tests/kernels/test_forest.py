"""The forest kernel against its plain twin, bit for bit, on odd tables; the twin against closed
forms and scikit-learn.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from databanzhaf import chance
from databanzhaf.kernels import forest, forest_reference
from databanzhaf.kernels.trees import (
    CATEGORIES,
    MISSING,
    MOST_BINS,
    PLAIN,
    SAMPLE,
    WITH_GAPS,
    Trees,
    binned,
    make_table,
)

NO_LIMIT = 10**6


def keys_of(m, seed=0):
    return chance.keys(seed, chance.TRAINING, np.arange(m))


def column(rng, kind, n):
    """(values or codes, whether they are categories) of a column of one odd kind."""
    if kind == "categories":
        return rng.integers(0, rng.choice([2, 5, 1000]), n), True
    values = {
        "numbers": rng.normal(size=n),
        "ties": rng.integers(0, 4, n).astype(float),
        "constant": np.ones(n),
        "skewed": np.exp(9 * rng.normal(size=n)),
        "gaps": np.where(rng.random(n) < 0.4, np.nan, rng.integers(0, 3, n)),
        "all missing": np.full(n, np.nan),
        "one value and gaps": np.where(rng.random(n) < 0.5, np.nan, 1.0),
        "infinite": np.where(rng.random(n) < 0.2, np.inf, rng.normal(size=n)),
    }
    return values[kind], False


KINDS = (
    "numbers", "ties", "constant", "skewed", "gaps", "all missing", "one value and gaps",
    "infinite", "categories",
)  # fmt: skip


def odd_table(rng, n, n_val, kinds, n_classes, *, best):
    coded = []
    for kind in kinds:
        values, categories = column(rng, kind, n + n_val)
        coded.append(
            (values.astype(np.uint16), CATEGORIES)
            if categories
            else binned(values, n, spread=not best)
        )
    digits = int(rng.integers(0, 4))
    labels = rng.integers(0, n_classes, n) if n_classes else rng.normal(size=n).round(digits)
    return make_table(coded, labels, n_classes)


@pytest.mark.parametrize("best", [False, True], ids=["random", "best"])
@pytest.mark.parametrize("n_classes", [0, 1, 2, 3, 7, 150])
def test_the_kernel_is_its_twin_to_the_last_bit(n_classes, best):
    rng = np.random.default_rng(n_classes + 100 * best)
    for trial in range(25):
        n, n_val = (int(rng.choice([1, 2, 3, 12, 40, 90])), int(rng.choice([1, 2, 9])))
        kinds = rng.choice(KINDS, size=int(rng.choice([1, 1, 2, 6, 12])))
        table = odd_table(rng, n, n_val, kinds, n_classes, best=best)
        members = rng.random((3, n)) < rng.choice([0.2, 0.7, 1.0])
        members[~members.any(axis=1), 0] = True
        d = len(table.kinds)
        trees = Trees(
            trees=int(rng.integers(1, 4)),
            best=best,
            columns_tried=int(rng.integers(1, d + 1)),
            max_depth=int(rng.choice([1, 3, NO_LIMIT])),
            min_samples_leaf=int(rng.choice([1, 1, 2, 5])),
            share_of_rows=float(rng.choice([1.0, 0.5])),
            most_rows=int(rng.choice([4, NO_LIMIT])),
        )
        keys = keys_of(3, trial)
        predicted, own = forest.grow(trees, table, members, keys, unseen=True, threads=1)
        twin, twin_own = forest_reference.grow(trees, table, members, keys, unseen=True)
        assert np.array_equal(predicted, twin)
        assert np.array_equal(own, twin_own, equal_nan=True)
        # Neither the threads nor the other rows that are judged change a bit.
        alone, nothing = forest.grow(trees, table, members, keys, threads=3)
        assert np.array_equal(alone, predicted)
        assert nothing is None
        last, _ = forest.grow(trees, table, members[2:], keys[2:])
        assert np.array_equal(last, predicted[2:])


def test_a_random_cut_falls_evenly_between_two_values():
    """Rows at 0 (class 0) and 1 (class 1): a row at x is called 1 by the trees that cut below x."""
    x = np.array([0.1, 0.25, 0.5, 0.9])
    rows = np.concatenate([[0.0, 1.0], np.linspace(0, 1, 101)])
    table = make_table(
        [binned(np.concatenate([rows, x]), len(rows), spread=True)],
        np.concatenate([[0, 1], np.zeros(101)]),
        2,
    )
    members = np.zeros((1, len(rows)), dtype=bool)
    members[0, :2] = True
    trees = Trees(20_000, False, 1, NO_LIMIT, 1)
    predicted, _ = forest.grow(trees, table, members, keys_of(1))
    # A row's bin reaches half a bin further: the cut lies below the bin, not below the row.
    assert np.abs(predicted[0, :, 1] - x).max() < 0.005 + 4 * 0.5 / np.sqrt(20_000)


def test_columns_are_tried_evenly_and_constant_ones_not_at_all():
    """With one column tried, each of the two that differ splits half of the stumps."""
    n = 40
    y = np.repeat([0, 1], n // 2)
    informative = np.where(y == 1, 1.0, 0.0)
    noise = np.tile([0.0, 1.0], n // 2)
    constant_here = np.zeros(n)
    constant_here[-1] = 5.0  # differs in a row that is not in the coalition
    columns = [informative, noise, constant_here]
    rows = [np.concatenate([c, [c[0]]]) for c in columns]
    table = make_table([binned(c, n, spread=True) for c in rows], y, 2)
    members = np.ones((1, n), dtype=bool)
    members[0, [0, -1]] = False
    trees = Trees(4_000, False, 1, 1, 1)
    predicted, _ = forest.grow(trees, table, members, keys_of(1))
    # The validation row is of class 0: certain by the first column, undecided by the second.
    expected = (
        1 + (members[0] & (noise == 0) & (y == 0)).sum() / (members[0] & (noise == 0)).sum()
    ) / 2
    assert abs(predicted[0, 0, 0] - expected) < 4 * 0.25 / np.sqrt(4_000)


def test_a_full_grown_tree_knows_its_rows_and_judges_the_others_like_validation_rows():
    rng = np.random.default_rng(3)
    n = 60
    X = rng.normal(size=(n, 4))
    y = rng.integers(0, 5, n)
    # The training rows are the validation rows too.
    table = make_table([binned(np.tile(c, 2), n, spread=True) for c in X.T], y, 5)
    members = rng.random((4, n)) < 0.5
    predicted, outside = forest.grow(
        Trees(7, False, 2, NO_LIMIT, 1), table, members, keys_of(4), unseen=True
    )
    of_label = predicted[:, np.arange(n), y]
    assert (of_label[members] == 1).all()
    assert np.array_equal(outside[~members], predicted[~members])
    assert np.isnan(outside[members]).all()
    assert np.allclose(predicted.sum(axis=2), 1, atol=1e-6)


def test_best_splits_are_those_of_scikit_learn():
    """The same bootstrap sample, all columns tried: the same tree, seen through its answers for the
    rows that grew it.
    """
    rng = np.random.default_rng(5)
    n = 80
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    table = make_table([binned(np.tile(c, 2), n, spread=False) for c in X.T], y, 0)
    for least in (1, 4):
        trees = Trees(1, True, 3, NO_LIMIT, least)
        (key,) = keys_of(1, least)
        predicted, _ = forest.grow(trees, table, np.ones((1, n), bool), np.array([key]))
        of_tree = chance.fold(np.array([key]), np.zeros(1, np.uint64))
        sample_key = int(chance.fold(of_tree, np.array([SAMPLE], np.uint64))[0])
        sample = forest_reference._sample(trees, np.arange(n), sample_key)
        tree = DecisionTreeRegressor(min_samples_leaf=least).fit(X[sample], y[sample])
        ours = table.center + table.unit * predicted[0, sample, 0].astype(float)
        assert np.allclose(ours, tree.predict(X[sample]), atol=1e-6)


def test_bins_keep_order_values_and_distances():
    rng = np.random.default_rng(0)
    few = rng.integers(0, 9, 500).astype(float) ** 3
    codes, kind = binned(few, 500, spread=False)
    assert kind == PLAIN
    assert np.array_equal(codes, np.unique(few, return_inverse=True)[1])
    spread, _ = binned(few, 500, spread=True)
    assert np.abs(spread / 65534 - few / few.max()).max() < 9 / 65534
    many = np.exp(rng.normal(size=5000))
    many[::7] = np.nan
    codes, kind = binned(many, 5000, spread=True)
    assert kind == WITH_GAPS
    assert (codes[::7] == MISSING).all()
    known = codes[~np.isnan(many)]
    assert len(np.unique(known)) == MOST_BINS
    assert stats.spearmanr(known, many[~np.isnan(many)]).statistic > 0.999
    counts = np.unique(known, return_counts=True)[1]
    assert counts.max() <= 2 * counts.min()
    # A skewed column keeps its bins apart, even where the values crowd.
    crowded, _ = binned(10.0 ** np.arange(-40, 40), 80, spread=True)
    assert (np.diff(crowded.astype(int)) >= 1).all()
    assert crowded.max() < MISSING


def test_neighbouring_numbers_keep_their_bins_and_their_order():
    for values in (
        [0.1, 0.2, 0.3, 0.1 + 0.2],
        2.0**53 + 2 * np.arange(8),
        [-5e-324, 0.0, 5e-324],
        [7 * 2.0**49 - 2, 7 * 2.0**49 + 1, 7 * 2.0**49 + 5],
        [-1e300, 1.0, 1e300],
    ):
        for spread in (False, True):
            codes, _ = binned(np.array([*values, 1e9]), len(values), spread=spread)
            assert (np.diff(codes[:-1].astype(int)) > 0).all()


@pytest.mark.parametrize("best", [False, True], ids=["random", "best"])
def test_a_split_of_known_from_missing_sends_every_known_value_one_way(best):
    """A row of 25 (class 0) and a gap (class 1): any known value is of class 0."""
    n = 100
    x = np.concatenate([np.arange(50.0), np.full(50, np.nan), np.arange(50.0)])
    table = make_table([binned(x, n, spread=not best)], np.repeat([0, 1], 50), 2)
    members = np.zeros((1, n), dtype=bool)
    members[0, [25, 50]] = True
    predicted, _ = forest.grow(Trees(400, best, 1, NO_LIMIT, 1), table, members, keys_of(1))
    assert np.ptp(predicted[0, :, 0]) == 0
    # A bootstrap sample of two rows has both with probability 1/2, else one of them twice.
    assert abs(predicted[0, 0, 0] - (0.75 if best else 1.0)) < 4 * 0.5 / np.sqrt(400)


def test_one_extreme_target_leaves_the_others_their_digits():
    rng = np.random.default_rng(1)
    n = 100
    X = rng.normal(size=(n, 2))
    y = 100 + 10 * X[:, 0]
    members = rng.random((20, n)) < 0.5
    members[:, 0] = False
    trees = Trees(10, False, 2, NO_LIMIT, 1)
    answers = []
    for extreme in (y[0], 999_999_999.0):
        labels = np.concatenate([[extreme], y[1:]])
        table = make_table([binned(np.tile(c, 2), n, spread=True) for c in X.T], labels, 0)
        predicted, _ = forest.grow(trees, table, members, keys_of(20))
        answers.append(table.center + table.unit * predicted[:, :, 0])
        own = np.broadcast_to(y, members.shape)[members]
        assert np.allclose(answers[-1][members], own, atol=2e-4)
    # Rounding breaks ties otherwise, and nothing more.
    assert np.median(np.abs(answers[0] - answers[1])) < 1e-3
    plain, beside = (((each - y) ** 2)[~members].mean() for each in answers)
    assert abs(beside / plain - 1) < 0.1


def test_of_two_columns_that_differ_among_many_each_is_drawn_as_often():
    n_columns = 60
    constant = [np.zeros(3) for _ in range(n_columns)]
    for place in (20, 21):
        constant[place] = np.array([0.0, 1.0, float(place == 20)])
    # A column that differs in a row outside the coalition is not left out of the table.
    rows = [np.concatenate([c[:2], [5.0], c[2:]]) for c in constant]
    table = make_table([binned(c, 3, spread=True) for c in rows], [0, 1, 0], 2)
    members = np.array([[True, True, False]])
    predicted, _ = forest.grow(Trees(20_000, False, 1, 1, 1), table, members, keys_of(1))
    assert len(table.kinds) == n_columns
    # The validation row has the value of class 1 in column 20 and of class 0 in column 21.
    assert abs(predicted[0, 0, 1] - 0.5) < 4 * 0.5 / np.sqrt(20_000)


def test_categories_are_put_in_an_order_that_is_one_to_one_and_changes():
    for word in (3, 2**40 + 7, 2**63 + 12345):
        order = [forest_reference._ordered(code, word | 1) for code in range(1 << 16)]
        assert len(set(order)) == 1 << 16
    # Two of three categories end up on one side in every way, about equally often.
    rng = np.random.default_rng(1)
    alone = np.zeros(3)
    for word in rng.integers(0, 2**63, 6000):
        places = [forest_reference._ordered(code, int(word) | 1) for code in (0, 1, 2)]
        cut = min(places) + rng.random() * (max(places) - min(places))
        left = np.array(places) <= cut
        alone[np.flatnonzero(left == (left.sum() == 1))[0]] += 1
    assert (np.abs(alone / 6000 - 1 / 3) < 4 * np.sqrt(2 / 9 / 6000)).all()


def test_a_sample_is_drawn_evenly_with_and_without_replacement():
    present = np.arange(10)
    for best, share, expected in ((False, 0.3, 0.3), (True, 1.0, 1 - 0.9**10)):
        trees = Trees(1, best, 1, 1, 1, share)
        counts = np.zeros(10)
        for key in keys_of(3000):
            sample = forest_reference._sample(trees, present, int(key))
            assert best or len(set(sample)) == len(sample) == 3
            counts[np.unique(sample)] += 1
        spread = np.sqrt(expected * (1 - expected) / 3000)
        assert (np.abs(counts / 3000 - expected) < 4 * spread).all()
