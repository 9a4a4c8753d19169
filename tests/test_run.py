import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import databanzhaf as db
from databanzhaf import loop
from tests import closed_forms


@pytest.mark.parametrize(
    ("notion", "n", "budget", "chosen"),
    [
        (db.Banzhaf(), 10, 2000, "exact"),
        (db.Banzhaf(), 11, 2000, "regression"),
        (db.Banzhaf(), 2000, 2000, "regression"),
        (db.Banzhaf(), 2000, 3, "reuse"),
        (db.WeightedBanzhaf(0.3), 20, 2000, "regression"),
        (db.Shapley(), 10, 1024, "exact"),
        (db.Shapley(), 10, 1023, "regression:sizes"),
        (db.Shapley(), 10, 19, "permutation"),
        (db.Beta(16, 1), 30, 2000, "regression:sizes"),
        (db.Semivalue(lambda n: np.zeros(n)), 30, 2000, "regression:sizes"),
        (db.LeaveOneOut(), 5, 2000, "leave_one_out"),
        (db.LeaveOneOut(), 500, 10, "leave_one_out"),
        (db.LeastCore(), 8, 2000, "exact"),
        (db.LeastCore(), 20, 100, "least_core"),
    ],
    ids=lambda x: getattr(x, "name", str(x)),
)
def test_auto_takes_the_best(notion, n, budget, chosen):
    game = db.games.Function(n, lambda c: c.mean(axis=1), name="mean")
    assert db.value(game, notion, budget=budget).estimator.name == chosen


def test_the_default_notion_is_banzhaf():
    assert db.value(db.games.Table([0, 0, 0, 1])).notion.name == "banzhaf"


def test_budget_counts_coalitions():
    game, _ = closed_forms.noisy_additive(n=9)
    spent = {
        "reuse": (db.Banzhaf(), 137),
        "marginal": (db.Banzhaf(), 136),
        "permutation": (db.Shapley(), 130),
        "group_testing": (db.Shapley(), 137),
        "least_core": (db.LeastCore(), 137),
        "leave_one_out": (db.LeaveOneOut(), 10),
        "exact": (db.Banzhaf(), 512),
    }
    for estimator, (notion, coalitions) in spent.items():
        for repeats in (1, 2):
            estimate = db.value(game, notion, estimator=estimator, budget=137, repeats=repeats)
            assert estimate.n_evaluations == coalitions * repeats


@pytest.mark.parametrize("estimator", ["reuse", "marginal", "permutation", "group_testing"])
def test_batch_size_and_workers_leave_the_ledger_identical(tmp_path, monkeypatch, estimator):
    game, _ = closed_forms.noisy_additive(n=9)
    notion = db.Banzhaf() if estimator == "reuse" else db.Shapley()

    def table(name, evaluator=None):
        with db.Ledger(tmp_path / name) as ledger:
            estimate = db.value(
                game,
                notion,
                estimator=estimator,
                budget=400,
                repeats=2,
                ledger=ledger,
                evaluator=evaluator,
            )
            return ledger.utilities(), estimate.values, estimate.std_errors

    plain = table("plain.db")
    parallel = [table(f"{jobs}.db", db.evaluators.Processes(jobs)) for jobs in (1, 2, 3)]
    monkeypatch.setattr(loop, "LARGEST_PIECE", 7)
    small = table("small.db")
    for other in (*parallel, small):
        for ours, theirs in zip(plain, other, strict=True):
            assert np.array_equal(ours, theirs)


def test_a_call_that_is_left_alone_is_whole():
    """A run that stopped before its last call goes on with all of it, not with its first row."""
    calls = []

    def spy(coalitions):
        calls.append(len(coalitions))
        return coalitions.sum(axis=1) * 1.0

    game = db.games.Function(20, spy, name="spy", call_size=4)
    ledger = db.Ledger()
    db.value(game, estimator="reuse", budget=8, ledger=ledger)
    db.value(game, estimator="reuse", budget=12, ledger=ledger)
    assert calls == [4, 4, 4]


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("largest", [3, 10, 1000])
def test_calls_are_cut_at_multiples_of_the_call_size(monkeypatch, largest, repeats):
    """One block of indices and one repeat per call, whatever the batch: rounding that depends on
    the batch stays the same.
    """
    calls = []

    def spy(coalitions, keys):
        calls.append(keys.tolist())
        return np.zeros(len(keys))

    monkeypatch.setattr(loop, "LARGEST_PIECE", largest)
    db.value(
        db.games.Function(20, spy, stochastic=True, name="spy", call_size=4),
        budget=30,
        repeats=repeats,
        seed=8,
    )
    blocks = [
        db.chance.keys(8, db.chance.TRAINING, np.arange(low, min(low + 4, 30)), repeat).tolist()
        for low in range(0, 30, 4)
        for repeat in range(repeats)
    ]
    assert calls == blocks


