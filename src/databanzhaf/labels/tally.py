"""What the models of a committee say of the rows that they have not seen: packed, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from databanzhaf.protocols import BoolArray, Float32Array, FloatArray, IntArray

_STEPS = 255  # a probability is kept in as many steps, one byte


def pack(said: Float32Array, outside: BoolArray, unit: float | None) -> bytes:
    """The answers of all judges after one half: which rows were outside it, then, judge by judge,
    one byte for each class of each of these rows (for two classes, of the second only).

    `said` is (judges, rows, outputs). `unit` is None for classes; for a regression an answer is
    kept in 4 bytes, in that unit.
    """
    bits = np.packbits(outside).tobytes()
    answers = said[:, outside]
    if unit is not None:
        return bits + (answers[:, :, 0] / unit).astype("<f4").tobytes()
    kept = answers[:, :, 1:] if answers.shape[2] == 2 else answers
    return bits + np.rint(np.clip(kept, 0.0, 1.0) * _STEPS).astype(np.uint8).tobytes()


@dataclass(frozen=True, eq=False)
class Shape:
    """Of a packed answer."""

    judges: int
    rows: int
    classes: int | None

    @property
    def outputs(self) -> int:
        return 1 if self.classes is None else self.classes

    def unpack(self, outcome: bytes) -> tuple[BoolArray, NDArray[np.float64]]:
        """The rows outside, and what was said of them, (judges, outside, outputs): whole numbers of
        steps, or numbers in units.
        """
        n_bytes = -(-self.rows // 8)
        bits = np.frombuffer(outcome, dtype=np.uint8, count=n_bytes)
        outside = np.unpackbits(bits, count=self.rows).view(np.bool_)
        if self.classes is None:
            numbers = np.frombuffer(outcome, dtype="<f4", offset=n_bytes).astype(np.float64)
            return outside, numbers.reshape(self.judges, -1, 1)
        kept = np.frombuffer(outcome, dtype=np.uint8, offset=n_bytes).astype(np.float64)
        kept = kept.reshape(self.judges, int(outside.sum()), -1)
        if self.classes == 2:
            kept = np.concatenate([_STEPS - kept, kept], axis=2)
        return outside, kept


class Tally:
    """Sums over the models that have not seen a row. Whole numbers, so that no order of adding
    changes a bit of them (numbers of a regression are added in the order of their indices).
    """

    def __init__(self, shape: Shape) -> None:
        self.shape, self.done = shape, 0
        self.count: IntArray = np.zeros(shape.rows, dtype=np.int64)
        self._sum: FloatArray = np.zeros((shape.judges, shape.rows, shape.outputs))

    def add(self, outcomes: Sequence[bytes]) -> None:
        for outcome in outcomes:
            outside, said = self.shape.unpack(outcome)
            self.done += 1
            self.count += outside
            self._sum[:, outside] += said

    def means(self) -> FloatArray:
        """(judges, rows, outputs): the mean answer of each judge's models. A row that every model
        has seen gets what is known of no row: equal probabilities, or NaN.
        """
        steps = 1 if self.shape.classes is None else _STEPS
        nothing = np.nan if self.shape.classes is None else 1 / self.shape.outputs
        count = np.maximum(self.count, 1)[None, :, None]
        seen = (self.count == 0)[None, :, None]
        return np.asarray(np.where(seen, nothing, self._sum / (steps * count)))
