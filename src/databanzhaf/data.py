"""Dataset: training rows, labels, groups and validation rows."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.fingerprint import describe
from databanzhaf.frames import as_array, as_pandas, check_cells, check_no_dict, is_frame
from databanzhaf.protocols import BoolArray, IntArray, Labels

# More judging rows than this would add time and disk, and hardly any precision.
MOST_JUDGES = 10_000


class Dataset:
    """Training rows to value, and the rows that judge them.

    Without validation rows the training rows judge each other: a model is judged by the rows that
    it has not seen, and every row gets a value (docs/theory.md, "Judged across"). Of a table with
    more than 10,000 rows 10,000 judge, spread evenly over it.

    The dataset keeps copies of its own, so that neither you nor a model can change the rows of a
    run that has begun. Its arrays cannot be written to.

    Parameters
    ----------
    X, X_val : table (rows, columns) or list of texts
        An array, a SciPy sparse matrix, a pandas DataFrame; a polars DataFrame, pyarrow Table or
        Hugging Face Dataset becomes one of pandas. NaN is passed on to estimators that take it.
        `X_val` is optional.
    y, y_val : array, list or column of any of these packages (rows,)
        Numbers or strings, none missing. `y_val` belongs to `X_val`.
    groups : array (rows,), optional
        Then the players are the groups, in sorted order, not the rows.

    Attributes
    ----------
    judges : int64 array or None
        The training rows that judge; None with validation rows.

    >>> rows, labels, groups = [[0.0], [1.0], [2.0]], ["a", "b", "b"], ["x", "x", "y"]
    >>> data = Dataset(rows, labels, [[0.5]], ["a"], groups=groups)
    >>> data.n_players, data.players
    (2, ['x', 'y'])
    """

    def __init__(
        self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, groups: Any = None
    ) -> None:
        X, X_val = as_pandas("X", X), as_pandas("X_val", X_val)
        if (X_val is None) != (y_val is None):
            raise InvalidInput(
                "`X_val` and `y_val` belong together",
                got="one of them",
                remedy="Pass both, or none: then the rows judge each other.",
            )
        self.X = _rows("X", X)
        self.y = _labels("y", y, self.X.shape[0])
        self.judges: IntArray | None = None
        if X_val is None:
            self.judges = _spread_evenly(self.n_rows, MOST_JUDGES)
            self.X_val, self.y_val = self.take(self.judges)
            self.y_val = _frozen(self.y_val)
        else:
            self.X_val = _rows("X_val", X_val)
            self.y_val = _labels("y_val", y_val, self.X_val.shape[0])
        if self.X.shape[1:] != self.X_val.shape[1:]:
            raise InvalidInput(
                "`X` and `X_val` must have the same columns",
                got=f"shapes {self.X.shape} and {self.X_val.shape}",
                remedy="Select the same columns from both.",
            )
        if (self.y.dtype.kind in "US") != (self.y_val.dtype.kind in "US"):
            raise InvalidInput(
                "`y` and `y_val` must be labels of one kind",
                got=f"{self.y[:3].tolist()} and {self.y_val[:3].tolist()}",
                remedy="Encode both the same way.",
            )
        if (
            is_frame(self.X)
            and is_frame(self.X_val)
            and list(self.X.columns) != list(self.X_val.columns)
        ):
            raise InvalidInput(
                "`X` and `X_val` must have the same columns in one order",
                got=f"{list(self.X.columns)[:6]} and {list(self.X_val.columns)[:6]}",
                remedy="Reorder with X_val[X.columns].",
            )
        check_one_order(X, y)
        check_one_order(X_val, y_val, ("X_val", "y_val"))
        check_one_order(X if _has_index(X) else y, groups, ("X", "groups"))
        self._group_of_row: IntArray | None = None
        self.players: Labels | None = X.index if is_frame(X) else y.index if _has_index(y) else None
        if groups is not None:
            self.players, self._group_of_row = _factorise(groups, self.X.shape[0])

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_players(self) -> int:
        return (
            self.n_rows if self._group_of_row is None or self.players is None else len(self.players)
        )

    def rows(self, coalition: BoolArray) -> IntArray:
        """The training rows that a coalition owns, in their order."""
        return np.flatnonzero(self.members(coalition[None])[0]).astype(np.int64)

    def members(self, coalitions: BoolArray) -> BoolArray:
        """Which training rows each coalition owns, bool (m, rows). Coalitions of players, or of the
        rows themselves.
        """
        of_rows = self._group_of_row is None or coalitions.shape[1] != self.n_players
        return coalitions if of_rows else coalitions[:, self._group_of_row]

    @property
    def player_of_row(self) -> IntArray:
        """The player that each training row belongs to."""
        return np.arange(self.n_rows) if self._group_of_row is None else self._group_of_row

    def judging(self, coalitions: BoolArray) -> BoolArray:
        """Which of the judging rows judge a model of each coalition: those that it has not seen,
        or all validation rows; bool (m, judges).
        """
        if self.judges is None:
            return np.ones((len(coalitions), len(self.y_val)), dtype=np.bool_)
        return np.asarray(~self.members(coalitions)[:, self.judges])

    def take(self, rows: IntArray) -> tuple[Any, Any]:
        """(X, y) of some training rows, in the user's own kind of table."""
        return (self.X.iloc[rows] if is_frame(self.X) else self.X[rows]), self.y[rows]

    def fingerprint(self) -> str:
        """A digest of everything the dataset holds."""
        # Arrays cannot be written to; a data frame can, whoever holds it.
        writable = is_frame(self.X) or is_frame(self.X_val)
        return self._digest() if writable else self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return self._digest()

    def _digest(self) -> str:
        digest = hashlib.sha256()
        validation = (None, None) if self.judges is not None else (self.X_val, self.y_val)
        for part in (self.X, self.y, *validation, self._group_of_row):
            _feed(digest, part)
        return digest.hexdigest()[:16]

    def __repr__(self) -> str:
        players = "" if self._group_of_row is None else f", {self.n_players} groups"
        shape = " x ".join(map(str, self.X.shape[1:]))
        columns = f"{shape} columns" if shape else "1 text"
        judged = (
            f"{len(self.y_val)} validation rows" if self.judges is None else "judged by each other"
        )
        return f"Dataset({self.n_rows} rows x {columns}{players}, {judged})"


