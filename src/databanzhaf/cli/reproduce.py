"""The command `databanzhaf reproduce`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from databanzhaf.cli.signals import one_sentence, terminated_like_interrupted


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(help="Name of an experiment, or all; see --list.", show_default=False),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Share of the paper's number of coalitions; 1 is all of them.")
    ] = 0.1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    datasets: Annotated[
        str | None, typer.Option(help="Datasets to run, separated by commas.")
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(help="Draws of the data for the two tables; 10, or 1 below a scale of 0.1."),
    ] = None,
    image_scale: Annotated[
        float,
        typer.Option(
            help="The largest scale for LeNet and the CNN, which take longest; the network on "
            "image features takes ten times that up to 0.2, and never less than LeNet."
        ),
    ] = 0.02,
    jobs: Annotated[
        int,
        typer.Option(
            help="Processes for the two tables, and for the least core in rank stability; -1 is "
            "one for each core. Numbers do not depend on it."
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Determines the draws, every coalition and every training.")
    ] = 0,
    out: Annotated[
        Path, typer.Option(help="Folder for pages, figures, CSV files and ledgers.")
    ] = Path("results"),
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
) -> None:
    """Reproduce the paper's experiments: a page, a figure and a CSV file for each. Rerun the same
    command to resume.
    """
    stopped = "Stopped. Networks that were trained are kept; rerun the same command to resume."
    with one_sentence(stopped), terminated_like_interrupted(stopped):
        from databanzhaf.errors import InvalidInput, short
        from databanzhaf.experiments import NAMES, Setting, summarise, verdicts
        from databanzhaf.experiments import reproduce as run

        if show or name is None:
            width = max(map(len, NAMES))
            for each, what in NAMES.items():
                typer.echo(f"{each:<{width}}  {what}")
            return
        name = name.strip().lower()
        chosen = (
            None
            if datasets is None
            else tuple(part.strip().lower() for part in datasets.split(",") if part.strip())
        )
        if chosen == ():
            raise InvalidInput(
                "`--datasets` must name some, with commas between them",
                got=short(datasets),
                remedy="Leave it out for all.",
            )
        setting = Setting(
            scale=scale,
            device=device,
            datasets=chosen,
            out=out,
            draws=draws,
            seed=seed,
            image_scale=image_scale,
            jobs=jobs,
            progress=sys.stderr.isatty(),
        )
        if name == "all" and chosen is not None:
            raise InvalidInput(
                "`--datasets` belongs to one experiment",
                got="all",
                remedy="Name the experiment, or leave it out.",
            )
        for each in NAMES if name == "all" else [name]:
            page = run(each, setting)
            typer.echo(f"Written: {page} ({verdicts(page)})")
        typer.echo(f"Written: {summarise(out)}")
