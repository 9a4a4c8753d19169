"""Who judges labels: models of several kinds on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, short
from databanzhaf.frames import as_pandas
from databanzhaf.games import Boosting, Forest, Learner, Network
from databanzhaf.games.predictions import unpack
from databanzhaf.games.trained_game import TrainedGame
from databanzhaf.models import make_game
from databanzhaf.protocols import BoolArray, Float32Array, KeyArray
from databanzhaf.tables import Encoder
from databanzhaf.tables.texts import MOST_COLUMNS, narrowed

# Columns times classes up to which boosting joins. On 512 columns it took seven times as long as
# the network, the next slowest, and without it the committee finds hardly fewer wrong labels
# (0.655 instead of 0.658 on the mean of eight tables).
MOST_FOR_BOOSTING = 200
# Sparse rows of more columns are narrowed.
MOST_SPARSE_COLUMNS = 500
# Rows that stand in for validation rows, which nobody reads.
_FEW = 2


@dataclass(frozen=True, eq=False)
class Judge:
    """One kind of model, trained on any rows."""

    name: str
    game: Any

    def answers(self, coalitions: BoolArray, keys: KeyArray) -> Float32Array:
        """Probabilities (models, rows, classes), or predicted targets (models, rows, 1); of the
        rows that a model has seen, anything.
        """
        if isinstance(self.game, TrainedGame):
            unseen = self.game.train(coalitions, keys, unseen=True).unseen
            assert unseen is not None
            return np.asarray(unseen, dtype=np.float32)
        return np.stack([self._of_learner(packed) for packed in self._packed(coalitions, keys)])

    def _packed(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        return list(self.game.outcomes(coalitions, keys))

    def _of_learner(self, packed: bytes) -> Float32Array:
        answers = unpack(packed, self.game.classes)
        if not self.game.classifies:
            return np.asarray(answers.predict(None), dtype=np.float32)[:, None]
        if hasattr(answers, "predict_proba"):
            return np.asarray(answers.predict_proba(None), dtype=np.float32)
        said = np.searchsorted(self.game.classes, answers.predict(None))
        return np.asarray(np.eye(len(self.game.classes), dtype=np.float32)[said])


@dataclass(frozen=True, eq=False)
class Judges:
    """A committee, and what was noted while its rows were read."""

    members: tuple[Judge, ...]
    notes: tuple[str, ...]
    read_as: str

    @property
    def in_processes(self) -> bool:
        """Whether some of them are trained one at a time, by scikit-learn."""
        return any(isinstance(judge.game, Learner) for judge in self.members)


def make_judges(
    models: Any, X: Any, y: Any, *, classifies: bool, threads: int | None, device: str
) -> Judges:
    """The committee of some rows: "auto", or a list with names of models, scikit-learn estimators
    and functions that make a torch module.
    """
    asked = _asked(models)
    table = Tables(X)
    members: list[Judge] = []
    for model in asked:
        members += _members(model, table, y, classifies, threads, device)
    names = [judge.name for judge in members]
    members = [
        Judge(f"{judge.name} {names[:place].count(judge.name) + 1}", judge.game)
        if names.count(judge.name) > 1
        else judge
        for place, judge in enumerate(members)
    ]
    return Judges(tuple(members), table.notes, table.read_as)


def _asked(models: Any) -> list[Any]:
    found = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else None
    if found is None:
        found = [models]
    if not found:
        raise InvalidInput(
            '`models` must be "auto", a model, or a list of models',
            got=short(models),
            remedy='Try models=["auto", LogisticRegression()].',
        )
    return found


def is_wide(X: Any) -> bool:
    """Whether rows are sparse and would fill memory as a table of all columns."""
    return hasattr(X, "tocsr") and X.shape[1] > MOST_SPARSE_COLUMNS


class Tables:
    """The rows as each kind of model takes them."""

    def __init__(self, X: Any) -> None:
        self.given = as_pandas("X", X)
        self._encoded: dict[tuple[bool, bool], Any] = {}
        self.notes: tuple[str, ...] = ()
        self.read_as = ""

    def encoded(self, *, one_hot: bool, fills_gaps: bool) -> Any:
        how = one_hot, fills_gaps
        if how not in self._encoded:
            encode = Encoder(self.frame, one_hot=one_hot, fills_gaps=fills_gaps)
            self._encoded[how] = encode(self.frame)
            noted = [*encode.notes, *(_narrowed(self.given) if is_wide(self.given) else ())]
            self.notes, self.read_as = self.notes or tuple(noted), encode.read_as
        return self._encoded[how]

    @cached_property
    def frame(self) -> Any:
        return as_frame(self.given)


def _narrowed(X: Any) -> list[str]:
    return [
        f"The {X.shape[1]:,} columns of the sparse rows became {MOST_COLUMNS} or fewer by "
        "truncated SVD."
    ]


def as_frame(X: Any) -> Any:
    """Rows as a data frame; pictures as one column for each number, sparse rows of many columns as
    up to 100 numbers.
    """
    if hasattr(X, "columns"):
        return X
    import pandas as pd

    if is_wide(X):
        return pd.DataFrame(narrowed(X)).rename(columns=str)
    rows = np.asarray(X.toarray() if hasattr(X, "tocsr") else X)
    if rows.ndim == 1 and rows.dtype.kind in "UO":
        return pd.DataFrame({"text": rows})
    return pd.DataFrame(rows.reshape(len(rows), -1)).rename(columns=str)


def _members(
    model: Any, table: Tables, y: Any, classifies: bool, threads: int | None, device: str
) -> list[Judge]:
    if isinstance(model, str) and model == "auto":
        return _auto(table, y, classifies, threads, device)
    if hasattr(model, "fit"):
        data = Dataset(table.given, y, table.given, y)
        return [_checked(Judge(type(model).__name__, Learner(model, data)), classifies)]
    if isinstance(model, str) and model == "forest":
        X = table.encoded(one_hot=False, fills_gaps=False)
    elif isinstance(model, str) and model == "boosting":
        X = table.encoded(one_hot=True, fills_gaps=False)
    elif isinstance(model, str):
        X = table.encoded(one_hot=True, fills_gaps=True)
    else:  # a torch module may want pictures
        plain = np.ndim(table.given) > 2
        X = table.given if plain else table.encoded(one_hot=True, fills_gaps=True)
    own = isinstance(model, str) and model in ("forest", "boosting", "mlp", "logistic", "linear")
    data = _small_jury(X, y) if own or not isinstance(model, str) else Dataset(X, y, X, y)
    game = make_game(model, data, classifies=classifies, threads=threads, device=device)
    if isinstance(game, Learner) and len(game.dataset.y_val) != len(y):
        game = make_game(
            model, Dataset(X, y, X, y), classifies=classifies, threads=threads, device=device
        )
    name = model.split(":")[-1] if isinstance(model, str) else getattr(model, "__name__", "module")
    return [_checked(Judge(name, game), classifies)]


def _auto(table: Tables, y: Any, classifies: bool, threads: int | None, device: str) -> list[Judge]:
    scaled = _small_jury(table.encoded(one_hot=True, fills_gaps=True), y)
    gaps = _small_jury(table.encoded(one_hot=True, fills_gaps=False), y)
    raw = _small_jury(table.encoded(one_hot=False, fills_gaps=False), y)
    loss: dict[str, Any] = {} if classifies else {"loss": "squared", "metric": "mse"}
    on: dict[str, Any] = {"device": device, "threads": threads, **loss}
    judges = [
        Judge("linear model", Network(scaled, (), **on)),
        Judge("network", Network(scaled, **on)),
        Judge("forest", Forest(raw, threads=threads, **loss)),
        Judge("best-split forest", Forest(raw, splits="best", threads=threads, **loss)),
    ]
    outputs = len(np.unique(y)) if classifies else 1
    if gaps.X.shape[1] * (outputs if outputs > 2 else 1) <= MOST_FOR_BOOSTING:
        judges.append(Judge("boosting", Boosting(gaps, threads=threads, **loss)))
    return judges


def _small_jury(X: Any, y: Any) -> Dataset:
    few = np.arange(min(_FEW, len(y)))
    return Dataset(X, y, X.iloc[few] if hasattr(X, "iloc") else X[few], y[few])


def _checked(judge: Judge, classifies: bool) -> Judge:
    if judge.game.classifies != classifies:
        kind = "classes" if classifies else "numbers"
        raise InvalidInput(
            f"every judge must predict what the labels are, {kind}",
            got=judge.name,
            remedy="Leave it out, or pass task=.",
        )
    return judge
