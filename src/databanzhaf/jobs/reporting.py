"""A job and its ledger → what a report shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf import trust
from databanzhaf.applications import Curve
from databanzhaf.jobs.outputs import flagged, values_table, write_text
from databanzhaf.jobs.preparing import Job
from databanzhaf.jobs.record import Record, read_record
from databanzhaf.jobs.running import recorded
from databanzhaf.ledger import Ledger
from databanzhaf.notions import named
from databanzhaf.report import Content, Series, Table, describe, render
from databanzhaf.report.content import cell, unsteady
from databanzhaf.report.picture import data_address, is_image
from databanzhaf.run import design_of, history, read_evaluations
from databanzhaf.types import Estimate, Evaluations

# Pictures of the lowest and of the highest values; more would make the page heavy.
LOWEST_PICTURES, HIGHEST_PICTURES = 300, 50
MOST_COLUMNS = 40
MOST_GROUPS = 40
# The table has the lowest values only, if there are more: a browser would not open the page.
MOST_LINES = 5000


@dataclass(frozen=True, eq=False)
class Seen:
    """A look into a run's ledger: the evaluations behind values.csv, how long they took, and how far to trust them."""

    evaluations: Evaluations
    seconds: float
    trust: trust.Trust
    record: Record


def look(job: Job, folder: Path) -> Seen:
    record = read_record(folder)
    with Ledger(folder / "run.db") as ledger:
        evaluations = recorded(read_evaluations(ledger), record)
        seconds = ledger.seconds()
    return Seen(evaluations, seconds, trust.examine(evaluations, named(job.settings.notion)), record)


def write_report(job: Job, found: Estimate, seen: Seen, folder: Path) -> Path:
    """Write report.html beside the ledger."""
    path = folder / "report.html"
    write_text(path, render(content(job, found, seen, folder)))
    return path


def content(job: Job, found: Estimate, seen: Seen, folder: Path) -> Content:
    notion = named(job.settings.notion)
    who = "rows" if job.group_sizes is None else "groups"
    suspects = flagged(found, job.settings.flag)
    grouped_by = _grouping(job)
    groups = None if grouped_by is None else _labels(job.table[grouped_by])
    low, high = found.interval(0.95)
    score, metric = job.metric, "mean probability of the true class" if job.metric == "probability" else job.metric
    return Content(
        title=f"The value of the {who} of {Path(job.settings.data).name}",
        subject=f"{found.notion.capitalize()} values of {len(found.values):,} {who} for predicting {job.settings.target} "
        f"by {job.settings.model}, "
        f"scored by {metric} on {len(job.dataset.y_val):,} validation rows.",
        who=who,
        rule=job.settings.flag,
        alerts=describe(found, suspects, seen.trust, who, rule=job.settings.flag, groups=groups),
        names=_names(job),
        values=found.values,
        low=low,
        high=high,
        suspects=np.empty(0, np.int64) if suspects is None else suspects,
        classes=[str(label) for label in job.labels] if job.classifies and job.group_sizes is None else None,
        groups=groups,
        grouped_by=grouped_by,
        table=_table(job, found),
        series=_series(seen.evaluations, notion.name),
        trust=seen.trust,
        curve=_curve(folder, found.n_evaluations),
        facts={
            f"{who} valued": f"{len(found.values):,}",
            "suspects": "unknown" if suspects is None else f"{len(suspects):,}",
            "evaluations": f"{found.n_evaluations:,}",
            "median standard error": f"{np.median(found.std_errors):.2g}" if np.isfinite(found.std_errors).all() else "unknown",
            "training time": f"{seen.seconds:,.1f} s",
            **_scores(seen.record, score),
        },
        settings=_settings(seen.record, job),
    )


def _names(job: Job) -> list[str]:
    if job.group_sizes is not None:
        return [str(name) for name in job.dataset.players or ()]
    return (
        [f"row {row}" for row in job.rows]
        if job.ids is None
        else [f"{name} (row {row})" for row, name in zip(job.rows, job.ids, strict=True)]
    )


def _grouping(job: Job) -> str | None:
    """A column that is no feature and groups the rows: the first that --drop names and that has few values."""
    if job.group_sizes is not None:
        return None
    return next((name for name in job.settings.drop if 1 < job.table[name].map(str).nunique() <= MOST_GROUPS), None)


