"""A run in the words of its page."""

from __future__ import annotations

from typing import Any

from databanzhaf.live.counts import Counts
from databanzhaf.live.place import Place
from databanzhaf.live.values import Values
from databanzhaf.pipeline.plan import in_words


def said(place: Place, counts: Counts, stage: str) -> str:
    """How the run stands, in a sentence or two that change only when that changes."""
    files = "mislabels.csv" if counts.is_for_labels else "values.csv"
    if stage == "waiting" and not place.ledger.exists():
        return f"There is no run in {place.shown} yet. This page waits for it to begin."
    return {
        "waiting": "The run has begun and has no evaluation yet.",
        "running": "The run is in progress.",
        "computing": "All evaluations are done. The result is being computed, unless this is a "
        "shard of a run, or the command was killed.",
        "quiet": "No evaluation was recorded lately: the run has ended, or its trainings are slow. "
        "If it was killed, rerun the same command to resume.",
        "stopped": "The run was stopped. Rerun the same command to resume.",
        "finished": f"The run is finished. {place.shown} has {files} and report.html.",
        "damaged": "The ledger cannot be read. The page continues when it is restored.",
    }[stage]


def tiles(
    counts: Counts, stage: str, recent: float | None, age: float | None, values: Values | None
) -> list[tuple[str, str]]:
    """The key figures: names and numbers. `age` is that of the last evaluation, in seconds."""
    if stage in ("waiting", "damaged"):
        return []
    found = [("evaluations", _evaluations(counts, stage))]
    if stage == "running":
        found.append(("a second, last minute", _rate(recent)))
    if counts.overall is not None:
        found.append(("a second, overall", _rate(counts.overall)))
    if stage == "running":
        found.append(("time left", _left(counts, recent)))
    if stage in ("running", "computing", "quiet"):
        found.append(("last evaluation", "unknown" if age is None else ago(age)))
    if counts.is_for_labels:
        return found
    steady = None if values is None else values.stability
    error = None if values is None else values.std_error
    suspects = None if values is None else values.suspects
    return [
        *found,
        ("rank stability", "unknown" if steady is None else f"{steady:.2f}"),
        ("median standard error", "unknown" if error is None else f"{error:.2g}"),
        ("suspects", "unknown" if suspects is None else f"{suspects:,}"),
    ]


def _evaluations(counts: Counts, stage: str) -> str:
    done, total = counts.evaluations, counts.total
    if total is None or done > total or stage == "finished":
        return f"{done:,}"
    return f"{done:,} of {'at most ' if counts.may_end_early else ''}{total:,}"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "unknown"
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _left(counts: Counts, recent: float | None) -> str:
    left = counts.left(recent)
    if left is None:
        return "unknown"
    return in_words(left).replace("about", "at most" if counts.may_end_early else "about")


def notes(counts: Counts, stage: str, values: Values | None) -> list[str]:
    """What a person should know of the figures."""
    if counts.is_for_labels:
        judges = f"each of the {counts.judges} judges" if counts.judges else "each judge"
        each = f"Each evaluation trains one model of {judges} on one half of the rows."
        end = "" if stage == "finished" else " The list of doubtful labels comes at the end."
        return [each + end]
    return [] if values is None else list(values.notes)


def shown(values: Values, age: float, *, goes_on: bool) -> dict[str, Any]:
    """The curve and the lowest values, with how old they are."""
    lowest, series, one = values.lowest, values.series, values.who.removesuffix("s")
    again = (
        " They are computed again when that takes less than a hundredth of one core, and at the "
        "end."
    )
    beyond = values.rule.startswith("fdr")
    which = f"A suspect is a {one} below zero beyond chance" if beyond else "Suspects are flagged"
    both = (
        "The curve's standard errors count the run alone. Those in the table and the figures also "
        "count which rows judged."
    )
    return {
        "heading": f"The {len(lowest.rows):,} lowest of {values.players:,} values",
        "made": f"Computed {ago(age)} from {values.used:,} evaluations.{again if goes_on else ''}",
        "rule": "" if values.suspects is None else f"{which} (--flag {values.rule}).",
        "errors": both if values.counts_jury else "",
        "columns": lowest.columns,
        "rows": lowest.rows,
        "suspect": lowest.suspect,
        "series": {
            "evaluations": series.evaluations,
            "std_error": series.std_error,
            "stability": series.stability,
        },
    }


def ago(seconds: float) -> str:
    return "just now" if seconds < 2 else f"{in_words(seconds)} ago"
