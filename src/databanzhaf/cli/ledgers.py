"""The commands about ledgers: `databanzhaf ledger ...`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf.cli.options import AsJson
from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.streams import only_json
from databanzhaf.cli.text import Screen, duration, in_bytes, show_table

if TYPE_CHECKING:
    from databanzhaf.ledger import Checked, Coverage

# The exit status for a damaged ledger; 2 is that of a file that is none.
DAMAGED = 1

ledgers = typer.Typer(
    name="ledger",
    help="Check, repair, merge and export ledgers, the files of evaluations (run.db).",
    no_args_is_help=True,
)
Source = Annotated[
    Path, typer.Argument(help="run.db of a run.", metavar="LEDGER", show_default=False)
]


@ledgers.command()
def check(ledger: Source, as_json: AsJson = False) -> None:
    """Read every row of a ledger and verify it. The exit status is 0 if all is whole and 1 if not;
    the file is not changed.
    """
    with one_sentence("Stopped; nothing was changed."), only_json(as_json) as answer:
        from databanzhaf.ledger import check

        found = check(ledger)
        if as_json:
            answer(
                {
                    "ledger": str(ledger),
                    "whole": found.whole,
                    "problems": list(found.problems),
                    "run": _without_names(found.run),
                    **_counts(found.coverage),
                    "outcomes": found.outcomes,
                    "seconds": found.seconds,
                    "written": found.written,
                    "lost": found.lost,
                    "bytes": found.size,
                    "repair": None if found.whole else _repair(ledger),
                }
            )
        else:
            _tell_checked(Screen(), found)
    if not found.whole:
        raise typer.Exit(DAMAGED)


@ledgers.command()
def repair(
    ledger: Source,
    out: Annotated[
        Path, typer.Option(help="File for the new ledger; it must not exist.", show_default=False)
    ],
    like: Annotated[
        Path | None,
        typer.Option(
            help="Another ledger of the same run, needed if the damaged one no longer says what "
            "its run is."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a new ledger with all evaluations of a damaged one that are whole. The damaged file is
    not changed.
    """
    with one_sentence("Stopped; nothing was written."), only_json(as_json) as answer:
        from databanzhaf.ledger import repair

        done = repair(ledger, out, like)
        if as_json:
            answer(
                {
                    "ledger": str(ledger),
                    "out": str(out),
                    **_counts(done.coverage),
                    "written": done.written,
                    "lost": done.lost,
                }
            )
            return
        screen = Screen()
        screen.print(f"Written: {out}, {_holding(done.coverage)}.", soft_wrap=True)
        screen.print(_lost(done.lost, done.written))
        for line in _gaps(done.coverage):
            screen.print(line)
        beside = [f"{ledger}{end}" for end in ("-wal", "-shm")]
        moved = " and ".join([str(ledger), *(file for file in beside if Path(file).exists())])
        screen.print(
            f"To resume, move {moved} to another folder, rename {out} to {ledger}, and rerun the "
            "command of the run.",
            soft_wrap=True,
        )


