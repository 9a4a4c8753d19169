"""What a person, or a program, reads of a job."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.exits import printable
from databanzhaf.types import Estimate

if TYPE_CHECKING:
    from databanzhaf.jobs import Job

# Below this many evaluations a person is told so.
FEW = 200


class Screen:
    """The terminal, by rich; what the data say never commands it."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self._console = Console(highlight=False, markup=False, quiet=quiet)

    def print(self, thing: Any, *, soft_wrap: bool = False) -> None:
        self._console.print(printable(thing) if isinstance(thing, str) else thing, soft_wrap=soft_wrap)


class _Patient:
    """A text stream that outlives its reader: what cannot be written (`| head`, a full disk) is lost, and the run goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return int(self._stream.write(text))
        except OSError:
            return self._give_up(len(text))

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._give_up(0)

    def _give_up(self, written: int) -> int:
        """Send the rest, and what waits in the buffer, nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def patient_streams() -> None:
    """Make standard output and error safe to write to, even where they are closed, broken or of few characters.

    A closed one is opened to nowhere: else the next file to be opened, such as a ledger, would take its number.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        setattr(sys, name, _Patient(stream))


@contextmanager
def only_json(asked: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that takes the answer. If it was asked for, all else that models, workers and libraries print goes to standard error."""
    if not asked:
        yield print_json
        return
    answers: list[dict[str, Any]] = []
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield answers.append
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    for answer in answers:
        print_json(answer)


def print_json(thing: dict[str, Any]) -> None:
    text = json.dumps(_plain(thing), ensure_ascii=False)
    # JSON allows these control characters as they are; a terminal obeys them.
    print(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text))


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
    return thing if thing is None or isinstance(thing, (bool, int, float, str)) else str(thing)


def players_of(job: Job) -> str:
    return "rows" if job.group_sizes is None else "groups"


def introduce(screen: Screen, job: Job) -> None:
    kind = "classification" if job.classifies else "regression"
    screen.print(
        f"{job.dataset.n_players:,} {players_of(job)} to value, {len(job.dataset.y_val):,} validation rows to judge by; {kind} of "
        f"`{job.settings.target}` by {job.settings.model}, scored by {job.metric}.",
    )
    if job.metric == "probability":
        screen.print("A model's score is the mean probability that it gives to the true class.")
    if job.settings.validation is None:
        screen.print("Validation rows are held out of the table and get no value; another --seed holds out others. Rows count from 0.")
    for note in job.notes:
        screen.print(f"Note: {note}")


def summary(job: Job, found: Estimate, folder: Path) -> dict[str, Any]:
    from databanzhaf.jobs import values_table

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


def tell(screen: Screen, job: Job, found: Estimate, warnings: Sequence[str] = ()) -> None:
    from databanzhaf.jobs import flagged, values_table

    table = values_table(job, found).sort_values("rank")
    columns = [name for name in ("row", "id", "group", "rows") if name in table.columns]
    shown = table.head(10)
    digits = found.digits()
    rows = []
    for position, line in zip(shown.index, shown.to_dict(orient="records"), strict=True):
        label = [str(job.labels[position])] if job.group_sizes is None else []
        low, high = line["ci_low"], line["ci_high"]
        interval = "unknown" if low != low else f"{low:+.{digits}f} to {high:+.{digits}f}"
        rows.append([*(str(line[name]) for name in columns), *label, f"{line['value']:+.{digits}f}", interval, line["flag"]])
    header = [*columns, *([job.settings.target] if job.group_sizes is None else []), "value", "95% interval", "flag"]
    lowest = f"The {len(rows)} lowest of {len(table):,}" if len(rows) < len(table) else f"All {len(table)}"
    title = f"{lowest} {found.notion} values, from {found.n_evaluations:,} evaluations"
    show_table(screen, header, rows, title)
    suspects = flagged(found, job.settings.flag)
    who = players_of(job)
    if np.isinf(found.std_errors).any():
        screen.print("An infinite interval: too few evaluations involve the row to give one. Raise --budget; nothing is trained twice.")
    elif found.estimator != "exact" and found.n_evaluations < FEW:
        screen.print(f"{found.n_evaluations} evaluations say little. Raise --budget to some thousands; nothing is trained twice.")
    for warning in warnings:
        screen.print(warning)
    if suspects is None:
        screen.print(
            f"No {who} are flagged: this run has no standard errors. Read the lowest values first, or flag with --flag lowest:0.1."
        )
        return
    if not len(suspects):
        screen.print(f"No {who.removesuffix('s')} is flagged by {job.settings.flag}; the lowest values may still be worth a look.")
        return
    verb, them = ("is", "it") if len(suspects) == 1 else ("are", "them")
    if job.settings.flag.startswith("fdr"):
        rule = f"below zero beyond chance, judged by these validation rows: models trained with {them} tend to score worse"
    else:
        rule = f"flagged by {job.settings.flag}"
    screen.print(
        f"{len(suspects):,} of {len(table):,} {who} {verb} {rule}. Begin with the lowest; a low value may mean a wrong label, a case "
        "that is unlike the validation rows, or a wrong label among these."
    )


def show_table(screen: Screen, header: list[str], rows: list[list[Any]], title: str | None = None) -> None:
    from rich.table import Table
    from rich.text import Text

    def cell(thing: Any) -> Text:
        return Text(printable(str(thing).replace("\n", "\\n").replace("\t", "\\t")))

    table = Table(title=None if title is None else cell(title), title_justify="left")
    for number, name in enumerate(header):
        table.add_column(cell(name), justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*map(cell, row))
    screen.print(table)


def decimals(number: float | None, digits: int) -> str:
    return "?" if number is None else f"{number:.{digits}f}"


def as_power(log10: float) -> str:
    return f"{10**log10:.4g}" if abs(log10) < 15 else f"10^{log10:,.1f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def in_bytes(number: float | None) -> str:
    if number is None:
        return "?"
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 2**power:
            return f"{number / 2**power:,.1f} {unit}"
    return f"{number:,.0f} bytes"
