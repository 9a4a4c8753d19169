"""What the games that train models are given: numbers, categories, weights, a device."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput, first_line, short
from databanzhaf.kernels.trees import CATEGORIES, MISSING, binned
from databanzhaf.protocols import FloatArray, UInt16Array


def check_weights(sample_weight: Any, weighting: str, n_rows: int) -> None:
    if weighting not in ("loss", "sampling"):
        raise InvalidInput(
            '`weighting` must be "loss" or "sampling"',
            got=short(weighting),
            remedy='"loss" weighs each row\'s loss.',
        )
    if sample_weight is None:
        if weighting == "sampling":
            raise InvalidInput(
                '`weighting="sampling"` needs `sample_weight`',
                got="none",
                remedy="Pass one weight for each training row.",
            )
        return
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise InvalidInput(
            f"`sample_weight` must be {n_rows} numbers, 0 or more, one for each row",
            got=f"shape {weight.shape}",
            remedy="Clip negative weights to 0.",
        )


def numbers(name: str, table: Any) -> Any:
    """A table as float32, rows first; refuses what is no number."""
    if hasattr(table, "tocsr"):
        table = table.toarray()
    try:
        array = np.array(table, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"`{name}` must hold numbers",
            got=f"{error}",
            remedy="Encode texts and categories first, as DataBanzhaf and the command line do.",
        ) from error
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))[0])
        raise InvalidInput(
            f"`{name}` must be finite for a network; row {row} holds NaN or infinity",
            remedy="Impute first, for example with SimpleImputer.",
        )
    return array


def coded_columns(
    X: Any, X_val: Any, *, categories: bool, **binning: Any
) -> list[tuple[UInt16Array, int]]:
    """The columns of a table as codes for trees: training rows, then validation rows.

    Columns of pandas' `category` type are coded by category where `categories` are taken, others as
    numbers (see `binned` for the options).
    """
    X, X_val = (part.toarray() if hasattr(part, "tocsr") else part for part in (X, X_val))
    n = len(X)
    if not X.shape[1]:
        raise InvalidInput("trees need a column or more", remedy="Add features.")
    if not hasattr(X, "iloc"):
        table = np.concatenate(
            [_floats(np.asarray(part), "`X`", categories) for part in (X, X_val)]
        )
        return [binned(table[:, place], n, **binning) for place in range(table.shape[1])]
    if not hasattr(X_val, "iloc"):
        import pandas as pd

        X_val = pd.DataFrame(np.asarray(X_val), columns=X.columns)
    coded = []
    for place, (name, kind) in enumerate(X.dtypes.items()):
        parts = [table.iloc[:, place] for table in (X, X_val)]
        if str(kind) == "category" and categories:
            coded.append((_category_codes(str(name), *parts), CATEGORIES))
        else:
            column = np.concatenate(
                [_floats(part, f"column `{name}`", categories) for part in parts]
            )
            coded.append(binned(column, n, **binning))
    return coded


def _floats(numbers: Any, what: str, categories: bool) -> FloatArray:
    """As float64, missing values as NaN; refuses what is no number."""
    import pandas as pd

    kind = numbers.dtype
    try:
        numeric = pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)
        if not (numeric or pd.api.types.is_object_dtype(kind)):
            raise ValueError(f"values of type {kind}")
        if hasattr(numbers, "to_numpy"):
            return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        takes = "a forest takes numbers and categories" if categories else "boosting takes numbers"
        remedy = (
            'Convert texts with X[name].astype("category"), as DataBanzhaf and the command line do.'
            if categories
            else "Encode texts and categories first, for example with OneHotEncoder, as "
            "DataBanzhaf and the command line do, or use games.Forest."
        )
        if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
            remedy = "Convert dates to numbers, such as days; DataBanzhaf does it."
        raise InvalidInput(
            f"{takes}; {what} holds others", got=first_line(error), remedy=remedy
        ) from error


def _category_codes(name: str, column: Any, column_val: Any) -> UInt16Array:
    import pandas as pd

    kinds = [
        {isinstance(value, str) for value in part.dropna().unique()}
        for part in (column, column_val)
    ]
    if all(kinds) and not kinds[0] & kinds[1]:
        raise InvalidInput(
            f"column `{name}` must hold categories of one kind in `X` and `X_val`",
            got="texts in one and numbers in the other, so that every category is a new one",
            remedy="Write them the same way in both.",
        )
    every = pd.concat([column.astype(object), column_val.astype(object)], ignore_index=True)
    codes = pd.factorize(every)[0]  # in the order of the rows; -1 where a value is missing
    if codes.max() >= MISSING:
        raise InvalidInput(
            f"a column of categories may have {MISSING:,} of them at most",
            got=f"{codes.max() + 1:,} in `{name}`",
            remedy="Drop it, or join rare categories.",
        )
    return np.asarray(codes.astype(np.uint16))


def resolve_device(device: str) -> str:
    """ "auto" is CUDA if torch sees it, else "cpu"; a device that is asked for and absent is an
    error, never another device.
    """
    if not isinstance(device, str):
        raise InvalidInput(
            '`device` must be "auto", "cpu", "cuda" or "cuda:N", a string',
            got=short(device),
            remedy='Try "auto".',
        )
    if device == "cpu":
        return device
    if device != "auto" and not device.startswith("cuda"):
        raise InvalidInput(
            '`device` must be "auto", "cpu", "cuda" or "cuda:N"',
            got=short(device),
            remedy='Try "auto".',
        )
    if device == "auto" and "torch" not in sys.modules and not _has_driver():
        return "cpu"
    try:
        import torch
    except ImportError as error:
        if device == "auto":
            return "cpu"
        raise BackendUnavailable.missing(f"device {device!r} needs", "torch", "torch") from error
    if torch.cuda.is_available():
        return "cuda" if device == "auto" else device
    if device == "auto":
        return "cpu"
    raise BackendUnavailable(
        f"device {device!r} was asked for, but torch sees no CUDA device here",
        remedy='Use device="cpu" or "auto".',
    )


def _has_driver() -> bool:
    """Whether a driver of a GPU may be there. To ask torch takes more than a second, in which a
    small run would be done.
    """
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return Path("/dev/kfd").exists()  # AMD's
