"""Standard output and error: streams that may break, one JSON object, text that cannot command a
terminal.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import typer


def printable(text: str) -> str:
    """Control characters of names and files as escapes that can be read: raw ones would command the
    terminal.
    """
    return re.sub(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]",
        lambda found: f"\\x{ord(found[0]):02x}",
        text,
    )


def say(text: str) -> None:
    """A sentence on standard error."""
    typer.echo(printable(text), err=True)


class _Patient:
    """A text stream that outlives its reader: what cannot be written (`| head`, a full disk) is
    lost, and the run continues.
    """

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
        """Discard the rest and what is still in the buffer."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def patient_streams() -> None:
    """Make standard output and error safe to write to, even where they are closed, broken or of few
    characters.

    A closed one is opened to nowhere: else the next file to be opened, such as a ledger, would take
    its number.
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
    """A function that takes the answer. If it was asked for, all else that models, workers and
    libraries print goes to standard error.
    """
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