def test_keys_are_those_of_the_evaluation():
    seen = {}

    def spy(coalitions, keys):
        for coalition, key in zip(coalitions, keys, strict=True):
            seen[int(key)] = coalition
        return np.zeros(len(keys))

    db.value(db.games.Function(20, spy, stochastic=True, name="spy"), budget=50, repeats=3, seed=8)
    index, repeat = np.divmod(np.arange(150), 3)
    keys = db.chance.keys(8, db.chance.TRAINING, index, repeat)
    coalitions = db.designs.Coin(20, 8).coalitions(index)
    assert len(seen) == 150
    for key, coalition in zip(keys, coalitions, strict=True):
        assert np.array_equal(seen[int(key)], coalition)


def test_repeats_are_independent_and_per_repeat_values_are_kept():
    game, weights = closed_forms.noisy_additive(n=10, noise=1.0)
    estimate = db.value(game, estimator="reuse", budget=2000, repeats=5)
    assert estimate.values_by_repeat.shape == (5, 10)
    centred = estimate.values_by_repeat - estimate.values
    # The spread between repeats is that of the noise alone: 2 sigma / sqrt(m).
    assert np.sqrt((centred**2).sum() / (4 * 10)) == pytest.approx(2 / np.sqrt(2000), rel=0.3)
    for repeat in range(5):
        assert db.ranking.spearman(estimate.values_by_repeat[repeat], weights) > 0.9


def test_frame_interval_ranking_and_repr():
    game = db.games.Function(
        5,
        lambda c: c @ np.array([0.3, -1.0, 0.3, 2.0, 0.0]),
        name="sum",
        players=["ann", "bob", "cy", "dee", "eve"],
    )
    estimate = db.value(game, estimator="reuse", budget=500)
    frame = estimate.to_frame()
    assert list(frame.columns) == ["player", "value", "std_error", "ci_low", "ci_high", "rank"]
    assert list(frame.index) == ["ann", "bob", "cy", "dee", "eve"]
    assert list(frame["player"]) == [0, 1, 2, 3, 4]
    assert estimate.ranking()[0] == 1
    assert estimate.ranking()[-1] == 3
    assert frame.loc["bob", "rank"] == 1
    assert frame.loc["dee", "rank"] == 5
    assert np.array_equal(np.argsort(frame["rank"]), estimate.ranking())
    low, high = estimate.interval(0.95)
    assert np.array_equal(frame["ci_low"], low)
    assert (estimate.interval(0.99)[0] < low).all()
    assert high - estimate.values == pytest.approx(estimate.values - low)
    assert "bob" in repr(estimate)
    assert repr(estimate).count("\n") == 5
    with pytest.raises(db.InvalidInput, match="level"):
        estimate.interval(1.0)


def test_players_names_come_back_from_the_ledger(tmp_path):
    game = db.games.Function(3, lambda c: c.sum(axis=1), name="sum", players=["x", "y", "z"])
    db.value(game, ledger=tmp_path / "run.db")
    assert list(db.estimate(tmp_path / "run.db").to_frame().index) == ["x", "y", "z"]


def test_equal_values_rank_in_the_players_order():
    assert db.value(db.games.Table([0, 1, 1, 2, 1, 2, 2, 3])).ranking().tolist() == [0, 1, 2]


@pytest.mark.parametrize("until", [None, db.until.precise(1e-9)])
def test_progress_can_be_shown(capsys, until):
    game, _ = closed_forms.noisy_additive()
    db.value(game, estimator="reuse", budget=3000, progress=True, until=until)
    shown = capsys.readouterr()
    assert "3000/3000" in shown.err
    assert "rank stability" in shown.err
    assert not shown.out


