"""What a person should know about a table before its values: one sentence each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.protocols import IntArray

if TYPE_CHECKING:
    import pandas as pd


def codes(table: pd.DataFrame, left_out: set[Any]) -> list[str]:
    """Features, and a target, whose texts are not those of numbers."""
    found = []
    for name, example in table.attrs.get("codes", {}).items():
        if name in left_out:
            continue
        remedy = f"If these are codes, keep them as written with --text {name}."
        if table[name].is_unique and len(table) > 2:
            remedy = f"If it names the rows, pass --id {name}."
        found.append(f"Column `{name}` is read as numbers, but contains {example}. {remedy}")
    return found


def classes(name: str, labels: Any, *, asked: bool) -> list[str]:
    """Classes that may be amounts, or slips of the pen; `asked` if the user asked for classes."""
    found, counts = np.unique(labels, return_counts=True)
    if found.dtype.kind in "iuf":
        if asked or len(found) < 5:
            return []
        return [
            f"`{name}` holds whole numbers, which are read as {len(found)} classes. Pass --task "
            "regression if they are amounts."
        ]
    notes, alike = [], {}  # type: list[str], dict[str, list[str]]
    for text in map(str, found):
        alike.setdefault(" ".join(text.split()).casefold(), []).append(text)
    for same in alike.values():
        if len(same) > 1:
            shown = " and ".join(map(repr, same[:3]))
            notes.append(
                f"The classes {shown} of `{name}` differ in spaces or case only. Make them one "
                "class if they mean the same."
            )
    rare = [str(text) for text in found[counts < 3]]
    if rare:
        shown = ", ".join(map(repr, rare[:5])) + (", ..." if len(rare) > 5 else "")
        notes.append(
            f"{len(rare)} of {len(found)} classes of `{name}` have fewer than three rows: {shown}. "
            "Check that they are not typing errors."
        )
    return notes


def no_better_than_guessing(scores: dict[str, float] | None, who: str) -> list[str]:
    """A model of all rows that scores no better than one of none."""
    if scores is None or scores["all"] > scores["none"]:
        return []
    return [
        f"The model learns nothing from this table: with all {who} it scores {scores['all']:.3f} "
        f"on the validation rows, without any {scores['none']:.3f}. These values say little about "
        f"the {who}. Try another --model, or check the target."
    ]


def unvalued(name: str | None, groups: Any, rows: IntArray) -> list[str]:
    """Groups of which every row is held out."""
    absent = [] if groups is None else np.setdiff1d(groups, groups[rows]).tolist()
    if not absent:
        return []
    shown = ", ".join(f"`{each}`" for each in absent[:5]) + (", ..." if len(absent) > 5 else "")
    return [
        f"All rows of {shown} in `{name}` are held out for validation, so they get no value. Pass "
        "a --validation file."
    ]


def shared(dataset: Dataset) -> list[str]:
    """Validation rows that are training rows too."""
    import pandas as pd

    def digests(X: Any, y: Any) -> Any:
        return pd.util.hash_pandas_object(pd.DataFrame(X).assign(target=y), index=False).to_numpy()

    both = np.isin(digests(dataset.X_val, dataset.y_val), digests(dataset.X, dataset.y))
    if both.mean() < 0.05:
        return []
    return [
        f"{int(both.sum()):,} of {len(both):,} validation rows equal a training row in all "
        "columns, so that row is judged by itself. Remove the copies, or use other validation rows."
    ]


def formulas(names: Iterable[Any] | None) -> list[str]:
    """Names that a spreadsheet would run. They stay as they are: values.csv is joined with the
    table by them.
    """
    texts = [] if names is None else [str(name) for name in names]
    odd = [text for text in texts if re.match(r"[=@\t\r]|[+-](?!\d+(\.\d+)?$)", text)]
    if not odd:
        return []
    return [
        f"{len(odd):,} names begin with =, +, -, @, a tab or a carriage return, such as "
        f"`{odd[0][:40]}`. A spreadsheet may run them as formulas. values.csv has them unchanged; "
        "import it there as text."
    ]
