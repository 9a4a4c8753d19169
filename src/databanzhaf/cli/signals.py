"""How a command ends: signals, exit codes, and one sentence for what went wrong."""

from __future__ import annotations

import _thread
import re
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from databanzhaf.cli.streams import say
from databanzhaf.diagnostics import Checkpoint
from databanzhaf.errors import DatabanzhafError, DatabanzhafWarning

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143


@contextmanager
def one_sentence(
    stopped: str = "Stopped before the first evaluation; nothing was written.",
) -> Iterator[None]:
    """What went wrong, on standard error, without a traceback."""
    try:
        with _until_heard(), warnings.catch_warnings():
            warnings.simplefilter("once", DatabanzhafWarning)
            warnings.showwarning = _note
            yield
    except DatabanzhafError as error:
        say(f"databanzhaf: {_as_options(str(error))}")
        raise typer.Exit(BAD_INPUT) from error
    except KeyboardInterrupt:
        say(stopped)
        raise typer.Exit(INTERRUPTED) from None
    except MemoryError as error:
        say("databanzhaf: there is not enough memory. Give fewer rows or columns, or --jobs 1.")
        raise typer.Exit(BAD_INPUT) from error


_NAMES = (
    "budget|decimal|delta|device|draws|epsilon|estimator|flag|image-scale|into|jobs|keep|like|metric|"
    "model|n|notion|pilot|port|repeats|scale|seed|stability|std_error|task|until|validation_fraction"
)


def _as_options(sentence: str) -> str:
    """Arguments of Python, as the library's messages name them, as the shell's options."""

    def option(found: re.Match[str]) -> str:
        name, value = found["name"].replace("_", "-"), found.groupdict().get("value")
        return f"--{name}" if value is None else f"--{name} {value}"

    if re.match(rf"`({_NAMES})`", sentence):  # else it may name a column
        sentence = re.sub(rf"`(?P<name>{_NAMES})`", option, sentence)
    return re.sub(rf'\b(?P<name>{_NAMES})=("?)(?P<value>[\w.:-]*\w)\2', option, sentence)


_show_other_warning = warnings.showwarning


def _note(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Our own warnings as a sentence; those of other packages as Python shows them."""
    if issubclass(category, DatabanzhafWarning):
        say(f"Note: {message}")
    else:
        _show_other_warning(message, category, *where, **more)


@contextmanager
def _until_heard() -> Iterator[None]:
    """Ctrl-C is raised again every two seconds until it ends the command: in a callback (of an
    import, a destructor) Python drops it.
    """
    here = threading.current_thread() is threading.main_thread()
    if (
        not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):  # a shell may have Ctrl-C ignored
        yield
        return
    over = threading.Event()
    asked = False

    def again() -> None:
        while not over.wait(2.0):
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:  # Windows, where a blocking call ends first
                _thread.interrupt_main()

    def note(number: int, frame: object) -> None:
        nonlocal asked
        if not asked:
            asked = True
            threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        over.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def terminated_like_interrupted(stopped: str) -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does, so that what is open is closed; the exit
    code tells them apart.
    """
    asked = False

    def note(number: int, frame: object) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield
    except KeyboardInterrupt:
        if asked:
            say(stopped)
            raise typer.Exit(TERMINATED) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stops_after_a_batch(folder: Path, *, watch: bool) -> Iterator[Any]:
    """Ctrl-C lets the batch in flight end and be kept, then says how to resume; a second one stops
    at once.
    """
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
            f"Stopped with {done:,} of {total:,} evaluations, all kept in {folder / 'run.db'}. "
            "Rerun the same command to resume."
        )
        raise typer.Exit(TERMINATED if asked == signal.SIGTERM else INTERRUPTED) from None
    finally:
        bar.close()
        for number, handler in before.items():
            signal.signal(number, handler)
    if asked:  # after the last batch
        raise _stopped_after_the_values(folder, asked)


@contextmanager
def stops_after_the_values(folder: Path) -> Iterator[None]:
    """Ctrl-C while the curve or the report is made or shown says where the values are."""
    try:
        yield
    except KeyboardInterrupt:
        raise _stopped_after_the_values(folder, signal.SIGINT) from None


def _stopped_after_the_values(folder: Path, number: int) -> typer.Exit:
    say(
        f"Stopped after the last evaluation; the values are in {folder / 'values.csv'}. Rerun "
        "the same command to finish."
    )
    return typer.Exit(TERMINATED if number == signal.SIGTERM else INTERRUPTED)
