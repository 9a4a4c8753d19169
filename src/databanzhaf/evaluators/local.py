"""In this process, one evaluation after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from databanzhaf.blas import one_blas_thread
from databanzhaf.evaluations import Batch, Piece
from databanzhaf.evaluators.batch import evaluate
from databanzhaf.protocols import Draws, EvaluatePieces, Game


@dataclass(frozen=True)
class Local:
    """Evaluate here, with one BLAS thread: more threads add up in another order, and change the
    last bits.
    """

    @contextmanager
    def session(self, game: Game, keep_outcomes: bool = False) -> Iterator[EvaluatePieces]:
        def run(draws: Draws, pieces: Iterable[Piece]) -> Iterator[Sequence[tuple[Piece, Batch]]]:
            for piece in pieces:
                batch = evaluate(game, draws, piece, keep_outcomes)
                yield [(piece, batch)]
                if batch.failure is not None:
                    return

        with one_blas_thread():
            yield run
