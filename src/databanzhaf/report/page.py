"""Content → one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from databanzhaf._version import __version__
from databanzhaf.applications.evidence import JuryEffect
from databanzhaf.report.content import Content
from databanzhaf.report.markup import described, embedded, escaped, filled, source

# Points of a chart: more than it has columns of pixels.
MOST_POINTS = 5_000


def render(content: Content) -> str:
    """The page, with its styles, its scripts and its data inside."""
    n = len(content.values)
    drawn = (
        ""
        if n <= MOST_POINTS
        else f" Of {n:,} {content.who} {MOST_POINTS:,} are drawn, evenly from the lowest to the "
        "highest."
    )
    sections = [
        _section(
            "values",
            "All values, lowest first",
            _VALUES + drawn,
            _chart("sorted", f"Sorted values of {content.who} with 95% intervals"),
        ),
        _section("look", "What to look at", _look(content), _TABLE.replace("{who}", content.who)),
    ]
    if content.classes is not None:
        sections.append(
            _section(
                "by-class",
                "Value by class",
                _BY_CLASS + drawn,
                _chart("classes", "Box plots of values by class"),
            )
        )
    if content.groups is not None:
        sections.append(
            _section(
                "by-group",
                f"Value by {content.grouped_by}",
                _BY_GROUP + drawn,
                _chart("groups", "Box plots of values by group"),
            )
        )
    if content.series is not None:
        sections.append(
            _section(
                "run",
                "How the run went",
                _RUN,
                _chart("progress", "Rank stability and standard error over the run"),
            )
        )
    trust = f"<p>{_EXACT}</p>" if content.closed else _trust(content)
    sections.append(_section("trust", "Can I trust this?", "", trust))
    if content.curve is not None:
        sections.append(
            _section(
                "removal-curve",
                "Does removing them help?",
                _REMOVAL,
                _chart("removal", "Score as rows are removed"),
            )
        )
    sections.append(_section("repeat", "To repeat it", "", described(content.settings.items())))
    alerts = "".join(f"<li>{escaped(alert)}</li>" for alert in content.alerts)
    tiles = "".join(
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>"
        for name, value in content.facts.items()
    )
    links = "".join(
        f'<li><a href="#{anchor}">{escaped(title)}</a></li>' for anchor, title, _ in sections
    )
    pieces = {
        "title": escaped(content.title),
        "subject": escaped(content.subject),
        "version": escaped(__version__),
        "alerts": alerts,
        "tiles": tiles,
        "links": links,
        "sections": "".join(body for _, _, body in sections),
        "css": source("page.css"),
        "data": _json(content),
        "script": source("page.js"),
        "evidence": source("evidence.js"),
        "charts": source("charts.js"),
    }
    return filled("page.html", pieces)


def _json(content: Content) -> str:
    """All numbers and texts of the page."""
    series, curve = content.series, content.curve
    order = np.argsort(content.values, kind="stable")
    n = len(order)
    # Charts show at most so many, evenly from the lowest to the highest.
    places = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).round().astype(np.int64))
    points = order[places]
    players = np.array(content.table.players)
    data = {
        "who": content.who,
        "names": [content.names[i] for i in points],
        "places": (places + 1).tolist(),
        "values": _numbers(content.values[points]),
        "low": _numbers(content.low[points], digits=4),
        "high": _numbers(content.high[points], digits=4),
        "suspect": np.isin(points, content.suspects).tolist(),
        "classes": None if content.classes is None else [content.classes[i] for i in points],
        "groups": None if content.groups is None else [content.groups[i] for i in points],
        "offset": 1 if content.table.pictures else 0,
        "table": {
            "columns": content.table.columns,
            "rows": _plain(content.table.rows),
            "suspects": np.flatnonzero(np.isin(players, content.suspects)).tolist(),
            "pictures": {
                line: content.table.pictures[i]
                for line, i in enumerate(players.tolist())
                if i in content.table.pictures
            },
            "all": n,
        },
        "series": None
        if series is None
        else {
            "evaluations": series.evaluations,
            "std_error": series.std_error,
            "stability": series.stability,
        },
        "curve": None
        if curve is None
        else {
            "counts": curve.counts.tolist(),
            "utility": _numbers(curve.utility),
            "mean": _numbers(curve.random_mean),
            "low": _numbers(curve.random_low),
            "high": _numbers(curve.random_high),
        },
        "evidence": _evidence(content),
    }
    return embedded(data)


def _evidence(content: Content) -> dict[str, Any] | None:
    """What each line of the table shows when it is opened. Rows are named by their lines, those
    that the table does not list by the lines that follow.
    """
    evidence = content.evidence
    if evidence is None:
        return None
    line = {player: number for number, player in enumerate(content.table.players)}
    for player in evidence.cells:
        line[player] = len(line)
    names = {judge: number for number, judge in enumerate(evidence.judge_names)}
    if evidence.judge_players is not None:
        names = {
            judge: line[player]
            for judge, player in enumerate(evidence.judge_players)
            if player in line
        }

    def near(rows: Any) -> list[list[float]]:
        return [[line[row], _digits(distance)] for row, distance in rows]

    def heard(judges: Any) -> list[list[Any]]:
        return [[names[judge], _digits(effect), int(clear)] for judge, effect, clear in judges]

    def swayed(sides: Any) -> dict[str, Any] | None:
        if sides is None:
            return None
        hurt, helped = (
            [[line[player], _digits(effect), int(clear)] for player, effect, clear in side]
            for side in sides
        )
        return {"worst": hurt, "best": helped}

    def jury(effect: JuryEffect) -> dict[str, Any]:
        return {
            "judges": effect.judges,
            "hurt": effect.hurt,
            "clear": [effect.clearly_hurt, effect.clearly_helped] if effect.known else None,
            "worst": heard(effect.most_hurt),
            "best": heard(effect.most_helped),
            "bars": [effect.first, effect.width, effect.counts],
        }

    return {
        "label": content.table.columns.index("flag") - 1,
        "classes": content.classes is not None,
        "across": evidence.judge_players is not None,
        "note": evidence.note,
        "cells": _plain(evidence.cells.values()),
        "judges": list(evidence.judge_names.values()),
        "rows": {
            line[player]: {
                "same": near(each.neighbors.same),
                "other": near(each.neighbors.other),
                "copies": [
                    [label, [line[row] for row in rows], count]
                    for label, rows, count in each.contradictions
                ],
                "jury": None if each.jury is None else jury(each.jury),
                "swayed": swayed(each.swayed),
            }
            for player, each in evidence.opened.items()
        },
    }


def _digits(number: float) -> float:
    return float(f"{number:.3g}")


def _plain(rows: Iterable[list[Any]]) -> list[list[Any]]:
    """Cells that JSON has: null for what is not finite."""
    return [
        [None if isinstance(cell, float) and not np.isfinite(cell) else cell for cell in row]
        for row in rows
    ]


def _numbers(array: Any, digits: int = 7) -> list[float | None]:
    """Rounded to more digits than a chart shows; null for what is not finite."""
    return [float(f"{number:.{digits}g}") if np.isfinite(number) else None for number in array]


def _section(anchor: str, title: str, words: str, body: str) -> tuple[str, str, str]:
    text = f'<p class="faint">{words}</p>' if words else ""
    return (
        anchor,
        title,
        f'<section aria-labelledby="{anchor}"><h2 '
        f'id="{anchor}">{escaped(title)}</h2>{text}{body}</section>',
    )


def _chart(name: str, words: str) -> str:
    return f'<div class="chart" id="{name}" role="img" aria-label="{escaped(words)}"></div>'


def _look(content: Content) -> str:
    rule = (
        "are below zero beyond chance"
        if content.rule.beyond_chance
        else f"are chosen by the rule {escaped(str(content.rule))}"
    )
    who = {
        "rows": " Rows count from 0.",
        "groups": " To see the evidence for single rows, value rows: run it without --groups.",
        "clusters": " clusters.csv says which rows are in each cluster; the folder `worst` has the "
        "values of the worst clusters' rows.",
    }
    judging = "" if content.closed else " and the judging rows that it hurts or helps"
    opens = f" Open a row by its number (▸) to see the rows nearest to it{judging}."
    more = who[content.who] + (opens if content.evidence is not None else "")
    return f"Suspects {rule}. Click a column to sort; type to search.{more}"


def _trust(content: Content) -> str:
    trust = content.trust
    rows = {
        "Do two halves of the run agree?": _stated(
            trust.split_half,
            "Their rank correlation is {:.2f}",
            "the run is too short, or its values have no ranking",
        ),
        "Would another run rank alike?": _stated(
            trust.stability,
            f"At a rank correlation of about {{:.2f}}. Above 0.9 single {content.who} can be "
            "compared, below 0.8 only the extremes are reliable",
            "there are no standard errors, or all values are equal",
        ),
        "Would other judging rows rank alike?": _stated(
            trust.stability_of_juries,
            "As many other rows, and another run, would agree at about {:.2f}",
            "what each row said of each model was not kept, or the metric is no mean over rows",
        ),
        "How much is training noise?": _stated(
            trust.noise_share,
            "{:.0%} of the variance between models",
            "two or more --repeats would measure it",
        ),
        **({} if content.fit is None else {"How well does the linear fit do?": str(content.fit)}),
        f"Do {content.who} act on their own?": _stated(
            trust.linear_share,
            f"{{:.0%}} of the variance is explained by values that add up; the rest is "
            f"{content.who} that depend on each other, and noise",
            "needs Banzhaf values from fair-coin coalitions",
        ),
    }
    return described(rows.items())


def _stated(number: float | None, known: str, unknown: str) -> str:
    return f"not available: {unknown}" if number is None else known.format(number)


_EXACT = (
    "The values are exact: a closed form for nearest neighbours; no model was trained. The "
    "intervals count the choice of the rows that judge."
)
_VALUES = (
    "Each point is one value: how much the score of a model changes, on average, when the row or "
    "group joins a random subset of the others."
)
_BY_CLASS = "Boxes hold the middle half of each class, lowest mean first."
_BY_GROUP = "Boxes hold the middle half of each group, lowest mean first."
_RUN = (
    "Rank stability is the rank correlation that another run of that size would have with this "
    "one, by its standard errors."
)
_REMOVAL = (
    "The score of models trained without the lowest values, beside removing at random. Above the "
    "band, removing them helps. It is judged by the rows that made the values, which is "
    "too favorable: confirm it on other rows."
)

_TABLE = """<div class="controls">
<label>Search <input id="words" type="search" autocomplete="off"></label>
<label>Rows per page <select id="size">
<option>25</option><option>100</option><option>500</option></select></label>
<label>Suspects only <input id="only" type="checkbox"></label>
<button type="button" id="save">Save these as CSV</button>
</div>
<div class="scroll outer" tabindex="0" role="region" aria-label="Table of {who}">
<table id="rows"><thead><tr></tr></thead><tbody></tbody></table></div>
<div class="controls"><button type="button" id="before">Previous page</button>
<button type="button" id="after">Next page</button>
<span id="count" role="status"></span></div>"""
