"""The shell: arguments → job, and what a person reads."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf._version import __version__
from databanzhaf.errors import BackendUnavailable, to_install
from databanzhaf.exits import INTERRUPTED, TERMINATED, one_sentence, say
from databanzhaf.paper import reproduce
from databanzhaf.screen import (
    Screen,
    as_power,
    decimals,
    duration,
    in_bytes,
    introduce,
    only_json,
    patient_streams,
    players_of,
    print_json,
    show_table,
    summary,
    tell,
)
from databanzhaf.types import Checkpoint, Estimate

if TYPE_CHECKING:
    from databanzhaf.jobs import Settings

app = typer.Typer(
    name="databanzhaf",
    help="Which of my training rows help, which hurt, and how sure are you?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Data = Annotated[Path, typer.Argument(help="Training table: .csv, .tsv, .parquet or .npz (X, y).", show_default=False)]
Target = Annotated[str, typer.Option(help="Column to predict (y in an .npz).", show_default=False)]
Validation = Annotated[Path | None, typer.Option(help="Table to judge by; without it a part of the training table.")]
Fraction = Annotated[float, typer.Option(help="Share of each class held out to judge by, if there is no --validation.")]
Model = Annotated[str, typer.Option(help="mlp, logistic, linear, forest, boosting, knn, or package.module:factory.")]
Task = Annotated[str, typer.Option(help="auto, classification or regression.")]
Metric = Annotated[str | None, typer.Option(help="probability, accuracy, f1, log_loss, auc, r2, mse, mae or a scikit-learn scorer.")]
Groups = Annotated[str | None, typer.Option(help="Column of suppliers, sites, ...: value them instead of rows.")]
Id = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
Drop = Annotated[list[str] | None, typer.Option(help="Column that is no feature; may be repeated.")]
Text = Annotated[list[str] | None, typer.Option(help="Column of codes, read as written and not as numbers; may be repeated.")]
Notion = Annotated[str, typer.Option(help="banzhaf, shapley, beta:16,1, loo, least-core or weighted-banzhaf:0.3.")]
How = Annotated[str, typer.Option(help="auto, reuse, permutation (one run serves all notions), marginal, exact, ...")]
Budget = Annotated[int, typer.Option(help="Coalitions to train on; a larger one continues the run.")]
Repeats = Annotated[int | None, typer.Option(help="Trainings of each coalition; 1, or more where all coalitions are known.")]
Until = Annotated[
    str | None, typer.Option(help="Stop early: stable, stable:0.95, precise:0.01, minutes:10; of several (commas) the first.")
]
Flag = Annotated[str, typer.Option(help="Who is a suspect: fdr:0.05, lowest:0.1, below:0 or cluster.")]
Keep = Annotated[str, typer.Option(help="Of each model: predictions (the metric can change later), scores, or auto: predictions if small.")]
Jobs = Annotated[int, typer.Option(help="Processes or threads; -1 is one for each core. Values do not depend on it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Decides the rows held out, every coalition and every training.")]
Encoding = Annotated[str, typer.Option(help="Of text files.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a text file's numbers.")]
Separator = Annotated[str | None, typer.Option(help="Between the columns of a text file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of words.")]


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


@app.command()
def value(
    data: Data,
    target: Target,
    validation: Validation = None,
    validation_fraction: Fraction = 0.3,
    model: Model = "mlp",
    task: Task = "auto",
    metric: Metric = None,
    groups: Groups = None,
    id: Id = None,
    drop: Drop = None,
    text: Text = None,
    notion: Notion = "banzhaf",
    estimator: How = "auto",
    budget: Budget = 5000,
    repeats: Repeats = None,
    until: Until = None,
    flag: Flag = "fdr:0.05",
    keep: Keep = "auto",
    jobs: Jobs = -1,
    device: Device = "auto",
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    decimal: Decimal = ".",
    out: Annotated[Path | None, typer.Option(help="Folder for values.csv, run.db and run.json; runs/NAME of the table by default.")] = None,
    curve: Annotated[bool, typer.Option("--curve", help="Also retrain while removing the lowest values first: does it help?")] = False,
    as_json: AsJson = False,
) -> None:
    """Give every training row (or group of rows) a value. The same command again goes on where it stopped."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import jobs as jobs_room

        settings = _settings(locals())
        folder = out or Path("runs") / data.name.split(".")[0]
        job = jobs_room.prepare(settings)
        screen = Screen(quiet=as_json)
        introduce(screen, job)
        with _stops_after_a_batch(folder, watch=not as_json and sys.stderr.isatty()) as watcher:
            found = jobs_room.run(job, folder, watch=watcher)
        with _stops_after_the_values(folder):
            if curve:
                jobs_room.write_curve(job, found, folder)
            seen = jobs_room.look(job, folder)
            report = _report(jobs_room, job, found, seen, folder)
            if as_json:
                answer(summary(job, found, folder))
                return
            tell(screen, job, found, jobs_room.warnings_of(job, seen))
            screen.print(f"Written: {folder / 'values.csv'} (all values), {folder / 'run.db'}, {folder / 'run.json'}", soft_wrap=True)
            screen.print(report, soft_wrap=True)


