"""Tables from OpenML, fetched and kept by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from databanzhaf.datasets.source import ORIGINALS, Source, class_counts, reason
from databanzhaf.errors import BackendUnavailable, InvalidInput
from databanzhaf.protocols import BoolArray, Float32Array, FloatArray, IntArray


def fetch(name: str) -> Source:
    """The whole table: X float32 without missing values, y int64 of 0 and 1."""
    from sklearn.datasets import fetch_openml

    whole = ORIGINALS[name]
    try:
        bunch = fetch_openml(data_id=whole.openml, as_frame=False, parser="auto")
    except (
        Exception
    ) as error:  # the network, the disk, the server's answer or its form: too many kinds to list
        raise BackendUnavailable(
            f"{name!r} comes from OpenML {whole.openml}, which could not be fetched: "
            f"{reason(error)}",
            remedy=f"Go online, or set DATABANZHAF_DATA to a folder with {name}.npz.",
        ) from error
    X, changes = _features(bunch.data)
    y, rule = _labels(name, bunch.target)
    held = ", ".join([f"{len(y)} rows ({class_counts(y)})", rule, *changes])
    origin = (
        f"{whole.title}, OpenML {whole.openml}, fetched by scikit-learn: {held}; the paper "
        "takes as many rows of each class."
    )
    return Source(name, X, y, None, None, tuple(map(str, bunch.feature_names)), origin)


def _features(data: Any) -> tuple[Float32Array, list[str]]:
    """The table in numbers, and in words what was changed: text coded by its sorted order, missing
    values as column medians.
    """
    table = data.toarray() if hasattr(data, "toarray") else np.asarray(data)
    columns = np.empty(table.shape, np.float32)
    n_text = n_missing = 0
    for j in range(table.shape[1]):
        column, is_text = _numbers(table[:, j])
        missing = np.isnan(column)
        n_text += is_text
        n_missing += int(missing.sum())
        if missing.any():
            column[missing] = 0.0 if missing.all() else np.median(column[~missing])
        columns[:, j] = column
    changes = [f"{n_text} text columns coded by their sorted order"] if n_text else []
    return columns, changes + (
        [f"{n_missing} missing values replaced by the column median"] if n_missing else []
    )


def _numbers(column: Any) -> tuple[FloatArray, bool]:
    """A column as float64 with NaN where it is missing, and whether it was text; digits in text are
    numbers.
    """
    if column.dtype.kind in "fiub":
        return column.astype(np.float64), False
    missing = _missing(column)
    numbers = np.full(column.shape, np.nan)
    try:
        numbers[~missing] = column[~missing].astype(np.float64)
    except ValueError:
        numbers[~missing] = np.unique(column[~missing].astype(str), return_inverse=True)[1]
        return numbers, True
    return numbers, False


def _missing(column: Any) -> BoolArray:
    import pandas as pd

    return np.asarray(pd.isna(column), dtype=np.bool_)


def _labels(name: str, target: Any) -> tuple[IntArray, str]:
    """Labels 0 and 1, and the rule in words: the last of two classes is 1; of more, 1[y = 1] as in
    the paper.
    """
    labels = np.asarray(target)
    if labels.ndim != 1 or _missing(labels).any():
        raise InvalidInput(
            f"{name!r} must have one label per row; OpenML gave shape {labels.shape}, or left "
            "some out",
            remedy=f"Write {name}.npz yourself and name its folder by DATABANZHAF_DATA.",
        )
    codes, is_text = _numbers(labels)
    classes, first = np.unique(codes, return_index=True)
    if len(classes) == 2:
        return (codes == classes[1]).astype(np.int64), f"label 1 for class {labels[first[1]]!s}"
    if len(classes) > 2 and not is_text and 1 in classes:
        return (codes == 1).astype(np.int64), f"label 1 for class 1 of {len(classes)} classes"
    raise InvalidInput(
        f"{name!r} must have two classes, or a class 1 among more; OpenML gave "
        f"{np.unique(labels.astype(str))[:5].tolist()}",
        remedy=f"Write {name}.npz yourself and name its folder by DATABANZHAF_DATA.",
    )
