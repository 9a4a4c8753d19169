import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import f1_score, get_scorer, make_scorer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import databanzhaf as db
from databanzhaf.games import Learner

KEY = np.zeros(1, np.uint64)


def dataset(n=40, n_val=60, n_classes=2, labels=None, **options):
    X, y = make_classification(
        n + n_val, n_features=5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )
    y = y if labels is None else np.array(labels)[y]
    return db.Dataset(X[:n], y[:n], X[n:], y[n:], **options)


def utility(game, coalition, key=KEY):
    return game.utility(np.asarray(coalition, bool)[None], key)[0]


def everybody(data):
    return np.ones(data.n_players, bool)


def test_probability_is_the_mean_probability_of_the_true_class():
    data = dataset(n_classes=3)
    game = Learner(LogisticRegression(), data)
    coalition = np.arange(40) % 3 > 0
    model = LogisticRegression().fit(data.X[coalition], data.y[coalition])
    by_hand = np.mean(
        [p[label] for p, label in zip(model.predict_proba(data.X_val), data.y_val, strict=True)]
    )
    assert utility(game, coalition) == pytest.approx(by_hand)
    assert game.metric == "probability"


LABEL_SCORERS = ["accuracy", "balanced_accuracy", "f1"]
RANK_SCORERS = ["roc_auc", "average_precision"]


@pytest.mark.parametrize(
    ("estimator", "scorings"),
    [
        (LogisticRegression(), [*LABEL_SCORERS, *RANK_SCORERS, "neg_log_loss", "neg_brier_score"]),
        (SVC(random_state=0), [*LABEL_SCORERS, *RANK_SCORERS]),
        (LinearSVC(random_state=0), [*LABEL_SCORERS, *RANK_SCORERS]),
    ],
    ids=lambda x: type(x).__name__,
)
def test_scikit_learns_scorers_by_name(estimator, scorings):
    data = dataset()
    coalition = np.arange(40) % 4 > 0
    model = estimator.fit(data.X[coalition], data.y[coalition])
    for metric in scorings:
        expected = get_scorer(metric)(model, data.X_val, data.y_val)
        assert utility(Learner(estimator, data, metric), coalition) == pytest.approx(expected)


def test_scorers_as_objects_and_functions():
    data = dataset(n_classes=3)
    model = LogisticRegression().fit(data.X, data.y)
    macro = f1_score(data.y_val, model.predict(data.X_val), average="macro")
    for scorer in (
        make_scorer(f1_score, average="macro"),
        lambda m, X, y: f1_score(y, m.predict(X), average="macro"),
    ):
        assert utility(
            Learner(LogisticRegression(), data, scorer), everybody(data)
        ) == pytest.approx(macro)


def test_regression_defaults_to_r2_and_takes_any_scorer():
    X, y = make_regression(60, 4, noise=5.0, random_state=0)
    data = db.Dataset(X[:30], y[:30], X[30:], y[30:])
    model = LinearRegression().fit(data.X, data.y)
    game = Learner(LinearRegression(), data)
    assert game.metric == "r2"
    assert utility(game, everybody(data)) == pytest.approx(model.score(data.X_val, data.y_val))
    for metric in ("neg_mean_squared_error", "neg_median_absolute_error", "explained_variance"):
        expected = get_scorer(metric)(model, data.X_val, data.y_val)
        assert utility(Learner(LinearRegression(), data, metric), everybody(data)) == pytest.approx(
            expected
        )
    mean = np.full(30, data.y.mean())
    expected = -np.mean((mean - data.y_val) ** 2)
    assert utility(Learner(Ridge(), data, "neg_mean_squared_error"), np.zeros(30)) == pytest.approx(
        expected
    )
    one = np.arange(30) == 3
    single = Ridge().fit(data.X[one], data.y[one])
    assert utility(Learner(Ridge(), data), one) == pytest.approx(
        single.score(data.X_val, data.y_val)
    )


def test_an_empty_coalition_predicts_the_majority():
    data = db.Dataset(
        np.zeros((5, 1)), ["b", "a", "b", "b", "a"], np.zeros((4, 1)), ["b", "a", "a", "a"]
    )
    for metric in ("probability", "accuracy"):
        assert utility(Learner(LogisticRegression(), data, metric), np.zeros(5)) == 0.25
    assert np.isfinite(utility(Learner(LogisticRegression(), data, "neg_log_loss"), np.zeros(5)))
    assert utility(Learner(LogisticRegression(), data, "roc_auc"), np.zeros(5)) == 0.5
    assert utility(Learner(LinearSVC(), data, "roc_auc"), np.zeros(5)) == 0.5


