"""What can go wrong, each with one sentence: the rule, what came, the remedy."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray


class DatabanzhafError(Exception):
    """Base of every error that this library raises on purpose."""


class DatabanzhafWarning(UserWarning):
    """What a run should say without stopping."""


class InvalidInput(DatabanzhafError, ValueError):
    """An argument breaks a stated rule."""


class DesignMismatch(DatabanzhafError):
    """The evaluations' design cannot identify the value notion that was asked for."""


class LedgerMismatch(DatabanzhafError):
    """The ledger was written for another game, dataset, design or seed."""


class LedgerBusy(DatabanzhafError):
    """Another process has the ledger open."""


class LedgerFailed(DatabanzhafError):
    """The ledger's file cannot be opened, read or written."""


def to_install(extra: str) -> str:
    """How to get an extra."""
    return f"pip install 'databanzhaf[{extra}]' (in a checkout: '.[{extra}]')"


class BackendUnavailable(DatabanzhafError):
    """An optional package or device that was asked for is not there."""

    @classmethod
    def missing(cls, what_needs: str, package: str, extra: str) -> Self:
        """The error for a package of an extra that is not installed."""
        return cls(f"{what_needs} {package}, which is not installed. Run: {to_install(extra)}")


class EvaluationFailed(DatabanzhafError):
    """A game could not score a coalition; the evaluations before it are kept.

    Attributes
    ----------
    index, repeat : int
        Which evaluation failed.
    coalition : bool array (n,)
        The coalition that was being evaluated.
    """

    def __init__(self, reason: str, index: int, repeat: int, coalition: NDArray[np.bool_]) -> None:
        self.reason = reason
        self.index = index
        self.repeat = repeat
        self.coalition = coalition
        super().__init__(reason, index, repeat, coalition)

    def __str__(self) -> str:
        members = np.flatnonzero(self.coalition)
        shown = ", ".join(map(str, members[:8])) + (", ..." if len(members) > 8 else "")
        return (
            f"evaluation {self.index} (repeat {self.repeat}) failed: {self.reason}. "
            f"Its coalition has {len(members)} of {len(self.coalition)} players: [{shown}] (all of them in the error's `coalition`). "
            "What a ledger was given before stays in it."
        )


def check_path(path: object) -> None:
    """Refuse a file's name that no system takes."""
    text = str(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(f"a file's name must be text; got {text!a}. Rename it.") from error
    if "\0" in text:
        raise InvalidInput(f"a file's name must not hold the character NUL; got {text!r:.80}. Rename it.")


def short(thing: object) -> str:
    """What came, for the middle of a sentence: a large object is cut, so that nobody's data fill the screen."""
    if isinstance(thing, (dict, set)) or hasattr(thing, "shape"):
        return f"a {type(thing).__name__}"
    text = repr(thing)
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_line(error: BaseException) -> str:
    """What another's error says, for the middle of one of our sentences."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def check_between(name: str, value: object, low: float, high: float, remedy: str) -> float:
    """Return `value` as a float if it is a number strictly between `low` and `high`."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not low < float(value) < high:  # type: ignore[arg-type]
        law = "a positive number" if (low, high) == (0, np.inf) else f"a number strictly between {low:g} and {high:g}"
        raise InvalidInput(f"`{name}` must be {law}; got {short(value)}. {remedy}")
    return float(value)  # type: ignore[arg-type]


def check_count(name: str, value: object, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InvalidInput(f"`{name}` must be a whole number, {minimum} or more; got {short(value)}. Pass {name}={minimum} or more.")
    return int(value)
