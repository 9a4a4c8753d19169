"""The labels of a table as texts, as they are written and as they are shown."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.protocols import BoolArray
from databanzhaf.tables.read import read_table

if TYPE_CHECKING:
    import pandas as pd

_TYPED = {".npz": "npz", ".parquet": "parquet", ".pq": "parquet"}


@dataclass(frozen=True, eq=False)
class Labelled:
    """A table with one column of labels.

    Attributes
    ----------
    table : DataFrame
        The cells of a text file as they are written; those of other files by their types.
    written, shown : list of str
        Each row's label as the file has it (1.0, true), and as results show it once it is read
        as a number or a truth value (1, True). "" for a missing one.
    missing : bool array
        Rows whose label is read as missing: an empty cell, NA.
    is_number, is_whole : bool
        Whether all labels are read as numbers, and as whole ones.
    """

    table: pd.DataFrame
    target: str
    kind: str  # "text", "parquet" or "npz"
    written: list[str]
    shown: list[str]
    missing: BoolArray
    is_number: bool
    is_whole: bool

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The first row with each label; as it is written goes before as it is shown."""
        first: dict[str, int] = {}
        for labels in (self.written, self.shown):
            for row, label in enumerate(labels):
                first.setdefault(label, row)
        return first

    def label(self, row: int) -> str:
        """The label as decisions should name it."""
        return self.written[row] if self.kind == "text" else self.shown[row]

    def has(self, row: int, label: str) -> bool:
        return label in (self.written[row], self.shown[row])


def suffix_of(path: Path) -> str:
    """What says how a table is read: .csv, .csv.gz, .parquet.

    >>> suffix_of(Path("train.v2.CSV.gz"))
    '.csv.gz'
    """
    last = path.suffix.lower()
    return path.with_suffix("").suffix.lower() + last if last == ".gz" else last


def file_kind(path: Path) -> str:
    """parquet, npz or text."""
    return _TYPED.get(suffix_of(path).removesuffix(".gz"), "text")


def read_labelled(
    path: Path, target: str, *, encoding: str, separator: str | None, decimal: str
) -> Labelled:
    """The table by `read_table`, twice for a text file: by types, and as it is written."""
    import pandas as pd
    from pandas.api.types import is_float_dtype, is_integer_dtype

    how: dict[str, Any] = {"encoding": encoding, "separator": separator, "decimal": decimal}
    with warnings.catch_warnings():
        # Of commas at the end of lines, which `read_table` has checked.
        warnings.simplefilter("ignore", pd.errors.ParserWarning)
        typed = read_table(path, **how)
        if target not in typed.columns:
            names = [str(name) for name in typed.columns[:30]]
            raise InvalidInput(
                f"the target of the decisions must be a column of `{path}`",
                got=f"`{target}`, and the columns are {', '.join(names)}",
                remedy="Give the separator and the encoding with which the table was reviewed.",
            )
        kind = file_kind(path)
        table = read_table(path, **how, texts=list(typed.columns)) if kind == "text" else typed
    column = typed[target]
    cells = table[target]
    there = cells.notna().to_numpy()
    written = np.full(len(table), "", dtype=object)
    # As the type itself is written: 0.1 is longer as a float64 than as a float32.
    plain = kind == "text" or cells.dtype.kind in "iuf"
    known = cells[there]
    written[there] = list(map(str, known.to_numpy())) if plain else known.astype(str).tolist()
    as_codes = re.match(r"`-?0\d", typed.attrs.get("codes", {}).get(target, ""))
    return Labelled(
        table=table,
        target=target,
        kind=kind,
        written=written.tolist(),
        # Classes such as 007 are not shown as numbers.
        shown=written.tolist() if as_codes else _shown(column),
        missing=column.isna().to_numpy(),
        is_number=is_integer_dtype(column.dtype) or is_float_dtype(column.dtype),
        is_whole=is_integer_dtype(column.dtype) or _all_whole(column),
    )


def _shown(column: pd.Series[Any]) -> list[str]:
    """As the pipeline takes a target and names its labels: whole numbers have no point."""
    from pandas.api.types import is_float_dtype, is_integer_dtype

    there = column.notna().to_numpy()
    labels = column[there]
    if is_integer_dtype(column.dtype):
        texts = [str(label) for label in labels.tolist()]
    elif is_float_dtype(column.dtype):
        numbers = labels.to_numpy(dtype=np.float64)
        whole = numbers.astype(np.int64) if _all_whole(column) else numbers
        texts = [str(label) for label in whole.tolist()]
    else:
        texts = labels.astype(str).tolist()
    shown = np.full(len(column), "", dtype=object)
    shown[there] = texts
    return list(shown.tolist())


def _all_whole(column: pd.Series[Any]) -> bool:
    from pandas.api.types import is_float_dtype

    if not is_float_dtype(column.dtype):
        return False
    numbers = column.dropna().to_numpy(dtype=np.float64)
    return bool((np.abs(numbers) < 2**53).all()) and bool((numbers == np.round(numbers)).all())
