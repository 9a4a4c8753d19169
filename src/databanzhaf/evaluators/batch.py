"""Evaluate one piece: what every evaluator shares."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import InvalidInput
from databanzhaf.evaluations import BLOCK_CELLS, Batch, Failure, Piece
from databanzhaf.protocols import (
    BoolArray,
    Design,
    Draws,
    Evaluator,
    FloatArray,
    Game,
    IntArray,
    KeyArray,
    TwoStepGame,
)


@dataclass(frozen=True)
class Drawn:
    """The coalitions of a design, each with the key of its training."""

    design: Design
    seed: int

    def __call__(self, indices: IntArray, repeats: IntArray) -> tuple[BoolArray, KeyArray]:
        keys = chance.keys(self.seed, chance.TRAINING, indices, repeats)
        return self.design.coalitions(indices), keys


def evaluate(game: Game, draws: Draws, piece: Piece, keep_outcomes: bool = False) -> Batch:
    """Evaluate in the calls of a piece; stop at the first failure and keep what came before it."""
    m = len(piece)
    coalitions, keys = draws(piece.indices, piece.repeats)
    utilities, seconds = np.full(m, np.nan), np.zeros(m)
    outcomes: list[bytes | None] | None = [None] * m if keep_outcomes else None
    failure = None
    for low, high in pairwise([*piece.starts.tolist(), m]):
        rows = slice(low, high)
        start = time.perf_counter()
        try:
            if outcomes is None:
                scores = _real(game.utility(coalitions[rows], keys[rows]))
            else:
                assert isinstance(game, TwoStepGame)
                outcomes[rows] = packed = game.outcomes(coalitions[rows], keys[rows])
                scores = _real(_scored(game, packed))
        except InvalidInput:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # any error of the user's model, raised again with its index
            if _interrupted(error):
                raise KeyboardInterrupt from error
            many = high - low
            whose = (
                ""
                if many == 1
                else f", in a call with {many} coalitions of which this is the first"
            )
            said = str(error).rstrip(".")
            reason = f"{type(error).__name__}{said and f': {said}'}{whose}"
            failure = Failure(low, reason, error, raised=True)
            break
        if scores.shape != (high - low,):
            raise InvalidInput(
                f"a game must return one utility per coalition, shape ({high - low},)",
                got=f"{scores.shape}",
                remedy="Fix its `utility`.",
            )
        utilities[rows] = scores
        seconds[rows] = (time.perf_counter() - start) / len(scores)
        bad = np.flatnonzero(~np.isfinite(scores))
        if bad.size:
            utilities[low + bad] = np.nan
            failure = Failure(low + int(bad[0]), f"its utility is {scores[bad[0]]}")
            break
    return Batch(utilities, seconds, outcomes, failure)


def _scored(game: TwoStepGame, outcomes: list[bytes]) -> Any:
    """The score of each outcome; at once by games that can."""
    at_once = getattr(type(game), "score_many", None)
    return [game.score(each) for each in outcomes] if at_once is None else at_once(game, outcomes)


def _interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C came while compiled code was calling Python, which turns it into an error of
    its own.
    """
    seen: BaseException | None = error
    for _ in range(8):
        if isinstance(seen, KeyboardInterrupt):
            return True
        seen = None if seen is None else seen.__cause__ or seen.__context__
    return False


def play(
    game: Game,
    evaluator: Evaluator,
    coalitions: Callable[[IntArray], BoolArray],
    keys: KeyArray,
    indices: IntArray,
    repeats: IntArray,
    *,
    keep_outcomes: bool = False,
) -> Batch:
    """Evaluate a list of coalitions outside a run; what fails is raised with its index and repeat.

    `coalitions` makes those of some positions of the list. Calls of the game begin at multiples of
    its call size in the list, whatever the worker count.
    """
    m = len(keys)
    utilities, seconds = np.full(m, np.nan), np.zeros(m)
    outcomes: list[bytes | None] | None = [None] * m if keep_outcomes else None

    def draws(positions: IntArray, _: IntArray) -> tuple[BoolArray, KeyArray]:
        return coalitions(positions), keys[positions]

    with evaluator.session(game, keep_outcomes) as session:
        for done in session(draws, _pieces(m, game)):
            for piece, batch in done:
                at = piece.indices
                batch.check(piece, draws, Piece(indices[at], repeats[at], piece.starts))
                utilities[at], seconds[at] = batch.utilities, batch.seconds
                if outcomes is not None and batch.outcomes is not None:
                    for position, outcome in zip(at.tolist(), batch.outcomes, strict=True):
                        outcomes[position] = outcome
    return Batch(utilities, seconds, outcomes)


# Pieces of a list: so many that workers stay busy, and that each holds a few MiB at most.
_PIECES = 64


def _pieces(total: int, game: Game) -> Iterator[Piece]:
    """A list of positions in whole calls."""
    call = game.call_size or max(1, min(total, BLOCK_CELLS // game.n_players))
    size = call * max(1, min(total // _PIECES, BLOCK_CELLS // game.n_players) // call)
    for low in range(0, total, size):
        positions = np.arange(low, min(low + size, total))
        yield Piece(positions, np.zeros_like(positions), np.arange(0, len(positions), call))


def _real(scores: object) -> FloatArray:
    """Utilities as float64; a complex number or a date would be cut to one without a word."""
    array = np.asarray(scores)
    if array.dtype.kind == "O" and all(isinstance(score, numbers.Real) for score in array.flat):
        return array.astype(np.float64)
    if array.dtype.kind not in "biuf":
        raise InvalidInput(
            "a game must return real numbers", got=f"{array.dtype}", remedy="Fix its `utility`."
        )
    return array.astype(np.float64)
