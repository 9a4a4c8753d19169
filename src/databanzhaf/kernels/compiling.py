"""Who is told when a kernel is compiled: it takes seconds, once for each installation."""

from __future__ import annotations

from collections.abc import Callable

WORDS = "Compiling the training code for this model, once on this machine: 10 to 30 seconds."
_listeners: list[Callable[[], None]] = []


def listen(tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` when a compilation begins, once; returns a function that stops listening."""
    _listeners.append(tell)
    return lambda: _listeners.remove(tell) if tell in _listeners else None


def begins() -> None:
    """A compilation begins."""
    waiting, _listeners[:] = list(_listeners), []
    for tell in waiting:
        tell()
