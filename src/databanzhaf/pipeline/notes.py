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