@pytest.mark.parametrize("until", [None, db.until.precise(1e-9)])
def test_a_watcher_sees_every_batch_and_changes_nothing(until):
    game, _ = closed_forms.noisy_additive()
    seen = []
    watched = db.value(
        game,
        estimator="reuse",
        budget=3000,
        until=until,
        progress=lambda *standing: seen.append(standing),
    )
    assert np.array_equal(
        watched.values, db.value(game, estimator="reuse", budget=3000, until=until).values
    )
    assert seen[0][:2] == (0, 3000)
    assert seen[-1][:2] == (3000, 3000)
    for checkpoint in seen[-1][2]:
        again = db.value(game, estimator="reuse", budget=checkpoint.estimate.n_evaluations)
        assert np.array_equal(checkpoint.estimate.values, again.values)


def test_what_a_watcher_does_to_a_checkpoint_does_not_reach_the_estimate():
    game, _ = closed_forms.noisy_additive()

    def spoil(done, total, checkpoints):
        for each in checkpoints:
            each.estimate.values.sort()
            each.estimate.std_errors[:] = 0

    spoiled = db.value(game, estimator="reuse", budget=300, progress=spoil)
    plain = db.value(game, estimator="reuse", budget=300)
    assert np.array_equal(spoiled.values, plain.values)
    assert np.array_equal(spoiled.std_errors, plain.std_errors)


def test_coalitions_are_lent_to_be_read():
    class Kept(db.designs.Coin):
        rows = np.eye(4, dtype=bool)

        def coalitions(self, indices):
            return self.rows

    evaluations = db.Evaluations(Kept(4, 0), np.arange(4), np.zeros((4, 1)))
    for _, inside in evaluations.blocks():
        with pytest.raises(ValueError, match="read-only"):
            inside[:] = False
    assert Kept.rows.flags.writeable


def test_an_exception_of_the_watcher_stops_the_run_after_a_whole_batch(tmp_path):
    game, _ = closed_forms.noisy_additive()

    def stop(done, total, checkpoints):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        db.value(game, estimator="reuse", budget=3000, ledger=tmp_path / "run.db", progress=stop)
    with db.Ledger(tmp_path / "run.db") as ledger:
        done = ledger.count()
    assert 0 < done < 3000
    assert f"{done:,} evaluations are in" in error.value.__notes__[0]
    resumed = db.value(game, estimator="reuse", budget=3000, ledger=tmp_path / "run.db")
    assert np.array_equal(resumed.values, db.value(game, estimator="reuse", budget=3000).values)


