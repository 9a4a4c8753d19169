"""A table in a file made ready to be valued."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput
from databanzhaf.evaluators import Local, Processes
from databanzhaf.games import Learner
from databanzhaf.jobs.settings import Settings, check_settings
from databanzhaf.models import is_classification, make_game
from databanzhaf.notions import named
from databanzhaf.run import design_of, repeats_that_pay
from databanzhaf.tables import Encoder, file_digest, held_out, read_table
from databanzhaf.types import Evaluator, Game, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Job:
    """A table made ready: the game, and where its players stand in the user's file."""

    settings: Settings
    game: Game
    dataset: Dataset
    rows: IntArray
    ids: Any
    labels: Any
    group_sizes: dict[Any, int] | None
    classifies: bool
    table: pd.DataFrame
    digests: dict[str, str]
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def metric(self) -> str:
        return self.game.fingerprint()["metric"]

    @cached_property
    def repeats(self) -> int:
        """As asked, else those that a new run would take."""
        settings = self.settings
        if settings.repeats is not None:
            return settings.repeats
        design = design_of(named(settings.notion), self.dataset.n_players, settings.budget, settings.seed, settings.estimator)
        return repeats_that_pay(design, self.game.stochastic, settings.budget)

    def evaluator(self) -> Evaluator:
        """scikit-learn's models train in several processes; networks use threads of their own."""
        jobs = self.settings.jobs
        return Processes(jobs) if isinstance(self.game, Learner) and jobs != 1 else Local()


def prepare(settings: Settings) -> Job:
    """Read and check everything; writes nothing."""
    check_settings(settings)
    digests = {path: file_digest(path) for path in (settings.data, settings.validation) if path}
    table = _read(settings.data, settings, [name for name in (settings.target, settings.groups, settings.id) if name is not None])
    special = {"--target": settings.target, "--groups": settings.groups, "--id": settings.id}
    for option, name in [*special.items(), *(("--drop", name) for name in settings.drop)]:
        _check_column(table, option, name, settings)
    target = _target(table, settings.target, settings.data)
    classifies = settings.task == "classification" or (settings.task == "auto" and is_classification(target))
    if not classifies and target.dtype.kind not in "iuf":
        raise InvalidInput(f"a regression needs numbers in `{settings.target}`; got {target[:3].tolist()}. Use --task classification.")
    if classifies and settings.validation is None and len(target) > 2 and len(np.unique(target)) == len(target):
        raise InvalidInput(f"every row has another `{settings.target}`, so that nothing can be learned. Is it the target? Choose --target.")
    ids = None if settings.id is None else table[settings.id]
    if ids is not None and (ids.isna().any() or ids.map(str).duplicated().any()):
        what = "missing" if ids.isna().any() else f"`{ids[ids.map(str).duplicated()].iloc[0]}` twice"
        raise InvalidInput(f"`{settings.id}` must name each row once; got {what}. Repair the ids, or leave --id out: rows have numbers.")
    left_out = {*filter(None, special.values()), *settings.drop}
    train, held, y, y_val = _split(table, target, classifies, settings)
    encoder = Encoder(train.drop(columns=[name for name in left_out if name in train.columns]))
    notes = list(encoder.notes)
    groups = None
    if settings.groups is not None:
        everyone = _groups(table[settings.groups], settings.groups)
        groups = everyone[train.index.to_numpy()]
        absent = np.setdiff1d(everyone, groups)
        if absent.size:
            notes.append(
                f"All rows of {_some(absent)} in `{settings.groups}` are held out to judge by: no value. Give a --validation file."
            )
    dataset = Dataset(encoder(train), y, encoder(held), y_val, groups=groups)
    notes += _shared(dataset)
    threads = None if settings.jobs == -1 else settings.jobs
    game = make_game(settings.model, dataset, classifies=classifies, metric=settings.metric, threads=threads, device=settings.device)
    sizes = None if groups is None else dict(zip(*(part.tolist() for part in np.unique(groups, return_counts=True)), strict=True))
    rows = train.index.to_numpy().astype(np.int64)
    named_ids = None if ids is None else ids.to_numpy()[rows]
    return Job(settings, game, dataset, rows, named_ids, y, sizes, classifies, train, digests, tuple(notes))


def _read(path: str, settings: Settings, codes: list[str]) -> pd.DataFrame:
    return read_table(path, encoding=settings.encoding, separator=settings.separator, decimal=settings.decimal, codes=codes)


