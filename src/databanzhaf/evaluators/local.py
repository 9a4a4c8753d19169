"""In this process, one evaluation after the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from databanzhaf.blas import one_blas_thread
from databanzhaf.evaluators.batch import evaluate
from databanzhaf.protocols import EvaluateBatch, Game


@dataclass(frozen=True)
class Local:
    """Evaluate here, with one BLAS thread: more threads add up in another order, and change the
    last bits.
    """

    workers = 1

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluateBatch]:
        with one_blas_thread():
            yield lambda coalitions, keys, starts: evaluate(
                game, coalitions, keys, starts, keep_outcomes
            )
