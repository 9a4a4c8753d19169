"""How a command ends: exit codes, and one sentence for what went wrong."""

from __future__ import annotations

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
