"""A game of which only the record is left."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput
from databanzhaf.games import Judged
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray, Labels


class Recorded(Judged):
    """Its model is code of the user's, which a folder that somebody sent must not run. What its
    models answered can be judged.
    """

    stochastic = True
    call_size = 1

    def __init__(self, dataset: Dataset, record: dict[str, str], classifies: bool) -> None:
        self.dataset, self._record, self._classifies = dataset, record, classifies
        self.metric = record.get("metric")

    @property
    def classifies(self) -> bool:
        return self._classifies

    @cached_property
    def classes(self) -> Any:
        labels = np.concatenate([self.dataset.y, self.dataset.y_val])
        return np.unique(labels) if self.classifies else None

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    def fingerprint(self) -> dict[str, str]:
        return self._record

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        raise InvalidInput(
            "the model of this run is code of your own, which is not run from a record",
            remedy="Name it again by --model.",
        )

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        """As `utility`: there is no model to train."""
        self.utility(coalitions, keys)
        return []

    def score(self, outcome: bytes) -> float:
        return self._mean_verdict(outcome)
