"""What a job leaves: values.csv and run.json, each whole or not at all."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf._version import __version__
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


def write_record(job: Job, out: Path, outcome: dict[str, Any]) -> None:
    """run.json: what would be needed to run it again."""
    from importlib.metadata import version

    packages = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
    record = {
        "databanzhaf": __version__,
        **outcome,
        "settings": asdict(job.settings),
        "players": job.dataset.n_players,
        "training_rows": job.dataset.n_rows,
        "validation_rows": len(job.dataset.y_val),
        "columns_after_encoding": int(job.dataset.X.shape[1]),
        "task": "classification" if job.classifies else "regression",
        "metric": job.metric,
        "notes": list(job.notes),
        "fingerprint": job.game.fingerprint(),
        "files": job.digests,
        "started_in": str(Path.cwd()),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
    write_text(out / "run.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")


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
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise LedgerFailed(f"`{path}` cannot be written ({error.strerror}). Check the folder and the free disk space.") from error
