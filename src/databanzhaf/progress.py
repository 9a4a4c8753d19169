"""A progress bar for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from databanzhaf.ranking import spearman
from databanzhaf.types import Estimate

if TYPE_CHECKING:
    from rich.progress import Progress

# (evaluations done, evaluations in all, estimates at the checkpoints so far); called after each batch, which is then in the ledger.
Watcher: TypeAlias = Callable[[int, int, Sequence[Estimate]], None]


def stability(estimates: Sequence[Estimate]) -> float | None:
    """Spearman between the last values and those of the latest checkpoint with a sixth fewer evaluations or less.

    Checkpoints lie a quarter apart; only the end of a run may come sooner after one, and would then seem stable.
    """
    earlier = [each for each in estimates[:-1] if 1.2 * each.n_evaluations <= estimates[-1].n_evaluations]
    return spearman(earlier[-1].values, estimates[-1].values) if earlier else None


class Bar:
    """Evaluations, evaluations per second, time left and rank stability, on standard error."""

    def __init__(self) -> None:
        self._bar: Progress | None = None

    def __call__(self, done: int, total: int, estimates: Sequence[Estimate]) -> None:
        if self._bar is None:
            self._bar = self._open()
            self._bar.add_task("", completed=done, total=total, speed="", stability="")
            self._bar.start()
        [task] = self._bar.tasks
        rate, agreement = task.speed, stability(estimates)
        self._bar.update(
            task.id,
            completed=done,
            speed=f"{rate:,.0f} evaluations/s" if rate else "",
            stability="" if agreement is None else f"rank stability {agreement:.3f}",
        )

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        speed, agreement = (TextColumn(f"{{task.fields[{name}]}}") for name in ("speed", "stability"))
        columns = (BarColumn(bar_width=20), MofNCompleteColumn(), speed, TimeRemainingColumn(), agreement)
        return Progress(*columns, console=Console(stderr=True))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
