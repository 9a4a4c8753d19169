"""Commands that read a run again: another notion or metric, and its report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from databanzhaf.cli.options import AsJson, Metric, OtherNotions
from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.streams import only_json
from databanzhaf.cli.text import Screen, summary, tell
from databanzhaf.progress import Bar


def estimate(
    ledger: Annotated[
        Path, typer.Argument(help="run.db of a `databanzhaf value` run.", show_default=False)
    ],
    notion: OtherNotions = "banzhaf",
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
    """Compute other notions or another metric from the same run; nothing is trained."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import pipeline
        from databanzhaf.errors import InvalidInput
        from databanzhaf.notions import all_named, each_of

        names = [each.name for each in each_of(all_named(notion))]
        if out is not None and len(names) > 1:
            raise InvalidInput(
                "--out names the file of one notion",
                got=f"--notion {', '.join(names)}",
                remedy="Drop --out, or give one notion.",
            )
        folder = ledger if ledger.is_dir() else ledger.parent
        said: list[dict[str, Any]] = []
        for name in names:
            result = _reread(ledger, name, metric, model, bar=not as_json)
            path = out or folder / pipeline.table_name(result.estimate.notion, metric)
            settings = result.job.settings
            inputs: list[Path | str | None] = [
                folder / "run.db" if ledger.is_dir() else ledger,
                folder / "run.json",
                settings.data,
                settings.validation,
            ]
            pipeline.check_not_input(path, inputs)
            pipeline.write_table(path, result.table)
            said.append({**summary(result, folder, reread=True), "values": str(path)})
            if not as_json:
                screen = Screen()
                tell(screen, result, reread=True)
                screen.print(f"Written: {path}", soft_wrap=True)
        if as_json:
            first, *others = said
            answer({**first, "other_values": [each["values"] for each in others]})


def _reread(ledger: Path, notion: str, metric: str | None, model: str | None, *, bar: bool) -> Any:
    from databanzhaf import pipeline

    with Bar.shown(bar and sys.stderr.isatty()) as shown:

        def watch(done: int, total: int) -> None:
            shown(done, total, ())

        return pipeline.reread(ledger, notion=notion, metric=metric, model=model, watch=watch)


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
