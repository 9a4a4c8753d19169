"""Effects on single judging rows: their mean is the value, and each is that of its own game."""

import numpy as np
import pytest

import databanzhaf as db

N, JUDGES = 24, 30


def data(validation, groups=None):
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(N, 3)), rng.normal(size=(JUDGES, 3))
    y, y_val = (part[:, 0] + 0.5 * part[:, 1] > 0 for part in (X, X_val))
    held = (X_val, y_val.astype(int)) if validation else ()
    return db.Dataset(X, y.astype(int), *held, groups=groups)


@pytest.fixture(scope="module", params=["validation", "across", "groups", "several"])
def valued(request):
    """Rows judged by validation rows, by each other, groups of them; and by validation rows, for
    several notions.
    """
    groups = np.arange(N) % 22 if request.param == "groups" else None
    held = request.param in ("validation", "several")
    game = db.games.Forest(data(held, groups), trees=5)
    ledger = db.Ledger(keep="outcomes")
    several = request.param == "several"
    notions = [db.Banzhaf(), db.Shapley()] if several else db.Banzhaf()
    found = db.value(game, notions, budget=1200, ledger=ledger)
    return game, ledger, found[0] if several else found


def total(found):
    effects = found.matrix()
    return np.nansum(found.weights * effects, axis=1)


@pytest.mark.parametrize("estimator", ["auto", "reuse"])
def test_the_mean_over_the_judging_rows_is_the_value(valued, estimator):
    game, ledger, estimate = valued
    if estimator == "reuse" and estimate.estimator.name == "regression:sizes":
        pytest.skip("coalitions of this run follow a law of sizes")
    found = db.attribute(ledger, game=game, estimator=estimator)
    expected = db.estimate(ledger, game=game, estimator=estimator).values
    np.testing.assert_allclose(total(found), expected, atol=1e-12)
    if estimator == "auto":
        np.testing.assert_allclose(expected, estimate.values, atol=1e-12)
    assert np.isnan(found.matrix()).sum() == (0 if game.dataset.judges is None else N)


def test_blocks_single_rows_and_files_agree(valued, tmp_path):
    game, ledger, _ = valued
    found = db.attribute(ledger, game=game)
    whole = found.matrix()
    assert whole.shape == found.shape
    for rows, effects, errors in found.blocks(7):
        np.testing.assert_allclose(effects, whole[:, rows], atol=1e-13)
        assert (errors[~np.isnan(errors)] > 0).all()
    effects, errors = found.on(5)
    np.testing.assert_allclose(effects, whole[:, 5], atol=1e-13)
    found.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as kept:
        np.testing.assert_array_equal(kept["effects"].T, whole)
        np.testing.assert_array_equal(kept["std_errors"][5], errors)
        np.testing.assert_array_equal(kept["values"], found.estimate.values)
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    found.save(tmp_path / "a.parquet")
    lines = pd.read_parquet(tmp_path / "a.parquet")
    table = lines.pivot(index="player", columns="judge", values="effect").to_numpy()
    np.testing.assert_array_equal(table, whole)


def test_an_effect_is_the_value_of_a_game_with_one_judge():
    """Exact: all coalitions of ten players, by brute force for each validation row alone."""
    rng = np.random.default_rng(1)
    X, X_val = rng.normal(size=(10, 2)), rng.normal(size=(8, 2))
    y, y_val = (X[:, 0] > 0).astype(int), (X_val[:, 0] > 0).astype(int)
    ledger = db.Ledger(keep="outcomes")
    game = db.games.Boosting(db.Dataset(X, y, X_val, y_val), trees=3)
    db.value(game, estimator="exact", budget=1024, ledger=ledger)
    effects = db.attribute(ledger, game=game).matrix()
    for judge in range(8):
        alone = db.games.Boosting(db.Dataset(X, y, X_val[[judge]], y_val[[judge]]), trees=3)
        truth = db.value(alone, estimator="exact", budget=1024).values
        np.testing.assert_allclose(effects[:, judge], truth, atol=1e-6)  # outcomes are float32


@pytest.mark.parametrize("estimator", ["reuse", "regression:sizes"])
def test_standard_errors_cover(estimator):
    """Of two disjoint runs the effects differ by as much as they say."""
    game = db.games.Forest(data(True), trees=5)
    runs = []
    for seed in (1, 2):
        ledger = db.Ledger(keep="outcomes")
        db.value(game, estimator=estimator, budget=800, seed=seed, ledger=ledger)
        found = db.attribute(ledger, game=game, estimator=estimator)
        runs.append((found.matrix(), np.hstack([errors for *_, errors in found.blocks()])))
    (first, error), (second, other) = runs
    z = (first - second) / np.hypot(error, other)
    assert 0.9 < z.std() < 1.1
    assert 0.93 < (np.abs(z) < 1.96).mean() < 0.97


def test_more_validation_rows_than_are_held_for_intervals():
    rng = np.random.default_rng(2)
    X, X_val = rng.normal(size=(12, 2)), rng.normal(size=(1500, 2))
    game = db.games.Boosting(
        db.Dataset(X, (X[:, 0] > 0).astype(int), X_val, (X_val[:, 0] > 0).astype(int)), trees=2
    )
    ledger = db.Ledger(keep="outcomes")
    estimate = db.value(game, estimator="reuse", budget=200, ledger=ledger)
    found = db.attribute(ledger, game=game, estimator="reuse")
    assert found.shape == (12, 1500)
    np.testing.assert_allclose(total(found), estimate.values, atol=1e-12)


def bad_cases(tmp_path):
    game = db.games.Forest(data(True), trees=2)
    across = db.games.Forest(data(False), trees=2)
    scores, kept, folds = db.Ledger(keep="utilities"), db.Ledger(), db.Ledger()
    db.value(game, budget=100, ledger=scores)
    db.value(game, budget=100, ledger=kept)
    db.value(across, db.Shapley(), budget=200, ledger=folds)
    auc = db.games.Forest(data(True), trees=2, metric="roc_auc")
    found = db.attribute(kept, game=game)
    return [
        (lambda: db.attribute(scores, game=game), "kept utilities only.*keep="),
        (lambda: db.attribute(kept), "without its game.*game="),
        (
            lambda: db.attribute(folds, db.Shapley()),
            "got a run for other notions in which rows judge each other in folds",
        ),
        (lambda: db.attribute(kept, game=auc), "mean over rows"),
        (lambda: found.on(30), "from 0 to 29"),
        (lambda: found.on(1.5), "from 0 to 29"),
        (lambda: found.save(tmp_path / "a.csv"), r"\.npz or \.parquet"),
    ]


def test_bad_input(tmp_path):
    for call, sentence in bad_cases(tmp_path):
        with pytest.raises(db.InvalidInput, match=sentence):
            call()
