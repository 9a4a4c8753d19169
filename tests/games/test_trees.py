"""Forests and boosted trees as games: as good as scikit-learn's, resumable, and clear about bad
input.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

import databanzhaf as db
from databanzhaf.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 5))
Y = np.where(X[:, 0] + X[:, 1] + 0.3 * RNG.normal(size=160) > 0, "yes", "no")
KEYS = db.chance.keys(0, db.chance.TRAINING, np.arange(40))
COALITIONS = RNG.random((40, 100)) < 0.5


def data(rows=X, labels=Y, groups=None):
    take = (lambda part: rows.iloc[part]) if hasattr(rows, "iloc") else (lambda part: rows[part])
    return db.Dataset(
        take(slice(0, 100)), labels[:100], take(slice(100, None)), labels[100:], groups=groups
    )


@pytest.mark.parametrize("kind", ["random", "best", "boosted"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_digits, load_diabetes])
def test_trees_are_as_good_as_scikit_learns(load, kind):
    """Over 40 coalitions of 200 rows each the mean difference is within four standard errors, and
    0.005 more.
    """
    rows, labels = load(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(rows))
    rows, labels = rows[order], labels[order]
    regression = load is load_diabetes
    n = 200
    dataset = db.Dataset(rows[:n], labels[:n], rows[n:], labels[n:])
    options = {"loss": "squared"} if regression else {"metric": "accuracy"}
    trees = 20 if kind != "boosted" else 10  # ten rounds of ten classes are slow one at a time
    game = (
        db.games.Boosting(dataset, trees, **options)
        if kind == "boosted"
        else db.games.Forest(dataset, trees, splits=kind, **options)
    )
    coalitions = np.random.default_rng(2).random((40, n)) < 0.5
    ours = game.utility(coalitions, KEYS)
    makers = {
        ("random", False): ExtraTreesClassifier,
        ("best", False): RandomForestClassifier,
        ("random", True): ExtraTreesRegressor,
        ("best", True): RandomForestRegressor,
        ("boosted", False): HistGradientBoostingClassifier,
        ("boosted", True): HistGradientBoostingRegressor,
    }
    how = (
        {"max_leaf_nodes": 8, "min_samples_leaf": 5, "early_stopping": False, "max_iter": trees}
        if kind == "boosted"
        else {"n_estimators": trees, "max_features": "sqrt"}
    )
    theirs = [
        makers[kind, regression](**how, random_state=seed)
        .fit(rows[:n][coalition], labels[:n][coalition])
        .score(rows[n:], labels[n:])
        for seed, coalition in enumerate(coalitions)
    ]
    difference = ours - theirs
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(difference.mean()) < 0.005 + 4 * error
    assert error < 0.01


def test_outcomes_predictions_and_confidence_belong_together():
    game = db.games.Forest(data(), trees=7)
    trained = game.train(COALITIONS, KEYS, predictions=True, unseen=True)
    assert np.array_equal(trained.scores, game.utility(COALITIONS, KEYS))
    for other in (game, db.games.Forest(data(labels=X[:, 0]), trees=9, loss="squared")):
        alone = [other.utility(COALITIONS[i : i + 1], KEYS[i : i + 1])[0] for i in range(40)]
        assert np.array_equal(alone, other.utility(COALITIONS, KEYS))
    outcomes = game.outcomes(COALITIONS, KEYS)
    assert np.array_equal([game.score(each) for each in outcomes], trained.scores)
    assert np.array_equal(np.isnan(trained.unseen).all(axis=2), COALITIONS)
    own = trained.predictions[:, np.arange(60), game.class_numbers[1]]
    assert np.allclose(own.mean(axis=1), trained.scores, atol=1e-6)
    confidence = np.nanmean(game.own(trained.unseen), axis=0)
    assert confidence.mean() > 0.7
    assert ((confidence >= 0) & (confidence <= 1)).all()
    # A scorer of scikit-learn takes the same predictions.
    area = db.games.Forest(data(), trees=7, metric="roc_auc")
    assert np.array_equal([area.score(each) for each in outcomes], area.utility(COALITIONS, KEYS))


def test_resuming_threads_and_batches_keep_the_ledger(tmp_path):
    def run(path, budget, threads):
        game = db.games.Forest(data(), trees=5, threads=threads)
        with db.Ledger(path, keep="outcomes") as ledger:
            return db.value(game, budget=budget, seed=3, ledger=ledger).values

    run(tmp_path / "parts.db", 130, 2)
    resumed = run(tmp_path / "parts.db", 700, 1)
    whole = run(tmp_path / "whole.db", 700, None)
    assert np.array_equal(resumed, whole)
    # Another metric from kept outcomes, without training.
    accuracy = db.games.Forest(data(), trees=5, metric="accuracy")
    again = db.estimate(tmp_path / "whole.db", game=accuracy)
    direct = db.value(accuracy, budget=700, seed=3)
    assert np.array_equal(again.values, direct.values)
    with pytest.raises(db.errors.LedgerMismatch, match=r"forest\.trees"):
        db.value(db.games.Forest(data(), trees=6), budget=9, seed=3, ledger=tmp_path / "whole.db")


@pytest.mark.parametrize("kind", [db.games.Forest, db.games.Boosting])
def test_processes_give_the_same_bits(kind):
    game = kind(data(), trees=5, threads=1)
    values = [
        db.value(game, budget=300, seed=1, evaluator=evaluator).values
        for evaluator in (db.evaluators.Local(), db.evaluators.Processes(2))
    ]
    assert np.array_equal(*values)


def test_an_empty_coalition_predicts_the_majority_or_the_mean():
    none = np.zeros((1, 100), dtype=bool)
    game = db.games.Forest(data(), metric="accuracy")
    labels, counts = np.unique(Y[:100], return_counts=True)
    majority = labels[counts.argmax()]
    assert game.utility(none, KEYS[:1])[0] == (Y[100:] == majority).mean()
    numbers = data(labels=1e6 + X[:, 0])
    mean = numbers.y.mean()
    squared = db.games.Forest(numbers, loss="squared", metric="mse")
    assert np.isclose(
        squared.utility(none, KEYS[:1])[0], -((numbers.y_val - mean) ** 2).mean(), rtol=1e-9
    )
    one = np.zeros((1, 100), dtype=bool)
    one[0, 3] = True
    answer = squared.train(one, KEYS[:1], predictions=True).predictions
    assert np.allclose(answer, numbers.y[3], atol=1e-6)


def test_missing_values_tell_and_cost_nothing_where_they_do_not():
    gone = X.copy()
    gone[Y == "yes", 4] = np.nan  # a gap that gives the label away
    full, holes = (
        db.games.Forest(data(rows), metric="accuracy").utility(COALITIONS, KEYS).mean()
        for rows in (X, gone)
    )
    assert holes > 0.97 > full
    by_chance = np.where(np.random.default_rng(4).random(X.shape) < 0.1, np.nan, X)
    sparse = db.games.Forest(data(by_chance), metric="accuracy").utility(COALITIONS, KEYS).mean()
    assert full - 0.1 < sparse <= full + 0.02
    nothing = np.full_like(X, np.nan)
    blind = db.games.Forest(data(nothing), metric="accuracy").utility(COALITIONS, KEYS)
    assert blind.max() < 0.7


def test_categories_are_split_without_columns_of_their_own():
    rng = np.random.default_rng(2)
    towns = np.array([f"town {i}" for i in range(1000)])
    rich = rng.random(1000) < 0.5
    where = rng.integers(0, 40, 400)
    frame = pd.DataFrame({"town": towns[where], "noise": rng.normal(size=400)})
    labels = rich[where].astype(int)
    coalitions = rng.random((20, 250)) < 0.5

    def accuracy(table):
        parts = db.Dataset(table[:250], labels[:250], table[250:], labels[250:])
        game = db.games.Forest(parts, metric="accuracy", max_features=None)
        return game.utility(coalitions, KEYS[:20]).mean()

    frame["town"] = frame["town"].astype("category")
    assert accuracy(frame) > 0.9
    assert accuracy(frame[["noise"]]) < 0.65
    # 1,000 categories, most of them in one row, and others in the validation rows.
    frame["town"] = pd.Categorical([*towns, *towns][:400])
    assert db.games.Forest(
        db.Dataset(frame[:250], labels[:250], frame[250:], labels[250:])
    ).table.codes.shape == (2, 400)
    assert 0.3 < accuracy(frame) < 0.7


def test_groups_sparse_and_nullable_columns():
    groups = np.repeat(list("abcde"), 20)
    game = db.games.Forest(data(groups=groups))
    assert game.n_players == 5
    assert np.isfinite(db.value(game).values).all()
    nullable = pd.DataFrame(X).astype("Float64")
    nullable.iloc[3, 2] = pd.NA
    by_hand = X.copy()
    by_hand[3, 2] = np.nan
    utilities = [
        db.games.Forest(data(rows)).utility(COALITIONS, KEYS) for rows in (nullable, by_hand)
    ]
    assert np.array_equal(*utilities)
    # Tables of two kinds for training and validation.
    frame, sparse = pd.DataFrame(X), csr_matrix(X)
    kinds = (X, frame, sparse)
    plain = db.games.Forest(data(X)).utility(COALITIONS, KEYS)
    for train in kinds:
        for validation in kinds:
            mixed = db.Dataset(train[:100], Y[:100], validation[100:], Y[100:])
            assert np.array_equal(db.games.Forest(mixed).utility(COALITIONS, KEYS), plain)
    huge = {"max_depth": 10**30, "max_samples": 10**30}
    assert np.array_equal(db.games.Forest(data(X), **huge).utility(COALITIONS, KEYS), plain)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: db.games.Forest(data(), trees=0), "`trees` must be a whole number"),
        (lambda: db.games.Forest(data(), trees=2.5), "`trees` must be a whole number"),
        (lambda: db.games.Forest(data(), splits="good"), 'must be "random" or "best"'),
        (lambda: db.games.Forest(data(), max_features=6), "from 1 to 5"),
        (lambda: db.games.Forest(data(), max_features=0), "from 1 to 5"),
        (lambda: db.games.Forest(data(), max_features=1.5), "share above 0"),
        (lambda: db.games.Forest(data(), max_features="all"), "`max_features` must be"),
        (lambda: db.games.Forest(data(), max_features=True), "`max_features` must be"),
        (lambda: db.games.Forest(data(), max_depth=0), "`max_depth`"),
        (lambda: db.games.Forest(data(), min_samples_leaf=0), "`min_samples_leaf`"),
        (lambda: db.games.Forest(data(), max_samples=0), "`max_samples`"),
        (lambda: db.games.Forest(data(), max_samples=1.5), "`max_samples`"),
        (lambda: db.games.Forest(data(), max_samples="half"), "`max_samples`"),
        (lambda: db.games.Forest(data(), max_samples=True), "`max_samples`"),
        (lambda: db.games.Forest(data(), max_samples=np.array([1, 2])), "`max_samples`"),
        (lambda: db.games.Forest(data(), splits=np.array([1, 2])), "`splits`"),
        (lambda: db.games.Forest(data(rows=X + 1j)), "numbers and categories"),
        (
            lambda: db.games.Boosting(data(rows=pd.DataFrame({"town": Y, "n": X[:, 0]}))),
            "boosting takes numbers; column `town`.* OneHotEncoder",
        ),
        (lambda: db.games.Forest(data(rows=X[:, :0])), "a column or more"),
        (
            lambda: db.games.Forest(data(labels=np.append(X[1:, 0], np.inf)), loss="squared"),
            "`y_val` must be finite",
        ),
        (lambda: db.games.Forest(data(), threads=0), "`threads`"),
        (lambda: db.games.Boosting(data(), trees=0), "`trees`"),
        (lambda: db.games.Boosting(data(), learning_rate=0), "`learning_rate`"),
        (lambda: db.games.Boosting(data(), max_leaves=1), "`max_leaves`"),
        (lambda: db.games.Boosting(data(), l2=-1), "`l2`"),
        (lambda: db.games.Boosting(data(), loss="gini"), '"logistic" or "squared"'),
        (lambda: db.games.Boosting(data(), threads=0), "`threads`"),
        (
            lambda: db.games.Boosting(
                data(rows=pd.DataFrame({"town": pd.Categorical(Y), "n": X[:, 0]}))
            ),
            "boosting takes numbers",
        ),
        (lambda: db.games.Forest(data(), loss="log"), '"gini" or "squared"'),
        (lambda: db.games.Forest(data(), metric="r2"), "`metric` for classification"),
        (lambda: db.games.Forest(data(), loss="squared"), "needs numbers.* Leave `loss` out"),
        (lambda: db.games.Forest(data(labels=X[:, 0])), 'loss="squared" for a regression'),
        (lambda: db.games.Forest(X), "Dataset"),
        (lambda: db.games.Forest(data(labels=np.array(["a"] * 160))), "two classes or more"),
        (lambda: db.games.Forest(data(rows=X.reshape(160, 5, 1))), "grown on tables"),
        (lambda: db.games.Forest(data(rows=X.astype(str))), r"astype\(\"category\"\)"),
        (
            lambda: db.games.Forest(data(rows=pd.DataFrame({"town": Y, "n": X[:, 0]}))),
            r"column `town`.*category",
        ),
        (
            lambda: db.games.Forest(
                data(rows=pd.DataFrame({"day": pd.date_range("2020", periods=160)}))
            ),
            "column `day`.* Convert dates",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, words):
    with pytest.raises(db.errors.InvalidInput, match=words):
        make()


def test_a_gap_that_no_training_row_has_goes_with_the_larger_side():
    """As in scikit-learn: such a row gets about the share of the classes, not one end of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1))
    y = (X[:, 0] > 1.2).astype(int)
    split = db.Dataset(X, y, np.full((4, 1), np.nan), y[:4])
    everyone, key = np.ones((1, 600), bool), np.zeros(1, np.uint64)
    for game in (db.games.Forest(split), db.games.Boosting(split)):
        rare = game.train(everyone, key, predictions=True).predictions[0, 0, 1]
        assert rare < y.mean(), game


