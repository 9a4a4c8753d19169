"""What a report says, as plain values; no HTML here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from databanzhaf.applications import Curve
from databanzhaf.applications.evidence import JuryEffect, Neighbors
from databanzhaf.diagnostics import Trust
from databanzhaf.estimate import Estimate, Fit
from databanzhaf.pipeline.settings import Flag
from databanzhaf.protocols import FloatArray, IntArray

# Texts of cells longer than this are cut in the page; values.csv and the user's own table have them
# whole.
LONGEST_CELL = 300


# Why a value may be low.
REASONS = {
    "rows": "A low value may mean a wrong label, a case unlike the rows that judge, or wrong "
    "labels among them.",
    "groups": "A low value may mean wrong labels in the group, rows unlike those that judge, or "
    "wrong labels among them.",
    "clusters": "A low value may mean wrong labels in the cluster, rows unlike those that judge, "
    "or wrong labels among them.",
}


@dataclass(frozen=True)
class Series:
    """How a run went: evaluations so far, median standard error and rank stability at the
    checkpoints.
    """

    evaluations: list[int]
    std_error: list[float | None]
    stability: list[float | None]


@dataclass(frozen=True)
class Table:
    """One line per player: columns as the user named them, cells as text or numbers; pictures as
    data addresses, if there are any.

    `players` says who they are: all, or those with the lowest values.
    """

    columns: list[str]
    rows: list[list[Any]]
    players: list[int]
    pictures: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """What a row shows when it is opened: the rows nearest to it; rows with the same cells and
    another label, as (label, the first of them, how many there are); and its effect over the jury,
    if that is known. Where it is a judging row itself, who hurt and who helped the prediction for
    it the most, as (player, effect, whether it is beyond noise).
    """

    neighbors: Neighbors
    contradictions: list[tuple[Any, list[int], int]]
    jury: JuryEffect | None
    swayed: tuple[list[tuple[int, float, bool]], list[tuple[int, float, bool]]] | None = None


@dataclass(frozen=True)
class Evidence:
    """The rows that can be opened.

    Attributes
    ----------
    opened : player → what it shows
    cells : player → its line, for players that are named here and that the table does not list
    judge_players : judge → player, where the rows judge each other
    judge_names : judge → its name and label, of validation rows that are named here
    note : why there is no effect over the jury, or that it is of a part of the jury
    """

    opened: dict[int, Opened]
    cells: dict[int, list[Any]]
    judge_players: list[int] | None
    judge_names: dict[int, tuple[str, Any]]
    note: str = ""


@dataclass(frozen=True, eq=False)
class Content:
    """Everything that the page shows. With `closed` the values are a closed form: nothing was
    trained.
    """

    title: str
    subject: str
    who: str
    rule: Flag
    alerts: list[str]
    names: list[str]
    values: FloatArray
    low: FloatArray
    high: FloatArray
    suspects: IntArray
    classes: list[str] | None
    groups: list[str] | None
    grouped_by: str | None
    table: Table
    series: Series | None
    trust: Trust
    fit: Fit | None
    curve: Curve | None
    facts: dict[str, str]
    settings: dict[str, str]
    evidence: Evidence | None = None
    closed: bool = False


def describe(
    estimate: Estimate,
    suspects: IntArray | None,
    trust: Trust,
    who: str,
    *,
    rule: Flag,
    groups: Sequence[Any] | None = None,
) -> list[str]:
    """The alerts: what to look at, in plain words, the most important first."""
    n, alerts = len(estimate.values), []  # type: int, list[str]
    too_few = int(np.isinf(estimate.std_errors).sum())
    if too_few:
        alerts.append(
            f"{too_few:,} of {n:,} {who} have no interval yet, since too few evaluations include "
            "them. Raise the budget."
        )
    elif np.isnan(estimate.std_errors).all():
        alerts.append(
            "This run has no standard errors, so there is no telling how sure these values are. "
            "Repeats, or another notion, would give them."
        )
    if suspects is not None and not rule.beyond_chance:
        alerts.append(
            f"The rule {rule} flags {len(suspects):,} of {n:,} {who}. Begin with the lowest, and "
            "read their intervals."
        )
    elif suspects is not None and len(suspects):
        verb, them = ("is", "it") if len(suspects) == 1 else ("are", "them")
        alerts.append(
            f"{len(suspects):,} of {n:,} {who} {verb} suspect: {harm(estimate, them)}. Begin with "
            f"the lowest. {REASONS[who]}"
            + (
                " Different validation rows may flag different rows."
                if estimate.population is None
                else " The intervals count the choice of the rows that judge."
            )
        )
    elif suspects is not None:
        alerts.append(none_suspect(estimate, who, rule))
    if groups is not None and suspects is not None and len(suspects) >= 5:
        alerts.extend(_crowded(groups, suspects))
    return alerts + unsteady(trust, who)


def harm(estimate: Estimate, them: str) -> str:
    """What a value below zero says."""
    if not estimate.n_evaluations:  # a closed form
        return f"the score tends to be lower with {them}"
    return f"models trained with {them} tend to score worse"


def none_suspect(estimate: Estimate, who: str, rule: Flag, *, hopeless: bool = False) -> str:
    """That nothing is flagged, and why intervals below zero are no contradiction."""
    one, n = who.removesuffix("s"), len(estimate.values)
    if not rule.beyond_chance:
        return f"No {one} is flagged by the rule {rule}."
    unknown = int(np.isinf(estimate.std_errors).sum())
    if unknown == n:
        return f"No {one} has an interval yet, so none can be called harmful."
    said = f"No {one} is below zero beyond chance."
    if unknown:
        said = (
            f"None of the {n - unknown:,} {who} that have an interval is below zero beyond chance."
        )
    if hopeless:
        return said
    below = int((estimate.interval(0.95)[1] < 0).sum())
    if below:
        verb = "lies" if below == 1 else "lie"
        said += (
            f" {below:,} of {n:,} intervals {verb} below zero, but among so many {who} some do by "
            "chance."
        )
    return f"{said} The lowest values may still be worth a look."


def unsteady(trust: Trust, who: str) -> list[str]:
    """Why not to rely on the ranking, if there is a reason."""
    alerts, other = [], trust.stability_of_juries
    if trust.stability is not None and trust.stability < 0.8:
        judged = ""
        if other is not None and other < trust.stability - 0.1:
            judged = f", and at about {max(other, 0.0):.2f} if as many other rows judged"
        alerts.append(
            f"The ranking is not stable yet: another run of this size would agree with it only at "
            f"a rank correlation of about {max(trust.stability, 0.0):.2f}{judged}. The lowest and "
            f"highest {who} settle first. Raise the budget before you compare single {who}."
        )
    if not alerts and other is not None and other < 0.8:
        alerts.append(
            "The ranking depends on the rows that judge: if as many other rows judged, it would "
            f"agree with this one only at a rank correlation of about {max(other, 0.0):.2f}. More "
            "rows, or checked validation rows, would settle it."
        )
    if trust.noise_share is not None and trust.noise_share > 0.5:
        alerts.append(
            f"{min(1.0, trust.noise_share):.0%} of the variance between models is training noise. "
            "Raise --repeats."
        )
    return alerts


def _crowded(groups: Sequence[Any], suspects: IntArray) -> list[str]:
    """Groups that own more suspects than their share, by Fisher's exact test at 1% for all groups
    together.
    """
    from scipy.stats import hypergeom

    names, which = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    sizes, flagged = np.bincount(which), np.bincount(which[suspects], minlength=len(names))
    chance = np.asarray(hypergeom.sf(flagged - 1, len(which), sizes, len(suspects)))
    return [
        f"{count} of the {len(suspects)} suspects belong to {name}, which has "
        f"{size / len(which):.0%} of all."
        for name, size, count, p in zip(names, sizes, flagged, chance, strict=True)
        if p < 0.01 / len(names)
    ]


def cell(value: Any) -> Any:
    """A cell of the user's table for the page: numbers as they are, the rest as text that is not
    too long.
    """
    if (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    ):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = value.item() if isinstance(value, np.generic) else value
        return number if -(2**53) < number < 2**53 else str(number)
    text = str(value)
    return (
        text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}… ({len(text):,} characters)"
    )