@ledgers.command()
def merge(
    ledgers: Annotated[
        list[Path],
        typer.Argument(
            help="Ledgers of one run, such as those of its shards. They are not changed.",
            metavar="LEDGERS...",
            show_default=False,
        ),
    ],
    into: Annotated[
        Path,
        typer.Option(
            help="File for all of their evaluations: a new one, or a ledger of the same run.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Join the ledgers of one run. Rerun the same command to continue after a stop, or to add what
    was evaluated since.
    """
    stopped = "Stopped; what was merged is kept. Rerun the same command to continue."
    with one_sentence(stopped), only_json(as_json) as answer:
        from databanzhaf.ledger import merge

        done = merge(ledgers, into)
        if as_json:
            answer(
                {
                    "ledger": str(into),
                    "files": done.files,
                    "added": done.added,
                    "known": done.known,
                    **_counts(done.coverage),
                }
            )
            return
        screen = Screen()
        screen.print(
            f"Added {_count(done.added, 'evaluation')} from {_count(done.files, 'ledger')}; "
            f"{done.known:,} were there already."
        )
        screen.print(f"Written: {into}, {_holding(done.coverage)}.", soft_wrap=True)
        for line in _gaps(done.coverage):
            screen.print(line)


@ledgers.command()
def export(
    ledger: Source,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for evaluations.parquet, masks.npy, utilities.npy, indices.npy and "
            "players.json.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Write a ledger's evaluations and coalitions to files that other tools read."""
    with one_sentence("Stopped; nothing was written."), only_json(as_json) as answer:
        from databanzhaf.ledger import export

        done = export(ledger, out)
        if as_json:
            answer({**asdict(done), "ledger": str(ledger), "files": [str(f) for f in done.files]})
            return
        screen = Screen()
        files = ", ".join(map(str, done.files))
        screen.print(f"Written: {files}", soft_wrap=True)
        shape = f"; {done.coalitions:,} coalitions of {done.players:,} players"
        rows = _count(done.evaluations, "evaluation")
        screen.print(f"{rows}{shape if done.coalitions else ''}.")
        if done.note:
            screen.print(f"Note: {done.note}")


def _tell_checked(screen: Screen, found: Checked) -> None:
    held = found.coverage
    if found.whole and not held.evaluations:
        screen.print(f"{found.file} is whole and holds no evaluations yet.", soft_wrap=True)
        return
    screen.print(f"{found.file} is {'whole' if found.whole else 'damaged'}:", soft_wrap=True)
    for problem in found.problems:
        screen.print(f"  {problem}")
    outcomes = ", each with its outcome" if found.outcomes else ""
    screen.print(
        f"{'It holds' if found.whole else 'Whole:'} {_holding(held)}{outcomes}; "
        f"{in_bytes(found.size)}; training took {duration(found.seconds)}."
    )
    if not found.whole:
        screen.print(_lost(found.lost, found.written))
    for line in _gaps(held):
        screen.print(line)
    if found.run is not None:
        _show_run(screen, found.run)
    if not found.whole:
        screen.print(f"To keep what is whole: {_repair(found.file)}", soft_wrap=True)


def _show_run(screen: Screen, run: dict[str, Any]) -> None:
    rows = [[f"design: {name}", thing] for name, thing in (run.get("design") or {}).items()]
    rows += [[f"game: {name}", thing] for name, thing in (run.get("game") or {}).items()]
    names = {"seed": "seed", "keep": "keeps", "version": "databanzhaf"}
    rows += [[shown, run.get(name)] for name, shown in names.items()]
    show_table(screen, ["run", ""], rows)


def _repair(ledger: Path) -> str:
    """The command that keeps what is whole."""
    out = ledger.with_name(f"{ledger.stem}.repaired{ledger.suffix}")
    return shlex.join(["databanzhaf", "ledger", "repair", str(ledger), "--out", str(out)])


def _counts(held: Coverage) -> dict[str, Any]:
    return {
        "evaluations": held.evaluations,
        "coalitions": held.coalitions,
        "repeats": held.repeats,
        "missing": held.missing,
        "fewer": held.fewer,
    }


def _without_names(run: dict[str, Any] | None) -> dict[str, Any] | None:
    return run and {name: thing for name, thing in run.items() if name != "players"}


def _holding(held: Coverage) -> str:
    repeats = f" with up to {held.repeats} repeats" if held.repeats > 1 else ""
    coalitions = _count(held.coalitions, "coalition")
    return f"{_count(held.evaluations, 'evaluation')} of {coalitions}{repeats}"


def _lost(lost: int | None, written: int | None) -> str:
    if lost is None:
        return "The file no longer says how many evaluations were written to it."
    again = "; the run evaluates what is lost again" if lost else ""
    return f"Lost: {lost:,} of {_count(written or 0, 'written evaluation')}{again}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _gaps(held: Coverage) -> list[str]:
    """What is missing, in one sentence each."""
    from databanzhaf.ledger import spelled

    lines = []
    if held.missing:
        count = sum(last - first + 1 for first, last in held.missing)
        lines.append(
            f"Missing up to index {held.largest:,}: {spelled(held.missing)} ({count:,} in all)."
        )
    if held.fewer:
        lines.append(f"With fewer repeats than {held.repeats}: {spelled(held.fewer)}.")
    return lines
