"""What can go wrong, each with one sentence: the rule, what came, the remedy."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Lines of a difference that are shown; the error holds all.
_MOST_DIFFERENCES = 6


class DatabanzhafError(Exception):
    """Base of every error that this library raises on purpose: one sentence or two, made of three
    parts.

    Attributes
    ----------
    rule : str
        What must hold, or what failed.
    got : str
        What came instead; "" where the rule says it.
    remedy : str
        What to do.

    >>> str(InvalidInput("`budget` must be a whole number", got="'many'", remedy="Try 2000."))
    "`budget` must be a whole number; got 'many'. Try 2000."
    """

    def __init__(self, rule: str, got: str = "", remedy: str = "") -> None:
        self.rule, self.got, self.remedy = rule, got, remedy
        super().__init__(rule, got, remedy)

    def __str__(self) -> str:
        statement = self.rule + (f"; got {self.got}" if self.got else "")
        return f"{statement}. {self.remedy}" if self.remedy else f"{statement}."

    def with_remedy(self, remedy: str) -> Self:
        """The same error for a room further out, where something else can be done about it."""
        other = copy.copy(self)
        other.remedy = remedy
        return other


class DatabanzhafWarning(UserWarning):
    """What a run should say without stopping."""


class InvalidInput(DatabanzhafError, ValueError):
    """An argument breaks a stated rule."""


class DesignMismatch(DatabanzhafError):
    """The evaluations' design cannot identify the value notion that was asked for."""


class LedgerMismatch(DatabanzhafError):
    """The ledger was written for another game, dataset, design or seed.

    Attributes
    ----------
    differences : tuple of str
        One line each: what the ledger has, and what this call has.
    """

    def __init__(
        self, rule: str, got: str = "", remedy: str = "", differences: tuple[str, ...] = ()
    ) -> None:
        super().__init__(rule, got, remedy)
        self.differences = differences
        self.args = (rule, got, remedy, differences)

    def with_differences(self, differences: tuple[str, ...]) -> Self:
        """The same error in the words of a room further out, if it knows any."""
        other = copy.copy(self)
        other.differences = differences or self.differences
        return other

    def __str__(self) -> str:
        if not self.differences:
            return super().__str__()
        more = len(self.differences) - _MOST_DIFFERENCES
        shown = [f"  {line}" for line in self.differences[:_MOST_DIFFERENCES]]
        rest = [f"  ... and {more} more"] if more > 0 else []
        return "\n".join([f"{self.rule}:", *shown, *rest, self.remedy])


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
        return cls(
            f"{what_needs} {package}, which is not installed", remedy=f"Run: {to_install(extra)}"
        )


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
        members = np.flatnonzero(coalition)
        shown = ", ".join(map(str, members[:8])) + (", ..." if len(members) > 8 else "")
        super().__init__(
            f"evaluation {index} (repeat {repeat}) failed: {reason}",
            remedy=f"Its coalition has {len(members)} of {len(coalition)} players: [{shown}] (all "
            "of them in the "
            "error's `coalition`). Evaluations already recorded are kept.",
        )
        self.reason, self.index, self.repeat, self.coalition = reason, index, repeat, coalition

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason, self.index, self.repeat, self.coalition)


def check_path(path: object) -> None:
    """Refuse a file's name that no system takes."""
    text = str(path)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "a file's name must be text", got=f"{text!a}", remedy="Rename it."
        ) from error
    if "\0" in text:
        raise InvalidInput(
            "a file's name must not hold the character NUL",
            got=f"{text!r:.80}",
            remedy="Rename it.",
        )


def short(thing: object) -> str:
    """What came, for the middle of a sentence: a large object is cut, so that its data do not
    fill the screen.
    """
    if isinstance(thing, (dict, set)) or hasattr(thing, "shape"):
        return f"a {type(thing).__name__}"
    text = repr(thing)
    return text if len(text) <= 80 else f"{text[:77]}..."


def first_line(error: BaseException) -> str:
    """What another's error says, for the middle of one of our sentences."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def check_between(name: str, value: object, low: float, high: float, remedy: str) -> float:
    """Return `value` as a float if it is a number strictly between `low` and `high`."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
    if not is_number or not low < value < high:  # type: ignore[operator]
        law = (
            "a positive number"
            if (low, high) == (0, np.inf)
            else f"a number strictly between {low:g} and {high:g}"
        )
        raise InvalidInput(f"`{name}` must be {law}", got=f"{short(value)}", remedy=f"{remedy}")
    return float(value)  # type: ignore[arg-type]


def check_count(name: str, value: object, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`, and of at most
    `maximum`.
    """
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise InvalidInput(
            f"`{name}` must be a whole number, {minimum} or more",
            got=f"{short(value)}",
            remedy=f"Try {minimum}.",
        )
    if maximum is not None and value > maximum:
        raise InvalidInput(
            f"`{name}` must be at most {maximum:,}", got=short(value), remedy="Give a smaller one."
        )
    return int(value)
