"""One run: what is missing, in which batches, and until when."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType

import numpy as np

from databanzhaf.designs import Permutation
from databanzhaf.diagnostics import Checkpoint, checkpoint
from databanzhaf.errors import InvalidInput
from databanzhaf.evaluations import Batch, Evaluations, Piece, checkpoint_marks, complete_rows
from databanzhaf.evaluators import Drawn
from databanzhaf.ledger import Ledger, seated
from databanzhaf.progress import Bar, Watcher
from databanzhaf.protocols import (
    BoolArray,
    Design,
    Estimator,
    EvaluatePieces,
    Evaluator,
    FloatArray,
    Game,
    IntArray,
    Notion,
    TwoStepGame,
)
from databanzhaf.until import Condition, Progress

# Pieces on their way are what kill -9 can cost: each about this many seconds of work, and never
# more than this many cells of coalitions.
PIECE_SECONDS = 1.0
PIECE_CELLS = 1 << 23
LARGEST_PIECE = 1 << 15
# Indices whose missing evaluations are listed at a time, at about 80 bytes each.
SEGMENT = 1 << 20


class Run:
    """One call of `value`: the utilities so far, and what is missing."""

    def __init__(
        self,
        game: Game,
        design: Design,
        ledger: Ledger,
        repeats: int,
        seed: int,
        total: int,
        estimator: Estimator,
        notions: tuple[Notion, ...],
    ) -> None:
        self.game, self.design, self.ledger = game, design, ledger
        self.repeats, self.seed, self.total = repeats, seed, total
        self.estimator, self.notions = estimator, notions
        self._size = 1
        self._drawn = Drawn(design, seed)
        known = ledger.utilities()[:total, :repeats]
        self.utilities: FloatArray = np.full((total, repeats), np.nan)
        self.utilities[: known.shape[0], : known.shape[1]] = known
        self._bench = seated(game, ledger, total, repeats)
        self._others: BoolArray | None = None
        # By the first notion, at the last checkpoint, which a watcher cannot change.
        self.stood: Checkpoint | None = None

    def take(self, number: int, count: int) -> None:
        """Evaluate one share only, of `count` from 0 on: whole calls of whole units, dealt out in
        turn.
        """
        blocks = np.arange(self.total) // math.lcm(self.design.unit, self.game.call_size or 1)
        # Whether a permutation is cut short depends on all repeats of its utilities.
        together = getattr(self.design, "truncation", None) is not None
        turns = blocks[:, None] + np.arange(self.repeats) * (not together)
        most = int(turns.max()) + 1
        if count > most:
            raise InvalidInput(
                f"this run can be cut into {most:,} shards at most: whole calls of the model, of "
                f"{math.lcm(self.design.unit, self.game.call_size or 1):,} coalitions",
                got=f"{count:,}",
                remedy="Use fewer shards, or a larger budget.",
            )
        self._others = turns % count != number

    @property
    def done(self) -> int:
        """Evaluations that are there, of its share."""
        known = ~np.isnan(self.utilities)
        return int((known if self._others is None else known[~self._others]).sum())

    @property
    def _wanted(self) -> int:
        return self.utilities.size if self._others is None else int((~self._others).sum())

    def evaluations(self) -> Evaluations:
        return self._first(self.total)

    def _first(self, end: int) -> Evaluations:
        """The evaluations whose index is below `end`."""
        game, bench = self.game, self._bench
        seats = () if bench is None else (bench.jury, bench.scores[:end])
        utilities = self.utilities[:end]
        return complete_rows(self.design, utilities, game.stochastic, game.players, *seats)

    def complete(
        self,
        evaluator: Evaluator,
        until: Condition | None,
        progress: bool | Watcher,
        checkpoints: bool,
    ) -> list[Checkpoint]:
        """Evaluate what is missing until the condition holds, for every notion; the checkpoints of
        the first on the way, if anybody asks for them. Only a condition needs those of the others.
        """
        start = time.perf_counter()
        watched = until is not None or progress is not False or checkpoints
        stops = until is not None
        marks = checkpoint_marks(self.design, self.total, stops=stops) if watched else []
        notions = self.notions if stops else self.notions[:1]
        reached: list[tuple[Checkpoint, ...]] = []  # one for each notion
        with ExitStack() as stack:
            stack.push(self._note_what_is_kept)
            show = self._watcher(stack, progress)
            keep = self._keeps_outcomes()
            evaluate = stack.enter_context(evaluator.session(self.game, keep))

            def enough() -> bool:
                seconds = time.perf_counter() - start
                stands = (Progress(each, seconds) for each in _by_notion(reached, notions))
                return until is not None and all(until(each) for each in stands)

            def first() -> list[Checkpoint]:
                return _by_notion(reached, notions)[0]

            def look() -> None:
                """Where no condition makes the loop stop at each checkpoint, see which
                are passed.
                """
                while until is None and marks and not np.isnan(self.utilities[: marks[0]]).any():
                    reached.append(self._checkpoint(marks.pop(0), notions))
                show(first())

            look()
            for end in self._segments() if until is None else marks:
                for _ in self._batches(end, evaluate):
                    look()
                    if enough():
                        return first()
                if until is not None:
                    reached.append(self._checkpoint(end, notions))
                    if enough():
                        self.utilities[end:] = np.nan
                        return first()
        return first()

    def _keeps_outcomes(self) -> bool:
        keep = self.ledger.keep == "outcomes"
        if keep and not isinstance(self.game, TwoStepGame):
            raise InvalidInput(
                'keep="outcomes" needs a game that predicts, such as games.Learner',
                got=repr(self.game),
                remedy="Leave `keep` out.",
            )
        return keep

    def _watcher(
        self, stack: ExitStack, progress: bool | Watcher
    ) -> Callable[[Sequence[Checkpoint]], None]:
        """A function that shows how the run stands to whoever watches."""
        if progress is False:
            return lambda reached: None
        watcher = Bar() if progress is True else progress
        if isinstance(watcher, Bar):
            stack.callback(watcher.close)
        return lambda reached: watcher(self.done, self._wanted, reached)

    def _checkpoint(self, end: int, notions: Sequence[Notion]) -> tuple[Checkpoint, ...]:
        evaluations = self._first(end)
        found = tuple(checkpoint(evaluations, each, self.estimator) for each in notions)
        self.stood = found[0].copied()
        return found

    def _batches(self, end: int, evaluate: EvaluatePieces) -> Iterator[None]:
        """Evaluate what is missing below `end`, in pieces of about a second each."""
        while len(pairs := self._missing(end)):
            for done in evaluate(self._drawn, self._pieces(pairs)):
                self._record(done)
                yield

    def _pieces(self, pairs: IntArray) -> Iterator[Piece]:
        calls, low = self._calls(pairs), 0
        while low < len(pairs):
            high = min(low + self._size, len(pairs))
            if self.game.call_size is not None:
                high = _cut(calls, low, high, len(pairs))
            first, last = np.searchsorted(calls, low, "right"), np.searchsorted(calls, high)
            starts = np.concatenate([[low], calls[first:last]]) - low
            indices, repeats = pairs[low:high].T
            yield Piece(indices, repeats, starts)
            low = high

    def _note_what_is_kept(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Whoever stops a run by Ctrl-C reads that nothing is lost."""
        if isinstance(error, KeyboardInterrupt) and self.ledger.path is not None:
            error.add_note(
                f"{self.done:,} evaluations are in `{self.ledger.path}`; repeat the same call "
                "to resume."
            )

    def _segments(self) -> list[int]:
        """Where to look again for what is missing: whole calls and whole units, so that nothing but
        memory depends on it.
        """
        step = math.lcm(self.design.unit, self.game.call_size or 1)
        step *= -(-SEGMENT // step)
        return [*range(step, self.total, step), self.total]

    def _missing(self, end: int) -> IntArray:
        """(index, repeat) pairs below `end` to evaluate next, int64 (k, 2)."""
        part = self.utilities[:end]
        if isinstance(self.design, Permutation) and self.design.truncation is not None:
            indices = self.design.wave(part.mean(axis=1).reshape(-1, self.design.unit))
            rows, columns = np.nonzero(np.isnan(part[indices]))
            pairs = np.column_stack([indices[rows], columns])
        else:
            pairs = np.argwhere(np.isnan(part)).astype(np.int64)
        return self._sorted(pairs if self._others is None else pairs[~self._others[*pairs.T]])

    def _sorted(self, pairs: IntArray) -> IntArray:
        """Pairs by block of `call_size` indices, then by repeat: a call has one repeat of one
        block, however many repeats there are.
        """
        size = self.game.call_size or 1
        return pairs[np.lexsort((pairs[:, 0], pairs[:, 1], pairs[:, 0] // size))]

    def _calls(self, pairs: IntArray) -> IntArray:
        """Positions in `pairs` at which a new call of the game begins."""
        if self.game.call_size is None:
            return np.empty(0, dtype=np.int64)
        block = pairs[:, 0] // self.game.call_size
        new = (np.diff(block) != 0) | (np.diff(pairs[:, 1]) != 0)
        return np.flatnonzero(new).astype(np.int64) + 1

    def _record(self, done: Sequence[tuple[Piece, Batch]]) -> None:
        """Add pieces to the ledger in one transaction; then raise what failed."""
        parts = []
        for piece, batch in done:
            some = np.flatnonzero(~np.isnan(batch.utilities))
            kept = None if batch.outcomes is None else [batch.outcomes[each] for each in some]
            numbers = batch.utilities[some], batch.seconds[some]
            parts.append((piece.indices[some], piece.repeats[some], *numbers, kept or []))
            self._next_size(len(some), float(numbers[1].sum()))
        indices, repeats, utilities, seconds = (
            np.concatenate([part[column] for part in parts]) for column in range(4)
        )
        outcomes = [outcome for part in parts for outcome in part[4]]
        self.ledger.append(
            indices, repeats, utilities, seconds, outcomes if self._keeps_outcomes() else None
        )
        self.utilities[indices, repeats] = utilities
        if self._bench is not None and outcomes:
            self._bench.hear(indices, repeats, [each or b"" for each in outcomes])
        for piece, batch in done:
            batch.check(piece, self._drawn)

    def _next_size(self, size: int, seconds: float) -> None:
        """Twice as much if a piece was quick, half if it was slow; results do not depend on it."""
        if seconds > 2 * PIECE_SECONDS:
            size //= 2
        elif seconds < PIECE_SECONDS / 2:
            size *= 2
        limit = min(LARGEST_PIECE, max(1, PIECE_CELLS // self.game.n_players))
        self._size = max(1, min(size, limit))


def _by_notion(
    reached: Sequence[tuple[Checkpoint, ...]], notions: Sequence[Notion]
) -> list[list[Checkpoint]]:
    """The checkpoints of each notion."""
    return [[each[number] for each in reached] for number in range(len(notions))]


def _cut(calls: IntArray, low: int, high: int, end: int) -> int:
    """The last call boundary up to `high`, but at least one call beyond `low`."""
    if high >= end:
        return end
    after = int(np.searchsorted(calls, high, side="right"))
    if after and calls[after - 1] > low:
        return int(calls[after - 1])
    return int(calls[after]) if after < len(calls) else end
