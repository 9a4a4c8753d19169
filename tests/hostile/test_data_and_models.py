"""Models, metrics and callers that change our data, draw their own chance, or hand over what cannot
be valued.
"""

import json
import os
import random
import subprocess
import sys
import threading
import types

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import databanzhaf as db

RNG = np.random.default_rng(1)
X = RNG.normal(3, 2, size=(60, 4))
Y = (X[:, 0] > 3).astype(int)


def dataset(kind=np.asarray):
    return db.Dataset(kind(X[:30]), Y[:30], kind(X[30:]), Y[30:])


def values(model, data, evaluator=None, **how):
    return db.value(db.games.Learner(model, data, **how), budget=60, evaluator=evaluator).values


class Vandal(ClassifierMixin, BaseEstimator):
    """Compares a row with the mean of all that it saw, and writes over whatever it is given."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.mean_ = float(np.mean(X))
        X *= 0
        y *= 0
        return self

    def predict_proba(self, X):
        second = 1 / (1 + np.exp(self.mean_ - np.asarray(X).mean(axis=1)))
        X *= 0
        return np.column_stack([1 - second, second])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame], ids=["array", "frame"])
@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
def test_a_model_that_scales_in_place_does_not_change_our_rows(scaler, kind):
    harmless = values(make_pipeline(scaler(), LogisticRegression()), dataset(kind))
    data = dataset(kind)
    before = data.fingerprint()
    model = make_pipeline(scaler(copy=False), LogisticRegression())
    assert np.array_equal(values(model, data), harmless)
    assert np.array_equal(values(model, data, db.evaluators.Processes(2)), harmless)
    assert db.Dataset(data.X, data.y, data.X_val, data.y_val).fingerprint() == before


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame], ids=["array", "frame"])
def test_a_model_that_writes_over_everything_changes_nothing(kind):
    data = dataset(kind)
    first = values(Vandal(), data)
    assert np.ptp(first) > 0
    assert np.array_equal(values(Vandal(), data), first)
    assert np.array_equal(values(Vandal(), data, db.evaluators.Processes(2)), first)
    assert np.array_equal(np.asarray(data.X_val), X[30:])
    assert np.array_equal(np.asarray(data.X), X[:30])


def test_a_metric_that_writes_over_the_rows_changes_nothing():
    def metric(model, X_val, y_val):
        score = float((model.predict(X_val) == y_val).mean()) + X_val.mean()
        X_val *= 0
        return score

    data = dataset()
    assert np.array_equal(
        values(LogisticRegression(), data, metric=metric),
        values(LogisticRegression(), data, metric=metric),
    )


def test_a_dataset_does_not_follow_its_callers_arrays(tmp_path):
    own, labels = X.copy(), Y.copy()
    data = db.Dataset(own[:30], labels[:30], own[30:], labels[30:])
    game = db.games.Learner(LogisticRegression(), data)
    truth = db.value(game, budget=80).values
    db.value(game, budget=40, ledger=tmp_path / "run.db")
    own[:] = RNG.normal(size=own.shape)
    labels[:] = 1 - labels
    assert np.array_equal(db.value(game, budget=80, ledger=tmp_path / "run.db").values, truth)
    with pytest.raises(ValueError, match="read-only"):
        data.X[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 0
    table, columns = pd.DataFrame(X.copy()), sparse.csr_matrix(X)
    for given in (table, columns):
        kept = db.Dataset(given, Y, given, Y)
        before = kept.fingerprint()
        if given is table:
            table.iloc[:, :] = 0.0
        else:
            columns.data[:] = 0.0
        assert db.Dataset(kept.X, kept.y, kept.X_val, kept.y_val).fingerprint() == before


def test_an_array_that_is_made_writable_again_does_not_reach_the_dataset():
    frozen = X.copy()
    frozen.setflags(write=False)
    data = db.Dataset(frozen, Y, frozen, Y)
    frozen.setflags(write=True)
    frozen[:] = 0
    assert np.array_equal(data.X, X)


def test_a_changed_frame_is_another_dataset(tmp_path):
    data = dataset(pd.DataFrame)
    game = db.games.Learner(LogisticRegression(), data)
    db.value(game, budget=40, ledger=tmp_path / "run.db")
    data.X.iloc[0, 0] = 99.0
    with pytest.raises(db.LedgerMismatch, match="data"):
        db.value(game, budget=40, ledger=tmp_path / "run.db")


def test_the_order_of_many_categories_is_part_of_the_data():
    names = [f"c{i:03}" for i in range(300)]
    other = [*names[:100], *names[100:200][::-1], *names[200:]]
    first, second = (
        db.Dataset(frame, [0, 1] * 150, frame, [0, 1] * 150).fingerprint()
        for frame in (
            pd.DataFrame({"a": pd.Categorical(names, categories=order)}) for order in (names, other)
        )
    )
    assert first != second


class Drawing(LogisticRegression):
    """Draws from the global generators when it predicts."""

    def predict_proba(self, X):
        proba = super().predict_proba(X) + np.random.rand() + random.random()  # noqa: NPY002
        return proba / proba.sum(axis=1, keepdims=True)


def test_chance_in_predictions_and_metrics_belongs_to_the_key():
    def metric(model, X_val, y_val):
        return float(np.random.rand()) * float(model.predict_proba(X_val)[0, 0])  # noqa: NPY002

    data = dataset()
    first = values(Drawing(), data)
    np.random.rand(7)  # noqa: NPY002
    random.random()
    state, other = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    assert np.array_equal(values(Drawing(), data), first)
    assert np.array_equal(values(Drawing(), data, db.evaluators.Processes(2)), first)
    assert np.array_equal(
        values(Drawing(), data, metric=metric), values(Drawing(), data, metric=metric)
    )
    ledger = db.Ledger(keep="outcomes")
    game = db.games.Learner(Drawing(), data, metric=metric)
    in_run = db.value(game, budget=40, ledger=ledger).values
    assert np.array_equal(
        db.estimate(ledger, game=db.games.Learner(Drawing(), data, metric="accuracy")).values.shape,
        in_run.shape,
    )
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert random.getstate() == other


def test_two_runs_in_threads_do_not_draw_from_each_other():
    data = dataset()
    alone = {
        seed: db.value(db.games.Learner(Drawing(), data), budget=60, seed=seed).values
        for seed in (0, 1)
    }
    found = {}

    def run(seed):
        found[seed] = db.value(db.games.Learner(Drawing(), data), budget=60, seed=seed).values

    threads = [threading.Thread(target=run, args=(seed,)) for seed in alone]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(found[seed], alone[seed]) for seed in alone)


def test_a_run_that_ends_does_not_lift_the_limit_of_another():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    game = db.games.Function(4, lambda coalitions: coalitions.sum(axis=1), name="sum")
    with threadpool_limits(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this machine has one core")
        with db.evaluators.Local().session(game):
            assert threads() == {1}
            with db.evaluators.Local().session(game):
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}


def test_a_library_that_an_import_loads_later_is_limited_too():
    script = (
        "from threadpoolctl import threadpool_info\n"
        "from databanzhaf.blas import one_blas_thread\n"
        "def threads():\n"
        "    with one_blas_thread():\n"
        "        return [each['num_threads'] for each in threadpool_info()]\n"
        "before = threads()\n"
        "import sklearn.cluster  # brings OpenMP\n"
        "print(before, threads(), sep='\\n')\n"
    )
    two = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env={**os.environ, **two}
    )
    before, after = map(json.loads, done.stdout.splitlines())
    assert len(after) > len(before)
    assert set(before) == set(after) == {1}


HELPERS = {
    "code": "def h(c): return {} * c\ndef f(c): return h(c.sum(axis=1))",
    "default": "def h(c, w={}): return w * c\ndef f(c): return h(c.sum(axis=1))",
    "keyword default": "def h(c, *, w={}): return w * c\ndef f(c): return h(c.sum(axis=1))",
    "partial": "import functools\ndef g(c, w): return w * c\nh = functools.partial(g, w={})\n"
    "def f(c): return h(c.sum(axis=1))",
    "cached": "import functools\n@functools.lru_cache\ndef h(): return {}\n"
    "def f(c): return h() * c.sum(axis=1)",
    "decorated": "import functools\ndef d(g):\n    @functools.wraps(g)\n    def w(c): return g(c)\n"
    "    return w\n@d\ndef h(c): return {} * c\ndef f(c): return h(c.sum(axis=1))",
    "instance": "class H:\n    def __init__(self, w): self.w = w\n"
    "    def __call__(self, c): return self.w * c\nh = H({})\ndef f(c): return h(c.sum(axis=1))",
    "static method": "class H:\n    @staticmethod\n    def g(c): return {} * c\n"
    "def f(c): return H.g(c.sum(axis=1))",
    "inherited method": "class A:\n    def g(self, c): return {} * c\nclass H(A): pass\n"
    "def f(c): return H().g(c.sum(axis=1))",
    "class attribute": "class H:\n    w = {}\ndef f(c): return H.w * c.sum(axis=1)",
    "called by a method": "def g(c): return {} * c\nclass H:\n    def k(self, c): return g(c)\n"
    "def f(c): return H().k(c.sum(axis=1))",
    "second of two lambdas": "h = lambda c: c\ng = lambda c: {} * c\n"
    "def f(c): return h(g(c.sum(axis=1)))",
    "called by a helper": "def k(c): return {} * c\ndef h(c): return k(c)\n"
    "def f(c): return h(c.sum(axis=1))",
}


def own_function(source, name="own_game"):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(source, module.__dict__)
    return module.f


@pytest.mark.parametrize("source", HELPERS.values(), ids=HELPERS)
def test_a_changed_helper_is_another_game(tmp_path, source):
    try:
        first = db.games.Function(8, own_function(source.replace("{}", "1")))
        db.value(first, budget=50, ledger=tmp_path / "run.db")
        again = db.games.Function(8, own_function(source.replace("{}", "1")))
        db.value(again, budget=60, ledger=tmp_path / "run.db")
        changed = db.games.Function(8, own_function(source.replace("{}", "2")))
        with pytest.raises(db.LedgerMismatch, match="own_game"):
            db.value(changed, budget=60, ledger=tmp_path / "run.db")
    finally:
        del sys.modules["own_game"]


@pytest.mark.parametrize(
    "source",
    [
        "W = {}\ndef h(c): return W * c\ndef f(c): return h(c.sum(axis=1))",
        "def make(w):\n    def h(c): return w * c\n    return h\nh = make({})\n"
        "def f(c): return h(c.sum(axis=1))",
    ],
    ids=["a helper's global", "a helper's closure"],
)
def test_what_a_helper_captures_is_warned_of(tmp_path, source):
    try:
        game = db.games.Function(8, own_function(source.replace("{}", "1")))
        with pytest.warns(UserWarning, match=r"W in h|w in make"):
            db.value(game, budget=50, ledger=tmp_path / "run.db")
    finally:
        del sys.modules["own_game"]


def test_imports_inside_a_function_are_seen():
    from databanzhaf.fingerprint import describe

    try:
        texts = []
        for number in (1, 2):
            own_function(f"def h(c): return {number} * c\ndef f(c): return h(c)", "own_helper")
            inside = "def f(c):\n    from own_helper import h\n    return h(c)"
            texts.append(describe(own_function(inside)))
        assert texts[0] != texts[1]
    finally:
        del sys.modules["own_game"], sys.modules["own_helper"]


def test_every_object_has_a_description():
    from databanzhaf.fingerprint import describe

    class Node:
        def __init__(self, inner):
            self.a = self.b = inner

    node = None
    for _ in range(40):
        node = Node(node)
    loop = []
    loop.append(loop)
    things = [
        node,
        loop,
        np,
        pd.DataFrame({"a": [1]}),
        threading.Lock(),
        (i for i in ()),
        {"x": loop},
    ]
    for thing in things:
        assert describe(thing) == describe(thing)
    assert describe(pd.DataFrame({"a": [1]})) != describe(pd.DataFrame({"a": [2]}))


def test_the_parts_of_a_model_are_part_of_the_game():
    from sklearn.compose import ColumnTransformer
    from sklearn.decomposition import PCA
    from sklearn.ensemble import VotingClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import Pipeline

    first, second = LogisticRegression(), GaussianNB()
    scale, reduce = ("a", StandardScaler()), ("b", PCA(1))
    pairs = [
        [
            make_pipeline(ColumnTransformer([("n", StandardScaler(), [column])]), first)
            for column in (0, 1)
        ],
        [Pipeline([*steps, ("c", first)]) for steps in ([scale, reduce], [reduce, scale])],
        [
            VotingClassifier(order, voting="soft", weights=[1, 9])
            for order in ([("a", first), ("b", second)], [("b", second), ("a", first)])
        ],
    ]
    for pair in pairs:
        texts = [db.games.Learner(model, dataset()).fingerprint() for model in pair]
        assert texts[0] != texts[1]
        assert texts[0] == db.games.Learner(pair[0], dataset()).fingerprint()


MASKED = np.ma.masked_array(X[:30], mask=np.zeros((30, 4), bool))
MASKED.mask[3, 1] = True
LABELS = np.ma.masked_array(Y[:30], mask=np.arange(30) == 4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((MASKED, Y[:30], X[30:], Y[30:]), "`X` must have no masked entries"),
        ((X[:30], LABELS, X[30:], Y[30:]), "`y` must have no masked entries"),
        ((X[:30], Y[:30], X[30:], Y[30:], LABELS), "`groups` must have no masked entries"),
        ((list(MASKED), Y[:30], X[30:], Y[30:]), "`X` must have no masked entries"),
        (({"a": [1, 2]}, [0, 1], {"a": [1, 2]}, [0, 1]), "got a dict"),
        (
            (pd.DataFrame({"a": [[1], [2]]}), [0, 1], pd.DataFrame({"a": [[1], [2]]}), [0, 1]),
            "column `a` holds a list",
        ),
    ],
)
def test_what_cannot_be_a_dataset_is_refused(arguments, says):
    with pytest.raises(db.InvalidInput, match=says):
        db.Dataset(*arguments)


def test_a_mask_that_hides_nothing_is_no_harm():
    clean = np.ma.masked_array(X[:30])
    assert db.Dataset(clean, Y[:30], X[30:], Y[30:]).fingerprint() == dataset().fingerprint()
    with pytest.raises(db.InvalidInput, match="`X` must have no masked"):
        db.DataBanzhaf("logistic").fit(MASKED, Y[:30])


@pytest.mark.parametrize(
    "answer",
    [
        lambda c: c.sum(axis=1) * 1j,
        lambda c: np.datetime64("2026-01-01") + c.sum(axis=1),
        lambda c: c.sum(axis=1).astype(str),
        lambda c: np.array([{}] * len(c)),
    ],
)
def test_a_game_of_the_users_own_must_return_real_numbers(answer):
    class Own:
        n_players, stochastic, call_size, players = 5, False, None, None

        def utility(self, coalitions, keys):
            return answer(coalitions)

        def fingerprint(self):
            return {"game": "own"}

    with pytest.raises(db.InvalidInput, match="real numbers"):
        db.value(Own())


@pytest.mark.parametrize("answer", [1j, np.complex128(1), "0.5", [1.0, 2.0], None])
def test_a_metric_must_return_one_real_number(answer):
    with pytest.raises((db.InvalidInput, db.EvaluationFailed)):
        values(LogisticRegression(), dataset(), metric=lambda model, X_val, y_val: answer)


@pytest.mark.parametrize(
    "weights",
    [
        lambda n: np.full(n, -1e308),
        lambda n: np.full(n, 1e300),
        lambda n: 0.0,
        lambda n: "text",
        lambda n: None,
        lambda n: np.full(n, np.nan),
        lambda n: np.full(n, -np.inf),
        lambda n: np.zeros(n + 1),
        lambda n: np.zeros(n) * 1j,
    ],
)
def test_weights_that_cannot_be_used_are_refused_before_any_training(weights):
    calls = []
    game = db.games.Function(
        6, lambda coalitions: calls.append(1) or coalitions.sum(axis=1), name="counted"
    )
    with pytest.raises(db.InvalidInput, match="log_weights"):
        db.value(game, db.Semivalue(weights))
    with pytest.raises(db.InvalidInput, match="log_weights"):
        db.value(game, db.Beta(1, 1e-300))
    assert not calls


def test_large_but_usable_weights_are_exact():
    game = db.games.Table(np.arange(8.0))
    shifted = db.value(game, db.Semivalue(lambda n: np.zeros(n) - 1e6)).values
    np.testing.assert_allclose(shifted, db.value(game).values, rtol=1e-9)


def test_whole_numbers_beyond_the_signed_ones_stay_positive(tmp_path, monkeypatch):
    from databanzhaf.pipeline import Settings, prepare

    monkeypatch.chdir(tmp_path)
    target = np.uint64(2**63) + np.arange(60, dtype=np.uint64) * np.uint64(2**50)
    pd.DataFrame(X, columns=list("abcd")).assign(y=target).to_csv("t.csv", index=False)
    job = prepare(Settings("t.csv", "y", task="regression"))
    assert job.dataset.y.min() >= 2**63
    assert float(job.dataset.y.astype(float).mean()) > 9e18


def test_torch_classes_and_modules_get_one_consistent_word():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, x):
            return self.layer(x)

    assert np.isfinite(
        db.DataBanzhaf(Net, budget=20, device="cpu").fit(X[:30], Y[:30], X[30:], Y[30:]).values_
    ).all()
    with pytest.raises(db.InvalidInput, match="Pass its class, or a function that makes it"):
        db.DataBanzhaf(Net(), budget=20).fit(X[:30], Y[:30], X[30:], Y[30:])
    with pytest.raises(db.InvalidInput, match=r"games\.Module"):
        db.games.Learner(Net(), dataset())
    with pytest.raises(db.InvalidInput, match="Add the brackets"):
        db.DataBanzhaf(LogisticRegression).fit(X, Y)


def test_what_came_is_cut_and_never_prints_the_data():
    rows = {"secret": list(range(10_000))}
    calls = [
        lambda: db.games.Learner(rows, dataset()),
        lambda: db.value(rows),
        lambda: db.value(db.games.Table([0, 1]), rows),
        lambda: db.value(db.games.Table([0, 1]), ledger=rows),
        lambda: db.value(db.games.Table([0, 1]), budget=rows),
        lambda: db.value(db.games.Table([0, 1]), estimator=rows),
        lambda: db.value(db.games.Table([0, 1]), evaluator=rows),
        lambda: db.estimate(rows),
        lambda: db.Dataset(rows, [0], rows, [0]),
        lambda: db.DataBanzhaf().fit(rows, [0, 1]),
        lambda: db.DataBanzhaf().fit(X, rows),
        lambda: db.games.Learner(LogisticRegression(), dataset(), metric=rows),
    ]
    for call in calls:
        with pytest.raises(db.InvalidInput) as refused:
            call()
        assert "999" not in str(refused.value)
        assert len(str(refused.value)) < 300


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_tables_of_other_packages_go_through_a_pipeline_by_their_columns(library):
    from sklearn.compose import make_column_transformer

    package = pytest.importorskip(library)
    model = make_pipeline(
        make_column_transformer((StandardScaler(), ["a", "b"])), LogisticRegression()
    )
    frame = pd.DataFrame(X, columns=list("abcd"))
    make = package.Table.from_pandas if library == "pyarrow" else package.from_pandas
    ours, theirs = (
        db.value(
            db.games.Learner(model, db.Dataset(kind(frame[:30]), Y[:30], kind(frame[30:]), Y[30:])),
            budget=40,
        ).values
        for kind in (lambda part: part, make)
    )
    assert np.array_equal(ours, theirs)
    fitted = db.DataBanzhaf(model, budget=40).fit(make(frame), Y)
    assert np.array_equal(
        fitted.values_, db.DataBanzhaf(model, budget=40).fit(frame, Y).values_, equal_nan=True
    )


def test_a_budget_that_does_not_fit_in_memory_is_blamed_itself(monkeypatch):
    from databanzhaf import beginning

    monkeypatch.setattr(beginning, "_memory", lambda: 8 * 2**30)
    with pytest.raises(
        db.InvalidInput,
        match=r"`budget` times `repeats`.*900,000,000 evaluations need 26.8 GiB.*8.0 GiB",
    ):
        db.value(db.games.Function(40, lambda c: c.sum(axis=1), name="sum"), budget=900_000_000)


def test_a_run_in_segments_is_the_same_run(monkeypatch, tmp_path):
    from databanzhaf import loop

    game = db.games.Function(
        9, lambda c: np.tanh(c @ np.linspace(-1, 1, 9)), name="smooth", call_size=7
    )
    whole = {
        name: db.value(game, db.Shapley(), estimator=name, budget=400, repeats=2)
        for name in ("permutation", "marginal")
    }
    monkeypatch.setattr(loop, "SEGMENT", 50)
    for name, estimate in whole.items():
        assert np.array_equal(
            db.value(game, db.Shapley(), estimator=name, budget=400, repeats=2).values,
            estimate.values,
        )