def test_one_absurd_target_leaves_models_without_it_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + 0.5 * X[:, 1]
    absurd = y[:200].copy()
    absurd[7] = 1e15
    without = np.ones((1, 200), bool)
    without[0, 7] = False
    for kind in (db.games.Forest, db.games.Boosting):
        scores = [
            kind(db.Dataset(X[:200], labels, X[200:], y[200:]), loss="squared").utility(
                without, np.zeros(1, np.uint64)
            )[0]
            for labels in (y[:200], absurd)
        ]
        assert scores[0] == pytest.approx(scores[1], abs=0.02)


def test_many_trees_still_sum_to_one():
    X, y = np.arange(3.0)[:, None], np.arange(3)
    game = db.games.Forest(db.Dataset(X, y, X, y), 3000, min_samples_leaf=3)
    found = game.train(np.ones((1, 3), bool), np.zeros(1, np.uint64), predictions=True).predictions
    assert np.abs(found.sum(axis=2) - 1).max() < 1e-6


def small(**labels):
    X = np.arange(8.0)[:, None]
    return db.Dataset(
        X, labels.get("y", np.arange(8) % 2), X, labels.get("y_val", np.arange(8) % 2)
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: db.games.Forest(small(), trees=10**30), "`trees` must be at most"),
        (lambda: db.games.Boosting(small(), learning_rate=3.0), "between 0 and 2"),
        (lambda: db.games.Boosting(small(), learning_rate=10**400), "between 0 and 2"),
        (lambda: db.games.Boosting(small(), l2=np.array([1, 2])), "`l2` must be"),
        (lambda: db.games.Forest(small(), metric=np.array([1, 2])), "must be a name"),
        (
            lambda: db.games.Forest(
                small(y=np.arange(8.0), y_val=np.arange(8).astype("M8[D]")), loss="squared"
            ),
            "numbers as labels in `y_val`",
        ),
        (
            lambda: db.games.Forest(
                small(y=np.arange(8.0) * 1e155, y_val=np.arange(8.0)), loss="squared"
            ),
            "squares that a computer can hold",
        ),
        (lambda: small(y=np.array([1, "a"] * 4, dtype=object)), "all texts or all numbers"),
        (
            lambda: db.games.Forest(
                small(y=2**53 + np.arange(8) % 2, y_val=2.0**53 + np.arange(8) % 2)
            ),
            r"2\^53",
        ),
    ],
)
def test_what_a_tester_broke_gets_one_sentence(call, words):
    with pytest.raises(db.InvalidInput, match=words):
        call()


