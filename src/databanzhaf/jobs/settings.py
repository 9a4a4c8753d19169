"""What to value, by what model, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from databanzhaf import chance
from databanzhaf import until as conditions
from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.notions import named
from databanzhaf.until import Condition


@dataclass(frozen=True)
class Settings:
    """What to value, by what model, and how. Only `data` and `target` have no default."""

    data: str
    target: str
    validation: str | None = None
    validation_fraction: float = 0.3
    model: str = "mlp"
    task: str = "auto"
    metric: str | None = None
    groups: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    encoding: str = "utf-8"
    separator: str | None = None
    decimal: str = "."
    notion: str = "banzhaf"
    estimator: str = "auto"
    budget: int = 5000
    repeats: int | None = None
    until: str | None = None
    flag: str = "fdr:0.05"
    keep: str = "auto"
    jobs: int = -1
    device: str = "auto"
    seed: int = 0


def check_settings(settings: Settings) -> None:
    if settings.task not in ("auto", "classification", "regression"):
        raise InvalidInput(f"`task` must be auto, classification or regression; got {short(settings.task)}. Try auto.")
    if settings.decimal not in (".", ","):
        raise InvalidInput(f"`decimal` must be a point or a comma; got {short(settings.decimal)}. Try '.'.")
    if settings.keep not in ("auto", "predictions", "scores"):
        raise InvalidInput(f"`keep` must be auto, predictions or scores; got {short(settings.keep)}. Try auto.")
    check_between("validation_fraction", settings.validation_fraction, 0, 1, "Try 0.3.")
    check_count("budget", settings.budget)
    chance.check_seed(settings.seed)
    if settings.repeats is not None:
        check_count("repeats", settings.repeats)
    if settings.jobs != -1:
        check_count("jobs", settings.jobs)
    named(settings.notion)
    condition(settings.until)
    flag_rule(settings.flag)


def condition(text: str | None) -> Condition | None:
    """stable[:SPEARMAN], precise:STD_ERROR, minutes:NUMBER; with "," whichever comes first."""
    found: Condition | None = None
    for part in (text or "").split(",") if text else []:
        kind, _, number = part.strip().partition(":")
        amount = _number(number) if number else None
        if kind == "stable":
            one: Condition = conditions.ranking_stable(0.9 if amount is None else amount)
        elif kind == "precise" and amount is not None:
            one = conditions.precise(amount)
        elif kind == "minutes" and amount is not None:
            one = conditions.deadline(60 * amount)
        else:
            raise InvalidInput(f"`until` must be stable, stable:0.95, precise:0.01 or minutes:10; got {text!r}. Try stable.")
        found = one if found is None else found | one
    return found


def flag_rule(text: str) -> dict[str, Any]:
    kind, _, number = text.partition(":")
    names = {"fdr": ("fdr", 0, 1), "lowest": ("fraction", 0, 1), "below": ("threshold", -math.inf, math.inf)}
    if text == "cluster":
        return {"rule": "cluster"}
    if kind not in names:
        raise InvalidInput(f"`flag` must be fdr:0.05, lowest:0.1, below:0 or cluster; got {text!r}. Try fdr:0.05.")
    name, low, high = names[kind]
    return {name: check_between(f"flag {kind}", _number(number), low, high, "Try fdr:0.05, lowest:0.1 or below:0.")}


def _number(text: str) -> float:
    """A number, or NaN, which every check refuses."""
    try:
        return float(text)
    except ValueError:
        return math.nan
