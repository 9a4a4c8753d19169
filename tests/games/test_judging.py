"""Rows that judge each other, in games that train: masks, kept answers, ledgers, bad input."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

import databanzhaf as db
from databanzhaf import data as data_module
from databanzhaf.metrics import RowMetric, pack_classes, pack_numbers, row_metric

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)
CLASSES = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.8)]
TARGETS = X[:, 0] + 0.1 * RNG.normal(size=40)


def games():
    classes, numbers = db.Dataset(X, CLASSES), db.Dataset(X, TARGETS)
    squared = {"loss": "squared"}
    return [
        db.games.Forest(classes, trees=4),
        db.games.Boosting(classes, trees=4),
        db.games.Network(classes, hidden=(5,), epochs=3, device="cpu"),
        db.games.Learner(LogisticRegression(), classes),
        db.games.Forest(numbers, trees=4, **squared),
        db.games.Network(numbers, hidden=(5,), epochs=3, device="cpu", **squared),
        db.games.Learner(LinearRegression(), numbers),
    ]


each_game = pytest.mark.parametrize("game", games(), ids=repr)


@each_game
def test_only_rows_outside_judge_and_as_validation_rows_would(game):
    """The same models, judged by the same rows as validation rows, say the same."""
    data = game.dataset
    coalitions = db.designs.Coin(40, 1).coalitions(np.arange(6))
    keys = db.chance.keys(0, db.chance.TRAINING, np.arange(6))
    said = game.verdicts(game.outcomes(coalitions, keys))
    assert np.array_equal(np.isnan(said), coalitions)
    split = db.Dataset(data.X, data.y, data.X, data.y)
    other = rebuilt(game, split)
    direct = other.verdicts(other.outcomes(coalitions, keys))
    np.testing.assert_allclose(said[~coalitions], direct[~coalitions], atol=2e-5)


def rebuilt(game, data):
    if isinstance(game, db.games.Learner):
        return db.games.Learner(game.estimator, data)
    how = {} if game.classifies else {"loss": "squared"}
    if isinstance(game, db.games.Network):
        return db.games.Network(data, hidden=(5,), epochs=3, device="cpu", **how)
    return type(game)(data, trees=4, **how)


@each_game
def test_runs_resume_and_tell_other_metrics(game, tmp_path):
    path = tmp_path / "run.db"
    db.value(game, budget=60, ledger=path)
    grown = db.value(game, budget=150, ledger=path)
    whole = db.value(game, budget=150, ledger=tmp_path / "whole.db")
    for name in ("values", "std_errors"):
        assert np.array_equal(getattr(grown, name), getattr(whole, name))
    assert np.array_equal(grown.errors.std_errors, whole.errors.std_errors)
    # The ledger alone says what the rows said.
    assert np.array_equal(db.estimate(path).values, whole.values)
    with db.Ledger(path) as ledger:
        assert ledger.keep == "outcomes"
        sizes = {len(each) for _, _, outcomes in ledger.outcomes() for each in outcomes}
    assert sizes == {40 * (2 if game.classifies else 4)}


def test_another_metric_from_kept_answers_is_that_of_a_run():
    data = db.Dataset(X, CLASSES)
    for metric in ("accuracy", "log_loss", "balanced_probability", "balanced_accuracy"):
        ledger = db.Ledger()
        db.value(db.games.Forest(data, trees=4), budget=150, ledger=ledger)
        again = db.estimate(ledger, game=db.games.Forest(data, trees=4, metric=metric))
        direct = db.value(db.games.Forest(data, trees=4, metric=metric), budget=150)
        np.testing.assert_allclose(again.values, direct.values, atol=1e-12)


def test_groups_are_judged_by_rows_of_other_groups():
    groups = np.arange(40) // 2
    game = db.games.Forest(db.Dataset(X, CLASSES, groups=groups), trees=3)
    coalitions = db.designs.Coin(20, 1).coalitions(np.arange(5))
    said = game.verdicts(game.outcomes(coalitions, np.arange(5, dtype=np.uint64)))
    assert np.array_equal(np.isnan(said), coalitions[:, groups])
    assert len(db.value(game, budget=100).values) == 20


def test_of_a_large_table_some_rows_judge(monkeypatch):
    monkeypatch.setattr(data_module, "MOST_JUDGES", 7)
    data = db.Dataset(X, CLASSES)
    assert len(data.judges) == len(data.y_val) == 7
    assert np.diff(data.judges).min() >= 5
    estimate = db.value(db.games.Forest(data, trees=3), budget=100)
    assert np.isfinite(estimate.values).all()


def test_the_removal_curve_has_the_same_jury_everywhere():
    game = db.games.Forest(db.Dataset(X, CLASSES), trees=5)
    estimate = db.value(game, budget=200)
    curve = db.applications.removal_curve(game, estimate, steps=4, random_orders=2)
    assert np.isfinite(curve.utility).all()
    assert curve.utility[0] > 1 / 3


def test_a_kept_answer_is_what_was_said():
    own, hit = np.array([0.0, 0.25, 1.0, np.nan]), np.array([False, False, True, False])
    said = RowMetric("probability").scores([pack_classes(own, hit, np.array([1, 1, 1, 1], bool))])
    assert said[0, :3] == pytest.approx([0, 0.25, 1], abs=1 / 32_766)
    assert said[0, 3] == -np.inf  # a model that gives no number fails; it is not skipped
    assert np.isnan(RowMetric("hit").scores([pack_classes(own, hit, ~hit)])[0, 2])
    residuals = np.array([0.5, np.nan, -2.0])
    judging = np.array([True, True, False])
    said = RowMetric("squared", unit=2.0).scores([pack_numbers(residuals, judging)])
    assert said[0, 0] == -1.0
    assert not np.isfinite(said[0, 1])
    assert np.isnan(said[0, 2])


def test_guesses_know_the_shares_alone():
    labels = np.array(["a", "a", "a", "b"])
    metric = row_metric("probability", classifies=True)
    weights = metric.weights(labels)
    assert metric.guesses(labels, weights).tolist() == [0.75, 0.75, 0.75, 0.25]
    balanced = row_metric("balanced_accuracy", classifies=True)
    even = balanced.weights(labels)
    assert even @ balanced.guesses(labels, even) == pytest.approx(0.5)
    numbers = row_metric("r2", classifies=False, unit=float(TARGETS.std()))
    uniform = numbers.weights(TARGETS)
    assert uniform @ numbers.guesses(TARGETS, uniform) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: db.Dataset(X, CLASSES, X), "belong together"),
        (lambda: db.games.Forest(db.Dataset(X, CLASSES), metric="f1_macro"), "mean over rows"),
        (
            lambda: db.games.Learner(LogisticRegression(), db.Dataset(X, CLASSES), "f1_macro"),
            "mean over rows",
        ),
        (
            lambda: db.games.Learner(LinearSVC(), db.Dataset(X, CLASSES), "balanced_probability"),
            "predict_proba",
        ),
        (
            lambda: db.games.Network(db.Dataset(X, CLASSES), metric_at="best_epoch"),
            "needs validation rows",
        ),
        (
            lambda: db.value(
                db.games.Forest(db.Dataset(X, CLASSES)),
                budget=9,
                ledger=db.Ledger(keep="utilities"),
            ),
            "`keep` must be left out",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call, words):
    with pytest.raises(db.InvalidInput, match=words):
        call()


def test_a_balanced_ledger_needs_its_game(tmp_path):
    game = db.games.Forest(db.Dataset(X, CLASSES), trees=3, metric="balanced_probability")
    db.value(game, budget=60, ledger=tmp_path / "run.db")
    with pytest.raises(db.InvalidInput, match="Pass game="):
        db.estimate(tmp_path / "run.db")
    assert np.isfinite(db.estimate(tmp_path / "run.db", game=game).values).all()


def test_folds_of_groups_of_one_row_share_the_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    data = db.Dataset(X, y, groups=rng.permutation(60))
    folds = db.games.Forest(data).seating.player_folds
    of_player = np.empty(60, dtype=int)
    of_player[data.player_of_row] = y
    assert [int(of_player[folds == fold].sum()) for fold in range(5)] == [6] * 5


@pytest.mark.parametrize("metric", ["f1", "f1_macro", "roc_auc"])
@pytest.mark.parametrize("model", [LogisticRegression(), KNeighborsClassifier(3), "forest"])
def test_many_outcomes_score_as_each_alone(metric, model):
    """By scikit-learn's own scorers, ties and classes that a model never predicts included."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)).round(1)
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    if metric == "f1_macro":
        y = np.array(["a", "b", "c"])[y + (rng.random(90) < 0.1)]
    data = db.Dataset(X[:40], y[:40], X[40:], y[40:])
    kind = db.games.Forest if model == "forest" else lambda d, **k: db.games.Learner(model, d, **k)
    game = kind(data, metric=metric)
    coalitions = db.designs.Coin(40, 0).coalitions(np.arange(60))
    outcomes = game.outcomes(coalitions, db.chance.keys(0, 2, np.arange(60)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class that is never predicted
        alone = [game.score(outcome) for outcome in outcomes]
    np.testing.assert_allclose(game.scores(outcomes), alone, rtol=0, atol=1e-12)
