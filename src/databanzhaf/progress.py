"""A progress bar for people."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from databanzhaf.diagnostics import Checkpoint
from databanzhaf.kernels.compiling import WORDS, listen

if TYPE_CHECKING:
    from rich.progress import Progress

# (evaluations done, evaluations in all, checkpoints so far); called after each batch, which is then
# in the ledger.
Watcher: TypeAlias = Callable[[int, int, Sequence[Checkpoint]], None]


class Bar:
    """Evaluations, evaluations per second, time left and rank stability: on standard error, or in a
    notebook as one line of text that is written again, which needs no widgets.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._stop_listening: Callable[[], None] = lambda: None
        self._line: Any = None
        self._began, self._before = time.perf_counter(), -1

    def __call__(self, done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        if _in_notebook():
            self._write(done, total, checkpoints)
            return
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

    def _write(self, done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        from IPython.display import display

        now = time.perf_counter()
        if self._before < 0:
            self._began, self._before = now, done
        parts = [f"{done:,} of {total:,} evaluations"]
        fresh, seconds = done - self._before, now - self._began
        if fresh > 0 and done < total:
            parts.append(f"about {seconds * (total - done) / fresh:,.0f} s left")
        if checkpoints and not math.isnan(checkpoints[-1].stability):
            parts.append(f"rank stability {checkpoints[-1].stability:.2f}")
        text = {"text/plain": ", ".join(parts)}
        if self._line is None:
            self._line = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._line.update(text, raw=True)

    @classmethod
    @contextmanager
    def shown(cls, wanted: bool) -> Iterator[Watcher]:
        """A bar that is closed at the end, or one that is not shown."""
        bar = cls()
        try:
            yield bar if wanted else lambda done, total, checkpoints: None
        finally:
            bar.close()

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


def _in_notebook() -> bool:
    """Whether a Jupyter kernel runs this; its standard error is no terminal."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
