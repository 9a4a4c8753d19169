"""How a command ends: exit codes, and one sentence for what went wrong."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from databanzhaf.errors import DatabanzhafError

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143


@contextmanager
def one_sentence(stopped: str = "Stopped before the first evaluation; nothing was written.") -> Iterator[None]:
    """What went wrong, on standard error, without a traceback."""
    try:
        yield
    except DatabanzhafError as error:
        typer.echo(f"databanzhaf: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from error
    except KeyboardInterrupt:
        typer.echo(stopped, err=True)
        raise typer.Exit(INTERRUPTED) from None
    except MemoryError as error:
        typer.echo("databanzhaf: there is not enough memory. Give fewer rows or columns, or --jobs 1.", err=True)
        raise typer.Exit(BAD_INPUT) from error


@contextmanager
def terminated_like_interrupted(stopped: str) -> Iterator[None]:
    """SIGTERM raises KeyboardInterrupt, as Ctrl-C does, so that what is open is closed; the exit code tells them apart."""
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
            typer.echo(stopped, err=True)
            raise typer.Exit(TERMINATED) from None
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
