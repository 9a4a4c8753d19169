"""Designs as plain values, for a ledger, and back."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import Design

_HOME = "databanzhaf.designs"


def describe(design: Design) -> dict[str, Any]:
    """All that is needed to make the design again: its name and fields, as JSON has them.

    A design of this package goes by its class; one from outside by ``module:class``, with a digest
    of its first coalitions, which tells whether its code has changed.
    """
    if not is_dataclass(design) or isinstance(design, type):
        raise InvalidInput(
            "a design must be a frozen dataclass, so that the ledger can name it",
            got=short(design),
            remedy="Decorate it.",
        )
    kind = type(design)
    own = kind.__module__.startswith(_HOME)
    name = kind.__name__ if own else f"{kind.__module__}:{kind.__qualname__}"
    if "design" in asdict(design):
        raise InvalidInput(
            "a design must not have a field `design`: the ledger keeps its class by that name",
            got=short(design),
            remedy="Rename the field.",
        )
    stored = {"design": name, **asdict(design), **({} if own else {"digest": _digest(design)})}
    described: dict[str, Any] = json.loads(json.dumps(stored, default=_plain))
    return described


def _plain(thing: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(thing, np.generic):
        return thing.item()
    raise InvalidInput(
        "the fields of a design must be numbers, texts and tuples of them",
        got=short(thing),
        remedy="Compute the rest from them.",
    )


def _digest(design: Design) -> str:
    first = np.arange(64 if design.size is None else min(64, design.size))
    return hashlib.blake2b(
        np.packbits(design.coalitions(first)).tobytes(), digest_size=8
    ).hexdigest()


def restore(description: dict[str, Any]) -> Design:
    """The design that `describe` described.

    One from outside is found only where its module is imported already: a ledger may come from
    somebody else, and must not decide what code is run.
    """
    fields = dict(description)
    name, digest = str(fields.pop("design", None)), fields.pop("digest", None)
    module, _, path = name.rpartition(":")
    found: Any = sys.modules.get(module or _HOME)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not is_dataclass(found) or not hasattr(found, "coalitions"):
        raise InvalidInput(
            f"the ledger's design is {name!r}, which is not known here",
            remedy=f"Import {module} first; the class must be at its top level."
            if module
            else "Upgrade databanzhaf.",
        )
    try:
        design: Any = found(**fields)
    except TypeError as error:
        raise InvalidInput(
            f"the ledger's design {name!r} has other fields here ({error})",
            remedy="Restore the class as it was when the run began.",
        ) from error
    if digest is not None and digest != _digest(design):
        raise InvalidInput(
            f"the ledger's design {name!r} makes other coalitions here",
            remedy="Restore the class as it was when the run began.",
        )
    return design  # type: ignore[no-any-return]
