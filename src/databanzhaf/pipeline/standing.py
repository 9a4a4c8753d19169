"""How far a run had come when it last wrote its run.json, for those who look on."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Start:
    """When a command began to evaluate (seconds since 1970), how many evaluations the ledger held
    by then, and how many it will hold at most.
    """

    time: float
    evaluations: int
    total: int

    def words(self) -> dict[str, Any]:
        """For run.json."""
        when = datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds")
        return {"time": when, "evaluations": self.evaluations, "total": self.total}


@dataclass(frozen=True)
class Standing:
    """What run.json says of a run that may go on: which command made it, its status, its start and,
    once it is finished, the seconds it took. `until` says that it may end before its total.
    """

    command: str
    status: str
    start: Start | None
    seconds: float | None
    until: bool


def read_standing(folder: Path) -> Standing | None:
    """The standing of the run in a folder; None without one, or if run.json was damaged."""
    try:
        stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(stored, dict):
        return None
    command, settings = stored.get("command", "value"), stored.get("settings")
    return Standing(
        str(command),
        str(stored.get("status", "unknown")),
        _start(stored.get("start")),
        _seconds(stored.get("seconds")),
        command == "mislabels" or (isinstance(settings, dict) and bool(settings.get("until"))),
    )


def _start(stored: Any) -> Start | None:
    """As `Start.words` wrote it; None from a version that did not."""
    try:
        when = datetime.fromisoformat(stored["time"]).timestamp()
        return Start(when, int(stored["evaluations"]), int(stored["total"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _seconds(stored: Any) -> float | None:
    known = isinstance(stored, (int, float)) and math.isfinite(stored) and stored > 0
    return float(stored) if known else None
