"""A run's folder → what the page shows, looked at only while somebody asks."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

from databanzhaf.errors import DatabanzhafError
from databanzhaf.live import words
from databanzhaf.live.budget import Budget
from databanzhaf.live.counts import Counts, Speed, look
from databanzhaf.live.place import Place
from databanzhaf.live.values import Reader, Values

# Values are not computed again, and counts not read again, within so many seconds.
_PAUSE, _FRESH = 5.0, 1.0
_IN_PROGRESS = ("running", "computing")


@dataclass(frozen=True)
class _Computed:
    """Values, of which counts, and when by the monotonic clock. If the last attempt failed: why,
    and the values before it.
    """

    values: Values | None = None
    of: Counts | None = None
    at: float = float("-inf")
    problem: str = ""


class Watch:
    """What there is to show of a run. `state` may be called by several threads."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._reader, self._speed = Reader(place), Speed()
        self._budget = Budget()
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {}
        self._looked = float("-inf")
        self._computed = _Computed()
        self._task: threading.Thread | None = None

    def state(self) -> dict[str, Any]:
        """What the page shows, as plain values for JSON."""
        with self._lock:
            if time.monotonic() - self._looked >= _FRESH:
                self._state = self._look()
                self._looked = time.monotonic()
            return self._state

    def _look(self) -> dict[str, Any]:
        try:
            counts, now = look(self.place), time.time()
        except (DatabanzhafError, OSError) as error:
            return self._shown(Counts(), "damaged", None, str(error))
        self._speed.add(counts.evaluations)
        stage = counts.stage(now)
        if counts.evaluations and not counts.is_for_labels:
            self._compute(counts, now, goes_on=stage in _IN_PROGRESS)
        age = None if counts.recorded is None else max(0.0, now - counts.recorded)
        problem = self._computed.problem if counts.evaluations else ""
        return self._shown(counts, stage, age, problem)

    def _shown(self, counts: Counts, stage: str, age: float | None, problem: str) -> dict[str, Any]:
        computed, now = self._computed, time.monotonic()
        values = computed.values
        there = values if values is not None and values.used else None
        goes_on = stage in _IN_PROGRESS
        return {
            "title": self.place.name,
            "subject": "" if values is None else values.subject,
            "stage": stage,
            "said": words.said(self.place, counts, stage),
            "problem": problem,
            "done": counts.evaluations,
            "total": counts.total,
            "tiles": words.tiles(counts, stage, self._speed.recent, age, values),
            "notes": words.notes(counts, stage, values),
            "values": there and words.shown(there, now - computed.at, goes_on=goes_on),
        }

    def _compute(self, counts: Counts, now: float, *, goes_on: bool) -> None:
        """Begin to compute the values, if it is time. A run that has ended is not slowed down."""
        last = self._computed
        busy = self._task is not None and self._task.is_alive()
        early = time.monotonic() - last.at < _PAUSE
        if busy or early or (counts == last.of and not last.problem):
            return
        left = counts.left(self._speed.recent) or 0.0
        if self._budget.allows(counts, now, left) or not goes_on:
            self._task = threading.Thread(target=self._work, args=(counts,), daemon=True)
            self._task.start()

    def _work(self, counts: Counts) -> None:
        values, problem, began = self._computed.values, "", time.thread_time()
        try:
            self._reader.prepare()
            began = time.thread_time()  # the table is read once
            values = self._reader.values()
        except (DatabanzhafError, OSError) as error:
            problem = str(error)
        finally:
            self._budget.took(counts, time.thread_time() - began)
            self._computed = _Computed(values, counts, time.monotonic(), problem)
