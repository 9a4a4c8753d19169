"""How far rankings from a few repeats agree with that of a reference, in rounds, and the file that
keeps what was found.

In a round some repeats are the reference, and others are divided into groups of k. A round takes a
minute where each group is a linear program, so it is kept as one line as soon as it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import ledgers
from databanzhaf.experiments.lines import Lines
from databanzhaf.experiments.notions import NOTIONS
from databanzhaf.experiments.parallel import in_processes

FILE = "agreements.jsonl"
# For each k the Spearman of every group, (rounds, groups).
Found = dict[int, NDArray[np.float64]]


class Round(NamedTuple):
    """Repeats that are divided into groups, and those of the reference: from, to."""

    others: tuple[int, int]
    reference: tuple[int, int]


def rounds(repeats: int, reference: int) -> list[Round]:
    """Each block of repeats in turn is the reference of the block before it, so that the luck of a
    reference shows between rounds. Fewer repeats than two blocks make one round.

    Neighbouring rounds share a block, which matters little: on cpu, with k = 1, they correlate by
    0.13 ± 0.10 (Banzhaf, 100 rounds) and 0.08 ± 0.15 (least core, 41 rounds).
    """
    if repeats < 2 * reference:
        others = repeats - reference
        return [Round((0, others), (others, repeats))]
    blocks = [(low, low + reference) for low in range(0, repeats - reference + 1, reference)]
    return [Round(block, blocks[(number + 1) % len(blocks)]) for number, block in enumerate(blocks)]


def of_round(
    groups: db.Evaluations, reference: db.Evaluations, notion: str, ks: Sequence[int]
) -> dict[int, list[float]]:
    """For each k the Spearman between values from k repeats and those from the reference's, all of
    them: one for each disjoint group of k.
    """
    others = groups.utilities
    firsts = [(k, first) for k in ks for first in range(0, others.shape[1] - k + 1, k)]
    columns = [others[:, first : first + k].mean(axis=1) for k, first in firsts]
    (true,) = _values(reference, reference.utilities.mean(axis=1, keepdims=True), notion)
    found: dict[int, list[float]] = {k: [] for k in ks}
    for (k, _), values in zip(
        firsts, _values(groups, np.stack(columns, axis=1), notion), strict=True
    ):
        found[k].append(float(np.nan_to_num(db.ranking.spearman(values, true))))
    return found


def _values(evaluations: db.Evaluations, utilities: Any, notion: str) -> NDArray[np.float64]:
    """The values that each column of utilities gives."""
    kind = db.LeastCore() if notion == "least_core" else NOTIONS[notion]
    estimator = "reuse" if notion == "banzhaf" else "auto"  # the paper's, not this library's best
    part = replace(evaluations, utilities=utilities)
    return db.estimate(part, kind, estimator=estimator).values_by_repeat


def collect(
    file: Path,
    key: dict[str, Any],
    stamp: str,
    which: list[Round],
    ks: Sequence[int],
    run: Callable[[], tuple[tuple[db.Evaluations, db.Evaluations], ledgers.Work]],
    jobs: int = 1,
) -> tuple[Found, ledgers.Work]:
    """Every round of a notion: what the file has, and what is missing, which is added to it as it
    is found. `run` gives the evaluations of groups and of references, and whose work they are; it
    is called if a round is missing. `stamp` tells data and training from others.
    """
    places = {each: {**key, **each._asdict()} for each in which}
    lines = Lines(file, (*key, *Round._fields))
    there = lines.read()
    kept = {
        each: there[name]
        for each, place in places.items()
        if (name := lines.place(place)) in there and _whole(there[name], stamp, each, ks)
    }
    missing = [each for each in which if each not in kept]
    if missing:
        sides, work = run()
        parts = [
            (each, *(_only(*side) for side in zip(sides, each, strict=True)), key["notion"], ks)
            for each in missing
        ]
        for each, found in in_processes(_numbered, parts, jobs):
            rounded = {str(k): [round(one, 6) for one in of_k] for k, of_k in found.items()}
            kept[each] = {**places[each], "stamp": stamp, "agreement": rounded, "work": work}
            lines.add(kept[each])
    chosen = [kept[each] for each in which]
    most = max((ledgers.noted(line["work"]) for line in chosen), key=ledgers.trainings)
    return {k: np.array([line["agreement"][str(k)] for line in chosen]) for k in ks}, most


def _only(evaluations: db.Evaluations, repeats: tuple[int, int]) -> db.Evaluations:
    return replace(evaluations, utilities=evaluations.utilities[:, slice(*repeats)])


def _numbered(which: Round, *how: Any) -> tuple[Round, dict[int, list[float]]]:
    return which, of_round(*how)


def _whole(line: dict[str, Any], stamp: str, which: Round, ks: Sequence[int]) -> bool:
    """Whether a line is of these data and has every group of every k."""
    agreement, work = line.get("agreement"), line.get("work")
    return (
        line.get("stamp") == stamp
        and isinstance(agreement, dict)
        and isinstance(work, dict)
        and ledgers.noted(work) == work
        and all(_numbers(agreement.get(str(k)), which, k) for k in ks)
    )


def _numbers(found: Any, which: Round, k: int) -> bool:
    low, high = which.others
    return (
        isinstance(found, list)
        and len(found) == (high - low) // k
        and all(isinstance(each, (int, float)) and np.isfinite(each) for each in found)
    )
