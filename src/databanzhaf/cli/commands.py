"""The shell: arguments → pipeline, and what a person reads."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf._version import __version__
from databanzhaf.cli.explain import explain
from databanzhaf.cli.labels import apply, mislabels
from databanzhaf.cli.ledgers import ledgers
from databanzhaf.cli.live import watch
from databanzhaf.cli.options import (
    AsJson,
    Budget,
    Cluster,
    Clusters,
    Data,
    Decimal,
    Device,
    Drop,
    Encoding,
    Flag,
    Fraction,
    Groups,
    How,
    Id,
    Jobs,
    Keep,
    Metric,
    Model,
    Notions,
    Open,
    Repeats,
    Seed,
    Separator,
    Target,
    Task,
    Text,
    Timeout,
    Until,
    Validation,
)
from databanzhaf.cli.reproduce import reproduce
from databanzhaf.cli.rereading import estimate, report
from databanzhaf.cli.shards import Shard, evaluate_shard, numbers_of
from databanzhaf.cli.signals import one_sentence, stops_after_a_batch, stops_after_the_values
from databanzhaf.cli.small import doctor, example, margin
from databanzhaf.cli.streams import only_json, patient_streams, say
from databanzhaf.cli.text import (
    Screen,
    decimals,
    duration,
    in_bytes,
    introduce,
    show_table,
    summary,
    tell,
    tell_files,
)
from databanzhaf.kernels.compiling import WORDS, listen

if TYPE_CHECKING:
    from databanzhaf.diagnostics import Checkpoint
    from databanzhaf.pipeline import Job, Result, Settings
    from databanzhaf.progress import Watcher

# Evaluations after which a run says what it will be worth.
PILOT = 200
# From so many players on the values take seconds after the last evaluation.
MANY_PLAYERS = 2000

app = typer.Typer(
    name="databanzhaf",
    help="Which of my training rows help, which hurt, which labels are wrong, and how sure?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def value(
    data: Data,
    target: Target,
    validation: Validation = None,
    validation_fraction: Fraction = None,
    model: Model = "forest",
    task: Task = "auto",
    metric: Metric = None,
    groups: Groups = None,
    clusters: Clusters = None,
    open: Open = None,
    id: Id = None,
    drop: Drop = None,
    text: Text = None,
    notion: Notions = "banzhaf",
    estimator: How = "auto",
    budget: Budget = 5000,
    repeats: Repeats = None,
    until: Until = None,
    flag: Flag = "fdr:0.05",
    keep: Keep = "auto",
    jobs: Jobs = -1,
    cluster: Cluster = None,
    timeout: Timeout = None,
    device: Device = "auto",
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for values.csv, run.db, run.json and report.html; by default runs/NAME of "
            "the table."
        ),
    ] = None,
    shard: Shard = None,
    curve: Annotated[
        bool,
        typer.Option(
            "--curve", help="Also retrain without the lowest values: does removing them help?"
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print nothing before the values.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give every training row (or group of rows) a value. Rerun the same command to resume."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import pipeline
        from databanzhaf.errors import InvalidInput, LedgerMismatch

        settings = _settings(locals())
        if curve and settings.open:
            raise InvalidInput(
                "--curve removes rows from all of a table, and --open leaves most in clusters",
                remedy="Leave one of them out.",
            )
        folder = out or Path("runs") / data.name.split(".")[0]
        screen = Screen(quiet=as_json)
        if shard is not None:
            said = evaluate_shard(settings, folder, numbers_of(shard), screen, curve=curve)
            if as_json:
                answer(said)
            return
        shown = {"curve": curve, "quiet": quiet, "as_json": as_json}
        result, said = _value_once(settings, folder, screen, **shown)
        if settings.clusters is not None and not settings.open:
            following = pipeline.worst_clusters(result, folder / "worst")
            rows = int(result.table.loc[result.table["group"].isin(following.open), "rows"].sum())
            screen.print(
                f"\nNext, the {rows:,} rows of the {len(following.open):,} clusters with the "
                "lowest value per row are valued one by one.\n"
            )
            shown["curve"] = False  # rows of some clusters cannot be removed from all
            try:
                said["worst"] = _value_once(following, folder / "worst", screen, **shown)[1]
            except (InvalidInput, LedgerMismatch) as error:  # the values of the clusters are there
                say(f"The rows of the worst clusters have no values: {error}")
                said["worst"] = {"error": str(error)}
        if as_json:
            answer(said)


@app.command()
def plan(
    data: Data,
    target: Target,
    validation: Validation = None,
    validation_fraction: Fraction = None,
    model: Model = "forest",
    task: Task = "auto",
    metric: Metric = None,
    groups: Groups = None,
    clusters: Clusters = None,
    id: Id = None,
    drop: Drop = None,
    text: Text = None,
    notion: Notions = "banzhaf",
    estimator: How = "auto",
    budget: Budget = 5000,
    repeats: Repeats = None,
    keep: Keep = "auto",
    jobs: Jobs = -1,
    device: Device = "auto",
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    decimal: Decimal = ".",
    pilot: Annotated[
        int,
        typer.Option(help="Evaluations in the pilot; more if they are quick. Nothing is written."),
    ] = 100,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Largest error in the paper's guarantee; the values' spread by default."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Failure probability in the paper's guarantee.")
    ] = 0.05,
    std_error: Annotated[
        float | None,
        typer.Option(help="Wanted standard error; a fifth of the values' spread by default."),
    ] = None,
    stability: Annotated[
        float, typer.Option(help="Wanted rank correlation between two runs.")
    ] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Estimate the cost of a run: a short pilot on this data predicts evaluations, time, disk and
    memory for each goal.
    """
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf.pipeline import make_plan, prepare

        job = prepare(_settings(locals()))
        if sys.stderr.isatty():
            listen(lambda: say(WORDS))
        made = make_plan(
            job, pilot=pilot, epsilon=epsilon, delta=delta, std_error=std_error, stability=stability
        )
        if as_json:
            answer(asdict(made))
            return
        screen = Screen()
        if not made.pilot:
            screen.print(" ".join(made.notes))
            return
        memory = ""
        if made.memory_bytes is not None:
            memory = f" Memory: {in_bytes(made.memory_bytes)}, whatever the number of evaluations."
        screen.print(
            f"Pilot of {made.pilot:,} evaluations for {made.players:,} {job.who}: "
            f"{1 / made.seconds_per_evaluation:,.0f} a second"
            + (
                f", standard error {made.std_error:.2g}, true values spread by about "
                f"{made.signal:.2g}"
                if made.signal > 0
                else ""
            )
            + f".{memory}"
        )
        rows = [
            [
                each.goal,
                "?" if each.evaluations is None else f"{each.evaluations:,}",
                duration(each.seconds),
                in_bytes(each.disk_bytes),
                "?" if each.std_error is None else f"{each.std_error:.2g}",
                decimals(each.stability, 2),
            ]
            for each in made.options
        ]
        show_table(screen, ["goal", "evaluations", "time", "disk", "std. error", "stability"], rows)
        for note in made.notes:
            screen.print(note)