@app.command()
def plan(
    data: Data,
    target: Target,
    validation: Validation = None,
    validation_fraction: Fraction = 0.3,
    model: Model = "mlp",
    task: Task = "auto",
    metric: Metric = None,
    groups: Groups = None,
    id: Id = None,
    drop: Drop = None,
    text: Text = None,
    notion: Notion = "banzhaf",
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
    pilot: Annotated[int, typer.Option(help="Evaluations to learn from, ten times more if it is quick; nothing is written.")] = 100,
    epsilon: Annotated[float | None, typer.Option(help="Largest error in the paper's guarantee; the values' spread by default.")] = None,
    delta: Annotated[float, typer.Option(help="Of the paper's guarantee: how often it may fail.")] = 0.05,
    std_error: Annotated[float | None, typer.Option(help="Wanted standard error; a fifth of the values' spread by default.")] = None,
    stability: Annotated[float, typer.Option(help="Wanted rank correlation between two runs.")] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Before paying: a pilot on this data, then evaluations, time, disk and memory for each goal."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf.jobs import prepare
        from databanzhaf.plan import make_plan

        job = prepare(_settings(locals()))
        made = make_plan(job, pilot=pilot, epsilon=epsilon, delta=delta, std_error=std_error, stability=stability)
        if as_json:
            answer(asdict(made))
            return
        screen = Screen()
        memory = "" if made.memory_bytes is None else f" Memory: {in_bytes(made.memory_bytes)}, whatever the number of evaluations."
        screen.print(
            f"Pilot of {made.pilot:,} evaluations for {made.players:,} {players_of(job)}: {1 / made.seconds_per_evaluation:,.0f} a second"
            + (f", standard error {made.std_error:.4f}, true values spread by about {made.signal:.4f}" if made.signal > 0 else "")
            + f".{memory}"
        )
        rows = [
            [
                each.goal,
                "?" if each.evaluations is None else f"{each.evaluations:,}",
                duration(each.seconds),
                in_bytes(each.disk_bytes),
                decimals(each.std_error, 4),
                decimals(each.stability, 2),
            ]
            for each in made.options
        ]
        show_table(screen, ["goal", "evaluations", "time", "disk", "std. error", "stability"], rows)
        for note in made.notes:
            screen.print(note)


@app.command()
def estimate(
    ledger: Annotated[Path, typer.Argument(help="run.db of a `databanzhaf value` run.", show_default=False)],
    notion: Notion = "banzhaf",
    metric: Metric = None,
    model: Annotated[str | None, typer.Option(help="The model of the run again, if it is your own and --metric is given.")] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file; values-NOTION[-METRIC].csv beside the ledger by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Another notion or metric from the same run; nothing is trained."""
    with one_sentence(), only_json(as_json) as answer:
        from databanzhaf import jobs as jobs_room

        job, found = jobs_room.reread(ledger, notion=notion, metric=metric, model=model)
        name = "-".join(["values", *re.findall(r"[\w.]+", found.notion), *([metric] if metric else [])])
        path = out or ledger.parent / f"{name}.csv"
        jobs_room.check_not_ours(path, [ledger, ledger.parent / "run.json", job.settings.data, job.settings.validation])
        jobs_room.write_text(path, jobs_room.as_csv(jobs_room.values_table(job, found)))
        if as_json:
            answer({**summary(job, found, ledger.parent), "values": str(path)})
        else:
            screen = Screen()
            tell(screen, job, found)
            screen.print(f"Written: {path}", soft_wrap=True)


@app.command()
def report(ledger: Annotated[Path, typer.Argument(help="run.db of a `databanzhaf value` run.", show_default=False)]) -> None:
    """Write report.html beside a run's ledger; nothing is trained."""
    with one_sentence():
        from databanzhaf import jobs as jobs_room

        job, found = jobs_room.reread(ledger, as_recorded=True)
        path = jobs_room.write_report(job, found, jobs_room.look(job, ledger.parent), ledger.parent)
        Screen().print(f"Written: {path}", soft_wrap=True)


@app.command()
def margin(
    n: Annotated[int, typer.Option("--n", help="Players.")] = 200,
    tau: Annotated[float, typer.Option(help="How far apart the values of a pair lie.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """How much noise in the scores each notion's ranking survives (the paper's safety margin and Lipschitz constant)."""
    with one_sentence():
        from databanzhaf import theory
        from databanzhaf.errors import check_between, check_count
        from databanzhaf.notions import named

        check_count("n", n, 2)
        check_between("tau", tau, 0, float("inf"), "Try 1.")
        names = ("loo", "beta:16,1", "beta:4,1", "shapley", "beta:1,4", "beta:1,16", "banzhaf")
        rows: list[dict[str, Any]] = [
            {
                "notion": named(name).name,
                "log10_safety_margin": theory.safety_margin(named(name), n, tau, log=True) / 2.302585092994046,
                "log10_lipschitz": theory.lipschitz(named(name), n, log=True) / 2.302585092994046,
            }
            for name in names
        ]
        if as_json:
            print_json({"n": n, "tau": tau, "notions": rows})
            return
        screen = Screen()
        cells = [[row["notion"], as_power(row["log10_safety_margin"]), as_power(row["log10_lipschitz"])] for row in rows]
        show_table(screen, ["notion", "safety margin", "Lipschitz constant"], cells, f"n = {n:,}, tau = {tau:g}")
        screen.print("A larger margin and a smaller constant are better. The Banzhaf value is best of all semivalues in both.")
        screen.print("Margins are as the paper prints them; the smallest noise that ties a pair is 0.707 of that, for all notions alike.")


@app.command()
def example(out: Annotated[Path, typer.Option(help="File to write.")] = Path("suppliers.csv")) -> None:
    """Write the small example table: 300 customers from six suppliers, one of whom delivers wrong labels."""
    with one_sentence():
        from databanzhaf.datasets import path
        from databanzhaf.errors import InvalidInput
        from databanzhaf.jobs import write_text

        if out.exists():
            raise InvalidInput(f"`{out}` is there already. Give another --out.")
        write_text(out, path("suppliers").read_text(encoding="utf-8"))
        Screen().print(f"Written: {out}. Try: databanzhaf value {out} --target bought --id id --drop supplier", soft_wrap=True)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Versions, devices and optional packages."""
    with one_sentence():
        from databanzhaf.doctor import examine

        found = examine()
        if as_json:
            print_json(found)
            return
        screen = Screen()
        for title, part in found.items():
            show_table(screen, [title, ""], [[name, text] for name, text in part.items()])


app.command()(reproduce)


def _report(jobs_room: Any, job: Any, found: Estimate, seen: Any, folder: Path) -> str:
    """Write the report if its chart library is there; a sentence about it."""
    try:
        return f"Open {jobs_room.write_report(job, found, seen, folder)} in a browser: values, suspects and how far to trust them."
    except BackendUnavailable:
        return f"For a report to look at in a browser: {to_install('report')}, then databanzhaf report {folder / 'run.db'}"


def _settings(given: dict[str, Any]) -> Settings:
    from dataclasses import fields

    from databanzhaf.jobs import Settings

    known = {each.name: given[each.name] for each in fields(Settings) if each.name in given}
    paths = {name: None if known[name] is None else str(known[name]) for name in ("data", "validation")}
    lists = {name: tuple(given[name] or ()) for name in ("drop", "text")}
    return Settings(**{**known, **paths, **lists})


@contextmanager
def _stops_after_a_batch(folder: Path, *, watch: bool) -> Iterator[Any]:
    """Ctrl-C lets the batch in flight end and be kept, then says how to go on; a second one stops at once."""
    from databanzhaf.progress import Bar

    bar, asked, standing = Bar(), 0, [0, 0]

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = number
        say("\nStopping after this batch; Ctrl-C again stops at once.")

    def watcher(done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        standing[:] = done, total
        if watch:
            bar(done, total, checkpoints)
        if asked:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield watcher
    except KeyboardInterrupt:
        bar.close()
        done, total = standing
        say(
            f"Stopped with {done:,} of {total:,} evaluations, all kept in {folder / 'run.db'}. The same command goes on from there; "
            f"`databanzhaf estimate {folder / 'run.db'}` reads the values so far."
        )
        raise typer.Exit(TERMINATED if asked == signal.SIGTERM else INTERRUPTED) from None
    finally:
        bar.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:  # after the last batch
        raise _stopped_after_the_values(folder, asked)


@contextmanager
def _stops_after_the_values(folder: Path) -> Iterator[None]:
    """Ctrl-C while the curve or the report is made or told says where the values are."""
    try:
        yield
    except KeyboardInterrupt:
        raise _stopped_after_the_values(folder, signal.SIGINT) from None


def _stopped_after_the_values(folder: Path, number: int) -> typer.Exit:
    say(f"Stopped after the last evaluation; the values are in {folder / 'values.csv'}. The same command goes on.")
    return typer.Exit(TERMINATED if number == signal.SIGTERM else INTERRUPTED)


def run() -> None:
    """What the command `databanzhaf` runs."""
    patient_streams()
    app(prog_name="databanzhaf")


if __name__ == "__main__":
    run()
