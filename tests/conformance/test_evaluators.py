"""What every evaluator promises: the bits of a plain loop, in this process or another."""

import os
from contextlib import contextmanager

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.testing import check_evaluator
from tests.conformance.test_games import EVERY, GAMES

EVALUATORS = [
    db.evaluators.Local(),
    db.evaluators.Processes(1),
    db.evaluators.Processes(2),
    db.evaluators.Processes(3),
]
each_evaluator = pytest.mark.parametrize("evaluator", EVALUATORS, ids=repr)
KEYS = db.chance.keys(4, 2, np.arange(64))


@each_evaluator
@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_an_evaluator_keeps_its_promises(evaluator, game):
    check_evaluator(evaluator, game)


def test_evaluators_that_break_a_promise_are_found():
    class Shifted(db.evaluators.Local):
        @contextmanager
        def session(self, game, keep_outcomes=False):
            with super().session(game, keep_outcomes) as evaluate:
                yield lambda coalitions, keys, starts: evaluate(coalitions, keys[::-1], starts[:1])

    with pytest.raises(AssertionError, match=r"plain loop|where `starts` says"):
        check_evaluator(Shifted(), GAMES[2])


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
