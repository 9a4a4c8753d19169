"""Designs as plain values, for a ledger, and back."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, is_dataclass
from typing import Any

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import Design

_HOME = "databanzhaf.designs"


def describe(design: Design) -> dict[str, Any]:
    """All that is needed to make the design again: its name and fields, as JSON has them.

    A design of this package goes by its class, one from outside by ``module:class``.
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
    described: dict[str, Any] = json.loads(json.dumps({"design": name, **asdict(design)}))
    return described


def restore(description: dict[str, Any]) -> Design:
    """The design that `describe` described.

    One from outside is found only where its module is imported already: a ledger may come from
    somebody else, and must not decide what code is run.
    """
    fields = dict(description)
    name = str(fields.pop("design", None))
    module, _, path = name.rpartition(":")
    found: Any = sys.modules.get(module or _HOME)
    for part in path.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not is_dataclass(found) or not hasattr(found, "coalitions"):
        raise InvalidInput(
            f"the ledger's design is {name!r}, which is not known here",
            remedy=f"Import {module} first." if module else "Upgrade databanzhaf.",
        )
    design: Any = found(**fields)
    return design  # type: ignore[no-any-return]
