"""One run: what is missing, in which batches, and until when."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType

import numpy as np

from databanzhaf import chance
from databanzhaf.designs import Permutation
from databanzhaf.errors import EvaluationFailed, InvalidInput
from databanzhaf.estimators import Estimator
from databanzhaf.ledger import Ledger
from databanzhaf.notions import Notion
from databanzhaf.progress import Bar, Watcher
from databanzhaf.stability import checkpoint
from databanzhaf.types import Checkpoint, Design, EvaluateBatch, Evaluations, Evaluator, FloatArray, Game, IntArray, Labels, TwoStepGame
from databanzhaf.until import Condition, Progress

# A batch is what kill -9 can cost: about this many seconds of work, and never more than this many cells of coalitions.
BATCH_SECONDS = 1.0
BATCH_CELLS = 1 << 23
LARGEST_BATCH = 1 << 15
# Indices whose missing evaluations are listed at a time, at about 80 bytes each.
SEGMENT = 1 << 20


class Run:
    """One call of `value`: the utilities so far, and what is missing."""

    def __init__(
        self, game: Game, design: Design, ledger: Ledger, repeats: int, seed: int, total: int, estimator: Estimator, notion: Notion
    ) -> None:
        self.game, self.design, self.ledger = game, design, ledger
        self.repeats, self.seed, self.total = repeats, seed, total
        self.estimator, self.notion = estimator, notion
        known = ledger.utilities()[:total, :repeats]
        self.utilities: FloatArray = np.full((total, repeats), np.nan)
        self.utilities[: known.shape[0], : known.shape[1]] = known

    def evaluations(self) -> Evaluations:
        return complete_rows(self.design, self.utilities, self.game.stochastic, self.game.players)

    def complete(self, evaluator: Evaluator, until: Condition | None, progress: bool | Watcher) -> None:
        """Evaluate what is missing, checkpoint by checkpoint, until the condition holds."""
        start = time.perf_counter()
        reached: list[Checkpoint] = []
        keep = self.ledger.keep == "outcomes"
        if keep and not isinstance(self.game, TwoStepGame):
            raise InvalidInput(f'keep="outcomes" needs a game that predicts, such as games.Learner; got {self.game!r}. Leave `keep` out.')
        smallest = size = evaluator.workers * (self.game.call_size or 1)
        with ExitStack() as stack:
            stack.push(self._note_what_is_kept)
            show = self._watched(stack, progress, own_checkpoints=until is None)
            evaluate = stack.enter_context(evaluator.session(self.game, keep))
            for end in self._segments() if until is None else checkpoints(self.design, self.total):
                while len(pairs := self._missing(end)):
                    calls = self._calls(pairs)
                    low = 0
                    while low < len(pairs):
                        began = time.perf_counter()
                        high = _cut(calls, low, low + size, len(pairs))
                        inside = calls[np.searchsorted(calls, low, "right") : np.searchsorted(calls, high)]
                        self._evaluate(pairs[low:high], np.concatenate([[low], inside]) - low, evaluate)
                        low = high
                        size = max(smallest, self._next_size(size, time.perf_counter() - began))
                        show(reached)
                        if until is not None and until(Progress(reached, time.perf_counter() - start)):
                            return
                if until is not None:
                    reached.append(checkpoint(self.evaluations().before(end), self.notion, self.estimator))
                    if until(Progress(reached, time.perf_counter() - start)):
                        self.utilities[end:] = np.nan
                        return

    def _watched(self, stack: ExitStack, progress: bool | Watcher, own_checkpoints: bool) -> Callable[[Sequence[Checkpoint]], None]:
        """A function that tells whoever watches how the run stands. Where the loop stops at no checkpoint, it makes them."""
        if progress is False:
            return lambda reached: None
        watcher = Bar() if progress is True else progress
        if isinstance(watcher, Bar):
            stack.callback(watcher.close)
        marks = checkpoints(self.design, self.total) if own_checkpoints else []
        passed: list[Checkpoint] = []

        def show(reached: Sequence[Checkpoint]) -> None:
            while marks and not np.isnan(self.utilities[: marks[0]]).any():
                passed.append(checkpoint(self.evaluations().before(marks.pop(0)), self.notion, self.estimator))
            watcher(self._done(), self.total * self.repeats, reached or passed)

        show([])
        return show

    def _note_what_is_kept(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Whoever stops a run by Ctrl-C reads that nothing is lost."""
        if isinstance(error, KeyboardInterrupt) and self.ledger.path is not None:
            error.add_note(f"{self._done():,} evaluations are in `{self.ledger.path}`; the same call goes on from there.")

    def _segments(self) -> list[int]:
        """Where to look again for what is missing: whole calls and whole units, so that nothing but memory depends on it."""
        step = math.lcm(self.design.unit, self.game.call_size or 1)
        step *= -(-SEGMENT // step)
        return [*range(step, self.total, step), self.total]

    def _done(self) -> int:
        return int(np.count_nonzero(~np.isnan(self.utilities)))

    def _missing(self, end: int) -> IntArray:
        """(index, repeat) pairs below `end` to evaluate next, int64 (k, 2)."""
        part = self.utilities[:end]
        if isinstance(self.design, Permutation) and self.design.truncation is not None:
            indices = self.design.wave(part.mean(axis=1).reshape(-1, self.design.unit))
            rows, columns = np.nonzero(np.isnan(part[indices]))
            return self._sorted(np.column_stack([indices[rows], columns]))
        return self._sorted(np.argwhere(np.isnan(part)).astype(np.int64))

    def _sorted(self, pairs: IntArray) -> IntArray:
        """Pairs by block of `call_size` indices, then by repeat: a call has one repeat of one block, however many repeats there are."""
        size = self.game.call_size or 1
        return pairs[np.lexsort((pairs[:, 0], pairs[:, 1], pairs[:, 0] // size))]

    def _calls(self, pairs: IntArray) -> IntArray:
        """Positions in `pairs` at which a new call of the game begins."""
        if self.game.call_size is None:
            return np.empty(0, dtype=np.int64)
        block = pairs[:, 0] // self.game.call_size
        new = (np.diff(block) != 0) | (np.diff(pairs[:, 1]) != 0)
        return np.flatnonzero(new).astype(np.int64) + 1

    def _evaluate(self, pairs: IntArray, starts: IntArray, evaluate: EvaluateBatch) -> None:
        indices, repeats = pairs.T
        coalitions = self.design.coalitions(indices)
        keys = chance.keys(self.seed, chance.TRAINING, indices, repeats)
        batch = evaluate(coalitions, keys, starts)
        done = np.flatnonzero(~np.isnan(batch.utilities))
        outcomes = None if batch.outcomes is None else [batch.outcomes[position] for position in done]
        self.ledger.append(indices[done], repeats[done], batch.utilities[done], batch.seconds[done], outcomes)
        self.utilities[indices[done], repeats[done]] = batch.utilities[done]
        if batch.failure is not None:
            at = batch.failure.position
            error = EvaluationFailed(batch.failure.reason, int(indices[at]), int(repeats[at]), coalitions[at])
            raise error from batch.failure.cause

    def _next_size(self, size: int, seconds: float) -> int:
        """Twice as much if the batch was quick, half if it was slow; results do not depend on it."""
        if seconds > 2 * BATCH_SECONDS:
            size //= 2
        elif seconds < BATCH_SECONDS / 2:
            size *= 2
        limit = min(LARGEST_BATCH, max(1, BATCH_CELLS // self.game.n_players))
        return min(size, limit)


def _cut(calls: IntArray, low: int, high: int, end: int) -> int:
    """The last call boundary up to `high`, but at least one call beyond `low`."""
    if high >= end or not len(calls):
        return min(high, end)
    after = int(np.searchsorted(calls, high, side="right"))
    if after and calls[after - 1] > low:
        return int(calls[after - 1])
    return int(calls[after]) if after < len(calls) else end


def checkpoints(design: Design, total: int) -> list[int]:
    """Where to ask whether it is enough: 100 coalitions, then a quarter more each time, in whole units; then the end."""
    if design.size is not None:
        return [total]
    marks, mark = [], 100.0
    while mark < total:
        marks.append(-(-int(mark) // design.unit) * design.unit)
        mark *= 1.25
    return sorted({mark for mark in marks if mark < total} | {total})


def complete_rows(design: Design, utilities: FloatArray, stochastic: bool, players: Labels | None) -> Evaluations:
    """The coalitions that have all their repeats."""
    complete = np.flatnonzero(~np.isnan(utilities).any(axis=1)).astype(np.int64)
    return Evaluations(design, complete, utilities[complete], stochastic, players)
