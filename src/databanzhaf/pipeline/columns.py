"""The columns of a table that options name."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.pipeline.settings import Settings
from databanzhaf.tables import read_table

if TYPE_CHECKING:
    import pandas as pd


def read(path: str, settings: Settings, texts: list[str]) -> pd.DataFrame:
    return read_table(
        path,
        encoding=settings.encoding,
        separator=settings.separator,
        decimal=settings.decimal,
        texts=texts,
    )


def read_training(settings: Settings) -> tuple[pd.DataFrame, list[str]]:
    """The training table, and which of its columns are texts as written: ids, groups, --text,
    --drop, and classes such as 007.
    """
    named = (name for name in (settings.groups, settings.id) if name is not None)
    texts = [*named, *settings.text, *settings.drop]
    table = read(settings.data, settings, texts)
    example = table.attrs.get("codes", {}).get(settings.target, "")
    if re.match(r"`-?0\d", example):
        texts.append(settings.target)
        table = read(settings.data, settings, texts)
    return table, texts


def check_names(table: pd.DataFrame, settings: Settings) -> None:
    """Refuse an option that names no column."""
    asked = [
        ("--target", settings.target),
        ("--groups", settings.groups),
        ("--id", settings.id),
        *(("--drop", name) for name in settings.drop),
        *(("--text", name) for name in settings.text),
    ]
    if settings.target in settings.drop:
        raise InvalidInput(
            "--drop must not name the target", got=repr(settings.target), remedy="Leave it out."
        )
    known = [str(column) for column in table.columns]
    for option, name in asked:
        if name is None or name in known:
            continue
        shown = ", ".join(known[:30]) + (f" and {len(known) - 30} more" if len(known) > 30 else "")
        lower = {column.lower(): column for column in known}
        near = difflib.get_close_matches(name.lower(), lower, 1)
        parts = [part.strip() for part in name.split(",")]
        if near:
            remedy = f"Did you mean `{lower[near[0]]}`?"
        elif len(parts) > 1 and all(part in known for part in parts):
            remedy = f"Name one column at a time: {' '.join(f'{option} {part}' for part in parts)}."
        else:
            remedy = f"Choose {option} among them."
        raise InvalidInput(
            f"{option} must be a column of `{settings.data}`",
            got=f"{name!r}, and the columns are {shown}",
            remedy=remedy,
        )


def target(table: pd.DataFrame, name: str, path: str) -> Any:
    """The labels: whole numbers, numbers or texts."""
    column = table[name]
    if column.isna().any():
        missing = np.flatnonzero(column.isna())
        raise InvalidInput(
            f"the target `{name}` must be known for every row of `{path}`",
            got=f"{len(missing)} rows without it, the first is row {missing[0]}",
            remedy="Drop or fill those rows.",
        )
    if column.dtype.kind in "iu" or str(column.dtype).startswith(("Int", "UInt")):
        # From 2^63 on a whole number has no place among the signed ones, and would become negative.
        return column.to_numpy(dtype=np.uint64 if column.max() >= 2**63 else np.int64)
    if column.dtype.kind == "f" or str(column.dtype).startswith("Float"):
        numbers = column.to_numpy(dtype=np.float64)
        infinite = np.flatnonzero(~np.isfinite(numbers))
        if infinite.size:
            raise InvalidInput(
                f"the target `{name}` must be finite",
                got=f"{numbers[infinite[0]]} in row {infinite[0]}",
                remedy="Drop those rows.",
            )
        whole = bool((numbers == np.round(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
        return numbers.astype(np.int64) if whole else numbers
    return column.astype(str).to_numpy().astype(str)


def ids(table: pd.DataFrame, settings: Settings) -> pd.Series[Any] | None:
    """The rows' names, each once."""
    if settings.id is None:
        return None
    column = table[settings.id]
    missing, again = np.flatnonzero(column.isna()), column[column.map(str).duplicated()]
    if missing.size or len(again):
        raise InvalidInput(
            f"`{settings.id}` must name each row once",
            got=f"none in row {missing[0]}" if missing.size else f"`{again.iloc[0]}` twice",
            remedy="Fix the ids, or leave --id out: rows have numbers.",
        )
    return column


def groups(table: pd.DataFrame, name: str) -> Any:
    """The group of each row, int64 or texts."""
    column = table[name]
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise InvalidInput(
            f"`{name}` must name a group for every row",
            got=f"{len(missing)} rows without one, the first is row {missing[0]}",
            remedy="Fill them, for example with unknown.",
        )
    if column.dtype.kind in "iu":
        return column.to_numpy()
    names = column.astype(str).to_numpy().astype(str)
    # Whole numbers as Python writes them lose nothing, and 9 comes before 10.
    if all(re.fullmatch(r"0|-?[1-9]\d{0,17}", each) for each in np.unique(names)):
        return names.astype(np.int64)
    return names
