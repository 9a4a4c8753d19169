"""Rows and labels made ready to be judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf import chance
from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.frames import as_array, as_pandas
from databanzhaf.labels.copies import MOST_TOGETHER, copies_of, digests
from databanzhaf.labels.judges import Judges, as_frame, make_judges
from databanzhaf.labels.result import positions
from databanzhaf.models import MOST_WHOLE_CLASSES, is_classification
from databanzhaf.protocols import BoolArray, FloatArray, IntArray

# Targets farther from the middle than this count as that far: one absurd target would otherwise
# decide the scale that networks learn in. Where ten targets of 300 were ten times too large, in
# three draws, 17 of 47 flagged ones were right with 20 instead of 8, now 9 of 39.
_FARTHEST = 8.0


@dataclass(frozen=True)
class Scale:
    """Targets in units of their spread around their median, so that no unit matters."""

    middle: float = 0.0
    unit: float = 1.0

    def plain(self, targets: Any) -> FloatArray:
        scaled = (np.asarray(targets, dtype=np.float64) - self.middle) / self.unit
        return np.asarray(np.clip(scaled, -_FARTHEST, _FARTHEST))

    def back(self, numbers: Any) -> Any:
        """In the targets' own unit."""
        return numbers * self.unit + self.middle


def scale_of(targets: Any) -> Scale:
    numbers = np.asarray(targets, dtype=np.float64)
    size = float(np.abs(numbers).max())
    if not np.isfinite(numbers).all() or size > 1e300:
        raise InvalidInput(
            "targets must be finite, and at most 1e300",
            got=f"{size:.3g}",
            remedy="Drop those rows.",
        )
    middle = float(np.median(numbers))
    low, high = np.quantile(numbers, (0.25, 0.75)) - middle
    unit = float(high - low) / 1.349 or float((numbers - middle).std()) or 1.0
    if unit < 1e-12 * size or unit < 1e-300:
        raise InvalidInput(
            "targets must differ by more than rounding",
            got=f"targets near {middle:.6g} that differ by about {unit:.1g}",
            remedy="Subtract what they have in common.",
        )
    return Scale(middle, unit)


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, labels and a committee made ready: `numbers` has judged rows first, then checked ones;
    `doubted` has the places of the first in the table.
    """

    labels: Any
    index: Any
    classes: Any
    numbers: Any
    doubted: IntArray
    judges: Judges
    units: IntArray
    conflicts: tuple[IntArray, ...]
    seed: int
    n_jobs: int
    rows: Any
    scale: Scale
    before: IntArray
    notes: tuple[str, ...] = ()

    @property
    def numbered(self) -> bool:
        """Whether the rows have no names but their numbers."""
        return self.index is None or (hasattr(self.index, "start") and hasattr(self.index, "step"))

    @cached_property
    def fingerprint(self) -> str:
        """Of the table's rows and labels."""
        return Dataset(self.rows, self.labels).fingerprint()

    def frame(self) -> tuple[Any, tuple[int, ...] | None]:
        """The table's rows as a data frame, and their shape if they are pictures."""
        shape = np.shape(self.rows)[1:] if np.ndim(self.rows) > 2 else None
        return as_frame(self.rows), shape

    @property
    def n_checked(self) -> int:
        return len(self.numbers) - len(self.doubted)


