import time
from dataclasses import dataclass

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import loop, until
from databanzhaf.diagnostics import history
from databanzhaf.evaluations import checkpoint_marks
from databanzhaf.run import finish
from databanzhaf.until import Progress
from tests import closed_forms


@dataclass(frozen=True)
class Always(until.Condition):
    answer: bool

    def __call__(self, progress):
        return self.answer


@pytest.mark.parametrize("a", [True, False])
@pytest.mark.parametrize("b", [True, False])
def test_conditions_combine(a, b):
    progress = Progress([], 0.0)
    assert (Always(a) | Always(b))(progress) == (a or b)
    assert (Always(a) & Always(b))(progress) == (a and b)
    assert (Always(a) & Always(b) | Always(a))(progress) == a


def test_precise_stops_when_every_error_is_small():
    game, _ = closed_forms.noisy_additive()
    estimate = db.value(game, estimator="reuse", budget=100_000, until=db.until.precise(0.05))
    assert estimate.n_evaluations < 100_000
    assert estimate.std_errors.max() <= 0.05
    marks = checkpoint_marks(db.designs.Coin(10, 0), 100_000, stops=True)
    before = marks[marks.index(estimate.n_evaluations) - 1]
    assert db.value(game, estimator="reuse", budget=before).std_errors.max() > 0.05


def test_ranking_stable_stops_when_the_ranking_settles():
    game, weights = closed_forms.noisy_additive(n=40, noise=1.0)
    estimate = db.value(
        game, estimator="reuse", budget=100_000, until=db.until.ranking_stable(0.95)
    )
    assert 100 < estimate.n_evaluations < 50_000
    assert db.ranking.spearman(estimate.values, weights) > 0.95
    longer = db.value(
        game, estimator="reuse", budget=100_000, until=db.until.ranking_stable(0.99, patience=4)
    )
    assert longer.n_evaluations > estimate.n_evaluations


def test_pure_noise_is_not_taken_for_a_stable_ranking():
    game, _ = closed_forms.noisy_additive(n=30, noise=1.0)
    flat = db.games.Function(
        30, lambda c, keys: game.function(c & False, keys), stochastic=True, name="flat"
    )
    estimate = db.value(flat, budget=20_000, until=db.until.ranking_stable(0.8))
    assert estimate.n_evaluations == 20_000


def test_deadline_stops_between_checkpoints():
    def slow(coalitions):
        time.sleep(0.004 * len(coalitions))
        return coalitions.mean(axis=1)

    start = time.perf_counter()
    estimate = db.value(
        db.games.Function(30, slow, name="slow"), budget=100_000, until=db.until.deadline(0.3)
    )
    assert time.perf_counter() - start < 10
    assert 0 < estimate.n_evaluations < 5000


def test_stopping_does_not_depend_on_batches_or_on_resuming(tmp_path, monkeypatch):
    game, _ = closed_forms.noisy_additive(n=20)
    condition = db.until.precise(0.08) & db.until.ranking_stable(0.9)
    options = {"estimator": "reuse", "until": condition}
    plain = db.value(game, budget=50_000, **options)
    monkeypatch.setattr(loop, "LARGEST_PIECE", 13)
    small = db.value(game, budget=50_000, **options)
    db.value(game, budget=150, estimator="reuse", ledger=tmp_path / "run.db")
    resumed = db.value(game, budget=50_000, ledger=tmp_path / "run.db", **options)
    monkeypatch.undo()
    db.value(game, budget=20_000, estimator="reuse", ledger=tmp_path / "run.db")
    from_more = db.value(game, budget=50_000, ledger=tmp_path / "run.db", **options)
    for other in (small, resumed, from_more):
        assert other.n_evaluations == plain.n_evaluations
        assert np.array_equal(other.values, plain.values)


def test_checkpoints_are_whole_permutations():
    marks = checkpoint_marks(db.designs.Permutation(29, 0), 3000, stops=True)
    assert all(mark % 30 == 0 for mark in marks)
    assert marks == sorted(set(marks))
    assert marks[-1] == 3000
    later = checkpoint_marks(db.designs.Permutation(29, 0), 300_000, stops=True)
    assert later[: len(marks) - 1] == marks[:-1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: db.until.ranking_stable(1.5),
        lambda: db.until.ranking_stable(0.9, patience=0),
        lambda: db.until.precise(0),
        lambda: db.until.deadline(-1),
    ],
)
def test_bad_conditions_are_refused(make):
    with pytest.raises(db.InvalidInput):
        make()


def test_what_a_deadline_lets_in_after_the_last_checkpoint_counts():
    class Later(db.until.Condition):
        """Holds one batch after the second checkpoint, as a deadline may at any moment."""

        asked = 0

        def __call__(self, progress):
            Later.asked += len(progress.checkpoints) == 2
            return Later.asked == 2

    game, _ = closed_forms.noisy_additive()
    ledger = db.Ledger()
    found = db.value(game, estimator="reuse", budget=3000, until=Later(), ledger=ledger)
    assert found.n_evaluations == ledger.count() > 125
    again = db.value(game, estimator="reuse", budget=found.n_evaluations)
    np.testing.assert_array_equal(found.values, again.values)


@pytest.mark.parametrize("until", [None, db.until.precise(0.05)])
def test_a_run_that_is_read_again_had_the_same_checkpoints(until):
    game, _ = closed_forms.noisy_additive()
    made = finish(game, estimator="reuse", budget=3000, until=until, checkpoints=True)
    again = history(made.evaluations, made.estimate, stops=until is not None)
    counts = [[each.estimate.n_evaluations for each in some] for some in (made.checkpoints, again)]
    assert counts[0] == counts[1]
    assert len(counts[0]) > 4


def test_many_players_have_fewer_checkpoints():
    for players, stops, few in ((1000, False, True), (1001, True, True), (1000, True, False)):
        marks = checkpoint_marks(db.designs.Coin(players, 0), 1000, stops=stops)
        assert (marks == [100, 200, 400, 800, 1000]) == few, (players, stops)
        assert few or len(marks) > 8