def test_a_coalition_of_one_class_predicts_it():
    data = db.Dataset(
        np.zeros((5, 1)), ["b", "a", "b", "b", "a"], np.zeros((4, 1)), ["b", "a", "a", "a"]
    )
    assert utility(Learner(LogisticRegression(), data), [0, 1, 0, 0, 1]) == 0.75
    assert utility(Learner(LogisticRegression(), data, "accuracy"), [1, 0, 1, 0, 0]) == 0.25


def test_a_coalition_that_lacks_a_class_gives_it_probability_zero():
    data = dataset(n_classes=3, labels=["x", "y", "z"])
    coalition = data.y != "y"
    game = Learner(LogisticRegression(), data)
    answers = game.answers(coalition, KEY[0])
    probabilities = answers.predict_proba(None)
    assert probabilities.shape == (60, 3)
    assert (probabilities[:, 1] == 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(60))
    for estimator, metric in (
        (LogisticRegression(), "neg_log_loss"),
        (LogisticRegression(), "roc_auc_ovr"),
        (LogisticRegression(), "top_k_accuracy"),
        (KNeighborsClassifier(1), "f1_macro"),
    ):
        assert np.isfinite(utility(Learner(estimator, data, metric), coalition))


def test_a_class_that_only_the_validation_rows_have():
    data = db.Dataset([[0.0], [1.0], [2.0]], ["a", "b", "b"], [[0.0], [1.0]], ["a", "c"])
    assert 0 < utility(Learner(LogisticRegression(), data), [1, 1, 1]) < 0.5
    assert utility(Learner(KNeighborsClassifier(1), data, "accuracy"), [1, 1, 1]) == 0.5


def test_string_labels_pandas_sparse_and_missing_features():
    data = dataset(labels=["spam", "ham"])
    plain = Learner(LogisticRegression(), data)
    frame = pd.DataFrame(data.X)
    for table, val in (
        (frame, pd.DataFrame(data.X_val)),
        (sparse.csr_matrix(data.X), sparse.csr_matrix(data.X_val)),
    ):
        other = Learner(LogisticRegression(), db.Dataset(table, data.y, val, data.y_val))
        assert utility(other, everybody(data)) == pytest.approx(
            utility(plain, everybody(data)), abs=1e-5
        )
    holes = data.X.copy()
    holes[::3, 0] = np.nan
    holed = db.Dataset(holes, data.y, data.X_val, data.y_val)
    assert (
        0
        < utility(Learner(HistGradientBoostingClassifier(random_state=0), holed), everybody(data))
        < 1
    )
    with pytest.raises(ValueError, match="NaN"):
        utility(Learner(LogisticRegression(), holed), everybody(data))


def test_pipelines_with_mixed_columns_and_groups():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80)})
    y = np.where((frame["size"] > 0) ^ (frame["colour"] == "red"), "yes", "no")
    supplier = np.repeat(["ann", "bob", "cy", "dee"], 15)
    pipeline = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["size"]), (OneHotEncoder(handle_unknown="ignore"), ["colour"])
        ),
        DecisionTreeClassifier(),
    )
    data = db.Dataset(frame[:60], y[:60], frame[60:], y[60:], groups=supplier)
    estimate = db.value(Learner(pipeline, data), repeats=2)
    assert estimate.estimator.name == "exact"
    assert list(estimate.to_frame().index) == ["ann", "bob", "cy", "dee"]
    assert np.isfinite(estimate.std_errors).all()


def test_the_key_decides_the_training():
    data = dataset()
    game = Learner(RandomForestClassifier(n_estimators=3), data)
    assert game.stochastic
    keys = db.chance.keys(0, db.chance.TRAINING, np.zeros(4, int), np.arange(4))
    full = np.ones((4, 40), bool)
    first, again = game.utility(full, keys), game.utility(full, keys)
    assert np.array_equal(first, again)
    assert len(set(first)) > 1
    assert np.array_equal(game.utility(full[:1], keys[2:3]), first[2:3])


