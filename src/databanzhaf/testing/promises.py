"""One promise at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from databanzhaf.protocols import BoolArray

# Players of a coalition that a message lists.
_SHOWN = 12


def promise(holds: Any, sentence: str) -> None:
    """Raise `AssertionError` with the sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def same(
    got: Any,
    expected: Any,
    sentence: str,
    where: Callable[[int], str] = lambda row: f"position {row}",
) -> None:
    """The same bits; the message names the first row that differs, and both of its contents."""
    one, two = np.asarray(got), np.asarray(expected)
    promise(one.shape == two.shape, f"{sentence}; got shape {one.shape}, not {two.shape}")
    differs = (one != two) & ~((one != one) & (two != two))
    if differs.any():
        row = int(np.argwhere(differs)[0, 0])
        raise AssertionError(
            f"{sentence}; {where(row)}: got {_shown(one[row])}, not {_shown(two[row])}"
        )


def has_members(thing: object, protocol: type, kind: str) -> None:
    """An object, not its class, with every member of the protocol."""
    made = isinstance(thing, type)
    promise(not made, f"{kind} is an object; got the class {getattr(thing, '__name__', '')}")
    public = [name for name in dir(protocol) if not name.startswith("_")]
    wanted = ["__call__", *public] if "__call__" in vars(protocol) else public
    missing = [name for name in wanted if not hasattr(thing, name)]
    promise(
        not missing,
        f"{kind} has the members of protocols.{protocol.__name__}; "
        f"{type(thing).__name__} is without {', '.join(missing)}",
    )


def is_count(number: Any, name: str, *, optional: bool = False) -> None:
    """A whole number, 1 or more; None too if it is optional."""
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    promise(
        (optional and number is None) or (whole and number >= 1),
        f"`{name}` is {'None or ' if optional else ''}a whole number, 1 or more; got {number!r}",
    )


def named(coalition: BoolArray) -> str:
    """A coalition as a message shows it: ``coalition {0, 3}``."""
    players = np.flatnonzero(coalition).tolist()
    more = f", ... {len(players) - _SHOWN} more" if len(players) > _SHOWN else ""
    return f"coalition {{{', '.join(map(str, players[:_SHOWN]))}{more}}}"


def _shown(content: Any) -> str:
    return named(content) if np.ndim(content) else repr(content.item())
