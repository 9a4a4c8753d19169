"""Rows and labels made ready to be valued: checked, split, encoded, with a game and a place to
play.

The one way from data to a game, for the shell (`prepare`) and for `DataBanzhaf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput
from databanzhaf.evaluators import Local, Processes
from databanzhaf.games import Learner, Neighbors
from databanzhaf.models import make_game
from databanzhaf.pipeline.notes import copies_of_target
from databanzhaf.protocols import BoolArray, Evaluator, Game
from databanzhaf.tables import Encoder, held_out, mostly_numbers


@dataclass(frozen=True, eq=False)
class Ready:
    """A game on a dataset; `held_out` are the rows that judge instead of being valued, none where
    rows judge each other.
    """

    game: Game
    dataset: Dataset
    held_out: BoolArray
    notes: tuple[str, ...]
    evaluator: Evaluator
    read_as: str = ""


@dataclass(frozen=True)
class Model:
    """What to train and how to judge it, as names or objects; `fingerprint` is that of a game of
    which only the record is left. With `closed` nothing is trained: the values of nearest
    neighbours are known in closed form.
    """

    model: Any = "forest"
    metric: Any = None
    n_jobs: int = -1
    device: str = "auto"
    fingerprint: dict[str, str] | None = None
    closed: bool = False

    @property
    def takes_rows_as_they_are(self) -> bool:
        """An estimator of the user's own gets its rows unencoded."""
        return hasattr(self.model, "fit")

    @property
    def takes_categories(self) -> bool:
        """A forest splits columns by category and needs no value filled in."""
        return isinstance(self.model, str) and self.model == "forest"

    @property
    def takes_gaps(self) -> bool:
        """Trees need no value filled in."""
        return isinstance(self.model, str) and self.model in ("forest", "boosting")


def make_ready(
    X: Any,
    y: Any,
    model: Model,
    *,
    classifies: bool,
    validation: tuple[Any, Any] | None = None,
    fraction: float | None = None,
    seed: int = 0,
    groups: Any = None,
    index: Any = None,
) -> Ready:
    """Value the rows of X by the validation rows, by a share of X that is held out, or by each
    other.

    `groups` has one entry for each row of X; `index` are the rows' names.
    """
    _check_labels(y, classifies, alone=validation is None)
    notes, read_as = copies_of_target(X, y, classifies=classifies), ""
    if not model.takes_rows_as_they_are and hasattr(X, "columns"):
        notes += mostly_numbers(X)
    held, X_val, y_val = np.zeros(len(y), dtype=np.bool_), None, None
    if validation is not None:
        X_val, y_val = validation
    elif fraction is not None:
        held = held_out(y, fraction, seed, by_class=classifies)
        if not held.any():
            raise InvalidInput(
                "some rows must be held out for validation",
                got=f"n_samples = {len(y)} and a share of {fraction:g}",
                remedy="Give more rows, a larger share, or validation rows of their own.",
            )
        X_val, y_val = take(X, held), y[held]
    elif len(y) < 2:
        raise InvalidInput(
            "rows judge each other, so there must be two or more",
            got=f"n_samples = {len(y)}",
            remedy="Give more rows, or validation rows.",
        )
    X, y = take(X, ~held), y[~held]
    _check_classes(y, classifies)
    if not model.takes_rows_as_they_are:
        how = {"one_hot": not model.takes_categories, "fills_gaps": not model.takes_gaps}
        encode = Encoder(X, **how)
        X, notes, read_as = encode(X), [*encode.notes, *notes], encode.read_as
        X_val = None if X_val is None else encode(X_val)
    if index is not None and groups is None:
        import pandas as pd

        y = pd.Series(y, index=index[~held])
    parts = None if groups is None else np.asarray(groups)[~held]
    dataset = Dataset(X, y, X_val, y_val, groups=parts)
    game = _game(model, dataset, classifies)
    apart = isinstance(game, Learner) and model.n_jobs != 1
    evaluator = Processes(model.n_jobs) if apart else Local()
    return Ready(game, dataset, held, tuple(notes), evaluator, read_as)


def take(X: Any, which: BoolArray) -> Any:
    """Some rows of a table or an array."""
    return X.iloc[np.flatnonzero(which)] if hasattr(X, "iloc") else X[which]


def _check_labels(y: Any, classifies: bool, *, alone: bool) -> None:
    if classifies and alone and len(y) > 2 and len(np.unique(y)) == len(y):
        raise InvalidInput(
            "rows must share labels for anything to be learned from them",
            got="a different label in every row",
            remedy="Check that this is the target, and that a number is read as a number.",
        )
    _check_classes(y, classifies)


def _check_classes(y: Any, classifies: bool) -> None:
    if classifies and len(np.unique(y)) < 2:
        raise InvalidInput(
            "the training rows must have two classes or more",
            got=f"one class only, {y[:1].tolist()}, n_samples = {len(y)}",
            remedy="Add rows of other classes: values compare rows by how well classes are "
            "separated.",
        )


def _game(model: Model, dataset: Dataset, classifies: bool) -> Game:
    if model.fingerprint is not None:
        from databanzhaf.pipeline.recorded import Recorded

        return Recorded(dataset, model.fingerprint, classifies)
    if model.closed:
        return Neighbors(dataset)
    return make_game(
        model.model,
        dataset,
        classifies=classifies,
        metric=model.metric,
        threads=None if model.n_jobs == -1 else model.n_jobs,
        device=model.device,
    )
