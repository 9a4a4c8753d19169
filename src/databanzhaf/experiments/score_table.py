"""Scores of every column on every draw, in one file of lines that grows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from databanzhaf.experiments import ledgers, protocol
from databanzhaf.experiments.draw_values import (
    datasets,
    draws,
    left_out,
    scale_of,
    stamp_of,
    value_draw,
)
from databanzhaf.experiments.lines import Lines
from databanzhaf.experiments.parallel import in_processes
from databanzhaf.experiments.setting import Setting

FILE = "scores.jsonl"


def collect(
    experiment: str, setting: Setting, columns: Mapping[str, str | None], score: Any, rule: int
) -> tuple[pd.DataFrame, ledgers.Work]:
    """Score every column of every draw; returns the table, and whose work it was.

    `columns` says by which values each is scored, if by any; `score(valued, missing)` gives
    {column: scores of the five trainings} for the missing ones. The scores of a draw are kept in a
    small file beside the ledgers, so that a table can be made in parts, and on several machines,
    and columns can come later. `rule` is the version of the score: those by another, or of other
    data, are computed again.
    """
    protocol.check(datasets(setting))
    if left := left_out(setting):
        print(
            f"Left out, since there is no GPU: {', '.join(left)}. `--datasets` can name them.",
            file=sys.stderr,
        )
    asked = [(name, number) for name in datasets(setting) for number in draws(setting, name)]
    alone = replace(setting, progress=setting.progress and setting.workers == 1)
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, number, scored in in_processes(
        _scored,
        [(experiment, each, alone, columns, score, rule) for each in asked],
        setting.workers,
    ):
        found[name, number] = scored
        if setting.progress and not alone.progress:
            print(f"{name}, draw {number}: {len(found)} of {len(asked)}", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    work: ledgers.Work = {}
    for name, number in asked:
        scored = found[name, number]
        for each in scored["work"].values():
            ledgers.add(work, each)
        rows += [
            {
                "dataset": name,
                "draw": number,
                "method": column,
                "mean": float(np.mean(scores)),
                "std_error": float(np.std(scores, ddof=1) / np.sqrt(len(scores)))
                if len(scores) > 1
                else np.nan,
                "coalitions": scored["coalitions"].get(column.removesuffix("_whole"), 0),
            }
            for column, scores in ((column, scored["scores"][column]) for column in columns)
        ]
    return pd.DataFrame(rows), work


def _scored(
    experiment: str,
    which: tuple[str, int],
    setting: Setting,
    columns: Mapping[str, str | None],
    score: Any,
    rule: int,
) -> tuple[str, int, dict[str, Any]]:
    """The scores of one draw, as they are kept, or computed and kept; with its name and number."""
    name, number = which
    scale = float(f"{scale_of(name, number, setting):g}")
    key = {
        "experiment": experiment,
        "dataset": name,
        "draw": number,
        "scale": scale,
        "seed": setting.seed,
    }
    mark = {"rule": rule, "stamp": stamp_of(protocol.draw(name, number, setting), setting)}
    file = Lines(setting.out / FILE, tuple(key))
    found = file.read().get(file.place(key), {})
    if {part: found.get(part) for part in mark} != mark or not _whole(found):
        if found:
            print(
                f"The scores of {name}, draw {number}, in {setting.out / FILE} do not fit (other "
                "data, "
                "or another score): they are computed again.",
                file=sys.stderr,
            )
        found = {**key, **mark, "scores": {}, "coalitions": {}, "work": {}}
    missing = [column for column in columns if column not in found["scores"]]
    if missing:
        needed = {values: None for column in missing if (values := columns[column]) is not None}
        valued = value_draw(name, number, setting, needed)
        found["scores"] |= {
            column: [float(one) for one in scores]
            for column, scores in score(valued, missing).items()
        }
        found["coalitions"] |= {column: valued.coalitions[column] for column in needed}
        found["work"] |= valued.work
        file.add(found)
    return name, number, found


def _whole(found: dict[str, Any]) -> bool:
    """Whether scores that were kept have all their parts."""
    scores, coalitions = found.get("scores"), found.get("coalitions")
    return (
        isinstance(scores, dict)
        and isinstance(coalitions, dict)
        and all(isinstance(count, int) for count in coalitions.values())
        and isinstance(found.get("work"), dict)
        and all(ledgers.noted(work) == work for work in found["work"].values())
        and all(
            isinstance(each, list) and each and all(isinstance(score, float) for score in each)
            for each in scores.values()
        )
    )
