import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from tests.closed_forms import noisy_additive


def rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT idx, rep, utility FROM evaluations ORDER BY idx, rep"
        ).fetchall()


class Counting:
    """A function that counts the coalitions it was asked for."""

    def __init__(self, n):
        self.asked = 0
        self.weights = np.linspace(0, 1, n)

    def __call__(self, coalitions):
        self.asked += len(coalitions)
        return np.where(coalitions, self.weights, 0).sum(axis=1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def test_the_same_call_again_evaluates_nothing(path):
    count = Counting(30)
    game = db.games.Function(30, count, name="count")
    first = db.value(game, budget=500, ledger=path)
    again = db.value(game, budget=500, ledger=path)
    assert count.asked == 500
    assert np.array_equal(first.values, again.values)
    assert np.array_equal(first.std_errors, again.std_errors)
    assert len(rows(path)) == 500


def test_a_larger_budget_and_more_repeats_continue(path):
    game, _ = noisy_additive()
    for budget, repeats in ((100, 1), (300, 1), (300, 3), (700, 3)):
        continued = db.value(game, budget=budget, repeats=repeats, ledger=path, estimator="reuse")
    fresh = db.value(game, budget=700, repeats=3, estimator="reuse")
    assert np.array_equal(continued.values, fresh.values)
    assert len(rows(path)) == 2100


def test_a_smaller_call_uses_its_own_share_of_the_ledger(path):
    game, _ = noisy_additive()
    db.value(game, budget=500, repeats=2, ledger=path, estimator="reuse")
    small = db.value(game, budget=200, repeats=1, ledger=path, estimator="reuse")
    assert small.n_evaluations == 200
    assert np.array_equal(small.values, db.value(game, budget=200, estimator="reuse").values)


def test_a_ledger_in_memory_continues_too():
    count = Counting(30)
    game, ledger = db.games.Function(30, count, name="count"), db.Ledger()
    db.value(game, budget=500, ledger=ledger)
    db.value(game, budget=800, ledger=ledger)
    assert count.asked == 800


def test_holes_are_filled_and_nothing_else(path):
    count = Counting(30)
    game = db.games.Function(30, count, name="count")
    whole_ledger = db.Ledger()
    whole = db.value(game, budget=400, ledger=whole_ledger)
    some = np.array([i for i in range(400) if i % 7 != 3])
    with db.Ledger(path) as ledger:
        ledger.bind(whole_ledger.game, whole_ledger.design, seed=0, stochastic=False)
        ledger.append(
            some, np.zeros_like(some), whole_ledger.utilities()[some, 0], np.zeros(len(some))
        )
    count.asked = 0
    again = db.value(game, budget=400, ledger=path)
    assert count.asked == 400 - len(some)
    assert [utility for _, _, utility in rows(path)] == whole_ledger.utilities()[:, 0].tolist()
    assert np.array_equal(again.values, whole.values)


def test_the_ledger_says_what_the_run_was(path):
    game, _ = noisy_additive(n=12)
    db.value(game, budget=60, repeats=2, seed=5, ledger=path)
    with db.Ledger(path) as ledger:
        assert ledger.design == {"design": "Coin", "n_players": 12, "seed": 5, "p": 0.5}
        assert ledger.game == game.fingerprint()
        assert ledger.library_version == db.__version__
        assert ledger.stochastic
        assert ledger.keep == "utilities"
        assert ledger.utilities().shape == (60, 2)
        assert ledger.seconds() > 0


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"seed": 1}, ["seed", "0", "1"]),
        ({"estimator": "marginal"}, ["Coin", "Paired"]),
        ({"notion": db.WeightedBanzhaf(0.25)}, ["p", "0.5", "0.25"]),
        ({"game": db.games.Function(30, Counting(30), name="other")}, ["count", "other"]),
        ({"game": db.games.Function(31, Counting(31), name="count")}, ["n_players", "30", "31"]),
    ],
    ids=["seed", "design", "bias", "game", "players"],
)
def test_another_run_is_refused_and_both_sides_are_shown(path, change, shown):
    base = {"game": db.games.Function(30, Counting(30), name="count"), "budget": 50, "ledger": path}
    db.value(**base)
    before = rows(path)
    with pytest.raises(db.LedgerMismatch) as error:
        db.value(**{**base, **change})
    assert all(word in str(error.value) for word in shown)
    assert rows(path) == before


