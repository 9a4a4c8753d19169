"""What a person should know about a table before its values: one sentence each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.notions import each_of
from databanzhaf.pipeline.settings import Settings
from databanzhaf.protocols import IntArray, Notion

if TYPE_CHECKING:
    import pandas as pd

# With fewer rows than this a run can rank the rows themselves.
ROWS_FOR_CLUSTERS = 1000


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


def counts(name: str, labels: Any, classifies: bool) -> list[str]:
    """How many rows each class has, or between what the targets lie."""
    if not classifies:
        numbers = np.asarray(labels, dtype=np.float64)
        return [f"`{name}` lies between {numbers.min():.6g} and {numbers.max():.6g}."]
    found, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = [f"{found[place]} {sizes[place]:,}" for place in order[:6]]
    more = f" and {len(found) - 6} more" if len(found) > 6 else ""
    return [f"Classes of `{name}`: {', '.join(shown)}{more}."]


def classes(name: str, labels: Any, *, asked: bool) -> list[str]:
    """Classes that may be amounts, or slips of the pen; `asked` if the user asked for classes."""
    found, counts = np.unique(labels, return_counts=True)
    if found.dtype.kind in "iuf" and len(found) >= 5 and not asked:
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


def copies_of_target(X: Any, y: Any, *, classifies: bool) -> list[str]:
    """Columns that are the target again: a whole table was passed, or it holds the classes both as
    names and as numbers.
    """
    import pandas as pd

    # In fewer rows two columns may agree by chance.
    if not hasattr(X, "columns") or len(y) < 20:
        return []
    target = np.asarray(y)
    codes = pd.factorize(target)[0]

    def same(column: Any) -> bool:
        if column.isna().any():
            return False
        if classifies:  # classes are numbered as they come
            plain = column.map(str) if column.dtype.kind == "O" else column
            return np.array_equal(pd.factorize(plain)[0], codes[: len(column)])
        is_number = pd.api.types.is_numeric_dtype(column)
        return is_number and np.array_equal(column.to_numpy(), target[: len(column)])

    columns = [X.iloc[:, place] for place in range(X.shape[1])]
    found = [f"`{each.name}`" for each in columns if same(each.iloc[:100]) and same(each)]
    if not found:
        return []
    return [
        f"{', '.join(found[:5])} {'says' if len(found) == 1 else 'say'} the target of every row, "
        "so models need only copy it. Leave out the target itself with --drop."
    ]


def learns_nothing(scores: dict[str, float] | None) -> bool:
    """Whether a model of all rows scores no better than a guess, by two standard errors."""
    return scores is not None and scores["all"] - scores["none"] <= 2 * scores.get("error", 0.0)


def no_better_than_guessing(scores: dict[str, float] | None, who: str) -> list[str]:
    """A model of all rows that scores no better than a guess."""
    if scores is None or not learns_nothing(scores):
        return []
    error = scores.get("error")
    spread = "" if error is None else f" (the difference has a standard error of {error:.3f})"
    return [
        f"The model is not clearly better than guessing: it scores {scores['all']:.3f}, a guess "
        f"{scores['none']:.3f}{spread}. These values say little about "
        f"the {who}, and none are flagged as below zero. Try another --model, or check the target."
    ]


def one_class(labels: Any, suspects: IntArray | None, metric: str) -> list[str]:
    """Suspects that are nearly all of one class, though the rows are not."""
    if suspects is None or len(suspects) < 5 or metric.startswith("balanced"):
        return []
    names, which = np.unique(np.asarray(labels), return_inverse=True)
    share = np.bincount(which, minlength=len(names)) / len(which)
    among = np.bincount(which[suspects], minlength=len(names)) / len(suspects)
    most = int(among.argmax())
    if among[most] < 0.8 or share[most] > 1 / 3:
        return []
    return [
        f"{among[most]:.0%} of the suspects are `{names[most]}`, which is {share[most]:.0%} of all "
        "rows. Rows of a rare class lower a mean over all rows even when they are right. With "
        "--metric balanced_probability every class counts the same."
    ]


def copies(dataset: Dataset) -> list[str]:
    """Rows that judge their own copies."""
    if dataset.judges is None:
        return []
    digests = _digests(dataset.X, dataset.y)
    again = len(digests) - len(np.unique(digests))
    if again < 0.05 * len(digests):
        return []
    return [
        f"{again:,} of {len(digests):,} rows are copies of another row, label included. A copy "
        "judges models that have seen its twin, so scores look better than they are. Remove the "
        "copies, or value them as a group with --groups."
    ]


def in_clusters(dataset: Dataset, settings: Settings) -> list[str]:
    """What to do if there are more rows than can be ranked."""
    if not ROWS_FOR_CLUSTERS <= dataset.n_players == dataset.n_rows:
        return []
    return [
        "Add --clusters 200 and another --out to value clusters of similar rows, and then the rows "
        f"of the worst ones. For wrong labels, run {_mislabels(settings)}"
    ]


def _mislabels(settings: Settings) -> str:
    """The command that finds wrong labels in the same table."""
    words = ["databanzhaf", "mislabels", settings.data, "--target", settings.target]
    words += [] if settings.id is None else ["--id", settings.id]
    for name in (*settings.drop, *([settings.groups] if settings.groups else ())):
        words += ["--drop", name]
    return shlex.join(words)


def unvalued(name: str | None, groups: Any, rows: IntArray) -> list[str]:
    """Groups of which every row is held out."""
    absent = [] if groups is None else np.setdiff1d(groups, groups[rows]).tolist()
    if not absent:
        return []
    shown = ", ".join(f"`{each}`" for each in absent[:5]) + (", ..." if len(absent) > 5 else "")
    return [
        f"All rows of {shown} in {name} are held out for validation, so they get no value. Pass "
        "a --validation file."
    ]


def several(notion: Notion) -> list[str]:
    """What one run for several notions costs each of them."""
    if len(each_of(notion)) < 2:
        return []
    return [
        "The notions share one run: each has larger errors than a run for it alone would have with "
        "the same --budget."
    ]


def shared(dataset: Dataset) -> list[str]:
    """Validation rows that are training rows too."""
    if dataset.judges is not None:
        return []
    both = np.isin(_digests(dataset.X_val, dataset.y_val), _digests(dataset.X, dataset.y))
    if both.mean() < 0.05:
        return []
    return [
        f"{int(both.sum()):,} of {len(both):,} validation rows equal a training row in all "
        "columns, so that row is judged by itself. Remove the copies, or use other validation rows."
    ]


def _digests(X: Any, y: Any) -> Any:
    import pandas as pd

    return pd.util.hash_pandas_object(pd.DataFrame(X).assign(target=y), index=False).to_numpy()


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