def check_one_order(X: Any, other: Any, names: tuple[str, str] = ("X", "y")) -> None:
    if _has_index(X) and _has_index(other) and _shuffled(X.index, other.index):
        raise InvalidInput(
            f"`{names[0]}` and `{names[1]}` must have their rows in one order",
            got="the same index in another",
            remedy=f"Align with {names[1]}.loc[{names[0]}.index].",
        )


def check_unmasked(name: str, array: Any) -> None:
    """NumPy drops a mask without a word, and what it hides would count."""
    rows = array if isinstance(array, (list, tuple)) else ()
    if np.ma.is_masked(array) or any(np.ma.is_masked(row) for row in rows):
        raise InvalidInput(
            f"`{name}` must have no masked entries",
            remedy="Fill them first, for example with np.ma.filled(rows, np.nan).",
        )


def _spread_evenly(n: int, most: int) -> IntArray:
    """All of n rows, or `most` of them, spread evenly: of a sorted table some of every part."""
    rows = np.arange(n) if n <= most else (np.arange(most) + 0.5) * (n / most)
    return np.asarray(rows, dtype=np.int64)


def _frozen(array: Any) -> Any:
    """A copy that cannot be written to."""
    array = np.array(array)
    array.setflags(write=False)
    return array


def _has_index(column: Any) -> bool:
    return hasattr(column, "iloc")


def _shuffled(first: Any, second: Any) -> bool:
    """Whether two indices hold the same labels in another order. Other labels mean that rows belong
    by position.
    """
    return (
        len(first) == len(second)
        and not first.equals(second)
        and bool(first.is_unique)
        and set(first) == set(second)
    )


def _is_sparse(table: Any) -> bool:
    return hasattr(table, "tocsr")