def test_a_table_with_other_numbers_is_another_game(path):
    db.value(db.games.Table([0, 1, 2, 3]), ledger=path)
    with pytest.raises(db.LedgerMismatch, match="utilities"):
        db.value(db.games.Table([0, 1, 2, 4]), ledger=path)


def test_a_function_is_known_by_its_code(path):
    def make(power):
        if power == 1:
            return lambda coalitions: coalitions.sum(axis=1)
        return lambda coalitions: coalitions.sum(axis=1) ** 2

    db.value(db.games.Function(3, make(1)), ledger=path)
    db.value(db.games.Function(3, make(1)), ledger=path)
    with pytest.raises(db.LedgerMismatch, match="code"):
        db.value(db.games.Function(3, make(2)), ledger=path)


def test_captured_variables_are_warned_of_when_the_ledger_is_a_file(path):
    weights = np.ones(3)
    game = db.games.Function(3, lambda coalitions: coalitions @ weights)
    db.value(game)
    with pytest.warns(UserWarning, match=r"weights.*new name"):
        db.value(game, ledger=path)
    with pytest.warns(UserWarning, match="self"):
        db.value(db.games.Function(3, Counting(3)), ledger=path.with_name("object.db"))


def test_fingerprints_are_the_same_in_another_process():
    script = textwrap.dedent(
        """
        import numpy as np, pandas as pd
        import databanzhaf as db
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        function = lambda c: np.isin(c.sum(axis=1), [1, 2]) | (c[:, 0].sum() in {"a", "b", "c"})
        frame = pd.DataFrame({"a": [1.0, 2.0, np.nan], "b": pd.Categorical(["x", "y", "x"])})
        data = db.Dataset(frame, ["p", "q", "p"], frame, ["p", "q", "q"], groups=["g", "h", "h"])
        learner = db.games.Learner(make_pipeline(StandardScaler(), LogisticRegression()), data)
        print(db.games.Function(3, function).fingerprint(), learner.fingerprint())
        """
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(answers) == 1


def test_a_second_process_is_refused(path):
    script = f"""
import databanzhaf as db
try:
    db.value(db.games.Table([0, 1]), ledger={str(path)!r})
except db.LedgerBusy as error:
    print("refused:", error)
"""
    game = db.games.Table([0, 1])
    with db.Ledger(path) as ledger:
        db.value(game, ledger=ledger)
        out = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        with pytest.raises(db.LedgerBusy):
            db.value(game, ledger=path)
        # Reading is free, in other programs too.
        assert db.estimate(path).values == pytest.approx([1])
        assert len(rows(path)) == 2
    assert out.startswith("refused:")
    assert "another process" in out
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert out == ""


def test_files_that_are_no_ledger_are_left_alone(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look like a file with something in it" * 20)
    with pytest.raises(db.LedgerFailed, match="not a ledger"):
        db.Ledger(text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE precious (x)")
    before = other.read_bytes()
    with pytest.raises(db.LedgerFailed, match="not a ledger"):
        db.Ledger(other)
    assert other.read_bytes() == before
    with pytest.raises(db.LedgerFailed, match="folder"):
        db.Ledger(tmp_path / "nowhere" / "run.db")
    with pytest.raises(db.InvalidInput, match="no ledger"):
        db.estimate(tmp_path / "missing.db")
    assert not (tmp_path / "missing.db").exists()
    with pytest.raises(db.InvalidInput, match="no evaluations"):
        db.estimate(db.Ledger())
    with pytest.raises(db.InvalidInput, match="keep"):
        db.Ledger(keep="everything")


def test_a_full_disk_loses_nothing_that_was_written(path):
    game = db.games.Function(30, Counting(30), name="count")
    db.value(game, budget=100, ledger=path)
    with db.Ledger(path) as ledger:
        pages = ledger._storage.connection.execute("PRAGMA page_count").fetchone()[0]
        ledger._storage.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(db.LedgerFailed, match="disk space"):
            db.value(game, budget=20_000, ledger=ledger)
    kept = len(rows(path))
    assert kept >= 100
    fresh = db.value(game, budget=kept)
    assert np.array_equal(db.value(game, budget=kept, ledger=path).values, fresh.values)


def test_one_run_serves_many_notions(path):
    game = db.games.Function(8, lambda c: (c.sum(axis=1) >= 5) + c[:, 0], name="five and the first")
    db.value(game, db.Shapley(), estimator="permutation", budget=45_000, ledger=path)
    for notion in (
        db.Shapley(),
        db.Beta(4, 1),
        db.Beta(1, 4),
        db.Banzhaf(),
        db.WeightedBanzhaf(0.4),
    ):
        estimate = db.estimate(path, notion)
        truth = db.value(game, notion, estimator="exact").values
        assert np.isfinite(estimate.std_errors).all()
        assert (np.abs(estimate.values - truth) < 4 * estimate.std_errors + 1e-12).all()
    with db.Ledger(path) as ledger:
        assert np.array_equal(db.estimate(ledger).values, db.estimate(ledger, db.Banzhaf()).values)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2026-01-01", periods=4, freq="D", name="day"),
        pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["shop", "row"]),
        pd.Index(["w", "x", "y", "z"], name="customer"),
        pd.Index([10, 20, 30, 40]),
        pd.RangeIndex(4),
    ],
    ids=lambda index: type(index).__name__,
)
def test_the_users_index_comes_back_as_it_was(path, index):
    game = db.games.Function(4, lambda c: c.sum(axis=1), name="sum", players=index)
    db.value(game, ledger=path)
    again = db.estimate(path).to_frame().index
    assert list(again) == list(index)
    assert again.names == index.names
    assert again.inferred_type == index.inferred_type


