"""In this process, one evaluation after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from databanzhaf.evaluators.batch import evaluate
from databanzhaf.types import EvaluateBatch, Game


@dataclass(frozen=True)
class Local:
    """Evaluate here, with one BLAS thread: more threads add up in another order, and change the last bits."""

    workers = 1

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluateBatch]:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1):
            yield lambda coalitions, keys, starts: evaluate(game, coalitions, keys, starts, keep_outcomes)
