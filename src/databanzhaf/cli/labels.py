"""The commands about wrong labels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf.cli.options import (
    AsJson,
    Data,
    Decimal,
    Device,
    Drop,
    Encoding,
    Id,
    Separator,
    Target,
    Task,
    Text,
)
from databanzhaf.cli.signals import one_sentence, stops_after_a_batch
from databanzhaf.cli.streams import only_json
from databanzhaf.cli.text import Screen, show_table

if TYPE_CHECKING:
    from databanzhaf.pipeline import LabelJob, LabelResult
    from databanzhaf.tables.rewrite import Rewritten

# Kinds of changes that the terminal lists; --json has all.
MOST_CHANGES = 20


def mislabels(
    data: Data,
    target: Target,
    checked: Annotated[
        Path | None,
        typer.Option(
            help="Table of rows whose labels a person has checked, with the same columns."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Model to judge by, instead of the committee of five: auto (the five), forest, "
            "mlp, logistic, linear, boosting, knn or package.module:factory; may be repeated."
        ),
    ] = None,
    task: Task = "auto",
    id: Id = None,
    drop: Drop = None,
    text: Text = None,
    budget: Annotated[
        int | None,
        typer.Option(
            help="Halves of the rows at most; each trains one model of each kind. By default 300, "
            "fewer for large tables; the run stops earlier when the list has settled."
        ),
    ] = None,
    fdr: Annotated[
        float, typer.Option(help="Share of the flagged rows that may have right labels.")
    ] = 0.2,
    jobs: Annotated[int, typer.Option(help="Processes or threads; -1 is one for each core.")] = -1,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Determines every half and every training.")] = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for mislabels.csv, run.db, run.json and report.html; by default "
            "runs/NAME-labels of the table."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing before the list.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find wrong labels: how likely each row's label is wrong, judged by models that have not seen
    the row. Rerun the same command to resume.
    """
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import pipeline
        from databanzhaf.report import write_review

        source = pipeline.Settings(
            str(data),
            target,
            None if checked is None else str(checked),
            task=task,
            id=id,
            drop=tuple(drop or ()),
            text=tuple(text or ()),
            encoding=encoding,
            separator=separator,
            decimal=decimal,
            jobs=jobs,
            device=device,
            seed=seed,
        )
        settings = pipeline.LabelSettings(source, tuple(model or ("auto",)), budget, fdr)
        folder = out or pipeline.default_folder(data)
        screen = Screen(quiet=as_json)
        job = pipeline.prepare_labels(settings)
        if not quiet:
            _introduce(screen, job)
        with stops_after_a_batch(folder, watch=sys.stderr.isatty() and not quiet) as watch:
            result = pipeline.run_labels(
                job, folder, watch=lambda done, total: watch(done, total, ())
            )
        page = write_review(result, folder)
        if as_json:
            answer(_summary(result, folder, page))
        else:
            _tell_labels(screen, result, folder, page)


def _introduce(screen: Screen, job: LabelJob) -> None:
    source, case = job.settings.source, job.case
    kind = "regression" if case.classes is None else "classification"
    checked = f", with {case.n_checked:,} checked rows" if case.n_checked else ""
    judges = ", ".join(judge.name for judge in case.judges.members)
    screen.print(
        f"{len(case.doubted):,} labels of `{source.target}` to judge{checked}; {kind} by {judges}."
    )
    screen.print(job.read_as)
    screen.print("Every label is judged by models that have not seen its row. Rows count from 0.")
    for note in job.notes:
        screen.print(f"Note: {note}")


def _cell(name: str, cell: Any) -> str:
    if name == "p_wrong" and cell > 0.9999:
        return "> 0.9999"  # nothing is certain
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _tell_labels(screen: Screen, result: LabelResult, folder: Path, page: Path) -> None:
    from databanzhaf.report.review_build import alerts

    found, table = result.found, result.table.sort_values("rank").head(10)
    number = found.classes is None
    names = ["row", *(["id"] if result.job.ids is not None else []), "label"]
    names += ["expected" if number else "suggested", "p_wrong", "flag"]
    rows = [
        [_cell(name, cell) for name, cell in zip(names, line, strict=True)]
        for line in table[names].itertuples(index=False)
    ]
    header = [result.job.settings.source.target if name == "label" else name for name in names]
    title = f"The {len(rows)} most doubtful of {len(found.labels):,} labels"
    show_table(screen, header, rows, f"{title}, {found.n_trainings:,} trainings")
    if kept := found.n_trainings - result.trained:
        what = "Nothing was trained" if not result.trained else f"{result.trained:,} were trained"
        screen.print(f"{what} now: {folder / 'run.db'} had {kept:,} trainings of this run.")
    for alert in alerts(found):
        screen.print(alert)
    for sentence in _verdict(result):
        screen.print(sentence)
    files = ", ".join(str(folder / name) for name in ("mislabels.csv", "run.db", "run.json"))
    screen.print(f"Written: {files}", soft_wrap=True)
    screen.print(f"Open {page} in a browser to review the labels row by row.", soft_wrap=True)
    screen.print(f"To repeat it: {result.job.settings.command(folder)}", soft_wrap=True)


