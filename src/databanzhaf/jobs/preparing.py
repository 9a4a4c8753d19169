"""A table in a file made ready to be valued."""

from __future__ import annotations

import re
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
from databanzhaf.types import BoolArray, Evaluator, FloatArray, Game, IntArray, KeyArray, Labels

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
        return self.game.fingerprint().get("metric", "unknown")

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


@dataclass(frozen=True, eq=False)
class Recorded:
    """A game of which only the record is left: its model is code of the user's, which a folder that somebody sent must not run."""

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
        raise InvalidInput("the model of this run is code of your own, which is not run from a record. Name it again by --model.")


def prepare(settings: Settings, recorded: dict[str, str] | None = None) -> Job:
    """Read and check everything; writes nothing. With the fingerprint of a game that was played no model is made."""
    import pandas as pd

    check_settings(settings)
    digests = {path: file_digest(path) for path in (settings.data, settings.validation) if path}
    table, texts = _read_training(settings)
    special = {"--target": settings.target, "--groups": settings.groups, "--id": settings.id}
    for option, name in [*special.items(), *(("--drop", name) for name in settings.drop), *(("--text", name) for name in settings.text)]:
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
    train, held, y, y_val = _split(table, target, classifies, settings, texts)
    encoder = Encoder(train.drop(columns=[name for name in left_out if name in train.columns]))
    notes = [*encoder.notes, *_code_notes(table, {*left_out} - {settings.target})]
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
    notes += [*_shared(dataset), *_formulas(ids if groups is None else pd.Series(dataset.players))]
    threads = None if settings.jobs == -1 else settings.jobs
    game: Game
    if recorded is not None:
        game = Recorded(dataset, recorded)
    else:
        game = make_game(settings.model, dataset, classifies=classifies, metric=settings.metric, threads=threads, device=settings.device)
    sizes = None if groups is None else dict(zip(*(part.tolist() for part in np.unique(groups, return_counts=True)), strict=True))
    rows = train.index.to_numpy().astype(np.int64)
    named_ids = None if ids is None else ids.to_numpy()[rows]
    return Job(settings, game, dataset, rows, named_ids, y, sizes, classifies, train, digests, tuple(notes))


def _read(path: str, settings: Settings, texts: list[str]) -> pd.DataFrame:
    return read_table(path, encoding=settings.encoding, separator=settings.separator, decimal=settings.decimal, texts=texts)


def _read_training(settings: Settings) -> tuple[pd.DataFrame, list[str]]:
    """The training table, and which of its columns are texts as written: ids, groups, --text, and classes such as 007."""
    texts = [*(name for name in (settings.groups, settings.id) if name is not None), *settings.text]
    table = _read(settings.data, settings, texts)
    if re.match(r"`-?0\d", table.attrs.get("codes", {}).get(settings.target, "")):
        texts.append(settings.target)
        table = _read(settings.data, settings, texts)
    return table, texts


def _code_notes(table: pd.DataFrame, left_out: set[str]) -> list[str]:
    """Notes on features, and on a target, whose texts are not those of numbers."""
    return [
        f"column `{name}` is read as numbers, and has {example}. If these are codes, keep them as written with --text {name}."
        for name, example in table.attrs.get("codes", {}).items()
        if name not in left_out
    ]


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
        # From 2^63 on a whole number has no place among the signed ones, and would become negative.
        return column.to_numpy(dtype=np.uint64 if column.max() >= 2**63 else np.int64)
    if column.dtype.kind == "f" or str(column.dtype).startswith("Float"):
        numbers = column.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InvalidInput(
                f"the target `{name}` must be finite; row {np.flatnonzero(~np.isfinite(numbers))[0]} is not. Drop those rows."
            )
        whole = bool((numbers == np.round(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
        return numbers.astype(np.int64) if whole else numbers
    return column.astype(str).to_numpy().astype(str)


def _split(table: pd.DataFrame, target: Any, classifies: bool, settings: Settings, texts: list[str]) -> tuple[Any, Any, Any, Any]:
    """Training and validation rows, and their targets; the training rows keep their numbers as index."""
    if settings.validation is not None:
        held = _read(settings.validation, settings, texts)
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


def _formulas(names: pd.Series[Any] | None) -> list[str]:
    """A note if a spreadsheet would run some names as formulas. They stay as they are: values.csv is joined with the table by them."""
    odd = [] if names is None else [name for name in names.map(str) if re.match(r"[=@\t\r]|[+-](?!\d+(\.\d+)?$)", name)]
    if not odd:
        return []
    return [
        f"{len(odd):,} names begin with =, +, -, @, a tab or a carriage return, such as `{odd[0][:40]}`: a spreadsheet may run them as "
        "formulas. values.csv has them as they are; import it there as text."
    ]


def _some(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names[:5].tolist()) + (", ..." if len(names) > 5 else "")


def _groups(column: pd.Series[Any], name: str) -> Any:
    if column.isna().any():
        raise InvalidInput(
            f"`{name}` must name a group for every row; {int(column.isna().sum())} are missing. Fill them, e.g. with unknown."
        )
    if column.dtype.kind in "iu":
        return column.to_numpy()
    names = column.astype(str).to_numpy().astype(str)
    # Whole numbers as Python writes them lose nothing, and 9 comes before 10.
    if all(re.fullmatch(r"0|-?[1-9]\d{0,17}", name) for name in np.unique(names)):
        return names.astype(np.int64)
    return names
