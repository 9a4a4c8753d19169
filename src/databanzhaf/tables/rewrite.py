"""A corrected copy of a table: decided labels changed, decided rows removed, nothing else."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput, check_path, short
from databanzhaf.files import replacing, write_text
from databanzhaf.protocols import BoolArray, IntArray
from databanzhaf.tables.decisions import (
    Decision,
    Decisions,
    as_text,
    check_decisions,
    file_fingerprint,
    read_sidecar,
    sidecar_path,
)
from databanzhaf.tables.labels import Labelled, read_labelled, suffix_of
from databanzhaf.tables.splice import spliced
from databanzhaf.tables.stored import changed_npz, changed_parquet, lined_up

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rewritten:
    """What `rewrite` did.

    Attributes
    ----------
    out : Path
        The corrected table.
    sidecar : Path or None
        The decided rows of the corrected table, each as a keep; None if all of them were dropped.
    rows : int
        Rows of the corrected table.
    changes : tuple of (old label, new label, rows)
        The most frequent change first.
    dropped, kept, undecided : int
        Rows that were removed, that were decided to stay, and that nobody decided.
    notes : tuple of str
        What to check.
    """

    out: Path
    sidecar: Path | None
    rows: int
    changes: tuple[tuple[str, str, int], ...]
    dropped: int
    kept: int
    undecided: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Plan:
    """Decisions as places: each row takes the label of row `source[row]`, or the label
    `new[source[row] - rows]`, which no row has.
    """

    source: IntArray
    new: tuple[str, ...]
    fixed: IntArray
    kept: BoolArray


def rewrite(
    path: str | Path,
    decisions: Decisions,
    out: str | Path,
    *,
    encoding: str = "utf-8",
    separator: str | None = None,
    decimal: str = ".",
) -> Rewritten:
    """Write the table with the decisions applied, and the decided rows of it beside it.

    In a text file only the label's cell of a fixed row and the lines of dropped rows change; every
    other byte stays. Both tables are then read again and compared cell by cell. Nothing is written
    if a cell differs that nobody decided.
    """
    path, out = Path(path), Path(out)
    check_decisions(decisions)
    _check_out(path, out)
    _check_fingerprint(path, decisions)
    how: dict[str, Any] = {"encoding": encoding, "separator": separator, "decimal": decimal}
    before = read_labelled(path, decisions.target, **how)
    _check_rows(path, decisions, before)
    plan = _plan(decisions, before, decimal)
    content = _content(path, before, plan, encoding, separator)
    decided = _decided(path, decisions, before)
    written: Path | None = None
    try:
        with replacing(out) as temporary:
            _save(temporary, content)
            after = _proved(path, temporary, before, plan, how)
            following = _following(decided, after, plan, file_fingerprint(temporary))
            if following.made:
                write_text(sidecar_path(out), as_text(following))
                written = sidecar_path(out)
    except BaseException as error:
        if written is not None:
            written.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise InvalidInput(
                f"`{out}` cannot be written ({error.strerror})",
                remedy="Check the folder and the free disk space.",
            ) from error
        raise
    kinds = Counter(each.decision for each in decisions.made)
    changes = Counter(
        (each.label, each.new_label) for each in decisions.made if each.decision == "fix"
    )
    return Rewritten(
        out,
        written,
        int(plan.kept.sum()),
        tuple((*labels, count) for labels, count in changes.most_common()),
        kinds["drop"],
        kinds["keep"],
        len(plan.kept) - len(decisions.made),
        tuple(_notes(path, before, plan)),
    )


def _check_out(path: Path, out: Path) -> None:
    """The names of both files that will be written are free, and say how they are read."""
    check_path(out)
    if suffix_of(out) != suffix_of(path):
        raise InvalidInput(
            f"the corrected table must be a {suffix_of(path)} file, as `{path}` is",
            got=f"`{out}`",
            remedy="Give a name that ends so.",
        )
    for each in (out, sidecar_path(out)):
        try:
            there = each.is_symlink() or each.exists()
            same = there and each.exists() and path.exists() and each.samefile(path)
        except OSError as error:  # a name that is too long
            raise InvalidInput(
                f"`{str(each)[:200]}` cannot be written ({error.strerror})",
                remedy="Give another name for the corrected table.",
            ) from error
        if there:
            raise InvalidInput(
                f"`{each}` is the table itself, and would be overwritten"
                if same
                else f"`{each}` already exists",
                remedy="Give another name for the corrected table.",
            )


def _check_fingerprint(path: Path, decisions: Decisions) -> None:
    found = file_fingerprint(path)
    if found != decisions.table:
        raise InvalidInput(
            f"the decisions must be about `{path}` as it is now, with fingerprint {found}",
            got=f"decisions about a table with fingerprint {short(decisions.table)}",
            remedy="Give the table that was reviewed, or review this one.",
        )


def _check_rows(path: Path, decisions: Decisions, before: Labelled) -> None:
    rows = len(before.table)
    for each in decisions.made:
        if not 0 <= each.row < rows:
            raise InvalidInput(
                f"decisions about `{path}` must be about its rows, 0 to {rows - 1}",
                got=f"row {each.row}",
                remedy="Review the table again.",
            )
        if not before.has(each.row, each.label):
            raise InvalidInput(
                f"the decision about row {each.row} must name its label, "
                f"{short(before.label(each.row))}",
                got=short(each.label),
                remedy="Review the table again.",
            )
    if sum(each.decision == "drop" for each in decisions.made) == rows:
        raise InvalidInput(
            f"some rows of `{path}` must stay",
            got=f"drop for all {rows:,}",
            remedy="Keep or fix one.",
        )


def _plan(decisions: Decisions, before: Labelled, decimal: str) -> _Plan:
    rows = len(before.table)
    source, kept = np.arange(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
    new: dict[str, int] = {}
    fixed = []
    for each in decisions.made:
        if each.decision == "drop":
            kept[each.row] = False
        if each.decision == "fix":
            fixed.append(each.row)
            place = before.row_of.get(each.new_label)
            if place is None:
                label = each.new_label
                if before.kind == "text" and before.is_number:  # as the table writes numbers
                    label = label.replace(".", decimal)
                place = rows + new.setdefault(label, len(new))
            source[each.row] = place
    return _Plan(source, tuple(new), np.array(sorted(fixed), dtype=np.int64), kept)


def _content(
    path: Path, before: Labelled, plan: _Plan, encoding: str, separator: str | None
) -> bytes:
    """The bytes of the corrected table."""
    if before.kind == "parquet":
        return changed_parquet(path, before.target, plan.source, plan.new, plan.kept)
    if before.kind == "npz":
        if before.target != "y":
            raise InvalidInput(
                f"the labels of `{path}` must be its array y",
                got=f"`{before.target}`",
                remedy="Review the table with y as the target.",
            )
        return changed_npz(path, plan.source, plan.new, plan.kept)
    labels = [*before.written, *plan.new]
    return spliced(
        path,
        before.table.columns.tolist().index(before.target),
        {row: labels[plan.source[row]] for row in plan.fixed.tolist()},
        set(np.flatnonzero(~plan.kept).tolist()),
        rows=len(before.table),
        encoding=encoding,
        separator=separator,
    )


def _save(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _proved(path: Path, made: Path, before: Labelled, plan: _Plan, how: dict[str, Any]) -> Labelled:
    """The corrected table as it is read, once every cell of it is what was decided."""
    try:
        after = read_labelled(made, before.target, **how)
    except InvalidInput as error:
        reason = error.rule.replace(f"`{made}`", "it")
        raise _unproved(path, f"an unreadable one: {reason}") from error
    if list(after.table.columns) != list(before.table.columns):
        raise _unproved(path, "other columns")
    if len(after.table) != plan.kept.sum():
        raise _unproved(path, f"{len(after.table):,} rows")
    fixed = np.isin(np.arange(len(plan.kept)), plan.fixed)
    for name in before.table.columns:
        same = ~fixed if name == before.target else np.ones_like(fixed)
        old = before.table[name][plan.kept & same].reset_index(drop=True)
        new = after.table[name][same[plan.kept]].reset_index(drop=True)
        if not _alike(old, new):
            raise _unproved(path, f"another cell of `{name}`")
    _check_fixed(before, after, plan)
    return after


def _alike(old: pd.Series[Any], new: pd.Series[Any]) -> bool:
    """Whether all cells are equal; without the dropped rows a column may have a narrower type."""
    if old.dtype != new.dtype:
        try:
            new = new.astype(old.dtype)
        except (TypeError, ValueError):
            return False
    return bool(old.equals(new))


def _unproved(path: Path, got: str) -> InvalidInput:
    return InvalidInput(
        f"the corrected table must differ from `{path}` in the decided cells and rows alone",
        got=got,
        remedy="Nothing was written; correct this table by hand.",
    )


def _check_fixed(before: Labelled, after: Labelled, plan: _Plan) -> None:
    """Refuse new labels that are not read as what was decided."""
    if plan.new and before.is_number and not after.is_number:
        raise InvalidInput(
            f"new labels of `{before.target}` must be numbers, as its labels are",
            got=", ".join(map(short, plan.new[:3])),
            remedy="Decide a label that is a number.",
        )
    places = np.cumsum(plan.kept) - 1
    old, new = before.table[before.target].tolist(), after.table[before.target].tolist()
    for row, source in zip(plan.fixed.tolist(), plan.source[plan.fixed].tolist(), strict=True):
        place = int(places[row])
        if source < len(old):
            as_decided, label = new[place] == old[source], before.label(source)
        else:
            label = plan.new[source - len(old)]
            # The cell of a text file is the label itself, 03 as well as 3.
            as_decided = new[place] == label if after.kind == "text" else after.has(place, label)
        if not as_decided or after.missing[place]:
            read = "a missing value" if after.missing[place] else short(after.label(place))
            raise InvalidInput(
                "a new label must be read back as it was decided",
                got=f"{short(label)} for row {row}, which is read as {read}",
                remedy="Write it as the table writes its labels.",
            )


def _decided(path: Path, decisions: Decisions, before: Labelled) -> dict[int, Decision]:
    """By row, what was decided now and before this table was written; now goes before earlier. Each
    remembers the label before the first review.
    """
    found = read_sidecar(path, decisions.target)
    earlier = () if found is None else found.made
    if not all(
        each.row < len(before.table) and before.has(each.row, each.label) for each in earlier
    ):
        earlier = ()
    was = {each.row: each.was or each.label for each in (*decisions.made, *earlier)}
    return {each.row: replace(each, was=was[each.row]) for each in (*earlier, *decisions.made)}


def _following(decided: dict[int, Decision], after: Labelled, plan: _Plan, table: str) -> Decisions:
    """The decided rows of the corrected table, each as a keep."""
    places = np.cumsum(plan.kept) - 1
    made = [
        Decision(
            int(places[row]),
            after.label(int(places[row])),
            "keep",
            id=decided[row].id,
            was=decided[row].was,
        )
        for row in sorted(decided)
        if plan.kept[row]
    ]
    return Decisions(table, after.target, tuple(made))


def _notes(path: Path, before: Labelled, plan: _Plan) -> list[str]:
    notes = []
    if plan.new and (before.is_whole or not before.is_number):  # else any number may be new
        shown = ", ".join(f"`{label}`" for label in plan.new[:3])
        more = f" and {len(plan.new) - 3:,} more" if len(plan.new) > 3 else ""
        notes.append(f"New labels that no row of `{path}` had: {shown}{more}.")
    if before.kind == "npz" and not plan.kept.all() and (others := lined_up(path)):
        names = ", ".join(f"`{name}`" for name in others)
        notes.append(
            f"Rows were dropped from `X` and `y` only; as long as them are also {names}, and "
            "unchanged."
        )
    return notes
