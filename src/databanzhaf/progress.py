"""A progress bar for people."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from databanzhaf.diagnostics import Checkpoint
from databanzhaf.kernels.compiling import WORDS, listen

if TYPE_CHECKING:
    from rich.progress import Progress

# (evaluations done, evaluations in all, checkpoints so far); called after each batch, which is then
# in the ledger.
Watcher: TypeAlias = Callable[[int, int, Sequence[Checkpoint]], None]


class Bar:
    """Evaluations, evaluations per second, time left and rank stability, on standard error."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._stop_listening: Callable[[], None] = lambda: None

    def __call__(self, done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        if self._bar is None:
            self._bar = self._open()
            self._bar.add_task("", completed=done, total=total, speed="", stability="")
            self._bar.start()
            self._stop_listening = listen(self._compiling)
        [task] = self._bar.tasks
        rate, agreement = task.speed, checkpoints[-1].stability if checkpoints else math.nan
        self._bar.update(
            task.id,
            completed=done,
            speed=f"{rate:,.0f} evaluations/s" if rate else "",
            stability="" if math.isnan(agreement) else f"rank stability {agreement:.3f}",
        )

    def _open(self) -> Progress:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        speed, agreement = (
            TextColumn(f"{{task.fields[{name}]}}") for name in ("speed", "stability")
        )
        columns = (
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            speed,
            TimeRemainingColumn(),
            agreement,
        )
        return Progress(*columns, console=Console(stderr=True))

    def _compiling(self) -> None:
        if self._bar is not None:
            self._bar.console.print(WORDS)

    def close(self) -> None:
        self._stop_listening()
        if self._bar is not None:
            self._bar.stop()
