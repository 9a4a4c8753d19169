"""What every evaluator promises: the bits of a plain loop, wherever the game runs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from databanzhaf import chance, designs, games
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators import Drawn
from databanzhaf.protocols import (
    BoolArray,
    EvaluatePieces,
    Evaluator,
    FloatArray,
    Game,
    KeyArray,
    TwoStepGame,
)
from databanzhaf.testing.promises import has_members, named, promise, same

_DRAWS = Drawn(designs.Exhaustive(6), 4)
_ONE = np.zeros(64, dtype=np.int64)
_EVERY, _KEYS = _DRAWS(np.arange(64), _ONE)
_STARTS = np.array([0, 1, 5, 20, 21, 50])
# Two pieces of three calls each; and every evaluation a call, in 16 pieces.
_TWO = (0, 20, 64)
_ALONE = tuple(range(0, 65, 4))


def check_evaluator(evaluator: Evaluator, game: Game | None = None) -> None:
    """Check the promises of `protocols.Evaluator`, on a small noisy game that makes outcomes, and
    on a game of six players of your own if there is one.
    """
    has_members(evaluator, Evaluator, "an evaluator")
    for each in [_Drawn()] if game is None else [_Drawn(), game]:
        _check_utilities(evaluator, each)
        if isinstance(each, TwoStepGame):
            _check_outcomes(evaluator, each)
    _check_calls(evaluator)
    _check_failure(evaluator)
    _check_threads(evaluator)


def _pieces(starts: Any, cuts: tuple[int, ...]) -> list[Piece]:
    whole = Piece(np.arange(64), _ONE, np.asarray(starts))
    return [whole.part(low, high) for low, high in pairwise(cuts)]


def _evaluated(evaluate: EvaluatePieces, pieces: list[Piece]) -> Batch:
    """All pieces as one batch, whatever the order in which they came."""
    m = sum(map(len, pieces))
    utilities, seconds = np.full(m, np.nan), np.zeros(m)
    outcomes: list[bytes | None] = [None] * m
    kept, failure = False, None
    for done in evaluate(_DRAWS, iter(pieces)):
        promise(failure is None, "a piece that fails comes last")
        for piece, batch in done:
            twice = piece.indices[~np.isnan(utilities[piece.indices])]
            promise(not len(twice), f"each piece comes once; index {[*twice, 0][0]} came twice")
            utilities[piece.indices], seconds[piece.indices] = batch.utilities, batch.seconds
            for index, outcome in zip(piece.indices.tolist(), batch.outcomes or [], strict=False):
                outcomes[index], kept = outcome, True
            if batch.failure is not None:
                at = int(piece.indices[batch.failure.position])
                failure = replace(batch.failure, position=at)
    return Batch(utilities, seconds, outcomes if kept else None, failure)


def _check_utilities(evaluator: Evaluator, game: Game) -> None:
    ends = [*_STARTS[1:].tolist(), 64]
    calls = [slice(low, high) for low, high in zip(_STARTS.tolist(), ends, strict=True)]
    expected = np.concatenate([game.utility(_EVERY[call], _KEYS[call]) for call in calls])
    with evaluator.session(game) as evaluate:
        batch = _evaluated(evaluate, _pieces(_STARTS, _TWO))
        again = _evaluated(evaluate, _pieces([0], (0, 1)))
    promise(batch.failure is None, f"nothing fails; got {batch.failure}")
    same(
        batch.utilities,
        expected,
        "utilities are those of a plain loop, bit by bit, with coalitions and keys as drawn",
        _coalition,
    )
    same(again.utilities, game.utility(_EVERY[:1], _KEYS[:1]), "a session takes further pieces")
    idle = np.flatnonzero(~(batch.seconds > 0))
    promise(not len(idle), f"every evaluation has a time; position {[*idle, 0][0]} has none")
    promise(batch.outcomes is None, "outcomes come only when they are asked for")


def _check_outcomes(evaluator: Evaluator, game: TwoStepGame) -> None:
    with evaluator.session(game, keep_outcomes=True) as evaluate:
        batch = _evaluated(evaluate, _pieces(np.arange(64), _ALONE))
    expected = game.outcomes(_EVERY, _KEYS)
    kept = batch.outcomes
    if kept is None:
        raise AssertionError("keep_outcomes=True returns the outcomes; got None")
    promise(len(kept) == 64, f"64 evaluations have 64 outcomes; got {len(kept)}")
    wrong = [row for row in range(64) if kept[row] != expected[row]]
    promise(
        not wrong, f"outcomes are those of a plain loop; {_coalition((wrong or [0])[0])} is not"
    )
    scores = [game.score(outcome) for outcome in expected]
    same(batch.utilities, scores, "utilities are the scores of the kept outcomes", _coalition)


def _coalition(row: int) -> str:
    return named(_EVERY[row])


def _check_calls(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _size_of_the_call)) as evaluate:
        sizes = _evaluated(evaluate, _pieces(_STARTS, _TWO)).utilities
    lengths = np.diff([*_STARTS, 64]).astype(np.float64)
    same(
        sizes,
        np.repeat(lengths, lengths.astype(np.int64)),
        "calls of the game begin where `starts` says",
    )


def _check_failure(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _ill)) as evaluate:
        batch = _evaluated(evaluate, _pieces(np.arange(64), _ALONE))
    failure = batch.failure
    if failure is None:
        raise AssertionError("a game that raises leaves a failure in its batch; got None")
    promise(failure.position == 32, f"the first failure is at position 32; got {failure.position}")
    promise(
        "player 5 is ill" in failure.reason,
        f"a failure has the reason 'player 5 is ill'; got {failure.reason!r}",
    )
    same(batch.utilities[:32], _EVERY[:32].sum(axis=1), "what came before a failure is kept")
    filled = np.flatnonzero(~np.isnan(batch.utilities[32:])) + 32
    promise(
        not len(filled),
        "what failed, or was not evaluated, has the utility NaN; "
        + " ".join(f"position {row} has {batch.utilities[row]}" for row in filled[:1]),
    )


def _check_threads(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _threads)) as evaluate:
        counts = _evaluated(evaluate, _pieces(_STARTS, _TWO)).utilities
    promise(
        (counts == 1).all(),
        f"a worker has one BLAS thread, as more would change the last bits; got {counts.max():g}",
    )


class _Drawn:
    """Players and noise, and an outcome that is the utility's eight bytes."""

    n_players, stochastic, call_size, players = 6, True, None, None

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        utilities: FloatArray = chance.uniform(keys, 1)[:, 0] + coalitions.sum(axis=1) ** 2
        return utilities

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        return [utility.tobytes() for utility in self.utility(coalitions, keys)]

    def score(self, outcome: bytes) -> float:
        return float(np.frombuffer(outcome)[0])

    def fingerprint(self) -> dict[str, str]:
        return {"game": "squares with noise"}


def _size_of_the_call(coalitions: BoolArray) -> FloatArray:
    return np.full(len(coalitions), float(len(coalitions)))


def _ill(coalitions: BoolArray) -> Any:
    if coalitions[:, 5].any():
        raise ValueError("player 5 is ill")
    return coalitions.sum(axis=1)


def _threads(coalitions: BoolArray) -> FloatArray:
    from threadpoolctl import threadpool_info

    return np.full(len(coalitions), max(pool["num_threads"] for pool in threadpool_info()), float)
