"""What every evaluator promises: the bits of a plain loop, wherever the game runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from databanzhaf import chance, designs, games
from databanzhaf.protocols import BoolArray, Evaluator, FloatArray, Game, TwoStepGame
from databanzhaf.testing.promises import promise, same

_EVERY = designs.Exhaustive(6).coalitions(np.arange(64))
_KEYS = chance.keys(4, chance.TRAINING, np.arange(64))
_STARTS = np.array([0, 1, 5, 20, 21, 50])


def check_evaluator(evaluator: Evaluator, game: Game | None = None) -> None:
    """Check the promises of `protocols.Evaluator`, on a game of six players (by default a small
    one of its own).
    """
    promise(isinstance(evaluator, Evaluator), "an evaluator has the members of protocols.Evaluator")
    promise(evaluator.workers >= 1, "an evaluator has one worker or more")
    _check_utilities(evaluator, games.Function(6, _squares) if game is None else game)
    _check_calls(evaluator)
    _check_failure(evaluator)
    _check_threads(evaluator)


def _check_utilities(evaluator: Evaluator, game: Game) -> None:
    ends = [*_STARTS[1:].tolist(), 64]
    calls = [slice(low, high) for low, high in zip(_STARTS.tolist(), ends, strict=True)]
    expected = np.concatenate([game.utility(_EVERY[call], _KEYS[call]) for call in calls])
    with evaluator.session(game) as evaluate:
        batch, again = (
            evaluate(_EVERY, _KEYS, _STARTS),
            evaluate(_EVERY[:1], _KEYS[:1], _STARTS[:1]),
        )
    same(batch.utilities, expected, "utilities are those of a plain loop, bit by bit")
    same(again.utilities, game.utility(_EVERY[:1], _KEYS[:1]), "a session takes a second batch")
    promise((batch.seconds > 0).all(), "every evaluation has a time")
    promise(batch.failure is None, "nothing failed")
    promise(batch.outcomes is None, "outcomes come only when they are asked for")
    if isinstance(game, TwoStepGame):
        with evaluator.session(game, keep_outcomes=True) as evaluate:
            kept = evaluate(_EVERY, _KEYS, np.arange(64)).outcomes
        promise(kept == game.outcomes(_EVERY, _KEYS), "outcomes are those of a plain loop")


def _check_calls(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _size_of_the_call)) as evaluate:
        sizes = evaluate(_EVERY, _KEYS, _STARTS).utilities
    lengths = np.diff([*_STARTS, 64])
    same(sizes, np.repeat(lengths, lengths), "calls of the game begin where `starts` says")


def _check_failure(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _ill)) as evaluate:
        batch = evaluate(_EVERY, _KEYS, np.arange(64))
    failure = batch.failure
    promise(failure is not None and failure.position == 32, "the first failure has its position")
    promise(failure is not None and "player 5 is ill" in failure.reason, "and its reason")
    same(batch.utilities[:32], _EVERY[:32].sum(axis=1), "what came before a failure is kept")
    promise(np.isnan(batch.utilities[32]), "what failed has no utility")


def _check_threads(evaluator: Evaluator) -> None:
    with evaluator.session(games.Function(6, _threads)) as evaluate:
        counts = evaluate(_EVERY, _KEYS, _STARTS).utilities
    promise((counts == 1).all(), "a worker has one BLAS thread: more would change the last bits")


def _squares(coalitions: BoolArray) -> Any:
    return coalitions.sum(axis=1) ** 2


def _size_of_the_call(coalitions: BoolArray) -> FloatArray:
    return np.full(len(coalitions), float(len(coalitions)))


def _ill(coalitions: BoolArray) -> Any:
    if coalitions[:, 5].any():
        raise ValueError("player 5 is ill")
    return coalitions.sum(axis=1)


def _threads(coalitions: BoolArray) -> FloatArray:
    from threadpoolctl import threadpool_info

    return np.full(len(coalitions), max(pool["num_threads"] for pool in threadpool_info()), float)
