"""Models and metrics by name."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge

import databanzhaf as db
from databanzhaf.models import is_classification, make_game, named_metric

X, Y = load_iris(return_X_y=True)
DATA = db.Dataset(X[::3], Y[::3], X[1::3], Y[1::3])
NUMBERS = db.Dataset(X[::3, :3], X[::3, 3], X[1::3, :3], X[1::3, 3])


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["a", "b"], True),
        ([True, False], True),
        ([0, 1, 1, 0], True),
        ([0.0, 1.0, 1.0], True),
        ([0.5, 1.0, 1.5, 0.5], False),
        (list(range(100)), False),
        ([1, 2, 3, 4, 5] * 10, True),
        ([1, 2], True),
    ],
)
def test_what_is_a_class(labels, classes):
    assert is_classification(labels) is classes


@pytest.mark.parametrize(
    "metric", ["probability", "accuracy", "f1", "log_loss", "auc", "balanced_accuracy"]
)
@pytest.mark.parametrize("model", ["mlp", "logistic", "forest", "knn"])
def test_metrics_of_classes(model, metric):
    game = make_game(model, DATA, classifies=True, metric=metric)
    full = game.utility(np.ones((1, 50), bool), np.zeros(1, np.uint64))[0]
    assert full > {"log_loss": -0.9, "probability": 0.4}.get(metric, 0.7)


@pytest.mark.parametrize("metric", ["r2", "mse", "mae", "rmse"])
@pytest.mark.parametrize("model", ["mlp", "linear", "boosting", "knn"])
def test_metrics_of_numbers(model, metric):
    game = make_game(model, NUMBERS, classifies=False, metric=metric)
    everyone, nobody = game.utility(np.array([[True] * 50, [False] * 50]), np.zeros(2, np.uint64))
    assert everyone > nobody + 0.1


def test_f1_is_that_of_class_one_or_the_mean_over_classes():
    two = db.Dataset(X[:4], [0, 1, 0, 1], X[:4], [0, 1, 0, 1])
    assert named_metric("f1", two, network=False) == "f1"
    assert named_metric("f1", DATA, network=True) == "f1_macro"
    assert named_metric("auc", DATA, network=True) == "roc_auc_ovr"
    assert named_metric("mse", NUMBERS, network=True) == "mse"
    assert named_metric("mse", NUMBERS, network=False) == "neg_mean_squared_error"


def test_neighbours_work_with_fewer_rows_than_neighbours():
    for data, classifies in ((DATA, True), (NUMBERS, False)):
        game = make_game("knn", data, classifies=classifies)
        coalition = np.zeros((1, 50), bool)
        coalition[0, [0, 40]] = True
        assert np.isfinite(game.utility(coalition, np.zeros(1, np.uint64))).all()


def test_factories_from_a_module_of_the_users_own(tmp_path, monkeypatch):
    (tmp_path / "my_models_here.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "from torch import nn\n"
        "ready = LogisticRegression(C=2)\n"
        "def make(): return LogisticRegression(C=3)\n"
        "def net(columns, outputs): return nn.Linear(columns, outputs)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert make_game("my_models_here:ready", DATA, classifies=True).estimator.C == 2
    assert make_game("my_models_here:make", DATA, classifies=True).estimator.C == 3
    assert (
        make_game("sklearn.linear_model:LogisticRegression", DATA, classifies=True).estimator.C == 1
    )
    first, second = (
        make_game("my_models_here:net", DATA, classifies=True, device="cpu") for _ in range(2)
    )
    assert isinstance(first, db.games.Module)
    assert first.fingerprint() == second.fingerprint()
    for model in ("my_models_here:absent", "no_such_module_here:x", ":"):
        with pytest.raises(db.InvalidInput, match=r"cannot be imported|Name the module"):
            make_game(model, DATA, classifies=True)


def test_estimators_pass_through_and_mistakes_speak_of_the_metric():
    assert make_game(Ridge(), NUMBERS, classifies=False).estimator.alpha == 1
    for model in ("mlp", LogisticRegression()):
        with pytest.raises(db.InvalidInput, match="`metric`"):
            make_game(model, DATA, classifies=True, metric="no such metric")