def prepare(
    X: Any,
    y: Any,
    X_checked: Any = None,
    y_checked: Any = None,
    *,
    checked: Any = None,
    before: Any = None,
    models: Any = "auto",
    task: str = "auto",
    seed: int = 0,
    n_jobs: int = -1,
    device: str = "auto",
) -> Case:
    """Read and check everything; train nothing."""
    _check_rows("X", X)
    data = Dataset(X, y)
    # A frame's index names the rows.
    index = getattr(as_pandas("X", X), "index", None)
    X, labels = data.X, data.y
    seed = chance.check_seed(seed)
    classifies = _classifies(task, labels)
    known = _positions(checked, len(labels))
    doubted = np.flatnonzero(~known)
    order = np.concatenate([doubted, np.flatnonzero(known)])
    both, all_labels = _joined(take(X, order), labels[order], X_checked, y_checked)
    n = len(doubted)
    _check(all_labels[:n], all_labels, n, classifies)
    classes = np.unique(labels) if classifies else None
    if classes is not None and (unknown := np.setdiff1d(all_labels[n:], classes)).size:
        raise InvalidInput(
            "checked rows must have classes of the table",
            got=f"{unknown[:3].tolist()} as well",
            remedy="Leave these rows out, or spell their labels as the table does.",
        )
    scale = Scale() if classes is not None else scale_of(all_labels[:n])
    numbers = scale.plain(all_labels) if classes is None else np.searchsorted(classes, all_labels)
    threads = None if n_jobs == -1 else check_count("n_jobs", n_jobs)
    judges = make_judges(
        models,
        both,
        numbers if classes is None else all_labels,
        classifies=classifies,
        threads=threads,
        device=device,
    )
    units, conflicts = copies_of(both, numbers, n)
    noted = [*_again(both, len(labels), X_checked is not None), *_copied(both, n)]
    noted += _as_numbers(labels) if task == "auto" and classes is None else []
    if X_checked is not None and classes is not None:
        noted += _one_sided(classes, all_labels[n:])
    return Case(
        labels,
        index if hasattr(X, "iloc") else None,
        classes,
        numbers,
        doubted,
        judges,
        units,
        tuple(np.sort(doubted[part]) for part in conflicts),
        seed,
        n_jobs,
        X,
        scale,
        _before(before, classes, np.flatnonzero(known), len(numbers) - n, len(labels)),
        tuple(noted),
    )


def _one_sided(classes: Any, checked: Any) -> list[str]:
    """A note on classes that no checked row has."""
    without = [repr(str(label)) for label in classes if not (checked == label).any()]
    if not without or len(classes) - len(without) > 10:
        return []
    shown = ", ".join(without[:3]) + (", ..." if len(without) > 3 else "")
    return [
        f"No checked row has the label {shown}. Checked rows of some classes only mislead: the "
        "share of wrong labels can be far from the interval that is shown. Add checked rows of "
        "every class, drawn at random."
    ]


def _before(before: Any, classes: Any, known: IntArray, n_checked: int, n_rows: int) -> IntArray:
    """The class number that each checked row had before its review; -1 where that is unknown."""
    out = np.full(n_checked, -1, dtype=np.int64)
    if before is None or classes is None or not len(known):
        return out
    column = _column("before", before)
    if len(column) != n_rows:
        raise InvalidInput(
            "`before` must have one label per row",
            got=f"{len(column)} for {n_rows} rows",
            remedy="Pass all labels as they were before the review.",
        )
    labels = column[known]
    there = np.isin(labels, classes)
    out[np.flatnonzero(there)] = np.searchsorted(classes, labels[there])
    return out


def _copied(both: Any, n: int) -> list[str]:
    """That wrong labels may stand in several copies of a row, if many rows are copies."""
    counts = np.unique(digests(both)[:n], return_counts=True)[1]
    copies = int(counts[counts > MOST_TOGETHER].sum())
    if copies < 0.2 * n:
        return []
    return [
        f"{copies:,} rows have the same cells as {MOST_TOGETHER} others or more, and are judged by "
        "models that have seen some of these. A label that is wrong in all copies of a row is not "
        "found: keep one of each."
    ]


def _again(both: Any, n: int, further: bool) -> list[str]:
    """Further checked rows that are rows of the table again."""
    if not further:
        return []
    keys = digests(both)
    again = int(np.isin(keys[n:], keys[:n]).sum())
    if again == len(keys) - n:
        raise InvalidInput(
            "checked rows must be further rows",
            got="rows with the same cells as rows of the table, all of them",
            remedy="Pass positions of rows of the table as `checked`, or leave the rows out of it.",
        )
    if not again:
        return []
    return [
        f"{again:,} checked rows have the same cells as a row of the table, whose label is judged "
        "all the same. Leave such rows out of the table."
    ]


def _check_rows(name: str, X: Any) -> None:
    if X is None or isinstance(X, (str, bytes)):
        raise InvalidInput(
            f"`{name}` must be a table, an array or a list of texts",
            got=short(X),
            remedy="Pass one row for each label.",
        )


