"""A game of which only the record is left."""

from __future__ import annotations

from dataclasses import dataclass

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray, Labels


@dataclass(frozen=True, eq=False)
class Recorded:
    """Its model is code of the user's, which a folder that somebody sent must not run."""

    dataset: Dataset
    record: dict[str, str]

    stochastic = True
    call_size = 1

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    def fingerprint(self) -> dict[str, str]:
        return self.record

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        raise InvalidInput(
            "the model of this run is code of your own, which is not run from a record",
            remedy="Name it again by --model.",
        )
