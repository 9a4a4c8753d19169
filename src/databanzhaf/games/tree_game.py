"""What the games that grow trees share: a table of codes, answers in units of the target."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.games.inputs import coded_columns
from databanzhaf.games.trained_game import TrainedGame
from databanzhaf.kernels.recipe import Trained
from databanzhaf.kernels.trees import Table, make_table
from databanzhaf.protocols import BoolArray, KeyArray

NO_LIMIT = 1 << 40
MOST_TREES = 10**6


class TreeGame(TrainedGame):
    """A trained game whose models are trees, grown on a table of codes."""

    threads: int | None

    @abstractmethod
    def _grow(self, members: BoolArray, keys: KeyArray, unseen: bool) -> tuple[Any, Any]:
        """Predictions for the validation rows and for unseen rows, as the kernels give them."""

    @property
    @abstractmethod
    def _coding(self) -> dict[str, Any]:
        """How columns are coded; see `coded_columns`."""

    @property
    @abstractmethod
    def _seconds(self) -> float:
        """About how long one model takes."""

    def _check(self, dataset: Dataset, loss: str, metric: str | None, threads: int | None) -> None:
        self.dataset, self.loss = dataset, loss
        self.threads = None if threads is None else check_count("threads", threads)
        self._check_dataset()
        check_choice("loss", loss, (self._losses[0], "squared"))
        self._choose_metric(metric)
        if dataset.X.ndim == 1:
            raise InvalidInput(
                "trees are grown on tables",
                got="a list of texts",
                remedy="DataBanzhaf makes columns of them.",
            )
        if dataset.X.ndim != 2:
            raise InvalidInput(
                "trees are grown on tables",
                got=f"rows of shape {tuple(dataset.X.shape[1:])}",
                remedy="Flatten them, or use games.Module.",
            )

    _losses: tuple[str, ...] = ("gini",)

    @cached_property
    def table(self) -> Table:
        """The rows as the kernel wants them."""
        data = self.dataset
        columns = coded_columns(data.X, data.X_val, **self._coding)
        if self.classifies:
            return make_table(columns, self.class_numbers[0], len(self.classes))
        return make_table(columns, data.y, 0)

    @property
    def call_size(self) -> int:
        """Coalitions per call: about a tenth of a second of work, and 64 MiB of predictions."""
        judged = len(self.dataset.y_val) + self.dataset.n_rows
        answers = 4 * judged * max(self.table.n_classes, 1)
        return int(np.clip(min(0.1 / self._seconds, 2**26 / answers), 1, 4096))

    def _train(
        self, members: BoolArray, keys: KeyArray, predictions: bool, unseen: bool
    ) -> Trained:
        predicted, outside = (
            None if part is None else self._in_units(part)
            for part in self._grow(members, keys, unseen)
        )
        return Trained(self._scores(predicted), predicted if predictions else None, outside)

    def _in_units(self, answers: Any) -> Any:
        """Targets in their own unit."""
        return answers if self.classifies else self.table.center + self.table.unit * answers

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "table"}


def check_choice(name: str, value: Any, choices: tuple[str, str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise InvalidInput(
            f'`{name}` must be "{choices[0]}" or "{choices[1]}"',
            got=short(value),
            remedy=f'Try "{choices[0]}".',
        )
