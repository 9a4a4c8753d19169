"""What a job leaves in its folder: files, each whole or not at all, and the table of values."""

from __future__ import annotations

import csv
import os
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from databanzhaf.applications import mislabels
from databanzhaf.errors import InvalidInput, LedgerFailed, check_path
from databanzhaf.jobs.preparing import Job
from databanzhaf.jobs.settings import flag_rule
from databanzhaf.types import Estimate, IntArray

if TYPE_CHECKING:
    import pandas as pd


def flagged(found: Estimate, rule: str) -> IntArray | None:
    """Players that the rule flags; None where it needs standard errors and there are none."""
    options = flag_rule(rule)
    if "fdr" in options and np.isnan(found.std_errors).any():
        return None
    return mislabels(found, **options)


def values_table(job: Job, found: Estimate) -> pd.DataFrame:
    """One line per player: row (or group and rows), id, value, std_error, ci_low, ci_high, rank, flag."""
    table = found.to_frame().reset_index(drop=True).drop(columns="player")
    if job.group_sizes is None:
        table.insert(0, "row", job.rows)
        if job.ids is not None:
            table.insert(1, "id", job.ids)
    else:
        table.insert(0, "group", list(job.dataset.players or ()))
        table.insert(1, "rows", [job.group_sizes[name] for name in job.dataset.players or ()])
    suspects = flagged(found, job.settings.flag)
    flags = np.full(len(table), "", dtype=object)
    flags[[] if suspects is None else suspects] = "suspect"
    return table.assign(flag=flags)


def as_csv(table: pd.DataFrame) -> str:
    """The table as text; names are quoted where one holds a carriage return, which readers take for the end of a line."""
    bare = any("\r" in str(name) for column in ("id", "group") if column in table for name in table[column])
    return table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL)


def make_folder(out: Path) -> None:
    check_path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder `{out}` cannot be made ({error.strerror}). Give another --out.") from error
    if not os.access(out, os.W_OK):
        raise InvalidInput(f"the folder `{out}` cannot be written to. Give another --out, or change its permissions.")


def check_not_ours(path: Path, files: list[Path | str | None]) -> None:
    """A result must not take the place of what it is made from."""
    if path.exists() and any(file is not None and Path(file).exists() and path.samefile(file) for file in files):
        raise InvalidInput(f"`{path}` is what the values are made from, and would be written over. Give another --out.")


def write_text(path: Path, text: str) -> None:
    """All or nothing: write to a temporary name beside it, then rename."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:  # with the permissions of any new file of the user's
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise LedgerFailed(f"`{path}` cannot be written ({error.strerror}). Check the folder and the free disk space.") from error
