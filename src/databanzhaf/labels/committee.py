"""A committee as a game: one evaluation trains one model of each judge on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.labels.judges import Judge
from databanzhaf.labels.tally import Shape, pack
from databanzhaf.protocols import BoolArray, Float32Array, FloatArray, KeyArray

# Bytes of the answers that are in memory at a time.
_MOST_BYTES = 32 * 2**20
STAGE = 50


def _probable(answers: Float32Array) -> bool:
    if not answers.size:
        return True
    sums = answers.sum(axis=1)
    return bool(answers.min() > -1e-3 and np.abs(sums - 1).max() < 1e-2)


class Committee:
    """U(S) is the mean answer of the judges' models to the rows outside S: the probability of
    their own labels, or minus the squared error in units of the targets' spread.
    """

    stochastic = True
    players = None

    def __init__(self, judges: Sequence[Judge], labels: Any, classes: Any) -> None:
        self.judges, self.classes = tuple(judges), classes
        self.labels = labels

    @property
    def n_players(self) -> int:
        return len(self.labels)

    @cached_property
    def shape(self) -> Shape:
        classes = None if self.classes is None else len(self.classes)
        return Shape(len(self.judges), len(self.labels), classes)

    @cached_property
    def unit(self) -> float | None:
        """Of the answers of a regression."""
        return None if self.classes is not None else float(np.std(self.labels)) or 1.0

    @property
    def call_size(self) -> int:
        bytes_of_one = 4 * len(self.labels) * self.shape.outputs
        fitting = [size for size in (50, 25, 10, 5, 2) if size * bytes_of_one <= _MOST_BYTES]
        return fitting[0] if fitting else 1

    def fingerprint(self) -> dict[str, str]:
        parts = {"game": "committee"}
        for place, judge in enumerate(self.judges):
            for name, text in judge.game.fingerprint().items():
                parts[f"judge {place + 1} {name}"] = text
        return parts

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        said = []
        for place, judge in enumerate(self.judges):
            own = chance.fold(keys, np.full(len(keys), place, dtype=np.uint64))
            answers = judge.answers(coalitions, own)
            outside = answers[~coalitions]
            if not np.isfinite(outside).all():
                raise ValueError(f"the judge {judge.name} predicts what is no number")
            if self.classes is not None and not _probable(outside):
                raise ValueError(
                    f"the judge {judge.name} predicts probabilities that are not between 0 and 1, "
                    "or do not sum to 1"
                )
            said.append(answers)
        return [
            pack(np.stack([answers[place] for answers in said]), ~inside, self.unit)
            for place, inside in enumerate(coalitions)
        ]

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        return np.array([self.score(outcome) for outcome in self.outcomes(coalitions, keys)])

    def score(self, outcome: bytes) -> float:
        outside, said = self.shape.unpack(outcome)
        if not outside.any():
            return 0.0
        if self.classes is None:
            own = self.labels[outside] / self.unit
            return -float(((said[:, :, 0] - own) ** 2).mean())
        own = self.labels[outside]
        return float(said[:, np.arange(len(own)), own].mean() / 255)
