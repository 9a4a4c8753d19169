"""Evaluate one batch: the piece that every evaluator shares."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.evaluations import BLOCK_CELLS, Batch, Failure
from databanzhaf.protocols import (
    BoolArray,
    Evaluator,
    FloatArray,
    Game,
    IntArray,
    KeyArray,
    TwoStepGame,
)


def evaluate(
    game: Game, coalitions: BoolArray, keys: KeyArray, starts: IntArray, keep_outcomes: bool = False
) -> Batch:
    """Evaluate in calls that begin at `starts`; stop at the first failure and keep what came before
    it.
    """
    m = len(coalitions)
    utilities, seconds = np.full(m, np.nan), np.zeros(m)
    outcomes: list[bytes | None] | None = [None] * m if keep_outcomes else None
    failure = None
    for low, high in pairwise([*starts.tolist(), m]):
        rows = slice(low, high)
        start = time.perf_counter()
        try:
            if outcomes is None:
                scores = _real(game.utility(coalitions[rows], keys[rows]))
            else:
                assert isinstance(game, TwoStepGame)
                outcomes[rows] = packed = game.outcomes(coalitions[rows], keys[rows])
                scores = _real([game.score(outcome) for outcome in packed])
        except InvalidInput:
            raise
        except (
            Exception,
            SystemExit,
        ) as error:  # any error of the user's model, raised again with its index
            if _interrupted(error):
                raise KeyboardInterrupt from error
            many = len(keys[rows])
            whose = (
                ""
                if many == 1
                else f", in a call with {many} coalitions of which this is the first"
            )
            failure = Failure(
                low, f"{type(error).__name__}: {str(error).rstrip('.')}{whose}", error
            )
            break
        if scores.shape != (len(keys[rows]),):
            raise InvalidInput(
                f"a game must return one utility per coalition, shape ({len(keys[rows])},)",
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

    `coalitions` makes those of some positions of the list, a few MiB at a time. Calls of the game
    begin at multiples of its call size in the list, whatever the worker count.
    """
    total, call = len(keys), game.call_size or 1
    size = max(evaluator.workers, BLOCK_CELLS // (game.n_players * call)) * call
    batches = []
    with evaluator.session(game, keep_outcomes) as session:
        for low in range(0, total, size):
            positions = np.arange(low, min(low + size, total))
            here = coalitions(positions)
            starts = np.arange(0, len(here), game.call_size or len(here), dtype=np.int64)
            batch = session(here, keys[positions], starts)
            batch.check(indices[positions], repeats[positions], here)
            batches.append(batch)
    return join(batches)


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


def join(batches: list[Batch]) -> Batch:
    """Consecutive batches as one."""
    failure, offset = None, 0
    for batch in batches:
        if batch.failure is not None:
            failure = Failure(
                offset + batch.failure.position, batch.failure.reason, batch.failure.cause
            )
            break
        offset += len(batch.utilities)
    kept = [outcome for batch in batches for outcome in batch.outcomes or []]
    return Batch(
        np.concatenate([batch.utilities for batch in batches]),
        np.concatenate([batch.seconds for batch in batches]),
        kept if batches[0].outcomes is not None else None,
        failure,
    )
