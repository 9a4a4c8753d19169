"""The shell: arguments → job, and what a person reads."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf._version import __version__
from databanzhaf.errors import DatabanzhafError
from databanzhaf.types import Estimate

if TYPE_CHECKING:
    from rich.console import Console

    from databanzhaf.job import Job, Settings

app = typer.Typer(
    name="databanzhaf",
    help="Which of my training rows help, which hurt, and how sure are you?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

BAD_INPUT, INTERRUPTED = 2, 130

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
Notion = Annotated[str, typer.Option(help="banzhaf, shapley, beta:16,1, loo, least-core or weighted-banzhaf:0.3.")]
How = Annotated[str, typer.Option(help="auto, reuse, permutation (one run serves all notions), marginal, exact, ...")]
Budget = Annotated[int, typer.Option(help="Coalitions to train on; a larger one continues the run.")]
Repeats = Annotated[int | None, typer.Option(help="Trainings of each coalition; 1, or more where all coalitions are known.")]
Until = Annotated[str | None, typer.Option(help="Stop early: stable, stable:0.95, precise:0.01 or minutes:10; join with commas.")]
Flag = Annotated[str, typer.Option(help="Who is a suspect: fdr:0.05, lowest:0.1, below:0 or cluster.")]
Jobs = Annotated[int, typer.Option(help="Processes or threads; -1 is one for each core. Values do not depend on it.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Decides every coalition and training.")]
Encoding = Annotated[str, typer.Option(help="Of text files.")]
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
    notion: Notion = "banzhaf",
    estimator: How = "auto",
    budget: Budget = 5000,
    repeats: Repeats = None,
    until: Until = None,
    flag: Flag = "fdr:0.05",
    jobs: Jobs = -1,
    device: Device = "auto",
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    out: Annotated[Path | None, typer.Option(help="Folder for values.csv, run.db and run.json; runs/NAME of the table by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Give every training row (or group of rows) a value. The same command again goes on where it stopped."""
    with _one_sentence():
        from databanzhaf import job as jobs_room

        settings = _settings(locals())
        folder = out or Path("runs") / data.name.split(".")[0]
        job = jobs_room.prepare(settings)
        screen = _screen(quiet=as_json)
        _introduce(screen, job, folder)
        with _stops_after_a_batch(folder, watch=not as_json and sys.stderr.isatty()) as watcher:
            found = jobs_room.run(job, folder, watch=watcher)
        if as_json:
            _print_json(_summary(job, found, folder))
        else:
            _tell(screen, job, found)
            screen.print(f"Written: {folder / 'values.csv'} (all values), {folder / 'run.db'}, {folder / 'run.json'}", soft_wrap=True)


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
    notion: Notion = "banzhaf",
    estimator: How = "auto",
    budget: Budget = 5000,
    repeats: Repeats = None,
    jobs: Jobs = -1,
    device: Device = "auto",
    seed: Seed = 0,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    pilot: Annotated[int, typer.Option(help="Evaluations to learn from; nothing is written.")] = 100,
    epsilon: Annotated[float, typer.Option(help="Of the paper's guarantee: largest error of any value.")] = 0.1,
    delta: Annotated[float, typer.Option(help="Of the paper's guarantee: how often it may fail.")] = 0.05,
    std_error: Annotated[float | None, typer.Option(help="Wanted standard error; a fifth of the values' spread by default.")] = None,
    stability: Annotated[float, typer.Option(help="Wanted rank correlation between two runs.")] = 0.9,
    as_json: AsJson = False,
) -> None:
    """Before paying: a pilot on this data, then evaluations, time, disk and memory for each goal."""
    with _one_sentence():
        from databanzhaf.job import prepare
        from databanzhaf.plan import make_plan

        job = prepare(_settings(locals()))
        made = make_plan(job, pilot=pilot, epsilon=epsilon, delta=delta, std_error=std_error, stability=stability)
        if as_json:
            _print_json(asdict(made))
            return
        screen = _screen()
        memory = "" if made.memory_bytes is None else f" Memory: {_size(made.memory_bytes)}, whatever the number of evaluations."
        screen.print(
            f"Pilot of {made.pilot:,} evaluations for {made.players:,} {_players(job)}: {1 / made.seconds_per_evaluation:,.0f} a second"
            + (f", standard error {made.std_error:.4f}, true values spread by about {made.signal:.4f}" if made.signal > 0 else "")
            + f".{memory}"
        )
        rows = [
            [
                each.goal,
                "?" if each.evaluations is None else f"{each.evaluations:,}",
                _duration(each.seconds),
                _size(each.disk_bytes),
                _number(each.std_error, 4),
                _number(each.stability, 2),
            ]
            for each in made.options
        ]
        _table(screen, ["goal", "evaluations", "time", "disk", "std. error", "stability"], rows)
        for note in made.notes:
            screen.print(note)