for command in (
    estimate,
    explain,
    report,
    mislabels,
    apply,
    watch,
    margin,
    example,
    doctor,
    reproduce,
):
    app.command()(command)
app.add_typer(ledgers)


def _value_once(
    settings: Settings, folder: Path, screen: Screen, *, curve: bool, quiet: bool, as_json: bool
) -> tuple[Result, dict[str, Any]]:
    """One run: valued, written, shown; the result, and what a program reads of it."""
    from databanzhaf import pipeline
    from databanzhaf.report import write_report

    job = pipeline.prepare(settings)
    if not quiet:
        introduce(screen, job)
    if job.closed:  # there is no batch to wait for
        result = pipeline.run(job, folder)
    else:
        with stops_after_a_batch(folder, watch=not as_json and sys.stderr.isatty()) as watcher:
            told = watcher if quiet or as_json else _forecasting(screen, job, watcher)
            result = pipeline.run(job, folder, watch=told)
    with stops_after_the_values(folder):
        if curve:
            result = pipeline.add_curve(result, folder)
        page = write_report(result, folder)
        tell(screen, result)
        tell_files(screen, result, folder, page)
        return result, summary(result, folder)


def _forecasting(screen: Screen, job: Job, watcher: Watcher) -> Watcher:
    """A watcher that also says, once some evaluations are there, what the run will be worth."""
    from databanzhaf.notions import each_of
    from databanzhaf.pipeline import forecast

    start, before, told = 0.0, -1, False

    def watch(done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        nonlocal start, before, told
        if before < 0:  # what an earlier command evaluated is read by now
            start, before = time.perf_counter(), done
            if 0 < done < total:
                screen.print(f"Continues from {done:,} of {total:,} evaluations, which were kept.")
        fresh = done - before
        if not told and checkpoints and fresh > 0:
            # With fewer evaluations than rows the fit is not yet what it will be; notions that
            # share a run need more for that.
            notions = len(each_of(job.settings.notion))
            share = total // 4 if notions == 1 else total // 2
            enough = max(PILOT, min(4 * notions * job.dataset.n_players, share))
            seen = [each for each in checkpoints if each.estimate.n_evaluations >= enough]
            if seen:
                told = True
                seconds = (time.perf_counter() - start) / fresh
                spent = seconds * seen[0].estimate.n_evaluations
                for line in forecast(job, seen[0], total, spent):
                    screen.print(line)
        if done == total and job.dataset.n_players > MANY_PLAYERS:
            screen.print(
                f"All {total:,} evaluations are done. Computing the values of so many {job.who} "
                "and their errors takes a while longer."
            )
        watcher(done, total, checkpoints)

    return watch


def _settings(given: dict[str, Any]) -> Settings:
    from databanzhaf.pipeline import Settings

    known = {each.name: given[each.name] for each in fields(Settings) if each.name in given}
    paths = {name: known[name] and str(known[name]) for name in ("data", "validation")}
    lists = {name: tuple(given.get(name) or ()) for name in ("drop", "open", "text")}
    return Settings.parse({**known, **paths, **lists})


def run() -> None:
    """What the command `databanzhaf` runs."""
    patient_streams()
    app(prog_name="databanzhaf")