def test_a_chosen_random_state_stays_and_a_generator_does_not():
    data, keys = dataset(), db.chance.keys(0, 2, np.arange(2))
    full = np.ones((2, 40), bool)
    fixed = Learner(RandomForestClassifier(n_estimators=3, random_state=7), data)
    assert not fixed.stochastic
    assert len(set(fixed.utility(full, keys))) == 1
    generator = RandomForestClassifier(n_estimators=3, random_state=np.random.RandomState(0))
    live = Learner(generator, data)
    assert live.stochastic
    assert np.array_equal(live.utility(full, keys), live.utility(full, keys))
    nested = make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss"))
    assert len(set(Learner(nested, data).utility(full, keys))) == 2
    assert not Learner(KNeighborsClassifier(), data).stochastic


class Moody(ClassifierMixin, BaseEstimator):
    """Refuses to learn from row 3 and row 5 together."""

    def fit(self, X, y):
        if {3.0, 5.0} <= set(X[:, 0]):
            raise RuntimeError("not those two")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_estimator_that_raises_is_named_and_the_others_are_kept(tmp_path, jobs):
    data = db.Dataset(np.arange(20.0)[:, None], np.arange(20) % 2, np.zeros((4, 1)), [0, 1, 0, 1])
    game = Learner(Moody(), data, "accuracy")
    evaluator = db.evaluators.Processes(jobs) if jobs > 1 else None
    with pytest.raises(db.EvaluationFailed, match="not those two") as error:
        db.value(game, budget=100, ledger=tmp_path / "run.db", evaluator=evaluator)
    coalitions = db.designs.Coin(20, 0).coalitions(np.arange(100))
    first = int((coalitions[:, 3] & coalitions[:, 5]).argmax())
    assert error.value.index == first
    assert np.array_equal(error.value.coalition, coalitions[first])
    with db.Ledger(tmp_path / "run.db") as ledger:
        assert len(ledger.utilities()) >= first
        assert np.isfinite(ledger.utilities()[:first]).all()


def test_a_scorer_that_returns_nan_is_an_error_with_its_index():
    data = dataset()
    game = Learner(KNeighborsClassifier(1), data, lambda model, X, y: np.nan)
    with pytest.raises(db.EvaluationFailed, match="nan") as error:
        db.value(game, budget=10)
    assert error.value.index == 0
    assert len(error.value.coalition) == 40


def test_processes_give_the_same_bits(tmp_path):
    data = dataset()
    for estimator in (LogisticRegression(), RandomForestClassifier(n_estimators=3)):
        game = Learner(estimator, data)
        serial = db.value(game, budget=40)
        parallel = db.value(game, budget=40, evaluator=db.evaluators.Processes(2))
        assert np.array_equal(serial.values, parallel.values)


@pytest.mark.parametrize(
    ("estimator", "n_classes"),
    [
        (LogisticRegression(), 2),
        (LogisticRegression(), 3),
        (SVC(random_state=0), 3),
        (LinearSVC(random_state=0), 2),
        (KNeighborsClassifier(3), 3),
    ],
    ids=str,
)
def test_outcomes_are_kept_so_that_another_metric_needs_no_training(tmp_path, estimator, n_classes):
    data = dataset(n_classes=n_classes, labels=["x", "y", "z"][:n_classes])
    with db.Ledger(tmp_path / "run.db", keep="outcomes") as ledger:
        first = db.value(Learner(estimator, data, "accuracy"), budget=60, ledger=ledger)
    for metric in ("accuracy", "f1_macro", "balanced_accuracy"):
        again = db.estimate(tmp_path / "run.db", game=Learner(estimator, data, metric))
        fresh = db.value(Learner(estimator, data, metric), budget=60)
        assert np.array_equal(again.values, fresh.values)
    assert np.array_equal(db.estimate(tmp_path / "run.db").values, first.values)
    if hasattr(estimator, "predict_proba"):
        again = db.estimate(tmp_path / "run.db", game=Learner(estimator, data))
        assert np.array_equal(again.values, db.value(Learner(estimator, data), budget=60).values)
    with pytest.raises(db.LedgerMismatch, match=r"metric[\s\S]*databanzhaf\.estimate"):
        db.value(Learner(estimator, data, "f1_macro"), budget=60, ledger=tmp_path / "run.db")
    more = db.value(Learner(estimator, data, "accuracy"), budget=90, ledger=tmp_path / "run.db")
    assert more.n_evaluations == 90
    rescored = db.estimate(tmp_path / "run.db", game=Learner(estimator, data, "f1_macro"))
    assert rescored.n_evaluations == 90