@app.command()
def estimate(
    ledger: Annotated[Path, typer.Argument(help="run.db of a `databanzhaf value` run.", show_default=False)],
    notion: Notion = "banzhaf",
    metric: Metric = None,
    out: Annotated[Path | None, typer.Option(help="CSV file; values-NOTION[-METRIC].csv beside the ledger by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Another notion or metric from the same run; nothing is trained."""
    with _one_sentence():
        from databanzhaf import job as jobs_room

        job, found = jobs_room.reread(ledger, notion=notion, metric=metric)
        name = "-".join(["values", found.notion, *([metric] if metric else [])])
        path = out or ledger.parent / f"{name}.csv"
        jobs_room.write_text(path, jobs_room.values_table(job, found).to_csv(index=False))
        if as_json:
            _print_json({**_summary(job, found, ledger.parent), "values": str(path)})
        else:
            screen = _screen()
            _tell(screen, job, found)
            screen.print(f"Written: {path}", soft_wrap=True)


@app.command()
def margin(
    n: Annotated[int, typer.Option("--n", help="Players.")] = 200,
    tau: Annotated[float, typer.Option(help="How far apart the values of a pair lie.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """How much noise in the scores each notion's ranking survives (the paper's safety margin and Lipschitz constant)."""
    with _one_sentence():
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
            _print_json({"n": n, "tau": tau, "notions": rows})
            return
        screen = _screen()
        cells = [[row["notion"], _power(row["log10_safety_margin"]), _power(row["log10_lipschitz"])] for row in rows]
        _table(screen, ["notion", "safety margin", "Lipschitz constant"], cells, f"n = {n:,}, tau = {tau:g}")
        screen.print("A larger margin and a smaller constant are better. The Banzhaf value is best of all semivalues in both.")


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Versions, devices and optional packages."""
    with _one_sentence():
        from databanzhaf.doctor import examine

        found = examine()
        if as_json:
            _print_json(found)
            return
        screen = _screen()
        for title, part in found.items():
            _table(screen, [title, ""], [[name, text] for name, text in part.items()])


def _settings(given: dict[str, Any]) -> Settings:
    from dataclasses import fields

    from databanzhaf.job import Settings

    known = {each.name: given[each.name] for each in fields(Settings) if each.name in given}
    paths = {name: None if known[name] is None else str(known[name]) for name in ("data", "validation")}
    return Settings(**{**known, **paths, "drop": tuple(given["drop"] or ())})


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What went wrong, on standard error, without a traceback."""
    try:
        yield
    except DatabanzhafError as error:
        typer.echo(f"databanzhaf: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error
    except MemoryError as error:
        typer.echo("databanzhaf: there is not enough memory. Give fewer rows or columns, or --jobs 1.", err=True)
        raise typer.Exit(BAD_INPUT) from error
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(0) from None


@contextmanager
def _stops_after_a_batch(folder: Path, *, watch: bool) -> Iterator[Any]:
    """Ctrl-C lets the batch in flight end and be kept, then says how to go on; a second one stops at once."""
    from databanzhaf.progress import Bar

    bar, asked, standing = Bar(), False, [0, 0]

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        typer.echo("\nStopping after this batch; Ctrl-C again stops at once.", err=True)

    def watcher(done: int, total: int, estimates: Sequence[Estimate]) -> None:
        standing[:] = done, total
        if watch:
            bar(done, total, estimates)
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield watcher
    except KeyboardInterrupt:
        bar.close()
        done, total = standing
        typer.echo(
            f"Stopped with {done:,} of {total:,} evaluations, all kept in {folder / 'run.db'}. The same command goes on from there; "
            f"`databanzhaf estimate {folder / 'run.db'}` reads the values so far.",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    finally:
        bar.close()
        signal.signal(signal.SIGINT, before)


def _screen(*, quiet: bool = False) -> Console:
    from rich.console import Console

    return Console(highlight=False, quiet=quiet)


def _print_json(thing: dict[str, Any]) -> None:
    typer.echo(json.dumps(_plain(thing), ensure_ascii=False))


def _plain(thing: Any) -> Any:
    """NumPy numbers as Python's, and no NaN or infinity, which JSON does not have."""
    if isinstance(thing, dict):
        return {str(name): _plain(part) for name, part in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [_plain(part) for part in thing]
    if hasattr(thing, "item"):
        thing = thing.item()
    if isinstance(thing, float) and not -float("inf") < thing < float("inf"):
        return None
    return str(thing) if isinstance(thing, Path) else thing


def _players(job: Job) -> str:
    return "rows" if job.group_sizes is None else "groups"


def _introduce(screen: Console, job: Job, folder: Path) -> None:
    kind = "classification" if job.classifies else "regression"
    screen.print(
        f"{job.dataset.n_players:,} {_players(job)} to value, {len(job.dataset.y_val):,} validation rows to judge by; {kind} of "
        f"`{job.settings.target}` by {job.settings.model}, scored by {job.metric}.",
        markup=False,
    )
    for note in job.notes:
        screen.print(f"Note: {note}", markup=False)


def _summary(job: Job, found: Estimate, folder: Path) -> dict[str, Any]:
    from databanzhaf.job import values_table

    table = values_table(job, found)
    name = "row" if job.group_sizes is None else "group"
    return {
        "notion": found.notion,
        "estimator": found.estimator,
        "metric": job.metric,
        "players": job.dataset.n_players,
        "evaluations": found.n_evaluations,
        "suspects": table.loc[table["flag"] == "suspect"].sort_values("rank")[name].tolist(),
        "lowest": table.sort_values("rank").head(10).drop(columns="flag").to_dict(orient="records"),
        "values": str(folder / "values.csv"),
        "ledger": str(folder / "run.db"),
        "notes": list(job.notes),
    }


def _tell(screen: Console, job: Job, found: Estimate) -> None:
    from databanzhaf.job import flagged, values_table

    table = values_table(job, found).sort_values("rank")
    columns = [name for name in ("row", "id", "group", "rows") if name in table.columns]
    shown = table.head(10)
    digits = found.digits()
    rows = []
    for position, line in zip(shown.index, shown.to_dict(orient="records"), strict=True):
        label = [str(job.labels[position])] if job.group_sizes is None else []
        interval = f"{line['ci_low']:+.{digits}f} to {line['ci_high']:+.{digits}f}"
        rows.append([*(str(line[name]) for name in columns), *label, f"{line['value']:+.{digits}f}", interval, line["flag"]])
    header = [*columns, *([job.settings.target] if job.group_sizes is None else []), "value", "95% interval", "flag"]
    title = f"The {len(rows)} lowest of {len(table):,} {found.notion} values, from {found.n_evaluations:,} evaluations"
    _table(screen, header, rows, title)
    suspects = flagged(found, job.settings.flag)
    who = _players(job)
    if suspects is None:
        screen.print(
            f"No {who} are flagged: this run has no standard errors. Read the lowest values first, or flag with --flag lowest:0.1."
        )
        return
    rule = "below zero beyond chance" if job.settings.flag.startswith("fdr") else f"flagged by {job.settings.flag}"
    screen.print(
        f"{len(suspects):,} of {len(table):,} {who} are {rule}: models trained with them tend to score worse. Look at them first; "
        "a low value may mean a wrong label, or a case that is rare in the validation rows."
    )


def _table(screen: Console, header: list[str], rows: list[list[Any]], title: str | None = None) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for number, name in enumerate(header):
        table.add_column(Text(name), justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    screen.print(table)


def _number(number: float | None, digits: int) -> str:
    return "?" if number is None else f"{number:.{digits}f}"


def _power(log10: float) -> str:
    return f"{10**log10:.4g}" if abs(log10) < 15 else f"10^{log10:,.1f}"


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def _size(number: float | None) -> str:
    if number is None:
        return "?"
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 2**power:
            return f"{number / 2**power:,.1f} {unit}"
    return f"{number:,.0f} bytes"


if __name__ == "__main__":
    app()
