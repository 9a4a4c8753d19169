"""Values from ledgers that remember which machine did how much of the work."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import databanzhaf as db
from databanzhaf.experiments.outcome import hardware, replace_text
from databanzhaf.experiments.setting import Setting


def value(setting: Setting, parts: tuple[object, ...], game: Any, notion: Any, **how: Any) -> db.Estimate:
    """`db.value` with the experiment's seed and the ledger named by `parts`; what is evaluated is noted under this machine's name."""
    path = setting.ledger(*parts)
    start = time.perf_counter()
    with db.Ledger(path) as ledger:
        before = ledger.count()
        try:
            return db.value(game, notion, seed=setting.seed, ledger=ledger, **how)
        finally:
            _note(path, hardware(setting), ledger.count() - before, time.perf_counter() - start)


def evaluations(setting: Setting, parts: tuple[object, ...], repeats: int) -> db.Evaluations:
    """What a ledger holds: the coalitions with all of their first `repeats` repeats."""
    with db.Ledger(setting.ledger(*parts)) as ledger:
        utilities = ledger.utilities()[:, :repeats]
        known = (utilities == utilities).all(axis=1).nonzero()[0]
        return db.Evaluations(db.designs.restore(ledger.design), known, utilities[known], ledger.stochastic, ledger.players)


def machines(setting: Setting, ledgers: list[tuple[object, ...]]) -> str:
    """Which machines evaluated how much, and how long that took."""
    total: dict[str, list[float]] = {}
    for parts in ledgers:
        for machine, (count, seconds) in _noted(_notes(setting.ledger(*parts))).items():
            known = total.setdefault(machine, [0, 0.0])
            total[machine] = [known[0] + count, known[1] + seconds]
    return "; ".join(f"{machine} ({count:,} trainings, {seconds:,.0f} s)" for machine, (count, seconds) in total.items())


def _note(path: Path, machine: str, count: int, seconds: float) -> None:
    if count:
        noted = _noted(_notes(path))
        before = noted.get(machine, [0, 0.0])
        noted[machine] = [before[0] + count, round(before[1] + seconds, 1)]
        replace_text(_notes(path), json.dumps(noted) + "\n")


def _notes(ledger: Path) -> Path:
    return ledger.with_suffix(".machines.json")


def _noted(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}
