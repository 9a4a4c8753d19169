"""The scikit-learn face."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks

import databanzhaf as db

X, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(X)[:120], Y[:120]


# All checks apply; an entry {check: reason} in `expected_failed_checks` would excuse one.
@parametrize_with_checks(
    [db.DataBanzhaf(budget=60), db.DataBanzhaf(LogisticRegression(), budget=20)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_constructor_only_stores():
    anything = object()
    valuator = db.DataBanzhaf(anything, notion=anything, budget=anything)
    assert valuator.estimator is anything
    assert valuator.get_params()["budget"] is anything
    assert clone(db.DataBanzhaf("mlp", budget=7)).budget == 7


def test_values_are_those_of_the_plain_call():
    valuator = db.DataBanzhaf(LogisticRegression(), budget=200, seed=3).fit(
        X[:80], Y[:80], X[80:], Y[80:]
    )
    game = db.games.Learner(LogisticRegression(), db.Dataset(X[:80], Y[:80], X[80:], Y[80:]))
    plain = db.value(game, budget=200, seed=3)
    assert np.array_equal(valuator.values_, plain.values)
    assert np.array_equal(valuator.std_errors_, plain.errors.std_errors)
    assert not valuator.held_out_.any()


def test_held_out_rows_are_a_share_of_each_class_and_have_no_value():
    valuator = db.DataBanzhaf(budget=100, validation_fraction=0.25).fit(X, Y)
    for label in (0, 1):
        assert abs(valuator.held_out_[label == Y].mean() - 0.25) < 0.02
    assert np.array_equal(np.isnan(valuator.values_), valuator.held_out_)
    weight = valuator.sample_weight()
    assert weight.shape == Y.shape
    assert weight[~valuator.held_out_].min() == 0
    assert weight[~valuator.held_out_].max() == 1
    assert np.allclose(weight[valuator.held_out_], weight[~valuator.held_out_].mean())
    LogisticRegression().fit(X, Y, sample_weight=weight)


def test_suspects_find_flipped_labels():
    flipped = np.random.default_rng(0).choice(120, 12, replace=False)
    wrong = Y.copy()
    wrong[flipped] = 1 - wrong[flipped]
    valuator = db.DataBanzhaf("logistic", budget=2000).fit(X, wrong)
    assert np.isin(valuator.suspects(), flipped).mean() > 0.9
    assert np.isin(flipped, valuator.suspects()).mean() > 0.5
    assert np.isin(flipped, valuator.suspects(fraction=0.1)).mean() > 0.7
    assert np.array_equal(valuator.suspects(), valuator.suspects(fdr=0.05))
    lowest = valuator.suspects(fraction=0.1)
    assert len(lowest) == round(0.1 * (~valuator.held_out_).sum())
    assert (np.diff(valuator.values_[lowest]) >= 0).all()
    assert set(valuator.suspects("cluster")) <= set(np.flatnonzero(~valuator.held_out_))


def test_pandas_index_and_mixed_columns_are_kept():
    frame = pd.DataFrame(
        X[:, :3].copy(), columns=["a", "b", "c"], index=[f"row {i}" for i in range(120)]
    )
    frame.loc["row 3", "a"] = np.nan
    frame["city"] = np.where(np.arange(120) % 3, "Rome", None)
    labels = pd.Series(np.where(Y, "good", "bad"), index=frame.index)
    valuator = db.DataBanzhaf("mlp", budget=100).fit(frame, labels)
    assert list(valuator.estimate_.to_frame().index) == list(frame.index[~valuator.held_out_])
    assert list(valuator.feature_names_in_) == ["a", "b", "c", "city"]


def test_groups():
    groups = np.array(["ann", "bob", "cy"])[np.arange(120) % 3]
    valuator = db.DataBanzhaf("logistic", budget=100, repeats=2).fit(X, Y, groups=groups)
    assert len(valuator.estimate_.values) == 3
    for name in ("ann", "bob", "cy"):
        assert len(np.unique(valuator.values_[(groups == name) & ~valuator.held_out_])) == 1


@pytest.mark.parametrize(
    "estimator",
    [None, "mlp", "linear", "forest", "knn", Ridge(), make_pipeline(StandardScaler(), Ridge())],
    ids=str,
)
def test_regression(estimator):
    rows, target = load_diabetes(return_X_y=True)
    valuator = db.DataBanzhaf(estimator, budget=30).fit(rows[:60], target[:60])
    assert valuator.game_.fingerprint()["metric"] == "r2"
    assert np.isfinite(valuator.values_[~valuator.held_out_]).all()


@pytest.mark.parametrize("name", ["mlp", "logistic", "forest", "boosting", "knn"])
def test_models_by_name_and_strings_as_labels(name):
    rows, labels = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    valuator = db.DataBanzhaf(name, budget=20).fit(rows[::3], names[::3])
    assert np.isfinite(valuator.values_[~valuator.held_out_]).all()


def test_a_function_that_makes_a_torch_module():
    from torch import nn

    def net(columns, outputs):
        return nn.Sequential(nn.Linear(columns, 8), nn.ReLU(), nn.Linear(8, outputs))

    valuator = db.DataBanzhaf(net, budget=40).fit(X, Y)
    assert isinstance(valuator.game_, db.games.Module)
    fixed = db.DataBanzhaf(lambda: nn.Linear(30, 2), budget=40).fit(X, Y)
    assert np.isfinite(fixed.values_[~fixed.held_out_]).all()


def test_estimators_that_take_missing_values_get_them():
    rows = X.copy()
    rows[3, 2] = np.nan
    boosting = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5)
    assert np.isfinite(db.DataBanzhaf(boosting, budget=4).fit(rows, Y).estimate_.values).all()
    with pytest.raises(ValueError, match="NaN"):
        db.DataBanzhaf(LogisticRegression(), budget=4).fit(rows, Y)


def test_pickle_grid_search_and_score():
    valuator = db.DataBanzhaf("logistic", budget=400).fit(X, Y)
    again = pickle.loads(pickle.dumps(valuator))
    assert np.array_equal(again.values_, valuator.values_, equal_nan=True)
    assert 0 < again.score() <= 1
    search = GridSearchCV(db.DataBanzhaf("logistic"), {"budget": [40, 1000]}, cv=2).fit(X, Y)
    assert search.best_params_ == {"budget": 1000}
    assert search.best_estimator_.estimate_.n_evaluations == 1000


def test_score_is_the_agreement_of_two_halves():
    valuator = db.DataBanzhaf("logistic", budget=400, notion="banzhaf").fit(X, Y)
    ledger = db.Ledger()
    db.value(valuator.game_, budget=400, ledger=ledger)
    evaluations = db.ledger.read_evaluations(ledger)
    halves = [
        db.estimate(evaluations.only(evaluations.indices % 2 == parity)).values for parity in (0, 1)
    ]
    assert valuator.score() == db.ranking.spearman(*halves)
    exact = db.DataBanzhaf(LogisticRegression(random_state=0), budget=100).fit(
        X, Y, groups=np.arange(120) % 4
    )
    assert exact.score() == 1.0


def test_a_ledger_resumes(tmp_path):
    first = db.DataBanzhaf("logistic", budget=100, ledger=tmp_path / "run.db").fit(X, Y)
    more = db.DataBanzhaf("logistic", budget=300, ledger=tmp_path / "run.db").fit(X, Y)
    assert first.estimate_.n_evaluations == 100
    plain = db.DataBanzhaf("logistic", budget=300).fit(X, Y)
    assert np.array_equal(more.values_, plain.values_, equal_nan=True)


def test_worker_count_changes_nothing():
    for estimator in ("logistic", LogisticRegression()):
        one, two = (
            db.DataBanzhaf(estimator, budget=40, n_jobs=jobs).fit(X, Y).values_ for jobs in (1, 2)
        )
        assert np.array_equal(one, two, equal_nan=True)


def test_numbers_as_column_names_and_nullable_labels():
    plain = db.DataBanzhaf(budget=30).fit(X, Y).values_
    table = pd.DataFrame(X)
    assert np.array_equal(
        db.DataBanzhaf(budget=30, n_jobs=None).fit(table, pd.Series(Y, dtype="Int64")).values_,
        plain,
        equal_nan=True,
    )


@pytest.mark.parametrize(
    "index",
    [
        pd.to_timedelta(range(len(Y)), unit="D"),
        pd.interval_range(0, len(Y)),
        pd.period_range("2020", periods=len(Y), freq="D"),
        pd.Index([bytes([i]) for i in range(len(Y))]),
    ],
    ids=["timedelta", "interval", "period", "bytes"],
)
def test_an_index_of_any_kind(index, tmp_path):
    found = db.DataBanzhaf("logistic", budget=20, ledger=tmp_path / "run.db").fit(
        pd.DataFrame(X).set_axis(index), Y
    )
    assert found.estimate_.to_frame().index.equals(index[~found.held_out_])
    assert len(db.estimate(tmp_path / "run.db").players) == (~found.held_out_).sum()


def test_until_samples_few_groups_once_each():
    found = db.DataBanzhaf("logistic", budget=300, until=db.until.ranking_stable(0.9999)).fit(
        X, Y, groups=np.arange(len(Y)) % 4
    )
    assert found.estimate_.n_evaluations <= 300
    assert found.estimate_.estimator.name == "regression"


@pytest.mark.parametrize("estimator", ["forest", "knn", "mlp", "logistic"])
def test_log_loss_where_the_validation_rows_lack_a_class(estimator):
    train, seen = np.arange(len(Y)) % 2 == 0, (np.arange(len(Y)) % 2 == 1) & (Y.max() != Y)
    found = db.DataBanzhaf(estimator, budget=20, metric="log_loss").fit(
        X[train], Y[train], X[seen], Y[seen]
    )
    assert np.isfinite(found.values_).all()


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: db.DataBanzhaf(budget=9).fit(X, Y, X), "belong together"),
        (lambda: db.DataBanzhaf("tree", budget=9).fit(X, Y), "the model must be one of"),
        (lambda: db.DataBanzhaf("linear", budget=9).fit(X, Y), '"logistic"'),
        (lambda: db.DataBanzhaf(lambda a: a, budget=9).fit(X, Y), "Wrap it"),
        (lambda: db.DataBanzhaf(lambda: 3, budget=9).fit(X, Y), "factory must return"),
        (lambda: db.DataBanzhaf(budget=9, notion="core").fit(X, Y), "`notion` must be"),
        (
            lambda: db.DataBanzhaf(budget=9, validation_fraction=1.5).fit(X, Y),
            "validation_fraction",
        ),
        (lambda: db.DataBanzhaf(budget=9).fit(X, Y, X[:5, :4], Y[:5]), "features"),
        (lambda: db.DataBanzhaf("mlp", budget=9, metric=len).fit(X, Y), "must be a name"),
        (lambda: db.DataBanzhaf(LogisticRegression, budget=9).fit(X, Y), "Add the brackets"),
        (lambda: db.DataBanzhaf(lambda: 1 / 0, budget=9).fit(X, Y), "ZeroDivisionError"),
        (lambda: db.DataBanzhaf(budget=9).fit(X, Y, groups=["a", "b"]), "`groups` must name"),
        (lambda: db.DataBanzhaf(budget=9).fit(X, np.zeros(len(Y), int)), "one class only"),
        (
            lambda: db.DataBanzhaf(budget=9).fit(
                pd.DataFrame(X), np.array(["a", 1] * 75, dtype=object)[: len(Y)]
            ),
            "got a mixture",
        ),
        (lambda: db.DataBanzhaf(budget=9).fit(pd.DataFrame(X), pd.Series(Y)[::-1]), "in one order"),
        (
            lambda: db.DataBanzhaf(budget=9).fit(pd.DataFrame(X), np.column_stack([Y, Y])),
            "one label for each row",
        ),
        (lambda: db.DataBanzhaf(budget=9, n_jobs=0).fit(X, Y), "`n_jobs`"),
        (
            lambda: db.DataBanzhaf(budget=9).fit(pd.DataFrame(X), Y, groups=pd.Series(Y)[::-1]),
            "`X` and `groups` must have their rows",
        ),
        (
            lambda: db.DataBanzhaf(budget=9).fit(X, Y, pd.DataFrame(X), pd.Series(Y)[::-1]),
            "`X_val` and `y_val` must have their rows",
        ),
        (lambda: db.DataBanzhaf(budget=9).fit(pd.Series(X[:, 0]), Y), "one column"),
        (
            lambda: db.DataBanzhaf(budget=9).fit(
                pd.DataFrame(X), pd.Series([None, *"ab" * 75][: len(Y)], dtype="string")
            ),
            "no missing label",
        ),
        (
            lambda: db.DataBanzhaf(budget=9).fit(X, np.arange(len(Y)).astype(str)),
            "a different label in every row",
        ),
        (lambda: db.DataBanzhaf("knn", budget=9, metric="r2").fit(X, Y), "mean over rows"),
    ],
)
def test_bad_input_gets_one_sentence(fit, words):
    with pytest.raises(ValueError, match=words):
        fit()


TEXTS = [f"{'good' if i % 2 else 'bad'} film number {i}, seen today" for i in range(60)]


@pytest.mark.parametrize("name", ["forest", "mlp", "boosting", "knn"])
def test_a_list_of_texts(name):
    labels = np.arange(60) % 2
    given, frame = TEXTS.copy(), pd.DataFrame({"text": TEXTS})
    given[3] = frame.loc[3, "text"] = None
    valuator = db.DataBanzhaf(name, budget=20).fit(given, labels)
    assert valuator.game_.dataset.X.shape == (60, 11)
    assert not valuator.game_.dataset.X[3].any()
    assert "`text` read as free text" in valuator.notes_[0]
    assert np.array_equal(
        valuator.values_, db.DataBanzhaf(name, budget=20).fit(frame, labels).values_
    )
    assert np.isfinite(valuator.score(given))
    column = pd.Series(TEXTS, index=[f"row {i}" for i in range(60)])
    judged = db.DataBanzhaf(name, budget=20).fit(column, labels, TEXTS[:10], labels[:10])
    assert list(judged.estimate_.players) == list(column.index)


def test_an_estimator_of_texts_gets_the_texts():
    from sklearn.feature_extraction.text import TfidfVectorizer

    labels = np.arange(60) % 2
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    valuator = db.DataBanzhaf(model, budget=40).fit(TEXTS, labels)
    game = db.games.Learner(model, db.Dataset(TEXTS, labels))
    assert np.array_equal(valuator.values_, db.value(game, budget=40).values)
    assert repr(valuator.game_.dataset) == "Dataset(60 rows x 1 text, judged by each other)"
    with pytest.raises(db.InvalidInput, match=r"a list of texts\. DataBanzhaf makes columns"):
        db.games.Forest(game.dataset)
    with pytest.raises(db.InvalidInput, match=r"`X` must be a table.*Pass X\.to_frame"):
        db.DataBanzhaf().fit(pd.Series([1.0, 2.0]), [0, 1])


def test_several_notions_are_refused():
    valuator = db.DataBanzhaf("logistic", notion=[db.Banzhaf(), db.Shapley()])
    with pytest.raises(db.InvalidInput, match=r"one notion; got several\. Use db\.value"):
        valuator.fit(np.arange(8.0)[:, None], np.arange(8) % 2)