def test_metrics_are_known_by_their_code(path):
    from sklearn.linear_model import LogisticRegression

    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    data = db.Dataset(X[:10], y[:10], X[10:], y[10:])
    db.value(
        db.games.Learner(LogisticRegression(), data, lambda m, X, y: (m.predict(X) == y).mean()),
        budget=20,
        ledger=path,
    )
    with pytest.raises(db.LedgerMismatch, match="metric"):
        db.value(
            db.games.Learner(
                LogisticRegression(), data, lambda m, X, y: -(m.predict(X) == y).mean()
            ),
            budget=20,
            ledger=path,
        )


def test_a_closed_ledger_says_so(path):
    ledger = db.Ledger(path)
    ledger.close()
    with pytest.raises(db.LedgerFailed, match="closed"):
        db.value(db.games.Table([0, 1]), ledger=ledger)


def test_ctrl_c_says_what_is_kept(path):
    def interrupted(coalitions):
        if coalitions[:, :4].all():
            raise KeyboardInterrupt
        return coalitions.mean(axis=1)

    with pytest.raises(KeyboardInterrupt) as error:
        db.value(
            db.games.Function(30, interrupted, name="interrupted", call_size=1),
            budget=500,
            ledger=path,
        )
    assert len(rows(path)) > 0
    assert f"{len(rows(path))} evaluations are in" in error.value.__notes__[0]
    assert f"{len(rows(path))} evaluations" in repr(db.Ledger(path))


