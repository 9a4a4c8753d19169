"""run.json: what a run was, written beside its ledger; read again with every field checked, since
anybody may have edited it.
"""

from __future__ import annotations

import json
import math
import os
import platform
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from databanzhaf._version import __version__
from databanzhaf.errors import InvalidInput, short
from databanzhaf.estimate import Estimate
from databanzhaf.files import write_text
from databanzhaf.pipeline import closed
from databanzhaf.pipeline.preparing import Job
from databanzhaf.pipeline.settings import Settings
from databanzhaf.pipeline.standing import Start
from databanzhaf.tables import file_digest


@dataclass(frozen=True)
class Record:
    """The fields of run.json that are read again. A run that did not finish has no numbers."""

    settings: Settings
    files: dict[str, str]
    versions: dict[str, str]
    fingerprint: dict[str, str]
    databanzhaf: str
    estimator: str | None = None
    evaluations: int | None = None
    repeats: int | None = None
    scores: dict[str, float] | None = None

    @property
    def closed(self) -> bool:
        """Whether the values are a closed form, and there is no ledger."""
        return self.estimator == closed.ESTIMATOR

    @property
    def shape(self) -> tuple[int, int] | None:
        """Coalitions and repeats that the values were made of; None if the run did not finish."""
        if self.evaluations is None or self.repeats is None:
            return None
        return self.evaluations // self.repeats, self.repeats


def make_record(
    job: Job, estimate: Estimate | None = None, scores: dict[str, float] | None = None
) -> Record:
    """Of a job that begins, or that has its estimate."""
    return Record(
        job.settings,
        job.digests,
        versions(),
        job.game.fingerprint(),
        __version__,
        None if estimate is None else estimate.estimator.name,
        None if estimate is None else estimate.n_evaluations,
        None if estimate is None else len(estimate.values_by_repeat),
        scores,
    )


def versions() -> dict[str, str]:
    """Of Python and of the packages that numbers depend on."""
    from importlib.metadata import version

    packages = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def machine() -> dict[str, Any]:
    """Where a run was made, as far as it may be told."""
    return {
        "system": platform.system(),
        "processor": platform.machine(),
        "cores": os.cpu_count(),
    }


def write_record(
    job: Job,
    record: Record,
    out: Path,
    *,
    status: str,
    start: Start | None,
    times: dict[str, float] | None = None,
) -> None:
    """run.json: what would be needed to run it again."""
    finished = {
        "scores": record.scores,
        "evaluations": record.evaluations,
        "repeats": record.repeats,
        "estimator": record.estimator,
        **(times or {}),
    }
    written = {
        "databanzhaf": record.databanzhaf,
        "status": status,
        "start": None if start is None else start.words(),
        **(finished if status == "finished" else {}),
        "settings": record.settings.words(),
        "players": job.dataset.n_players,
        "training_rows": job.dataset.n_rows,
        "judging_rows": len(job.dataset.y_val),
        "judged": "across" if job.across else "by validation rows",
        "columns_after_encoding": int(job.dataset.X.shape[1]),
        "task": "classification" if job.classifies else "regression",
        "metric": job.metric,
        "notes": list(job.notes),
        "fingerprint": record.fingerprint,
        "files": record.files,
        "started_in": _way_back(out),
        "versions": record.versions,
        "machine": machine(),
    }
    text = json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(out / "run.json", text + "\n")


def earlier_record(out: Path, job: Job) -> Record | None:
    """What an earlier command noted for this very game and seed; None without one."""
    try:
        record = read_record(out)
    except InvalidInput:
        return None
    same = record.fingerprint == job.game.fingerprint()
    return record if same and record.settings.seed == job.settings.seed else None


def _way_back(out: Path) -> str | None:
    """The way from the run's folder to where the command was given, if that needs no folder's name,
    which would tell where it was.
    """
    try:
        way = os.path.relpath(Path.cwd(), out)
    except ValueError:  # another drive
        return None
    return way if set(Path(way).parts) <= {os.pardir} else None


