"""Players' names as JSON, and back."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np


def plain_names(players: Any) -> list[Any] | dict[str, Any]:
    """Names for JSON: a pandas index (dates, several levels, its own names) as a table with its
    types, else a list.
    """
    if hasattr(players, "to_frame"):
        # An index of a kind that JSON has no place for (periods, intervals, bytes, ...) is kept by
        # its texts.
        with suppress(TypeError, ValueError, NotImplementedError, OverflowError):
            stored = _stored_index(players)
            if read_index(stored).equals(players):
                return stored
        return [str(name) for name in players]
    plain = [name.item() if isinstance(name, np.generic) else name for name in players]
    return [name if isinstance(name, (bool, int, float, str)) else str(name) for name in plain]


def _stored_index(players: Any) -> dict[str, Any]:
    levels = [f"level {level}" for level in range(players.nlevels)]
    frame = players.to_frame(index=False, name=levels if len(levels) > 1 else levels[0])
    table: dict[str, Any] = json.loads(frame.to_json(orient="table", index=False, date_unit="ns"))
    return {
        "names": [None if name is None else str(name) for name in players.names],
        "table": table,
    }


def read_index(stored: dict[str, Any]) -> Any:
    import io

    import pandas as pd

    frame = pd.read_json(
        io.StringIO(json.dumps(stored["table"])), orient="table", precise_float=True
    )
    index: Any = (
        pd.Index(frame.iloc[:, 0]) if frame.shape[1] == 1 else pd.MultiIndex.from_frame(frame)
    )
    return index.set_names(stored["names"])
