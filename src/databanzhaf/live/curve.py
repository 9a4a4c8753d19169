"""How the values of a run settled with its evaluations."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from databanzhaf.diagnostics import checkpoint, stability
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.protocols import IntArray
from databanzhaf.report.content import Series

# A point has so many times the evaluations of the one before: at the checkpoints before anybody
# looked, which cost an estimate each, and at every look since.
_FROM_NOW, _BETWEEN_LOOKS = 1.9, 1.05
# Where an estimate takes less than so many seconds, all checkpoints are computed at once.
_LITTLE = 0.1


class Curve:
    """Median standard error and rank stability by number of evaluations: now, at earlier looks and
    at some of the checkpoints before, each computed once.
    """

    def __init__(self) -> None:
        self._of: tuple[Any, ...] | None = None
        self._points: dict[int, tuple[float | None, float | None]] = {}

    def until(
        self,
        evaluations: Evaluations,
        now: Estimate,
        players: IntArray | None,
        seconds: float,
    ) -> Series:
        """The curve, which ends at an estimate that took so many seconds. A look computes one
        checkpoint that is missing, and more of them for about as long as the estimate took.
        """
        of = (str(evaluations.design), evaluations.n_repeats, now.notion, now.estimator)
        if of != self._of:  # more repeats, or another run
            self._of, self._points = of, {}
        began = time.thread_time()
        for mark in _marks(evaluations):
            if mark * evaluations.n_repeats in self._points:
                continue
            then = checkpoint(evaluations.before(mark), now.notion, now.estimator).estimate
            self._points[then.n_evaluations] = _point(then, players)
            if time.thread_time() - began > max(seconds, _LITTLE):
                break
        count, point = now.n_evaluations, _point(now, players)
        earlier = sorted(each for each in self._points if each < count)
        if not earlier or count >= _BETWEEN_LOOKS * earlier[-1]:
            self._points[count] = point
        points = [*(self._points[each] for each in earlier), point]
        errors, steady = zip(*points, strict=True)
        return Series([*earlier, count], list(errors), list(steady))


def _marks(evaluations: Evaluations) -> list[int]:
    """Checkpoints below which all is evaluated, not too near to now."""
    return [
        mark
        for mark in evaluations.marks()[:-1]
        if int(np.searchsorted(evaluations.indices, mark)) == mark
        and len(evaluations) >= _FROM_NOW * mark
    ]


def _point(found: Estimate, players: IntArray | None) -> tuple[float | None, float | None]:
    shown = found if players is None else found.of(players)
    return finite(float(np.median(shown.std_errors))), finite(stability(shown))


def finite(number: float) -> float | None:
    """The number; None for infinity and NaN, which JSON does not have."""
    return number if np.isfinite(number) else None