def test_rescoring_needs_the_same_game_and_kept_outcomes(tmp_path):
    data = dataset()
    with db.Ledger(tmp_path / "kept.db", keep="outcomes") as ledger:
        db.value(Learner(LogisticRegression(), data), budget=20, ledger=ledger)
    with pytest.raises(db.LedgerMismatch, match=r"estimator\.C"):
        db.estimate(tmp_path / "kept.db", game=Learner(LogisticRegression(C=2.0), data, "accuracy"))
    with pytest.raises(db.LedgerMismatch, match="keeps outcomes"):
        db.Ledger(tmp_path / "kept.db", keep="utilities")
    with db.Ledger(tmp_path / "plain.db", keep="utilities") as ledger:
        db.value(Learner(LogisticRegression(), data), budget=20, ledger=ledger)
    with pytest.raises(db.LedgerMismatch, match="keeps utilities only"):
        db.estimate(tmp_path / "plain.db", game=Learner(LogisticRegression(), data, "accuracy"))
    with pytest.raises(db.InvalidInput, match="metric"):
        db.estimate(
            tmp_path / "kept.db",
            game=Learner(LogisticRegression(), data, lambda model, X, y: np.nan),
        )


def test_the_fingerprint_sees_data_model_parameters_and_metric(tmp_path):
    data = dataset()
    base = Learner(LogisticRegression(), data)
    db.value(base, budget=10, ledger=tmp_path / "run.db")
    others = {
        "data": Learner(LogisticRegression(), dataset(n=40, n_val=59)),
        "estimator.C": Learner(LogisticRegression(C=0.5), data),
        "estimator": Learner(KNeighborsClassifier(), data),
        "metric": Learner(LogisticRegression(), data, "accuracy"),
    }
    for name, other in others.items():
        with pytest.raises(db.LedgerMismatch, match=name):
            db.value(other, budget=10, ledger=tmp_path / "run.db")


def test_banzhaf_finds_flipped_labels():
    """The whole path: rows whose labels were flipped get the lowest values."""
    X, y = make_classification(400, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=3)
    flipped = np.arange(10)
    noisy = y.copy()
    noisy[flipped] = 1 - noisy[flipped]
    data = db.Dataset(X[:100], noisy[:100], X[100:], y[100:])
    estimate = db.value(Learner(LogisticRegression(), data), budget=700)
    assert np.isin(estimate.ranking()[:10], flipped).sum() >= 7


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Learner(LinearSVC(), dataset()), 'metric="accuracy"'),
        (lambda: Learner(Ridge(), dataset(), "probability"), 'metric="r2"'),
        (lambda: Learner(LogisticRegression(), dataset(), "acuracy"), "acuracy"),
        (lambda: Learner(LogisticRegression, dataset()), "instance"),
        (lambda: Learner(StandardScaler(), dataset()), "classifier or regressor"),
        (lambda: Learner(LogisticRegression(), (1, 2)), "Dataset"),
        (lambda: Learner(Ridge(), dataset(labels=["a", "b"])), "numbers"),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, words):
    with pytest.raises(db.InvalidInput) as error:
        make()
    assert words in str(error.value)


def test_randomness_inside_a_search_belongs_to_the_key_too():
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [1, 2]},
        cv=StratifiedKFold(2, shuffle=True),
    )
    game = Learner(search, dataset(n=30), "accuracy")
    assert game.stochastic
    coalitions, keys = np.ones((6, 30), bool), db.chance.keys(0, 2, np.arange(6))
    assert np.array_equal(game.utility(coalitions, keys), game.utility(coalitions, keys))
    assert search.cv.random_state is None


def test_texts_can_be_rows():
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["good film", "bad film", "good play", "bad play", "very good", "very bad"]
    data = db.Dataset(texts[:4], ["+", "-", "+", "-"], texts[4:], ["+", "-"])
    game = Learner(make_pipeline(TfidfVectorizer(), LogisticRegression()), data, "accuracy")
    assert db.value(game).values.shape == (4,)


def test_labels_and_validation_labels_must_share_classes():
    X = np.zeros((2, 1))
    with pytest.raises(db.InvalidInput, match="one kind"):
        db.Dataset(X, ["no", "yes"], X, [0, 1])
    with pytest.raises(db.InvalidInput, match="share classes"):
        Learner(LogisticRegression(), db.Dataset(X, [0, 1], X, [5, 6]))
