"""One share of a run, for a batch queue."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf.cli.signals import stops_after_a_batch
from databanzhaf.cli.text import Screen

if TYPE_CHECKING:
    from databanzhaf.pipeline import Settings

Shard = Annotated[
    str | None,
    typer.Option(
        help="Evaluate one share of the run only, such as 3/64, into a ledger of its own; "
        "`databanzhaf ledger merge` joins them."
    ),
]


def numbers_of(shard: str) -> tuple[int, int]:
    """3/64 as two numbers."""
    from databanzhaf.errors import InvalidInput, short

    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", shard.strip())
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise InvalidInput(
            "--shard must be the number of a share and how many there are, from 1/1 on",
            got=short(shard),
            remedy="The third of 64 is 3/64.",
        )
    return number, count


def evaluate_shard(
    settings: Settings, folder: Path, shard: tuple[int, int], screen: Screen, *, curve: bool
) -> dict[str, Any]:
    """Evaluate a share, say how to join it with the others, and what a program reads of it."""
    from databanzhaf import pipeline
    from databanzhaf.errors import InvalidInput

    if curve:
        raise InvalidInput(
            "--curve needs the values, and a shard has none",
            got="both",
            remedy="Leave --curve out.",
        )
    job = pipeline.prepare(settings)
    with stops_after_a_batch(folder, watch=not screen.quiet and sys.stderr.isatty()) as watcher:
        done = pipeline.run_shard(job, folder, shard, watch=watcher)
    number, count = shard
    screen.print(
        f"Shard {number} of {count}: its {done:,} evaluations are in {folder / 'run.db'}. With all "
        "shards there, join them by `databanzhaf ledger merge SHARDS/run.db ... --into "
        "FOLDER/run.db`; then this command with --out FOLDER and without --shard gives the values.",
        soft_wrap=True,
    )
    return {"shard": f"{number}/{count}", "evaluations": done, "ledger": str(folder / "run.db")}
