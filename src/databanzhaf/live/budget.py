"""How often values may be computed while a run goes on."""

from __future__ import annotations

from databanzhaf.live.counts import Counts

# Of one core's time while the run lasts, all computations together may take this part.
_SHARE = 0.01


class Budget:
    """Seconds of processor that values took, and may take. The first computation is free: nobody
    knows yet what it takes, and it comes early or is a small part of a long run. Each further one
    must be affordable by the time that has passed; or, when evaluations have doubled, by the time
    that the run will take as a whole. So a run whose values cost little is seen often, and one
    whose values cost as much as its trainings is seen early on and at its end.
    """

    def __init__(self) -> None:
        self._start: object = None
        self._spent, self._last, self._of = 0.0, 0.0, 0
        self._since: float | None = None

    def allows(self, counts: Counts, now: float, left: float) -> bool:
        """Whether to compute again, at a time of the clock, with so many seconds of the run left.
        A computation takes time in proportion to the evaluations.
        """
        start = None if counts.standing is None else counts.standing.start
        if self._since is None or start != self._start:  # another command continues the run
            self._start, self._spent = start, 0.0
            self._since = now if start is None else start.time
        if not self._of:
            return True
        grown = counts.evaluations / self._of
        passed = now - self._since + (left if grown >= 2 else 0.0)
        return self._spent + self._last * grown <= _SHARE * passed

    def took(self, counts: Counts, seconds: float) -> None:
        """Note a computation."""
        self._spent, self._last, self._of = self._spent + seconds, seconds, counts.evaluations
