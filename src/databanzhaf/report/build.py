"""Result → what a report shows, and its file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.diagnostics import Checkpoint
from databanzhaf.files import write_text
from databanzhaf.pipeline import Job, Result, Settings
from databanzhaf.pipeline.notes import no_better_than_guessing, one_class
from databanzhaf.protocols import IntArray
from databanzhaf.report.content import Content, Series, Table, cell, describe
from databanzhaf.report.evidence import evidence_of
from databanzhaf.report.page import render
from databanzhaf.report.picture import data_address, is_image

# Pictures of the lowest and of the highest values; more would make the page heavy.
LOWEST_PICTURES, HIGHEST_PICTURES = 300, 50
MOST_COLUMNS = 40
MOST_GROUPS = 40
# The table has the lowest values only, if there are more: a browser would not open the page.
MOST_LINES = 5000


def write_report(result: Result, folder: Path) -> Path:
    """Write report.html beside the ledger."""
    path = folder / "report.html"
    write_text(path, render(content_of(result, folder)))
    return path


def content_of(result: Result, folder: Path) -> Content:
    """Everything that the page of a result in this folder shows."""
    job, estimate, suspects = result.job, result.estimate, result.suspects
    settings, who = job.settings, job.who
    grouped_by = _grouping(job)
    groups = None if grouped_by is None else _labels(job.table[grouped_by])
    low, high = estimate.interval(0.95)
    plain = job.metric == "probability"
    metric = "mean probability of the true class" if plain else job.metric
    rows_have_classes = job.classifies and job.group_sizes is None
    listed = np.sort(estimate.ranking()[:MOST_LINES])
    return Content(
        title=f"The value of the {who} of {Path(settings.data).name}",
        subject=f"{estimate.notion.name.capitalize()} values of {len(estimate.values):,} {who} for "
        f"predicting {settings.target} by {settings.model}, scored by {metric}, judged by "
        f"{job.judges}.",
        who=who,
        rule=settings.flag,
        alerts=[
            *no_better_than_guessing(result.record.scores, who),
            *describe(estimate, suspects, result.trust, who, rule=settings.flag, groups=groups),
            *(one_class(job.labels, suspects, job.metric) if rows_have_classes else ()),
        ],
        names=_names(job),
        values=estimate.values,
        low=low,
        high=high,
        suspects=np.empty(0, np.int64) if suspects is None else suspects,
        classes=[str(label) for label in job.labels] if rows_have_classes else None,
        groups=groups,
        grouped_by=grouped_by,
        table=_table(result, listed),
        series=_series(result.checkpoints),
        trust=result.trust,
        fit=estimate.fit,
        curve=result.curve,
        facts=_facts(result),
        settings=_settings(result, folder),
        evidence=evidence_of(result, listed, lambda players: _cells(result, players)[1]),
        closed=job.closed,
    )


def _facts(result: Result) -> dict[str, str]:
    estimate, suspects, scores = result.estimate, result.suspects, result.record.scores
    errors = estimate.errors.std_errors
    known = errors[np.isfinite(errors)]
    unknown = f" ({len(errors) - len(known):,} unknown)" if len(known) < len(errors) else ""
    which = "" if estimate.population is None else ", run and jury"
    facts = {
        f"{result.job.who} valued": f"{len(estimate.values):,}",
        "suspects": "unknown" if suspects is None else f"{len(suspects):,}",
        "rows that judged": f"{len(result.job.dataset.y_val):,}",
        f"median standard error{which}": f"{np.median(known):.2g}{unknown}"
        if len(known)
        else "unknown",
    }
    if result.evaluations is not None:
        facts["evaluations"] = f"{estimate.n_evaluations:,}"
        facts["training time"] = f"{result.seconds:,.1f} s"
    if scores is not None:
        model = (
            "a model" if result.evaluations is not None else f"{result.job.neighbors} neighbours"
        )
        name = f"{result.job.metric} of {model}; of a guess"
        facts[name] = f"{scores['all']:.3f}; {scores['none']:.3f}"
    return facts


def _names(job: Job) -> list[str]:
    if job.group_sizes is not None:
        return [str(name) for name in job.dataset.players or ()]
    if job.ids is None:
        return [f"row {row}" for row in job.rows]
    return [f"{name} (row {row})" for row, name in zip(job.rows, job.ids, strict=True)]


def _grouping(job: Job) -> str | None:
    """A column that is not a feature and groups the rows: the first that --drop names and that has
    few values.
    """
    if job.group_sizes is not None:
        return None
    counts = ((name, job.table[name].map(str).nunique()) for name in job.settings.drop)
    return next((name for name, count in counts if 1 < count <= MOST_GROUPS), None)


def _labels(column: Any) -> list[str]:
    missing = column.isna()
    return [
        "(missing)" if gone else str(value) for value, gone in zip(column, missing, strict=True)
    ]


def _table(result: Result, players: IntArray) -> Table:
    columns, rows = _cells(result, players)
    shape = _shape(result)
    pictures = {} if shape is None else _pictures(result, shape)
    return Table(columns, rows, players.tolist(), pictures)


def _shape(result: Result) -> tuple[int, ...] | None:
    """That of the rows' pictures, if rows are pictures."""
    shape = tuple(result.job.table.attrs.get("shape", ()))
    return shape if is_image(shape) and result.job.group_sizes is None else None


