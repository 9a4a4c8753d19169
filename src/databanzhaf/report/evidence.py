"""Result → what its rows show when they are opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

from databanzhaf.applications.evidence import (
    MOST,
    JuryEffect,
    contradictions,
    jury_effects,
    nearest,
)
from databanzhaf.attribution import attribution_of
from databanzhaf.errors import InvalidInput
from databanzhaf.pipeline import Job, Result
from databanzhaf.population import effects
from databanzhaf.protocols import IntArray, JudgedGame
from databanzhaf.report.content import Evidence, Opened, cell
from databanzhaf.tables import Encoder

# Rows that can be opened: all suspects up to a limit, the lowest, and the highest if they are
# listed. Each takes about 400 bytes of the page, and twice that where its neighbors are not listed.
MOST_SUSPECTS, LOWEST, HIGHEST = 1000, 300, 100
# Rows with the same cells that are named: of so many labels, so many rows each.
MOST_LABELS, MOST_COPIES = 5, 10
# Rows whose predictions are explained: those with the lowest values; so many at a time.
MOST_SWAYED, _AT_A_TIME = 300, 100


def evidence_of(
    result: Result, listed: IntArray, cells: Callable[[IntArray], list[list[Any]]]
) -> Evidence | None:
    """What the rows that can be opened show; None for groups, and where clusters are players, too.
    `listed` are the players in the table, and `cells` makes lines of it.
    """
    job = result.job
    if job.group_sizes is not None or job.shown is not None:
        return None
    players = _openable(result, listed)
    features = job.table.drop(columns=_no_features(job))
    encode = Encoder(features)
    labels = np.asarray(job.labels)
    near = nearest(encode(features), players, labels if job.classifies else None)
    copies = contradictions(_digests(features[encode.columns]), labels, players)
    against = (
        [
            (cell(label), rows[:MOST_COPIES], len(rows))
            for label, rows in [*each.items()][:MOST_LABELS]
        ]
        for each in copies
    )
    juries = _juries(result, players)
    swayed = _swayed(result, players)
    opened = {
        player: Opened(rows, copied, jury, swayed.get(player))
        for player, rows, copied, jury in zip(players.tolist(), near, against, juries, strict=True)
    }
    judges = None if job.dataset.judges is None else job.dataset.judges.tolist()
    heard = {judge for jury in juries if jury is not None for judge in _named(jury)}
    named = {row for each in opened.values() for row in _rows_of(each)}
    if judges is not None:
        named |= {judges[judge] for judge in heard}
    absent = np.array(sorted(named - set(listed.tolist())), dtype=np.int64)
    return Evidence(
        opened,
        dict(zip(absent.tolist(), cells(absent), strict=True)),
        judges,
        {} if judges is not None else _validation_rows(job, heard),
        _part(result) if any(jury is not None for jury in juries) else _why_not(result),
    )


def _openable(result: Result, listed: IntArray) -> IntArray:
    suspects = result.suspects if result.suspects is not None else listed[:0]
    order = result.estimate.ranking()
    chosen = [suspects[:MOST_SUSPECTS], order[:LOWEST], order[-HIGHEST:]]
    return np.intersect1d(np.concatenate(chosen), listed).astype(np.int64)


def _no_features(job: Job) -> list[Any]:
    special = {job.settings.target, job.settings.id, *job.settings.drop}
    return [name for name in job.table.columns if name in special]


def _digests(table: Any) -> Any:
    import pandas as pd

    return pd.util.hash_pandas_object(table, index=False).to_numpy()


def _juries(result: Result, players: IntArray) -> list[JuryEffect | None]:
    dataset, own = result.job.dataset, None
    if dataset.judges is not None:
        places = np.full(dataset.n_rows, -1)
        places[dataset.judges] = np.arange(len(dataset.judges))
        own = places[players]
    if result.evaluations is None:
        return [None] * len(players)
    found = effects(result.evaluations, result.estimate, players, own)
    return [None] * len(players) if found is None else [*jury_effects(found)]


def _swayed(result: Result, players: IntArray) -> dict[int, Any]:
    """Of the rows that judge: who hurt and who helped the prediction for each the most."""
    dataset = result.job.dataset
    if dataset.judges is None or dataset.n_players != dataset.n_rows:
        return {}
    if result.evaluations is None:
        return {}
    try:
        found = attribution_of(result.evaluations, result.estimate, result.job.game)
    except InvalidInput:  # the page says why
        return {}
    lowest = result.estimate.ranking()
    lowest = lowest[np.isin(lowest, players)][:MOST_SWAYED]
    asked = np.flatnonzero(np.isin(dataset.judges, lowest))
    limit = norm.isf(0.05 / 2 / max(1, dataset.n_players - 1))
    swayed: dict[int, Any] = {}
    for low in range(0, len(asked), _AT_A_TIME):
        some = asked[low : low + _AT_A_TIME]
        effects, errors = found.some(np.isin(np.arange(len(dataset.judges)), some))
        for column, judge in enumerate(some.tolist()):
            own = int(dataset.judges[judge])
            swayed[own] = _extremes(effects[:, column], limit * errors[:, column])
    return swayed


def _extremes(effects: Any, limits: Any) -> tuple[list[Any], list[Any]]:
    """The three effects farthest below zero, and above it."""
    order = np.argsort(effects, kind="stable")  # NaN, its own, is last
    order = order[: int(np.isfinite(effects).sum())]
    sides = (order[:MOST], order[::-1][:MOST])
    return tuple(  # type: ignore[return-value]
        [
            (int(player), float(effects[player]), bool(abs(effects[player]) > limits[player]))
            for player in side
            if sign * effects[player] > 0
        ]
        for sign, side in zip((-1, 1), sides, strict=True)
    )


def _part(result: Result) -> str:
    """That some of the judging rows are not looked at, if so."""
    verdicts = None if result.evaluations is None else result.evaluations.verdicts
    if verdicts is None or verdicts.size == len(verdicts.weights):
        return ""
    return (
        f"These are {len(verdicts.weights):,} of the {verdicts.size:,} judging rows, evenly spaced."
    )


def _why_not(result: Result) -> str:
    """Why there is no effect over the jury, and what would give one."""
    job, game = result.job, result.job.game
    if result.evaluations is None:
        return (
            "The effect on single judging rows is not part of the closed form. A run with "
            "--estimator regression and another --out would show it."
        )
    if result.evaluations.verdicts is not None:
        if hasattr(result.evaluations.design, "judge_folds"):
            return (
                "The effect on single judging rows is unknown: the jury is cut into folds, and no "
                "row judged all models. Validation rows (--validation) would judge all of them."
            )
        notion = result.estimate.notion.name.replace("_", " ").capitalize()
        return f"{notion} values have no part for each judging row; --notion banzhaf has one."
    if isinstance(game, JudgedGame) and game.jury is None:
        other = "probability" if job.classifies else "mae"
        return (
            f"The effect on single judging rows is unknown: {job.metric} is not a mean over rows. "
            f"A run with --metric {other} would show it."
        )
    return (
        "The effect on single judging rows is unknown: predictions were not kept. A new run with "
        "--keep predictions and another --out keeps them."
    )


def _validation_rows(job: Job, judges: set[int]) -> dict[int, tuple[str, Any]]:
    """Names and labels of validation rows: by their number in the validation file, or in the
    user's own table, of which they were held out.
    """
    dataset, game = job.dataset, job.game
    jury = game.jury if isinstance(game, JudgedGame) else None
    held = np.arange(len(dataset.y_val)) if jury is None else jury.held
    in_file = job.settings.validation is not None
    everyone = np.arange(len(job.rows) + len(dataset.y_val))
    numbers = np.arange(len(dataset.y_val)) if in_file else np.setdiff1d(everyone, job.rows)
    word = "validation row" if in_file else "row"
    return {
        judge: (f"{word} {numbers[held[judge]]}", cell(dataset.y_val[held[judge]]))
        for judge in sorted(judges)
    }


def _named(jury: JuryEffect) -> list[int]:
    return [judge for judge, _, _ in (*jury.most_hurt, *jury.most_helped)]


def _rows_of(opened: Opened) -> list[int]:
    near = [row for row, _ in (*opened.neighbors.same, *opened.neighbors.other)]
    others = [player for side in opened.swayed or () for player, *_ in side]
    return near + others + [row for _, rows, _ in opened.contradictions for row in rows]
