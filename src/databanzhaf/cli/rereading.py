"""Commands that read a run again: another notion or metric, and its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from databanzhaf.cli.options import AsJson, Metric, Notion
from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.streams import only_json
from databanzhaf.cli.text import Screen, summary, tell
from databanzhaf.progress import Bar


def estimate(
    ledger: Annotated[
        Path, typer.Argument(help="run.db of a `databanzhaf value` run.", show_default=False)
    ],
    notion: Notion = "banzhaf",
    metric: Metric = None,
    model: Annotated[
        str | None,
        typer.Option(help="Model of the run; needed if it is your own and --metric is given."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="CSV file; values-NOTION[-METRIC].csv beside the ledger by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute another notion or metric from the same run; nothing is trained."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import pipeline

        with Bar.shown(not as_json and sys.stderr.isatty()) as bar:

            def watch(done: int, total: int) -> None:
                bar(done, total, ())

            result = pipeline.reread(ledger, notion=notion, metric=metric, model=model, watch=watch)
        folder = ledger if ledger.is_dir() else ledger.parent
        name = pipeline.table_name(result.estimate.notion, metric)
        path, settings = out or folder / name, result.job.settings
        inputs: list[Path | str | None] = [
            folder / "run.db" if ledger.is_dir() else ledger,
            folder / "run.json",
            settings.data,
            settings.validation,
        ]
        pipeline.check_not_input(path, inputs)
        pipeline.write_table(path, result.table)
        if as_json:
            answer({**summary(result, folder), "values": str(path)})
        else:
            screen = Screen()
            tell(screen, result)
            screen.print(f"Written: {path}", soft_wrap=True)


def report(
    ledger: Annotated[
        Path,
        typer.Argument(
            help="run.db of a `databanzhaf value` run, or its folder.", show_default=False
        ),
    ],
) -> None:
    """Write report.html beside a run's ledger; nothing is trained."""
    with one_sentence():
        from databanzhaf import pipeline
        from databanzhaf.report import write_report

        result = pipeline.reread(ledger, as_recorded=True)
        path = write_report(result, ledger if ledger.is_dir() else ledger.parent)
        Screen().print(f"Written: {path}", soft_wrap=True)