def _cells(result: Result, players: IntArray) -> tuple[list[str], list[list[Any]]]:
    """The columns of the table, and the lines of some players."""
    job, settings = result.job, result.job.settings
    values = result.table.iloc[players]
    names = ["row", "id", "group", "rows", *(["label"] if job.who == "clusters" else [])]
    who = [name for name in names if name in values.columns]
    # The standard error that belongs to the interval.
    both = "std_error_population"
    error = both if both in values.columns else "std_error"
    numbers = ["flag", "value", error, "ci_low", "ci_high", "rank"]
    parts = [values[who], values[numbers].map(_short)]
    if job.group_sizes is None:
        # Who it is, what label it has and whether it is suspect come first: a phone shows no more.
        # Then the first columns of the table.
        table, special = job.table.iloc[players], (settings.target, settings.id)
        pictures = _shape(result) is not None
        others = [] if pictures else [name for name in table.columns if name not in special]
        parts = [parts[0], table[[settings.target]], parts[1], table[others[: MOST_COLUMNS - 1]]]
    columns = [(part, name) for part in parts for name in part.columns]
    cells = ([cell(value) for value in part[name]] for part, name in columns)
    return [str(name) for _, name in columns], [list(row) for row in zip(*cells, strict=True)]


def _short(value: Any) -> Any:
    """A number of ours in seven digits, as in the charts: values.csv has all of them."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _pictures(result: Result, shape: tuple[int, ...]) -> dict[int, str]:
    job, order = result.job, result.estimate.ranking()
    pixels = job.table.drop(columns=job.settings.target).iloc[:, : int(np.prod(shape))]
    ends = order[:LOWEST_PICTURES], order[:MOST_LINES][-HIGHEST_PICTURES:]
    return {
        int(player): data_address(pixels.iloc[int(player)].to_numpy().reshape(shape))
        for player in np.unique(np.concatenate(ends))
    }


def _series(checkpoints: Sequence[Checkpoint]) -> Series | None:
    """How the run went, if it stopped on the way."""
    if len(checkpoints) < 2:
        return None
    return Series(
        [each.estimate.n_evaluations for each in checkpoints],
        [_finite(float(np.median(each.estimate.std_errors))) for each in checkpoints],
        [_finite(each.stability) for each in checkpoints],
    )


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def _settings(result: Result, folder: Path) -> dict[str, str]:
    """As they were typed: the files are those that `record.files` names, wherever they
    were found.
    """
    record, notes = result.record, enumerate(result.job.notes, 1)
    files = {f"sha256 of {name}": digest for name, digest in record.files.items()}
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return {
        "command": command(result, folder),
        **{f"note {number}": note for number, note in notes},
        **files,
        "databanzhaf": record.databanzhaf,
        "versions": versions,
    }


def command(result: Result, folder: Path) -> str:
    """What to type to make the run again: every setting that is not the default, and the folder if
    it is another. Of an absolute path only the name: a report tells nobody where it was made.
    """
    typed = dict(zip(("data", "validation"), result.record.files, strict=False))
    words = {**result.job.settings.words(), **typed}
    usual = Settings("", "").words()
    command = ["databanzhaf", "value", words.pop("data")]
    for name, value in words.items():
        if value != usual[name]:
            option = f"--{name.replace('_', '-')}"
            for each in value if isinstance(value, tuple) else [value]:
                command += [option, str(each)]
    command += ["--curve"] if result.curve is not None else []
    place = Path(folder.name) if folder.is_absolute() else folder
    if place != Path("runs") / Path(command[2]).name.split(".")[0]:
        command += ["--out", str(place)]
    return shlex.join(command)
