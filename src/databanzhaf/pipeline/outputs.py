"""The folder of a job: what may be written there, and as what."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.applications import Curve
from databanzhaf.errors import InvalidInput, check_path
from databanzhaf.files import write_text
from databanzhaf.protocols import Notion

if TYPE_CHECKING:
    import pandas as pd


def write_table(path: Path, table: pd.DataFrame) -> None:
    """As CSV; names are quoted where one holds a carriage return, which readers take for the end of
    a line.
    """
    named = [table[column] for column in ("id", "group") if column in table]
    bare = any("\r" in str(name) for column in named for name in column)
    how: dict[str, Any] = {"quoting": csv.QUOTE_NONNUMERIC if bare else csv.QUOTE_MINIMAL}
    write_text(path, table.to_csv(index=False, **how))


def table_name(notion: Notion, metric: str | None = None) -> str:
    """The file of the values of another notion or metric: values-beta-16-1-accuracy.csv."""
    parts = re.findall(r"[\w.]+", notion.name)
    return "-".join(["values", *parts, *([metric] if metric else [])]) + ".csv"


def write_curve(path: Path, curve: Curve, values: dict[str, Any]) -> None:
    """The removal curve, and which values it belongs to."""
    parts = {"counts": curve.counts, "utility": curve.utility, "random": curve.random}
    stored = {name: part.tolist() for name, part in parts.items()}
    write_text(path, json.dumps({"of": values, **stored}) + "\n")


def read_curve(path: Path, values: dict[str, Any]) -> Curve | None:
    """The curve that `write_curve` wrote, if it is there, whole, and of these values."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["of"] != values:
            return None
        names = ("counts", "utility", "random")
        counts, utility, random = (np.array(stored[name], dtype=np.float64) for name in names)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    alike = counts.ndim == 1 and counts.shape == utility.shape
    if not alike or not len(counts) or random.ndim != 2 or random.shape[1] != len(counts):
        return None
    return Curve(counts.astype(np.int64), utility, random, "removed", True)


def make_folder(out: Path) -> None:
    check_path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"the folder `{out}` cannot be made ({error.strerror})", remedy="Give another --out."
        ) from error
    if not os.access(out, os.W_OK):
        raise InvalidInput(
            f"the folder `{out}` cannot be written to",
            remedy="Give another --out, or change its permissions.",
        )


def check_not_input(path: Path, files: list[Path | str | None]) -> None:
    """A result must not overwrite what it is made from."""
    if path.is_dir():
        raise InvalidInput(f"`{path}` is a folder", remedy="Give the name of a file.")
    there = [Path(file) for file in files if file is not None and Path(file).exists()]
    if path.exists() and any(path.samefile(file) for file in there):
        raise InvalidInput(
            f"`{path}` is what the values are made from, and would be overwritten",
            remedy="Give another --out.",
        )