def test_a_run_that_stopped_among_its_repeats_is_read_by_what_is_complete():
    game, _ = noisy_additive()
    ledger = db.Ledger()
    db.value(game, estimator="reuse", budget=300, ledger=ledger)
    plain = db.estimate(ledger)
    db.value(game, estimator="reuse", budget=20, repeats=3, ledger=ledger)
    assert db.estimate(ledger).n_evaluations == 300
    assert np.array_equal(db.estimate(ledger).values, plain.values)
    db.value(game, estimator="reuse", budget=200, repeats=2, ledger=ledger)
    assert db.estimate(ledger).n_evaluations == 400


def test_a_link_to_the_ledger_does_not_get_around_the_lock(path):
    game = db.games.Table([0, 1])
    with db.Ledger(path) as ledger:
        db.value(game, ledger=ledger)
        path.with_name("link.db").symlink_to(path)
        with pytest.raises(db.LedgerBusy):
            db.value(game, ledger=path.with_name("link.db"))


def test_a_damaged_fact_is_reported(path):
    db.value(db.games.Table([0, 1]), ledger=path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE facts SET value = '{' WHERE name = 'design'")
    with pytest.raises(db.LedgerFailed, match="damaged"):
        db.estimate(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET value = '5' WHERE name = 'design'",
        "UPDATE facts SET value = '[]' WHERE name = 'design'",
        "UPDATE evaluations SET utility = 'text' WHERE idx = 3",
        "UPDATE evaluations SET idx = -1 WHERE idx = 2",
        "UPDATE evaluations SET rep = 'text' WHERE idx = 2",
    ],
)
def test_facts_and_utilities_of_another_kind_are_reported(path, damage):
    db.value(db.games.Table([0, 1, 1, 2]), ledger=path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(db.LedgerFailed, match="damaged"):
        db.estimate(path)


def test_reading_while_a_run_writes_sees_one_moment(path):
    script = f"""
import databanzhaf as db
game = db.games.Function(50, lambda c: c.mean(axis=1), name="m")
db.value(game, budget=300_000, ledger={str(path)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", script])
    seen = []
    while process.poll() is None:
        if path.exists():
            try:
                seen.append(db.estimate(path).n_evaluations)
            except db.InvalidInput:
                continue
    assert process.returncode == 0
    assert seen == sorted(seen)
    assert db.estimate(path).n_evaluations == 300_000


def test_a_ledger_without_evaluations_belongs_to_nobody(path):
    """A run that failed at its first evaluation, or was refused, leaves no claim."""
    failing = db.games.Function(3, lambda coalitions: 1 / 0)
    with pytest.raises(db.EvaluationFailed):
        db.value(failing, budget=4, estimator="reuse", ledger=path)
    game = db.games.Table(np.arange(8.0))
    with db.Ledger(path, keep="utilities") as ledger:
        assert ledger.is_new
        assert db.value(game, ledger=ledger).n_evaluations == 8
        assert not ledger.is_new
    with pytest.raises(db.LedgerMismatch):
        db.value(failing, budget=4, estimator="reuse", ledger=path)


def test_a_refused_call_leaves_no_file(path):
    with pytest.raises(db.InvalidInput):
        db.value(db.games.Table(np.arange(8.0)), budget=10**12, estimator="reuse", ledger=path)
    assert not path.exists()


def test_auto_goes_on_with_the_design_that_the_ledger_has(path):
    """Though all coalitions would now fit in the budget, or no longer do."""
    game, _ = noisy_additive(4)
    assert db.value(game, budget=10, ledger=path).estimator.name == "regression"
    more = db.value(game, budget=40, ledger=path)
    assert (more.estimator.name, more.n_evaluations) == ("regression", 40)
    assert np.array_equal(more.values, db.value(game, budget=40, estimator="regression").values)
    other = path.with_name("exact.db")
    assert db.value(game, budget=16, ledger=other).estimator.name == "exact"
    assert db.value(game, budget=10, ledger=other).estimator.name == "exact"
