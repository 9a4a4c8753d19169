"""Values from ledgers that remember which machine did how much of the work."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import databanzhaf as db
from databanzhaf.experiments import pieces
from databanzhaf.experiments.outcome import hardware, read_json
from databanzhaf.experiments.setting import Setting
from databanzhaf.files import write_text

# Machine → [trainings, seconds].
Work = dict[str, list[float]]
UNKNOWN = "a machine that was not noted"


def value(
    setting: Setting,
    parts: tuple[object, ...],
    game: Any,
    notion: Any,
    *,
    piecewise: bool = False,
    kept_repeats: int | None = None,
    **how: Any,
) -> db.Estimate:
    """`db.value` with the experiment's seed and the ledger named by `parts`; what is evaluated is
    noted under this machine's name.

    A `piecewise` run continues from the piece that an earlier one left beside the pages, and leaves
    a larger one, of `kept_repeats` where all of them would be too large.
    """
    path, kept = setting.ledger(*parts), pieces.path(setting, parts)
    if setting.progress:
        print(" ".join(str(part) for part in parts), file=sys.stderr)
    with db.Ledger(path, keep="utilities") as ledger:
        if piecewise and ledger.is_new and (piece := pieces.read(kept)) is not None:
            pieces.restore(kept, piece, ledger, game, how.get("seed", setting.seed))
            write_text(_notes(path), json.dumps({"work": noted(piece["work"])}) + "\n")
        _settle(path, ledger, now=hardware(setting))

        def keep() -> None:
            with db.Ledger(path) as reader:
                work = _settle(path, reader, now=hardware(setting))
                pieces.write(kept, reader, work, kept_repeats)

        with pieces.kept_meanwhile(keep) if piecewise else nullcontext():
            found: db.Estimate = db.value(
                game,
                notion,
                ledger=ledger,
                progress=setting.progress,
                **{"seed": setting.seed, **how},
            )
            return found


def evaluations(
    setting: Setting, parts: tuple[object, ...], budget: int, repeats: int
) -> db.Evaluations:
    """What a run of that budget has in a ledger, which may hold a larger one."""
    with db.Ledger(setting.ledger(*parts)) as ledger:
        design = db.designs.restore(ledger.design)
        utilities = ledger.utilities()[
            : design.size or budget // design.unit * design.unit, :repeats
        ]
        known = np.flatnonzero(~np.isnan(utilities).any(axis=1))
        return db.Evaluations(design, known, utilities[known], ledger.stochastic, ledger.players)


def halves(evaluations: db.Evaluations) -> tuple[db.Evaluations, db.Evaluations] | None:
    """Two parts that share no coalition but those that a design must have; None where there are
    none to share out.
    """
    design, indices = evaluations.design, evaluations.indices
    if isinstance(design, db.designs.LeaveOneOut):
        return None
    unit = design.unit  # a permutation is not cut
    units = indices // unit
    if units[-1] == 0:
        return None
    early = units < (units[-1] + 1) // 2
    anchors = (
        indices < 2
        if isinstance(design, db.designs.Anchored)
        else np.zeros(len(indices), dtype=np.bool_)
    )
    return evaluations.only(early | anchors), evaluations.only(~early | anchors)


def work(setting: Setting, ledgers: list[tuple[object, ...]]) -> Work:
    """Which machines evaluated how much, and how long that took."""
    total: Work = {}
    for parts in ledgers:
        path = setting.ledger(*parts)
        if not path.is_file():
            continue
        with db.Ledger(path) as ledger:
            add(total, _settle(path, ledger))
    return total


def add(total: Work, more: Work) -> None:
    for machine, (count, seconds) in more.items():
        before = total.get(machine, [0, 0.0])
        total[machine] = [before[0] + count, round(before[1] + seconds, 1)]


def trainings(work: Work) -> float:
    return sum(count for count, _ in work.values())


def machines(total: Work) -> str:
    """For a page."""
    return "; ".join(
        f"{machine} ({count:,.0f} trainings, {seconds:,.0f} s)"
        for machine, (count, seconds) in total.items()
    )


def noted(work: Any) -> Work:
    """Work as it stands in a small file; none where it is damaged."""
    try:
        return {machine: [int(count), float(seconds)] for machine, (count, seconds) in work.items()}
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return {}


def _settle(path: Path, ledger: db.Ledger, now: str | None = None) -> Work:
    """What is in the ledger and not yet noted was done by the machine that was last at work: so a
    killed run is noted by the next.
    """
    notes = _notes(path)
    found = read_json(notes)
    count, seconds = ledger.count(), ledger.seconds()
    done = noted(found.get("work"))
    counted, timed = (sum(part[column] for part in done.values()) for column in (0, 1))
    if counted > count:  # notes of another ledger
        done, counted, timed = {}, 0, 0.0
    if count > counted:
        add(done, {str(found.get("last") or UNKNOWN): [count - counted, max(0.0, seconds - timed)]})
    if now is not None or count > counted:
        write_text(notes, json.dumps({"work": done, "last": now or found.get("last")}) + "\n")
    return done


def _notes(path: Path) -> Path:
    return path.with_suffix(".machines.json")
