"""What every evaluator promises: the bits of a plain loop, in this process or another."""

import os

import numpy as np
import pytest

import databanzhaf as db
from tests.conformance.test_games import EVERY, GAMES

EVALUATORS = [db.evaluators.Local(), db.evaluators.Processes(1), db.evaluators.Processes(2), db.evaluators.Processes(3)]
each_evaluator = pytest.mark.parametrize("evaluator", EVALUATORS, ids=repr)
KEYS = db.chance.keys(4, 2, np.arange(64))
STARTS = np.array([0, 1, 5, 20, 21, 50])


@each_evaluator
@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_utilities_are_those_of_a_plain_loop(evaluator, game):
    with evaluator.session(game) as evaluate:
        batch = evaluate(EVERY, KEYS, STARTS)
        again = evaluate(EVERY[:1], KEYS[:1], np.array([0]))
    expected = np.concatenate([game.utility(EVERY[a:b], KEYS[a:b]) for a, b in zip(STARTS, [*STARTS[1:], 64], strict=True)])
    assert np.array_equal(batch.utilities, expected)
    assert np.array_equal(again.utilities, game.utility(EVERY[:1], KEYS[:1]))
    assert (batch.seconds > 0).all()
    assert batch.failure is None
    assert batch.outcomes is None


@each_evaluator
def test_outcomes_come_along_when_asked_for(evaluator):
    game = GAMES[3]
    with evaluator.session(game, keep_outcomes=True) as evaluate:
        batch = evaluate(EVERY, KEYS, np.arange(64))
    assert batch.outcomes == game.outcomes(EVERY, KEYS)


@each_evaluator
def test_calls_begin_where_they_are_told(evaluator):
    game = db.games.Function(6, lambda coalitions: np.full(len(coalitions), float(len(coalitions))))
    with evaluator.session(game) as evaluate:
        sizes = evaluate(EVERY, KEYS, STARTS).utilities
    assert np.array_equal(sizes, np.repeat(np.diff([*STARTS, 64]), np.diff([*STARTS, 64])))


@each_evaluator
def test_a_failure_says_where_and_keeps_what_came_before(evaluator):
    def broken(coalitions):
        if coalitions[:, 5].any():
            raise ValueError("player 5 is ill")
        return coalitions.sum(axis=1)

    with evaluator.session(db.games.Function(6, broken)) as evaluate:
        batch = evaluate(EVERY, KEYS, np.arange(64))
    assert batch.failure.position == 32
    assert "player 5 is ill" in batch.failure.reason
    assert np.array_equal(batch.utilities[:32], EVERY[:32].sum(axis=1))
    assert np.isnan(batch.utilities[32])


@each_evaluator
def test_every_worker_has_one_blas_thread(evaluator):
    def threads(coalitions):
        from threadpoolctl import threadpool_info

        return np.full(len(coalitions), max(pool["num_threads"] for pool in threadpool_info()), dtype=float)

    with evaluator.session(db.games.Function(6, threads)) as evaluate:
        assert (evaluate(EVERY, KEYS, STARTS).utilities == 1).all()


def test_processes_really_are_several():
    game = db.games.Function(6, lambda coalitions: np.full(len(coalitions), float(os.getpid())))
    with db.evaluators.Processes(2).session(game) as evaluate:
        seen = set(evaluate(EVERY, KEYS, np.arange(64)).utilities)
    assert float(os.getpid()) not in seen


def test_a_worker_that_dies_and_a_game_that_cannot_travel_are_named():
    def deadly(coalitions):
        os.kill(os.getpid(), 9)

    with pytest.raises(db.BackendUnavailable, match="died"):
        db.value(db.games.Function(6, deadly, name="deadly"), evaluator=db.evaluators.Processes(2))
    import threading

    lock = threading.Lock()
    game = db.games.Function(6, lambda c: c.sum(axis=1) + lock.locked(), name="locked")
    with pytest.raises(db.InvalidInput, match="cannot be sent"):
        db.value(game, evaluator=db.evaluators.Processes(2))