def read_record(folder: Path) -> Record:
    """The record of the run in a folder; the tables that it names are those with the digests that
    it notes, where they can be found.
    """
    path = folder / "run.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(stored, ensure_ascii=False).encode()  # what no file can hold is no text
    except FileNotFoundError as error:
        raise InvalidInput(
            f"there is no `{path}`, which says how the run was made",
            remedy="Give the run.db of a `databanzhaf value` run.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"`{path}` cannot be read ({short(error)})",
            remedy="Run `databanzhaf value` again to write it.",
        ) from error
    try:
        return _checked(stored, folder)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(
            f"`{path}` is not as `databanzhaf value` wrote it: {_reason(error)}",
            remedy="Run `databanzhaf value` again to write it.",
        ) from error


def _checked(stored: Any, folder: Path) -> Record:
    _need(isinstance(stored, dict), "it is no JSON object")
    if stored.get("command") == "mislabels":
        raise InvalidInput(
            "the folder must be that of a `databanzhaf value` run",
            got=f"`{folder}`, which `databanzhaf mislabels` wrote",
            remedy="Rerun that command to write its report again; nothing is trained twice.",
        )
    files, versions = _texts(stored, "files"), _texts(stored, "versions")
    scores = stored.get("scores")
    if scores is not None:
        _need(
            isinstance(scores, dict) and all(_number(scores.get(name)) for name in ("all", "none")),
            "`scores` holds no numbers",
        )
    counts = {name: stored.get(name) for name in ("evaluations", "repeats")}
    for name, count in counts.items():
        least = 0 if stored.get("estimator") == closed.ESTIMATOR else 1
        known = count is None or (type(count) is int and count >= least)
        _need(known, f"`{name}` is {short(count)}")
    started_in = stored.get("started_in")
    _need(started_in is None or isinstance(started_in, str), f"`started_in` is {short(started_in)}")
    settings = _settings(stored["settings"])
    found = {
        name: _same_file(path, None if started_in is None else folder / started_in, files.get(path))
        for name, path in (("data", settings["data"]), ("validation", settings["validation"]))
        if path is not None
    }
    return Record(
        Settings.parse({**settings, **found}),
        files,
        versions,
        _texts(stored, "fingerprint"),
        str(stored.get("databanzhaf", "unknown")),
        _text(stored, "estimator"),
        **counts,
        scores=scores,
    )


def _settings(stored: Any) -> dict[str, Any]:
    """The settings by name, each of its kind; those that an older version did not have by their
    default.
    """
    _need(isinstance(stored, dict), "`settings` is no JSON object")
    # Parsed settings are stored as words.
    kinds = {**get_type_hints(Settings), "notion": str, "flag": str, "until": str | None}
    known = {each.name for each in fields(Settings)}
    _need(
        set(stored) <= known,
        f"`settings` has {short(sorted(set(stored) - known))}, which this version does not know",
    )
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    for name, value in given.items():
        _need(_fits(value, kinds[name]), f"`{name}` is {short(value)}")
    return {"validation": None, **given}


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(kind, UnionType):
        return any(_fits(value, each) for each in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(isinstance(part, str) for part in value)
    return _number(value) if kind is float else type(value) is kind


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _texts(stored: dict[str, Any], name: str) -> dict[str, str]:
    found = stored.get(name, {})
    _need(
        isinstance(found, dict) and all(isinstance(value, str) for value in found.values()),
        f"`{name}` is {short(found)}",
    )
    return found  # type: ignore[no-any-return]


def _text(stored: dict[str, Any], name: str) -> str | None:
    found = stored.get(name)
    _need(found is None or isinstance(found, str), f"`{name}` is {short(found)}")
    return found


def _need(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _reason(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _same_file(path: str, home: Path | None, digest: str | None) -> str:
    """The table that a run read: from here or from where it was started, whichever is the same;
    else as it was named.
    """
    there = [
        str(each)
        for each in (None if home is None else home / path, Path(path))
        if each is not None and each.is_file()
    ]
    return next(
        (each for each in there if file_digest(each) == digest), there[0] if there else path
    )
