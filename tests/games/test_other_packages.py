"""XGBoost, LightGBM and skorch estimators, with the packages themselves."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import databanzhaf as db
from databanzhaf.games.generators import seeded_generators

X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y = X[ORDER].astype(np.float32), Y[ORDER]


def data(labels=Y):
    return db.Dataset(X[:30], labels[:30], X[30:], labels[30:])


def one_class_missing():
    """All rows of the first and the last class: XGBoost alone would refuse the gap between their
    numbers.
    """
    return (Y[:30] != 1)[None, :]


def xgboost():
    return pytest.importorskip("xgboost").XGBClassifier(n_estimators=5, subsample=0.7, n_jobs=1)


def lightgbm():
    return pytest.importorskip("lightgbm").LGBMClassifier(
        n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1
    )


def skorch():
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
            )

        def forward(self, X):
            return self.layers(X)

    package = pytest.importorskip("skorch")
    how = {
        "optimizer": torch.optim.Adam,
        "lr": 0.05,
        "max_epochs": 40,
        "train_split": None,
        "verbose": 0,
    }
    return package.NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, **how)


@pytest.mark.parametrize("make", [xgboost, lightgbm, skorch])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_they_value_rows_and_give_the_same_bits_again(make):
    for estimator in (make(), make_pipeline(StandardScaler(), make())):
        game = db.games.Learner(estimator, data(), metric="accuracy")
        assert game.stochastic
        first, second = (db.value(game, budget=15).values for _ in range(2))
        assert np.array_equal(first, second)
        assert game.utility(np.ones((1, 30), bool), np.zeros(1, np.uint64))[0] > 0.8


@pytest.mark.parametrize("make", [xgboost, lightgbm, skorch])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_coalition_without_a_middle_class_is_scored_by_the_labels_own_names(make):
    key = np.zeros(1, np.uint64)
    game = db.games.Learner(make(), data(), metric="accuracy")
    with seeded_generators(key[0]):  # else skorch starts where the tests before it left torch
        answers = game.answers(one_class_missing()[0], key[0])
    seen = game.dataset.y_val != 1
    assert np.mean(answers.predict(None)[seen] == game.dataset.y_val[seen]) > 0.9
    assert answers.predict_proba(None).shape == (120, 3)
    assert (
        np.mean(answers.predict_proba(None)[seen].argmax(axis=1) == game.dataset.y_val[seen]) > 0.9
    )


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("piped", [False, True])
def test_a_skorch_regressor_learns_whatever_shape_its_module_answers_in(flat, piped):
    """Answers of shape (rows, 1) beside targets of shape (rows,) would make torch compare every row
    with every other.
    """
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, X):
            return self.layer(X)[:, 0] if flat else self.layer(X)

    package = pytest.importorskip("skorch")
    net = package.NeuralNetRegressor(Net, lr=0.1, max_epochs=100, train_split=None, verbose=0)
    estimator = make_pipeline(StandardScaler(), net) if piped else net
    rows = (X - X.mean(axis=0)) / X.std(axis=0)
    target = rows.astype(np.float64) @ [1.0, -2.0, 0.5, 3.0]
    for labels in (target, target[:, None]):
        dataset = db.Dataset(
            rows[:60].astype(np.float64), labels[:60], rows[60:].astype(np.float64), labels[60:]
        )
        game = db.games.Learner(estimator, dataset)
        assert game.utility(np.ones((1, 60), bool), np.zeros(1, np.uint64))[0] > 0.95  # its r2


def test_xgboost_takes_labels_of_any_kind():
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    numbers, texts = (
        db.games.Learner(xgboost(), data(labels), metric="accuracy") for labels in (Y, names)
    )
    coalitions, keys = np.random.default_rng(0).random((8, 30)) < 0.5, np.arange(8, dtype=np.uint64)
    assert np.array_equal(numbers.utility(coalitions, keys), texts.utility(coalitions, keys))


def test_an_estimator_that_draws_from_numpys_global_generator_has_chance_by_index():
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Moody(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, self.mood_ = np.unique(y), np.random.random()  # noqa: NPY002
            return self

        def predict(self, X):
            return np.where(
                np.arange(len(X)) < self.mood_ * len(X), self.classes_[0], self.classes_[-1]
            )

    game = db.games.Learner(Moody(), data(), metric="accuracy", stochastic=True)
    coalitions, keys = np.ones((3, 30), bool), np.arange(3, dtype=np.uint64)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first = game.utility(coalitions, keys)
    assert len(set(first)) == 3
    assert np.array_equal(game.utility(coalitions[::-1], keys[::-1])[::-1], first)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_boosters_get_one_thread_unless_a_number_was_chosen():
    kind = pytest.importorskip("lightgbm").LGBMClassifier
    game = db.games.Learner(
        make_pipeline(StandardScaler(), kind(verbose=-1, n_estimators=2)), data()
    )
    fitted = game._fit(np.arange(30), np.uint64(0))
    assert fitted[-1].get_params()["n_jobs"] == 1
    chosen = db.games.Learner(kind(verbose=-1, n_estimators=2, n_jobs=2), data())
    assert chosen._fit(np.arange(30), np.uint64(0)).get_params()["n_jobs"] == 2
