"""How far a run is: what is cheap to know, and may be asked every second."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from databanzhaf.ledger import Ledger
from databanzhaf.live.place import Place
from databanzhaf.pipeline.standing import Standing, read_standing

# A run that records nothing for so long is not called running, unless its trainings are slow.
QUIET_SECONDS = 60.0
QUIET_EVALUATIONS = 10
# Speed is that of the last so many seconds.
_RECENT = 60.0


@dataclass(frozen=True)
class Counts:
    """What a ledger and its run.json say at one moment.

    `recorded` is when the ledger last changed, in seconds since 1970; `judges` is the size of the
    committee if the run looks for wrong labels, else 0.
    """

    evaluations: int = 0
    recorded: float | None = None
    judges: int = 0
    standing: Standing | None = None

    @property
    def total(self) -> int | None:
        """How many evaluations there will be at most."""
        start = None if self.standing is None else self.standing.start
        return None if start is None else start.total

    @property
    def may_end_early(self) -> bool:
        return self.standing is not None and self.standing.until

    @property
    def is_for_labels(self) -> bool:
        return self.judges > 0 or (
            self.standing is not None and self.standing.command == "mislabels"
        )

    @property
    def overall(self) -> float | None:
        """Evaluations a second since the command began."""
        standing = self.standing
        if standing is None or standing.start is None or self.recorded is None:
            return None
        passed = self.recorded - standing.start.time
        if standing.status == "finished" and standing.seconds is not None:
            passed = min(passed, standing.seconds)  # a copied ledger is younger than its run
        fresh = self.evaluations - standing.start.evaluations
        return fresh / passed if fresh > 0 and passed > 0 else None

    def left(self, recent: float | None) -> float | None:
        """Seconds until the total, at the speed of the last minute or, without one, overall."""
        rate = recent or self.overall
        if self.total is None or not rate:
            return None
        return max(0, self.total - self.evaluations) / rate

    def stage(self, now: float) -> str:
        """waiting, running, computing (all is evaluated), quiet, stopped or finished."""
        status = "" if self.standing is None else self.standing.status
        if status in ("finished", "stopped"):
            return status
        if not self.evaluations or self.recorded is None:
            return "waiting"
        if self.total is not None and self.evaluations >= self.total:
            return "computing"
        patience = max(QUIET_SECONDS, QUIET_EVALUATIONS / (self.overall or float("inf")))
        return "running" if now - self.recorded < patience else "quiet"


def look(place: Place) -> Counts:
    """The counts now; raises what is wrong with the ledger."""
    standing = None if place.folder is None else read_standing(place.folder)
    if not place.ledger.exists():
        return Counts(standing=standing)
    with Ledger.looking(place.ledger) as ledger:
        judges = 0
        if ledger.design.get("design") == "Committee":
            judges = sum(name.endswith(" game") for name in ledger.game)
        return Counts(ledger.count(), _changed(place.ledger), judges, standing)


def _changed(ledger: Path) -> float | None:
    """When evaluations were last written: to the log first, later to the file."""
    times, file = [], ledger.resolve()  # a link's log stands beside the file
    for name in (file, file.with_name(f"{file.name}-wal")):
        try:
            times.append(name.stat().st_mtime)
        except OSError:  # the log is there while a run writes
            continue
    return max(times, default=None)


class Speed:
    """Evaluations a second over the last minute, from counts at several moments."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add(self, evaluations: int, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        if self._seen and evaluations < self._seen[-1][1]:  # another ledger
            self._seen.clear()
        self._seen.append((now, evaluations))
        while now - self._seen[0][0] > _RECENT:
            self._seen.popleft()

    @property
    def recent(self) -> float | None:
        """None until two moments are known."""
        (began, before), (now, after) = self._seen[0], self._seen[-1]
        return (after - before) / (now - began) if now > began else None