def _check_column(table: pd.DataFrame, option: str, name: str | None, settings: Settings) -> None:
    if name is None or name in table.columns:
        return
    shown = ", ".join(str(column) for column in table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
    only = str(table.columns[0]) if len(table.columns) == 1 else ""
    found = next((mark for mark in (";", "\t", "|") if mark in only), None)
    remedy = f"Pass --separator {found!r}." if found else f"Choose {option} among them."
    raise InvalidInput(f"{option} must be a column of `{settings.data}`; got {name!r}, and the columns are {shown}. {remedy}")


def _target(table: pd.DataFrame, name: str, path: str) -> Any:
    column = table[name]
    if column.isna().any():
        missing = np.flatnonzero(column.isna())
        raise InvalidInput(
            f"the target `{name}` must be known for every row; it is missing in {len(missing)} rows of `{path}`, the first is row "
            f"{missing[0]}. Drop or fill those rows."
        )
    if column.dtype.kind in "iu" or str(column.dtype).startswith(("Int", "UInt")):
        return column.to_numpy(dtype=np.int64)
    if column.dtype.kind == "f" or str(column.dtype).startswith("Float"):
        numbers = column.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InvalidInput(
                f"the target `{name}` must be finite; row {np.flatnonzero(~np.isfinite(numbers))[0]} is not. Drop those rows."
            )
        whole = bool((numbers == np.round(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
        return numbers.astype(np.int64) if whole else numbers
    return column.astype(str).to_numpy().astype(str)


def _split(table: pd.DataFrame, target: Any, classifies: bool, settings: Settings) -> tuple[Any, Any, Any, Any]:
    """Training and validation rows, and their targets; the training rows keep their numbers as index."""
    if settings.validation is not None:
        held = _read(settings.validation, settings, [settings.target])
        if settings.target not in held.columns:
            raise InvalidInput(f"the validation file `{settings.validation}` must have the target column `{settings.target}`. Add it.")
        y_val = _target(held, settings.target, settings.validation)
        if (target.dtype.kind in "US") != (y_val.dtype.kind in "US"):
            raise InvalidInput(
                f"`{settings.target}` must be of one kind in both files; got {target[:2].tolist()} and {y_val[:2].tolist()}. "
                "Write it the same way in both."
            )
        if classifies and (unseen := np.setdiff1d(y_val, target)).size:
            raise InvalidInput(
                f"the validation file must hold classes of the training file only; `{settings.target}` is {unseen[:3].tolist()} besides. "
                "Drop those validation rows, or add training rows of that class."
            )
        train, y = table, target
    else:
        if len(table) < 2:
            raise InvalidInput(
                f"`{settings.data}` has 1 row, and a row is valued by others that are held out. Give more rows, or --validation."
            )
        chosen = held_out(target, settings.validation_fraction, settings.seed, by_class=classifies)
        if not chosen.any():
            raise InvalidInput(
                f"none of the {len(table)} rows can be held out with --validation-fraction {settings.validation_fraction}. "
                "Give more rows, a larger fraction, or a --validation file."
            )
        train, held, y, y_val = table[~chosen], table[chosen], target[~chosen], target[chosen]
    if classifies and len(np.unique(y)) < 2:
        raise InvalidInput(
            f"the training rows have one class only, `{y[0]}`. Values compare rows by how well classes are told apart; add others."
        )
    return train, held, y, y_val


def _shared(dataset: Dataset) -> list[str]:
    """A note if many validation rows are training rows too: these would be judged by themselves."""
    import pandas as pd

    def digests(X: Any, y: Any) -> Any:
        return pd.util.hash_pandas_object(pd.DataFrame(X).assign(target=y), index=False).to_numpy()

    both = np.isin(digests(dataset.X_val, dataset.y_val), digests(dataset.X, dataset.y))
    if both.mean() < 0.05:
        return []
    return [
        f"{int(both.sum()):,} of {len(both):,} validation rows equal a training row in all columns, which is then judged by itself. "
        "Remove copies, or give other validation rows."
    ]


def _some(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names[:5].tolist()) + (", ..." if len(names) > 5 else "")


def _groups(column: pd.Series[Any], name: str) -> Any:
    if column.isna().any():
        raise InvalidInput(
            f"`{name}` must name a group for every row; {int(column.isna().sum())} are missing. Fill them, e.g. with unknown."
        )
    return column.to_numpy() if column.dtype.kind in "iu" else column.astype(str).to_numpy().astype(str)
