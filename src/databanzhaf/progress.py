"""A progress bar for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from databanzhaf.ranking import spearman
from databanzhaf.types import Estimate


@contextmanager
def progress_bar(done: int, total: int) -> Iterator[Callable[[int, Sequence[Estimate]], None]]:
    """Yields a function to call with the evaluations done and the estimates at the checkpoints so far."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}")
    with Progress(BarColumn(), MofNCompleteColumn(), speed, TimeRemainingColumn(), TextColumn("{task.fields[stability]}")) as bar:
        task = bar.add_task("", completed=done, total=total, speed="", stability="")

        def show(done: int, estimates: Sequence[Estimate]) -> None:
            rate = bar.tasks[0].speed
            stability = ""
            if len(estimates) > 1:
                stability = f"rank stability {spearman(estimates[-2].values, estimates[-1].values):.3f}"
            bar.update(task, completed=done, speed=f"{rate:,.0f} evaluations/s" if rate else "", stability=stability)

        yield show