GAME = db.games.Table([0, 0, 0, 1])
DATA = db.Dataset([[0.0], [1.0]], [0, 1], [[0.5]], [1])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: db.value(GAME, budget=0), "budget"),
        (lambda: db.value(GAME, budget=2.5), "budget"),
        (lambda: db.value(GAME, repeats=0), "repeats"),
        (lambda: db.value(GAME, estimator="magic"), "magic"),
        (lambda: db.value(GAME, estimator=3), "estimator"),
        (lambda: db.value(GAME, notion=db.Banzhaf), "brackets"),
        (lambda: db.value(GAME, notion="banzhaf"), "notion"),
        (lambda: db.estimate(db.Ledger(), "shapley"), "notion"),
        (lambda: db.value(GAME, until=0.95), "until"),
        (lambda: db.value(GAME, until=db.until.ranking_stable), "until"),
        (lambda: db.value(GAME, evaluator=2), "evaluator"),
        (lambda: db.value(GAME, evaluator=db.evaluators.Processes), "evaluator"),
        (lambda: db.value(GAME, ledger=5), "ledger"),
        (lambda: db.value(GAME, estimator="exact", until=db.until.deadline(9)), "until"),
        (lambda: db.value(GAME, db.LeaveOneOut(), until=db.until.deadline(9)), "until"),
        (lambda: db.value(GAME, estimator="reuse", budget=10**15), "budget"),
        (lambda: db.estimate(None), "source"),
        (lambda: db.theory.safety_margin(db.Banzhaf, 10), "notion"),
        (lambda: db.WeightedBanzhaf("a"), "p"),
        (lambda: db.Beta("1", 2), "alpha"),
        (lambda: db.Semivalue([0, 0]), "log_weights"),
        (lambda: db.until.deadline("1"), "seconds"),
        (lambda: db.until.precise(None), "std_error"),
        (lambda: db.games.Table(["a", "b"]), "utilities"),
        (lambda: db.games.Table([[0], [1, 2]]), "utilities"),
        (lambda: db.Dataset([[0], [1, 2]], [0, 1], [[0]], [1]), "ragged"),
        (lambda: db.games.Learner(None, DATA), "estimator"),
        (lambda: db.games.Function(3, len, players=5), "players"),
        (lambda: db.ranking.consistent([[1, 2], [1, 2]], None), "k"),
        (lambda: db.ranking.consistent([[1, 2], [1, 2]], "a"), "k"),
        (lambda: db.ranking.spearman(["a"], ["b"]), "numbers"),
        (lambda: db.Evaluations(db.designs.Exhaustive(1), [5], [[0.0]]), "indices"),
        (lambda: db.games.Learner(LogisticRegression(), DATA, f1_score), "make_scorer"),
        (lambda: db.games.Learner(LogisticRegression(), DATA, 3), "metric"),
        (lambda: db.value([0, 1]), "game"),
        (lambda: db.value(GAME, db.Shapley(), estimator="permutation", budget=2), "budget=3"),
        (lambda: db.value(GAME, estimator="marginal", budget=1), "budget=2"),
        (lambda: db.value(db.games.Function(30, len), estimator="exact"), "at most 24"),
        (lambda: db.games.Table([]), "2**n"),
        (lambda: db.games.Table([1.0]), "2**n"),
        (lambda: db.games.Table([0, 1, 2]), "2**n"),
        (lambda: db.games.Table([[0, 1], [2, 3]]), "2**n"),
        (lambda: db.games.Table([0, np.nan]), "position 1"),
        (lambda: db.games.Table([0, np.inf]), "position 1"),
        (lambda: db.games.Function(0, len), "n_players"),
        (lambda: db.games.Function(3, "len"), "callable"),
        (lambda: db.games.Function(3, len, players=["a"]), "players"),
        (lambda: db.value(db.games.Function(3, lambda c: c)), "one number per coalition"),
        (lambda: db.value(db.games.Function(3, lambda c: 1.0)), "one number per coalition"),
        (lambda: db.value(GAME, ledger=db.Ledger(keep="outcomes")), "keep"),
        (lambda: db.evaluators.Processes(0), "n_jobs"),
        (lambda: db.Evaluations(db.designs.Coin(2, 0), np.arange(3), np.zeros(3)), "shape"),
        (
            lambda: db.Evaluations(db.designs.Coin(2, 0), np.array([1, 0]), np.zeros((2, 1))),
            "increase",
        ),
        (
            lambda: db.Evaluations(db.designs.Coin(2, 0), np.arange(1), np.full((1, 1), np.nan)),
            "finite",
        ),
    ],
)
def test_bad_input_gets_one_clear_sentence(call, words):
    with pytest.raises(db.InvalidInput) as error:
        call()
    assert words in str(error.value)
    assert str(error.value).endswith((".", ")"))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_utility_that_is_no_number_names_its_evaluation_and_keeps_the_others(tmp_path, bad):
    def broken(coalitions):
        return np.where(
            coalitions[:, 0] & coalitions[:, 1] & coalitions[:, 2], bad, coalitions.mean(axis=1)
        )

    game = db.games.Function(40, broken, name="broken")
    with pytest.raises(db.EvaluationFailed) as error:
        db.value(game, budget=300, ledger=tmp_path / "run.db")
    coalitions = db.designs.Coin(40, 0).coalitions(np.arange(300))
    first = int(coalitions[:, :3].all(axis=1).argmax())
    assert error.value.index == first
    assert error.value.repeat == 0
    assert np.array_equal(error.value.coalition, coalitions[first])
    assert f"evaluation {first}" in str(error.value)
    with db.Ledger(tmp_path / "run.db") as ledger:
        assert len(ledger.utilities()) >= first


def test_an_error_in_the_function_carries_its_cause(tmp_path):
    def broken(coalitions):
        raise KeyError("no such column")

    with pytest.raises(db.EvaluationFailed, match="no such column") as error:
        db.value(db.games.Function(30, broken))
    assert isinstance(error.value.__cause__, KeyError)
    with pytest.raises(db.EvaluationFailed, match="no such column"):
        db.value(db.games.Function(30, broken), evaluator=db.evaluators.Processes(2))