def test_whole_floats_and_many_leaves_are_taken():
    assert db.games.Forest(small(), threads=2.0).threads == 2
    game = db.games.Boosting(small(), max_leaves=10**12, min_samples_leaf=1, trees=2)
    assert np.isfinite(game.utility(np.ones((1, 8), bool), np.zeros(1, np.uint64))).all()


def test_categories_of_another_kind_in_the_validation_rows_are_refused():
    X = pd.DataFrame({"c": pd.Categorical(["1", "2", "1", "2"])})
    numbers = pd.DataFrame({"c": pd.Categorical([1, 2])})
    with pytest.raises(InvalidInput, match="categories of one kind"):
        db.games.Forest(db.Dataset(X, [0, 1, 0, 1], numbers, [0, 1]))
    gaps = pd.DataFrame({"c": pd.Categorical([None, None], categories=["1"])})
    db.games.Forest(db.Dataset(X, [0, 1, 0, 1], gaps, [0, 1]))


@pytest.mark.parametrize("metric", ["neg_mean_squared_error", "explained_variance", "r2"])
def test_metrics_of_numbers_are_refused_for_classes(metric):
    data = db.Dataset([[0.0], [1.0]], [0, 1], [[0.0], [1.0]], [0, 1])
    with pytest.raises(InvalidInput, match="for classification must be"):
        db.games.Forest(data, metric=metric)