def take(X: Any, rows: IntArray) -> Any:
    """Some rows of a table, an array or a list of texts."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "tocsr") else np.asarray(X)[rows]


def _as_numbers(labels: Any) -> list[str]:
    """That whole numbers are read as numbers to predict, since they are many."""
    if labels.dtype.kind not in "iu" or (count := len(np.unique(labels))) > len(labels) / 5:
        return []
    return [
        f"The labels are {count} different whole numbers, more than {MOST_WHOLE_CLASSES}, and are "
        "read as numbers to predict. If they are classes, set the task to classification."
    ]


def _column(name: str, y: Any) -> Any:
    labels = as_array(name, y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidInput(
            f"`{name}` must have one label per row",
            got=f"shape {labels.shape}",
            remedy="Pass a column.",
        )
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        labels = labels.astype(str)
    return labels


def _positions(checked: Any, n: int) -> BoolArray:
    """Which rows are known to be right."""
    out = np.zeros(n, dtype=np.bool_)
    if checked is not None:
        out[positions("checked", checked, n)] = True
    return out


def _classifies(task: str, labels: Any) -> bool:
    if task not in ("auto", "classification", "regression"):
        raise InvalidInput(
            '`task` must be "auto", "classification" or "regression"',
            got=short(task),
            remedy='Try "auto".',
        )
    return is_classification(labels) if task == "auto" else task == "classification"


def _joined(X: Any, labels: Any, X_checked: Any, y_checked: Any) -> tuple[Any, Any]:
    """The rows, then the checked rows."""
    if (X_checked is None) != (y_checked is None):
        raise InvalidInput(
            "`X_checked` and `y_checked` belong together",
            got="one of them",
            remedy="Pass both, or none.",
        )
    if X_checked is None:
        return X, labels
    _check_rows("X_checked", X_checked)
    further = Dataset(X_checked, y_checked)
    X_checked, checked = further.X, further.y
    if (checked.dtype.kind in "US") != (labels.dtype.kind in "US") and "O" not in (
        checked.dtype.kind,
        labels.dtype.kind,
    ):
        raise InvalidInput(
            "`y` and `y_checked` must be labels of one kind",
            got=f"{labels[:3].tolist()} and {checked[:3].tolist()}",
            remedy="Encode both the same way.",
        )
    if hasattr(X, "iloc"):
        import pandas as pd

        if not X.columns.is_unique:
            raise InvalidInput(
                "a table must name each column once",
                got=f"`{X.columns[X.columns.duplicated()][0]}` twice",
                remedy="Rename one of them.",
            )
        absent = [name for name in X.columns if name not in getattr(X_checked, "columns", ())]
        if absent:
            raise InvalidInput(
                "the checked rows must have the table's columns",
                got=f"none called {', '.join(f'`{name}`' for name in absent[:5])}",
                remedy="Add what is missing.",
            )
        both: Any = pd.concat([X, X_checked[list(X.columns)]], ignore_index=True)
    elif hasattr(X, "tocsr"):
        from scipy.sparse import vstack

        both = vstack([X, X_checked]).tocsr()
    else:
        parts = np.asarray(X), np.asarray(X_checked)
        if parts[0].shape[1:] != parts[1].shape[1:]:
            raise InvalidInput(
                "`X` and `X_checked` must have the same columns",
                got=f"shapes {parts[0].shape} and {parts[1].shape}",
                remedy="Select the same columns from both.",
            )
        both = np.concatenate(parts)
    return both, np.concatenate([labels, checked])


def _check(labels: Any, all_labels: Any, n: int, classifies: bool) -> None:
    if not classifies and all_labels.dtype.kind not in "biuf":
        raise InvalidInput(
            "a regression needs numbers as labels",
            got=f"{all_labels[:3].tolist()}",
            remedy="Write them as plain numbers, without units or currency signs; or pass "
            'task="classification" if they are classes.',
        )
    if n < 10:
        checked = len(all_labels) - n
        raise InvalidInput(
            "wrong labels are found among ten rows or more",
            got=f"n_samples = {n}" + (f", and {checked:,} checked rows" if checked else ""),
            remedy="Give more rows, or read these labels yourself.",
        )
    if classifies and len(np.unique(labels)) < 2:
        raise InvalidInput(
            "the labels must have two classes or more",
            got=f"one class only, {labels[:1].tolist()}",
            remedy="Add rows of other classes.",
        )
    if classifies and len(np.unique(labels)) > n / 2:
        raise InvalidInput(
            "rows must share labels for anything to be learned from them",
            got=f"{len(np.unique(labels))} different labels in {n} rows",
            remedy='Pass task="regression" if they are numbers to predict.',
        )
    if not classifies and np.ptp(all_labels[:n].astype(np.float64)) == 0:
        raise InvalidInput(
            "the targets must differ",
            got=f"{labels[0]} in every row",
            remedy="Check that this is the target.",
        )
