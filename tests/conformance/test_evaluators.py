"""What every evaluator promises: the bits of a plain loop, in this process or another."""

import os
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.evaluations import Piece
from databanzhaf.testing import check_evaluator
from tests.conformance.test_games import GAMES

EVALUATORS = [
    db.evaluators.Local(),
    db.evaluators.Processes(1),
    db.evaluators.Processes(2),
    db.evaluators.Processes(3),
]
each_evaluator = pytest.mark.parametrize("evaluator", EVALUATORS, ids=repr)
WHOLE = Piece(np.arange(64), np.zeros(64, dtype=int), np.arange(64))
DRAWS = db.evaluators.Drawn(db.designs.Exhaustive(6), 4)


@each_evaluator
@pytest.mark.parametrize("game", GAMES, ids=repr)
def test_an_evaluator_keeps_its_promises(evaluator, game):
    check_evaluator(evaluator, game)


class Broken(db.evaluators.Local):
    """`Local`, with what goes in and what comes out changed."""

    def __init__(self, before=None, after=None, keeps=True, draw=None, twice=False):
        vars(self).update(before=before, after=after, keeps=keeps, draw=draw, twice=twice)

    @contextmanager
    def session(self, game, keep_outcomes=False):
        def run(draws, pieces):
            pieces = pieces if self.before is None else map(self.before, pieces)
            drawn = draws if self.draw is None else lambda *which: self.draw(*draws(*which))
            for done in evaluate(drawn, pieces):
                for _ in range(1 + self.twice):
                    yield [
                        (piece, batch if self.after is None else self.after(batch))
                        for piece, batch in done
                    ]

        with super().session(game, keep_outcomes and self.keeps) as evaluate:
            yield run


class Partial:
    pass


def one_call(piece):
    return replace(piece, starts=piece.starts[:1])


def idle(batch):
    return replace(batch, seconds=np.zeros_like(batch.seconds))


def filled(batch):
    return replace(batch, utilities=np.nan_to_num(batch.utilities))


def swapped(batch):
    return replace(batch, outcomes=batch.outcomes and batch.outcomes[::-1])


BROKEN = [
    (Broken(draw=lambda c, k: (c, k[::-1])), r"plain loop.*; coalition \{\}: got"),
    (Broken(draw=lambda c, k: (c, np.zeros_like(k))), "plain loop.*; coalition"),
    (Broken(one_call), "where `starts` says; position 0: got 20.0, not 1.0"),
    (Broken(keeps=False), "keep_outcomes=True.* got None"),
    (Broken(after=swapped), r"outcomes are those of a plain loop; coalition \{\}"),
    (Broken(after=filled), "the utility NaN; position 32 has 0.0"),
    (Broken(after=idle), "every evaluation has a time; position 0"),
    (Broken(twice=True), "each piece comes once; index 0 came twice"),
    (Partial(), "without session"),
]


@pytest.mark.parametrize(("evaluator", "sentence"), BROKEN, ids=[text for _, text in BROKEN])
def test_evaluators_that_break_a_promise_are_found(evaluator, sentence):
    for game in (None, GAMES[0]):
        with pytest.raises(AssertionError, match=sentence):
            check_evaluator(evaluator, game)


def test_processes_really_are_several():
    game = db.games.Function(6, lambda coalitions: np.full(len(coalitions), float(os.getpid())))
    with db.evaluators.Processes(2).session(game) as evaluate:
        pieces = [WHOLE.part(low, low + 8) for low in range(0, 64, 8)]
        batches = [batch for done in evaluate(DRAWS, pieces) for _, batch in done]
    seen = {pid for batch in batches for pid in batch.utilities}
    assert float(os.getpid()) not in seen


def test_a_worker_that_dies_and_a_game_that_cannot_travel_are_named():
    def deadly(coalitions):
        os.kill(os.getpid(), 9)

    with pytest.raises(db.BackendUnavailable, match=r"died.*3 workers.* at evaluations? \d"):
        db.value(db.games.Function(6, deadly, name="deadly"), evaluator=db.evaluators.Processes(2))
    import threading

    lock = threading.Lock()
    game = db.games.Function(6, lambda c: c.sum(axis=1) + lock.locked(), name="locked")
    with pytest.raises(db.InvalidInput, match="cannot be sent"):
        db.value(game, evaluator=db.evaluators.Processes(2))


def test_an_interrupt_that_compiled_code_disguises_is_still_one():
    """NumPy and Cython raise an error of their own when Ctrl-C comes while they call Python."""

    def disguised(coalitions):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise ValueError("not a valid buffer format string") from error

    with pytest.raises(KeyboardInterrupt):
        db.value(db.games.Function(3, disguised, name="disguised"), budget=4)