def _labels(column: Any) -> list[str]:
    return ["(missing)" if gone else str(value) for value, gone in zip(column, column.isna(), strict=True)]


def warnings_of(job: Job, seen: Seen) -> list[str]:
    """What the report warns of, for those who read the screen only."""
    settings = job.settings
    warnings = unsteady(seen.trust, "rows" if job.group_sizes is None else "groups")
    if settings.estimator == "auto" and settings.until is None and seen.evaluations.design.size is None:
        fresh = design_of(named(settings.notion), job.dataset.n_players, settings.budget, settings.seed)
        if fresh.size is not None:
            warnings.append(f"This run goes on as it began, with random coalitions; a new --out would take all {fresh.size:,} of them.")
    return warnings


def _table(job: Job, found: Estimate) -> Table:
    players = np.sort(found.ranking()[:MOST_LINES])
    values = values_table(job, found).iloc[players]
    shape = tuple(job.table.attrs.get("shape", ()))
    shows_pictures = is_image(shape) and job.group_sizes is None
    who = [name for name in ("row", "id", "group", "rows") if name in values.columns]
    parts = [values[who], values[["flag", "value", "std_error", "ci_low", "ci_high", "rank"]]]
    if job.group_sizes is None:
        # Who it is, what label it has and whether it is suspect come first: a phone shows no more. Then the first columns of the table.
        table, target = job.table.iloc[players], job.settings.target
        others = [] if shows_pictures else [name for name in table.columns if name not in (target, job.settings.id)]
        parts = [parts[0], table[[target]], parts[1], table[others[: MOST_COLUMNS - 1]]]
    columns = [str(name) for part in parts for name in part.columns]
    rows = [list(row) for row in zip(*([cell(value) for value in part[name]] for part in parts for name in part.columns), strict=True)]
    return Table(columns, rows, players.tolist(), _pictures(job, found, shape) if shows_pictures else {})


def _pictures(job: Job, found: Estimate, shape: tuple[int, ...]) -> dict[int, str]:
    order = found.ranking()
    pixels = job.table.drop(columns=job.settings.target).iloc[:, : int(np.prod(shape))]
    shown = np.unique(np.concatenate([order[:LOWEST_PICTURES], order[:MOST_LINES][-HIGHEST_PICTURES:]]))
    return {int(player): data_address(pixels.iloc[int(player)].to_numpy().reshape(shape)) for player in shown}


def _series(evaluations: Evaluations, notion: str) -> Series | None:
    """Estimates at the checkpoints, from the evaluations that the ledger has."""
    if evaluations.design.size is not None or not len(evaluations.indices):
        return None
    checkpoints = history(evaluations, notion)
    if len(checkpoints) < 2:
        return None
    return Series(
        [each.estimate.n_evaluations for each in checkpoints],
        [_finite(float(np.median(each.estimate.std_errors))) for each in checkpoints],
        [_finite(each.stability) for each in checkpoints],
    )


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _scores(record: Record, metric: str) -> dict[str, str]:
    """How good the model is at all: its score with all rows, and that of guessing."""
    known = record.scores
    return {} if known is None else {f"{metric} with all rows; with none": f"{known['all']:.3f}; {known['none']:.3f}"}


def _curve(folder: Path, evaluations: int) -> Curve | None:
    """The removal curve, if it was made, and for these values."""
    try:
        stored = json.loads((folder / "curve.json").read_text(encoding="utf-8"))
        if stored["evaluations"] != evaluations:
            return None
        counts, utility, random = (np.array(stored[name], dtype=np.float64) for name in ("counts", "utility", "random"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    alike = counts.ndim == 1 and counts.shape == utility.shape and random.ndim == 2 and random.shape[1] == len(counts)
    return Curve(counts.astype(np.int64), utility, random, "removed", True) if alike and len(counts) else None


def _settings(record: Record, job: Job) -> dict[str, str]:
    """As they were typed: the files are those that `record.files` names, wherever they were found."""
    typed = dict(zip(("data", "validation"), record.files, strict=False))
    settings = {name: value for name, value in {**asdict(job.settings), **typed}.items() if value not in (None, (), "")}
    files = {f"sha256 of {name}": digest for name, digest in record.files.items()}
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    shown = {**settings, **files, "databanzhaf": record.databanzhaf, "versions": versions}
    return {name: ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value) for name, value in shown.items()}
