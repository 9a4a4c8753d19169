"""Which labels are wrong?"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.errors import check_between, check_count
from databanzhaf.evaluators import Local, Processes
from databanzhaf.labels import stages
from databanzhaf.labels.case import Case
from databanzhaf.labels.committee import STAGE, Committee
from databanzhaf.labels.judged import Judged, OfClasses, OfNumbers, Rule, flagged, spread_out
from databanzhaf.labels.result import Mislabels
from databanzhaf.ledger import Ledger
from databanzhaf.progress import Bar
from databanzhaf.protocols import Evaluator, IntArray

# Answers of a run take no more bytes than this where a smaller budget still serves.
_BYTES = 2e8
_MOST_HALVES, _LEAST_HALVES = 300, 100
# Standard errors by which judges must be better than a guess.
SKILL = 3.0


def judge(
    case: Case,
    *,
    budget: int | None = None,
    fdr: float = 0.2,
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    progress: bool | Callable[[int, int], None] = False,
) -> Mislabels:
    """Train the committee and judge every row."""
    check_between("fdr", fdr, 0, 1, "Try 0.2.")
    n, classes, members = len(case.doubted), case.classes, case.judges.members
    committee = Committee(members, case.numbers, classes)
    rule: Rule = (OfNumbers if classes is None else OfClasses)(
        case.numbers, n, case.seed, case.before
    )
    apart = case.judges.in_processes and case.n_jobs != 1
    with ExitStack() as stack:
        store = stack.enter_context(Ledger(ledger)) if isinstance(ledger, (str, Path)) else ledger
        tally = stages.run(
            committee,
            _rows(case),
            seed=case.seed,
            budget=_halves(committee, budget),
            wrong=rule.wrong,
            ledger=store,
            evaluator=evaluator or (Processes(case.n_jobs) if apart else Local()),
            watch=_watch(stack, progress),
        )
    with one_blas_thread():
        said = rule.judged(tally)
        learned = said.skill >= SKILL
        some = flagged(said.wrong, fdr) & learned
        found = rule.found(float(said.wrong[some].min())) if some.any() else 0.0
    labels = case.labels
    own = labels if classes is None else np.searchsorted(classes, labels)
    said = spread_out(said if classes is not None else _back(said, case), case.doubted, own)
    every = np.arange(len(labels))
    return Mislabels(
        labels,
        said.suggested if classes is None else classes[said.suggested],
        said.wrong,
        said.p_suggested,
        said.agreement,
        said.margin,
        np.isin(every, case.doubted[some]),
        tuple(map(float, said.share)) if learned else (math.nan,) * 3,  # type: ignore[arg-type]
        100 * found,
        fdr,
        said.low,
        said.high,
        classes,
        tuple(judge.name for judge in members),
        said.says if classes is None else classes[said.says],
        said.own,
        said.other,
        tally.done * len(members),
        case.n_checked,
        case.conflicts,
        learned,
        case.judges.notes,
        case.judges.read_as,
        case.index,
        ~np.isin(every, case.doubted),
    )


def bind(case: Case, ledger: Ledger) -> None:
    """Begin the run of a case in a ledger, or make sure that its run is this one."""
    committee = Committee(case.judges.members, case.numbers, case.classes)
    stages.bind(committee, _rows(case), case.seed, ledger)


def _rows(case: Case) -> stages.Rows:
    parts = _parts(case.numbers[: len(case.doubted)], case.classes is not None)
    before = hashlib.sha256(case.before.tobytes()).hexdigest()[:16]
    return stages.Rows(
        case.units, parts, case.n_checked, before if (case.before >= 0).any() else ""
    )


def _back(said: Judged, case: Case) -> Judged:
    """What was said of scaled targets, in their own unit."""
    assert said.low is not None
    assert said.high is not None
    low, high, expected, says = map(
        case.scale.back, (said.low, said.high, said.suggested, said.says)
    )
    return replace(said, low=low, high=high, suggested=expected, says=says)


def _parts(numbers: Any, classifies: bool) -> IntArray:
    """Classes, or tenths of the targets."""
    if classifies:
        return np.asarray(numbers, dtype=np.int64)
    edges = np.quantile(numbers, np.linspace(0, 1, 11)[1:-1])
    return np.asarray(np.searchsorted(edges, numbers), dtype=np.int64)


def _halves(committee: Committee, budget: int | None) -> int:
    """As asked; else 300, fewer where their answers would fill a disk."""
    if budget is not None:
        return check_count("budget", budget)
    shape = committee.shape
    size = 4 if shape.classes is None else 1 if shape.classes == 2 else shape.classes
    fitting = _BYTES / (shape.judges * shape.rows / 2 * size)
    return int(np.clip(fitting // STAGE * STAGE, _LEAST_HALVES, _MOST_HALVES))


def _watch(stack: ExitStack, progress: Any) -> Callable[[int, int], None]:
    if progress is False:
        return lambda done, total: None
    if progress is not True:
        return progress  # type: ignore[no-any-return]
    bar = Bar()
    stack.callback(bar.close)
    return lambda done, total: bar(done, total, ())
