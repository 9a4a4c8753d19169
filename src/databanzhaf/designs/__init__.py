"""Designs: index → coalition."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from databanzhaf.designs.anchored import Anchored
from databanzhaf.designs.coin import Coin
from databanzhaf.designs.exhaustive import Exhaustive
from databanzhaf.designs.group_testing import GroupTesting
from databanzhaf.designs.leave_one_out import LeaveOneOut
from databanzhaf.designs.paired import Paired
from databanzhaf.designs.permutation import Permutation
from databanzhaf.errors import InvalidInput
from databanzhaf.types import Design

__all__ = [
    "Anchored",
    "Coin",
    "Exhaustive",
    "GroupTesting",
    "LeaveOneOut",
    "Paired",
    "Permutation",
    "describe",
    "restore",
]

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Anchored, Coin, Exhaustive, GroupTesting, LeaveOneOut, Paired, Permutation)}


def describe(design: Design) -> dict[str, Any]:
    """All that is needed to make the design again: its name and fields."""
    if not is_dataclass(design) or isinstance(design, type):
        raise InvalidInput(f"a design must be a frozen dataclass, so that the ledger can name it; got {design!r}. Decorate it.")
    return {"design": type(design).__name__, **asdict(design)}


def restore(description: dict[str, Any]) -> Design:
    """The design that `describe` described."""
    fields = dict(description)
    kind = fields.pop("design", None)
    if kind not in _KINDS:
        raise InvalidInput(f"no design is called {kind!r}; there are {', '.join(_KINDS)}. Upgrade databanzhaf, or pass evaluations.")
    design: Design = _KINDS[kind](**fields)
    return design
