"""A ledger → evaluations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import InvalidInput, LedgerMismatch, check_path, short
from databanzhaf.evaluations import Evaluations, complete_rows
from databanzhaf.ledger.bench import seated
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.protocols import FloatArray, Game, JudgedGame, TwoStepGame


def read_evaluations(
    source: str | Path | Ledger | Evaluations,
    game: Game | None = None,
    shape: tuple[int, int] | None = None,
    watch: Callable[[int, int], None] | None = None,
    *,
    whole_jury: bool = False,
) -> Evaluations:
    """All evaluations of a ledger that have their repeats; with `game`, scored again by its metric;
    with `shape`, the first so many coalitions and repeats. `watch` is called with the number of
    outcomes scored so far, and of all. With `whole_jury` the verdicts have all judging rows.
    """
    if isinstance(source, Evaluations):
        return source
    if isinstance(source, Ledger):
        return _read(source, game, shape, watch, whole_jury)
    if not isinstance(source, (str, Path)):
        raise InvalidInput(
            "`source` must be a ledger's path, a Ledger or Evaluations",
            got=short(source),
            remedy="Pass what db.value(..., ledger=...) wrote.",
        )
    check_path(source)
    if (inside := Path(source) / "run.db").is_file():  # the folder of a run by the shell
        source = inside
    if not Path(source).is_file():
        raise InvalidInput(
            f"there is no ledger at `{source}`",
            remedy="Give the path that was passed as ledger=... to databanzhaf.value.",
        )
    with Ledger(source) as ledger:
        return _read(ledger, game, shape, watch, whole_jury)


def _read(
    ledger: Ledger,
    game: Game | None,
    shape: tuple[int, int] | None,
    watch: Callable[[int, int], None] | None,
    whole_jury: bool,
) -> Evaluations:
    if ledger.is_new:
        raise InvalidInput(
            f"{ledger!r} holds no evaluations yet",
            remedy="Pass it as ledger=... to databanzhaf.value first.",
        )
    utilities = ledger.utilities(None if game is None else _rescoring(ledger, game, watch))
    if shape is not None:
        first = utilities[: shape[0], : shape[1]]
        if first.shape != shape or np.isnan(first).any():
            raise LedgerMismatch(
                f"{shape[0]:,} coalitions with {shape[1]} repeats each are not all in {ledger!r}",
                remedy="Repeat the command that wrote it.",
            )
        utilities = first
    else:
        # If a run stopped among its repeats, read as many repeats as use the most evaluations.
        complete = np.cumsum(np.isnan(utilities), axis=1) == 0
        repeats = 1 + int(np.argmax(complete.sum(axis=0) * np.arange(1, utilities.shape[1] + 1)))
        utilities = utilities[:, :repeats]
    bench = seated(game, ledger, *utilities.shape, whole=whole_jury)
    seats = () if bench is None else (bench.jury, bench.scores)
    design = designs.restore(ledger.design)
    return complete_rows(design, utilities, ledger.stochastic, ledger.players, *seats)


def _rescoring(
    ledger: Ledger, game: Game, watch: Callable[[int, int], None] | None
) -> Callable[[Sequence[bytes]], FloatArray] | None:
    """How the game scores the outcomes that the ledger kept; None if the ledger's own utilities are
    those.
    """
    found, asked = ledger.game, game.fingerprint()
    if found == asked:
        return None
    different = [
        name
        for name in dict.fromkeys([*found, *asked])
        if name != "metric" and found.get(name) != asked.get(name)
    ]
    if different or not isinstance(game, TwoStepGame):
        raise LedgerMismatch(
            "`game` may differ from the ledger's in its metric alone; it differs in "
            f"{', '.join(different) or 'kind'}",
            remedy="Pass the game that made the run, with another `metric`.",
        )
    two_step, done, total = game, 0, ledger.count()

    def score(outcomes: Sequence[bytes]) -> FloatArray:
        nonlocal done
        if isinstance(two_step, JudgedGame):
            utilities = two_step.scores(outcomes)
        else:
            utilities = np.array([two_step.score(outcome) for outcome in outcomes])
        bad = utilities[~np.isfinite(utilities)]
        if bad.size:
            raise InvalidInput(
                f"the metric {asked.get('metric')} is {bad[0]} for an outcome in the ledger",
                remedy="Choose another metric.",
            )
        done += len(outcomes)
        if watch is not None:
            watch(done, total)
        return utilities

    return score