def _verdict(result: LabelResult) -> list[str]:
    """What to think of the list."""
    found = result.found
    if not found.learned:
        return []
    count, n = int(found.flag.sum()), int((~found.known).sum())
    share, low, high = found.share
    said = [f"About {share:.1%} of the labels are wrong (95% interval {low:.1%} to {high:.1%})."]
    if not count:
        return [
            *said,
            "No label is flagged: even among the most doubtful ones, more than "
            f"{found.fdr:.0%} are expected to be right.",
        ]
    wrong = found.expected_wrong(count)
    flagged = "1 is" if count == 1 else f"{count:,} are"
    return [
        *said,
        f"Of {n:,} labels {flagged} flagged; expect about {wrong:,.0f} of them to be wrong. Of 100 "
        f"labels changed at random this list would have found {found.found_of_100:.0f}.",
    ]


def _summary(result: LabelResult, folder: Path, page: Path) -> dict[str, Any]:
    """The result for a program."""
    from databanzhaf.report.review_build import alerts

    found = result.found
    share = dict(zip(("share", "low", "high"), found.share, strict=True))
    flagged = result.table[found.flag].sort_values("rank")
    return {
        "labels": len(found.labels),
        "flagged": json.loads(flagged.to_json(orient="records")),
        "wrong": share if found.learned else None,
        "found_of_100": found.found_of_100,
        "expected_wrong_among_flagged": found.expected_wrong(len(flagged)),
        "learned": found.learned,
        "fdr": found.fdr,
        "trainings": found.n_trainings,
        "judges": list(found.judges),
        "checked_rows": found.n_checked,
        "conflicts": [part.tolist() for part in found.conflicts],
        "notes": [*result.job.notes, *alerts(found)],
        "table": str(folder / "mislabels.csv"),
        "report": str(page),
        "command": result.job.settings.command(folder),
    }


def apply(
    table: Annotated[
        Path,
        typer.Argument(
            help="Table that was reviewed: .csv, .tsv, .parquet or .npz.", show_default=False
        ),
    ],
    decisions: Annotated[
        Path,
        typer.Argument(help="decisions.csv, as the review page saves it.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Option(help="File for the corrected table; it must not exist.", show_default=False),
    ],
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    decimal: Decimal = ".",
    as_json: AsJson = False,
) -> None:
    """Write a corrected copy of a table: decided labels changed, decided rows dropped, and every
    other cell as it was.
    """
    with one_sentence("Stopped; nothing was written."), only_json(as_json) as answer:
        from databanzhaf.tables.decisions import read_decisions
        from databanzhaf.tables.rewrite import rewrite

        how = {"encoding": encoding, "separator": separator, "decimal": decimal}
        done = rewrite(table, read_decisions(decisions), out, **how)  # type: ignore[arg-type]
        if as_json:
            answer(
                {
                    "table": str(table),
                    "out": str(done.out),
                    "decisions": None if done.sidecar is None else str(done.sidecar),
                    "rows": done.rows,
                    "fixed": sum(count for *_, count in done.changes),
                    "dropped": done.dropped,
                    "kept": done.kept,
                    "undecided": done.undecided,
                    "changes": [
                        {"label": old, "new_label": new, "rows": count}
                        for old, new, count in done.changes
                    ],
                    "notes": list(done.notes),
                }
            )
        else:
            _tell(Screen(), done)


def _tell(screen: Screen, done: Rewritten) -> None:
    changed = sum(count for *_, count in done.changes)
    if changed:
        rows = [[old, new, f"{count:,}"] for old, new, count in done.changes[:MOST_CHANGES]]
        show_table(screen, ["label", "new label", "rows"], rows)
        if (more := len(done.changes) - MOST_CHANGES) > 0:
            screen.print(f"... and {more:,} more kinds of changes.")
    screen.print(
        f"{_count(changed, 'label')} changed, {_count(done.dropped, 'row')} dropped, "
        f"{_count(done.kept, 'row')} kept by decision; {_count(done.undecided, 'row')} without a "
        "decision."
    )
    for note in done.notes:
        screen.print(f"Note: {note}")
    screen.print(
        f"Written: {done.out}, {_count(done.rows, 'row')}; every other cell is as it was.",
        soft_wrap=True,
    )
    if done.sidecar is not None:
        screen.print(
            f"Written: {done.sidecar}, which lists the rows of that table whose labels were "
            "checked.",
            soft_wrap=True,
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