def _rows(name: str, table: Any) -> Any:
    check_unmasked(name, table)
    if _is_sparse(table):
        table = table.tocsr(copy=True)
        for part in (table.data, table.indices, table.indptr):
            part.setflags(write=False)
    elif is_frame(table):
        table = table.copy()
        check_cells(name, table)
    else:
        check_no_dict(name, table)
        try:
            table = _frozen(np.asarray(table))
        except ValueError as error:
            raise InvalidInput(
                f"`{name}` must be a table whose rows have one length",
                got=f"{error}",
                remedy="Pad or drop the ragged rows.",
            ) from error
    texts = table.ndim == 1 and table.dtype.kind in "UO"
    if (table.ndim < 2 and not texts) or table.shape[0] == 0:
        raise InvalidInput(
            f"`{name}` must be a table of one row or more, rows by columns (or a list of texts)",
            got=f"shape {tuple(table.shape)}",
            remedy="Reshape a single column with X.reshape(-1, 1).",
        )
    return table


def _labels(name: str, labels: Any, n_rows: int) -> Any:
    check_unmasked(name, labels)
    column = as_array(name, labels)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (n_rows,):
        raise InvalidInput(
            f"`{name}` must have one label per row, shape ({n_rows},)",
            got=f"{column.shape}",
            remedy="Check that rows and labels match.",
        )
    if column.dtype.kind == "O" and all(isinstance(label, str) for label in column):
        column = column.astype(str)
    kinds = {isinstance(label, str) for label in column} if column.dtype.kind == "O" else set()
    if len(kinds) == 2 and not _missing(column).any():
        raise InvalidInput(
            f"`{name}` must be all texts or all numbers",
            got="a mixture",
            remedy=f"Convert with {name}.astype(str).",
        )
    if _missing(column).any():
        where = np.flatnonzero(_missing(column))
        raise InvalidInput(
            f"`{name}` must have no missing label",
            got=f"{len(where)}, the first in row {where[0]}",
            remedy="Drop or fill those rows.",
        )
    return _frozen(column)


def _missing(column: Any) -> BoolArray:
    if column.dtype.kind in "OfcMm":
        import pandas as pd

        return np.asarray(pd.isna(column), dtype=np.bool_)
    return np.zeros(column.shape, dtype=np.bool_)


def _factorise(groups: Any, n_rows: int) -> tuple[Labels, IntArray]:
    check_unmasked("groups", groups)
    column = as_array("groups", groups)
    if column.shape != (n_rows,):
        raise InvalidInput(
            f"`groups` must have one entry per training row, shape ({n_rows},)",
            got=f"{column.shape}",
            remedy="Pass the group of each row.",
        )
    if _missing(column).any():
        raise InvalidInput(
            "`groups` must name a group for every row",
            got="missing entries",
            remedy="Fill them, for example with 'unknown'.",
        )
    try:
        names, which = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise InvalidInput(
            "`groups` must be all numbers or all strings",
            got="a mixture",
            remedy="Convert with groups.astype(str).",
        ) from error
    return names.tolist(), _frozen(which.astype(np.int64))


def _feed(digest: Any, part: Any) -> None:
    if part is None:
        digest.update(b"none")
    elif is_frame(part):
        import pandas as pd

        digest.update(
            repr([(str(name), repr(kind)) for name, kind in part.dtypes.items()]).encode()
        )
        digest.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
        for kind in part.dtypes:  # the text of a long list of categories is cut
            if "..." in repr(kind) and hasattr(kind, "categories"):
                digest.update(repr(kind.categories.tolist()).encode())
    elif _is_sparse(part):
        for piece in (np.array(part.shape), part.data, part.indices, part.indptr):
            _feed(digest, piece)
    elif part.dtype.kind == "O":
        # The text of an array inside is cut short, and that of an object may be its address;
        # `describe` sees what they hold.
        plain = all(
            cell is None or isinstance(cell, (str, int, float, np.generic)) for cell in part.flat
        )
        digest.update((repr if plain else describe)(part.tolist()).encode())
    else:
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
