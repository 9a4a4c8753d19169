"""Tables of other packages (polars, pyarrow, datasets) as those that pandas and NumPy know."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput

# Methods that fetch what a lazy table stands for.
_FETCHES = ("collect", "compute", "toPandas")


def is_frame(table: Any) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "columns")


def as_pandas(name: str, table: Any) -> Any:
    """Another package's table or column as that of pandas, dates and decimals in it as dates and
    numbers; another package's list as a list; everything else as it is.
    """
    check_fetched(name, table)
    if is_frame(table):
        return table
    if not hasattr(table, "to_pandas"):
        known = isinstance(table, (list, tuple, str, bytes))
        return list(table) if isinstance(table, Sequence) and not known else table
    try:
        found = table.to_pandas()
    except ImportError as error:
        raise BackendUnavailable.missing(
            f"a {type(table).__module__.split('.')[0]} table needs", "pyarrow", "parquet"
        ) from error
    return _without_objects(found) if is_frame(found) else found


def as_array(name: str, column: Any) -> Any:
    """A column of labels or groups as an array, decimals as numbers."""
    check_fetched(name, column)
    array = np.asarray(column)
    if array.dtype.kind == "O" and array.size:
        decimals = all(isinstance(cell, Decimal) for cell in array.flat)
        return array.astype(np.float64) if decimals else array
    return array


def check_fetched(name: str, table: Any) -> None:
    """Refuse a lazy table. Two queries may return the same rows in different orders, and then
    labels would go to the wrong rows.
    """
    fetch = next((how for how in _FETCHES if callable(getattr(table, how, None))), None)
    if fetch is None or hasattr(table, "to_pandas"):
        return
    raise InvalidInput(
        f"`{name}` must be in memory",
        got=f"a {type(table).__module__.split('.')[0]} {type(table).__name__}",
        remedy=f"Call {fetch}() once, and take rows and labels from what it returns.",
    )


def check_no_dict(name: str, table: Any) -> None:
    # SciPy's sparse matrices of keys are dicts.
    if not isinstance(table, dict) or hasattr(table, "tocsr"):
        return
    split = next((key for key, part in table.items() if hasattr(part, "to_pandas")), None)
    raise InvalidInput(
        f"`{name}` must be rows by columns, or one label for each row",
        got="a dict",
        remedy=f"Pass pandas.DataFrame({name})."
        if split is None
        else f"Choose one of its tables, such as {split!r}.",
    )


def check_cells(name: str, table: Any) -> None:
    """A cell is one number, text or date: a list or an array in it has no digest, and no model
    takes it.
    """
    for place, kind in enumerate(table.dtypes):
        cells = table.iloc[:, place] if kind.kind == "O" else ()
        bad = next(
            (cell for cell in cells if isinstance(cell, (list, dict, set, np.ndarray))), None
        )
        if bad is not None:
            raise InvalidInput(
                f"each cell of `{name}` must be one number, text or date; column "
                f"`{table.columns[place]}` holds a "
                f"{type(bad).__name__}",
                remedy="Give its parts columns of their own.",
            )


def _without_objects(table: Any) -> Any:
    """Columns of Python's dates and decimals, which Arrow hands over, as dates and numbers. A model
    would take them for categories.
    """
    import pandas as pd

    kinds = {"date": "datetime64[s]", "decimal": "float64"}
    table = table.copy(deep=False)
    for place in np.flatnonzero([str(kind) == "object" for kind in table.dtypes]).tolist():
        column = table.iloc[:, place]
        kind = kinds.get(pd.api.types.infer_dtype(column, skipna=True))
        if kind is not None:
            table.isetitem(place, column.astype(kind))
    return table
