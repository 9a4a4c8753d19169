"""What a committee doubts → one HTML page: the answer, the list, and a review of row by row."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from databanzhaf._version import __version__
from databanzhaf.errors import InvalidInput
from databanzhaf.report.content import cell
from databanzhaf.report.markup import described, embedded, escaped, filled, source

_DECISIONS = ("keep", "fix", "drop")
# A long text is cut after so many characters; the user's own table has it whole.
LONGEST_TEXT = 4_000
# Characters of the cells of rows that the list does not have. Beyond them a near row is named with
# its label and distance only: 14,000 rows of 13 columns would be a page of 3 MB.
MOST_NEAR_CELLS = 300_000
# In the order in which they run.
_SCRIPTS = (
    "charts.js",
    "review_data.js",
    "review_decisions.js",
    "review_list.js",
    "review_evidence.js",
    "review.js",
)


@dataclass(frozen=True)
class JudgeSays:
    """What one kind of model predicts for a row that it has not seen, and the probabilities that it
    gives the row's own label and the suggested one (None: it gives none).
    """

    name: str
    says: str
    p_own: float | None = None
    p_suggested: float | None = None


@dataclass(frozen=True)
class NearRow:
    """A row near another one; `cells` as in `ReviewContent.columns`."""

    row: int
    id: str | None
    label: str
    cells: Sequence[str]
    distance: float


@dataclass(frozen=True)
class ReviewRow:
    """One row of the list and its evidence.

    Attributes
    ----------
    row, id : its number in the user's table, from 0, and its name there, if it has one
    label, suggested : texts; of a regression the number and the expected value
    p_wrong, p_suggested : probability that the label is wrong, and that the suggested one is
        right; None where the judges know no better than a guess
    agreement : share of the models that disagree with the label
    margin : probability of the row's own label minus that of the suggested one
    rank : 1 is the most doubtful
    flag : whether the row is probably wrong
    cells : texts, in the order of `ReviewContent.columns`
    near_own, near_suggested : up to three rows with the row's own label, and with the suggested
        one; of a regression the nearest rows are `near_own`
    value : its data value, as a text
    conflicts : (row, label) of rows with the same cells and another label
    picture : data address of an image
    text : a long text, shown with its line breaks
    interval : of a regression, where the target is expected, as in "41 to 152"
    """

    row: int
    id: str | None
    label: str
    suggested: str
    p_wrong: float | None
    rank: int
    flag: bool
    cells: Sequence[str]
    p_suggested: float | None = None
    agreement: float | None = None
    margin: float | None = None
    judges: Sequence[JudgeSays] = ()
    near_own: Sequence[NearRow] = ()
    near_suggested: Sequence[NearRow] = ()
    value: str | None = None
    conflicts: Sequence[tuple[int, str]] = ()
    picture: str | None = None
    text: str | None = None
    interval: str | None = None


@dataclass(frozen=True)
class ReviewSummary:
    """What is known of all rows together.

    Attributes
    ----------
    n_flagged : rows that are probably wrong
    fdr : the share of right labels that is accepted among them
    share, share_interval : expected share of wrong labels in the table, with its 95% interval
    share_unknown : why there is none, as a sentence
    found_of_100 : how many of 100 planted errors the list would have found
    expected_first : (k, wrong rows to expect among the first k)
    curve : lengths of the list, and the wrong rows to expect at each
    histogram : rows by `p_wrong`, in bars of equal width from 0 to 1
    pairs : (label, suggested label, flagged rows), the most frequent first
    """

    n_flagged: int
    fdr: float | None = None
    share: float | None = None
    share_interval: tuple[float, float] | None = None
    share_unknown: str = ""
    found_of_100: float | None = None
    expected_first: Sequence[tuple[int, float]] = ()
    curve: tuple[Sequence[int], Sequence[float]] | None = None
    histogram: Sequence[int] = ()
    pairs: Sequence[tuple[str, str, int]] = ()


@dataclass(frozen=True)
class ReviewContent:
    """Everything that the page shows; no HTML here.

    Attributes
    ----------
    command : what to type to make the run again
    table_name, table : the user's file as it was typed, and its fingerprint, 16 hex digits
    target, classes : the column of labels, and all labels in order (none of a regression)
    alerts, notes : sentences, shown first and last
    facts : (name, text) pairs: how the list was made
    rows : the most doubtful first
    decided : row → (keep, fix or drop; the new label of a fix), from an earlier review
    reading : options that say how the table is read, for the command that corrects it
    """

    title: str
    command: str
    table_name: str
    table: str
    target: str
    classes: Sequence[str]
    n_rows: int
    columns: Sequence[str]
    summary: ReviewSummary
    rows: Sequence[ReviewRow]
    task: Literal["classification", "regression"] = "classification"
    alerts: Sequence[str] = ()
    notes: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    decided: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    reading: Sequence[str] = ()


def render(content: ReviewContent) -> str:
    """The page, with its styles, its scripts and its data inside."""
    _check(content)
    pieces = {
        "title": escaped(content.title),
        "subject": escaped(f"{PurePath(content.table_name).name}, target {content.target}"),
        "answer": escaped(_answer(content)),
        "alerts": _items(content.alerts),
        "sentences": "".join(f"<p>{escaped(each)}</p>" for each in _sentences(content)),
        "next": escaped(_next(content)),
        "facts": described(content.facts),
        "notes": _items(content.notes),
        "command": escaped(content.command),
        "version": escaped(__version__),
        "css": source("page.css") + source("review.css"),
        "data": embedded(_data(content)),
        "scripts": "".join(f"<script>{source(name)}</script>" for name in _SCRIPTS),
    }
    return filled("review.html", pieces)


def _check(content: ReviewContent) -> None:
    shown: list[ReviewRow | NearRow] = [*content.rows]
    for each in content.rows:
        shown += [*each.near_own, *each.near_suggested]
    for row in shown:
        if len(row.cells) != len(content.columns):
            raise InvalidInput(
                rule="`cells` of each row must have one text per column",
                got=f"{len(row.cells)} cells of row {row.row} for {len(content.columns)} columns",
            )
    for each in content.rows:
        if each.picture is not None and not each.picture.startswith("data:image/"):
            raise InvalidInput(
                rule="`picture` must be the data address of an image",
                got=f"{each.picture[:40]!r} of row {each.row}",
                remedy="`report.picture.data_address` makes one.",
            )
    for number, (decision, _) in content.decided.items():
        if decision not in _DECISIONS:
            raise InvalidInput(
                rule="`decided` must say keep, fix or drop", got=f"{decision!r} for row {number}"
            )


def _items(sentences: Sequence[str]) -> str:
    return "".join(f"<li>{escaped(each)}</li>" for each in sentences)


def _answer(content: ReviewContent) -> str:
    flagged, n = content.summary.n_flagged, content.n_rows
    what = "label" if content.task == "classification" else "target value"
    if flagged == 0:
        return f"No {what} is flagged as probably wrong."
    return (
        f"{flagged:,} of {n:,} {what}{'s' if n != 1 else ''} {'is' if flagged == 1 else 'are'} "
        "probably wrong."
    )


def _sentences(content: ReviewContent) -> Iterator[str]:
    """What is known of all rows together, in words."""
    known = content.summary
    what = "labels" if content.task == "classification" else "target values"
    if _digits(known.share) is not None:
        low_high = known.share_interval
        interval = f" (95% interval {low_high[0]:.1%} to {low_high[1]:.1%})" if low_high else ""
        yield f"Expected share of wrong {what}: {known.share:.1%}{interval}."
    elif known.share_unknown:
        yield known.share_unknown
    planted = ""
    if _digits(known.found_of_100) is not None:
        planted = (
            f"Of 100 labels changed at random this list would have found {known.found_of_100:.0f}"
        )
    firsts = ", ".join(
        f"expect {wrong:.0f} of {'its' if place == 0 else 'the'} first {_rows(k)}"
        + (" to be wrong" if place == 0 else "")
        for place, (k, wrong) in enumerate(known.expected_first)
    )
    said = "; ".join(part for part in (planted, firsts) if part)
    if said:
        yield f"{said[0].upper()}{said[1:]}."
    if known.n_flagged and known.fdr is not None:
        yield f"At most {known.fdr:.0%} of the flagged rows are expected to be right."
    if known.n_flagged == 0 and content.rows:
        yield "The most doubtful rows may still be worth a look."
    if 0 < len(content.rows) < content.n_rows:
        yield f"The list has {_rows(len(content.rows))}, the most doubtful ones."


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _next(content: ReviewContent) -> str:
    """What to type when decisions.csv is saved."""
    if not content.command:  # rows that no file holds
        return 'y_fixed = found.apply(y, decisions="decisions.csv")'
    path = PurePath(content.table_name)
    ending = "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:])
    fixed = path.with_name(f"{path.name.removesuffix(ending)}.fixed{ending}")
    # A name that begins with a hyphen would be taken for an option.
    table, out = (f"./{name}" if name.startswith("-") else name for name in (str(path), str(fixed)))
    words = ["databanzhaf", "apply", table, "decisions.csv", *content.reading, "--out", out]
    return shlex.join(words)


def _data(content: ReviewContent) -> dict[str, Any]:
    """All texts and numbers. A label is in the page once, and so is a row: evidence names both by
    their places.
    """
    summary = content.summary
    labels, judges = _Places(content.classes), _Places()
    pool = _Pool(content.rows, labels)
    lines = [_line(row, labels, judges, pool) for row in content.rows]
    elsewhere = dict(content.decided)
    decided = [
        [number, name, label, *elsewhere.pop(number)]
        for number, name, label in pool.named
        if number in elsewhere
    ]
    return {
        "table": content.table,
        "target": content.target,
        "regression": content.task == "regression",
        "n": content.n_rows,
        "flagged": summary.n_flagged,
        "columns": list(content.columns),
        "classes": len(dict.fromkeys(content.classes)),
        "pairs": [
            [labels[label], labels[suggested], count] for label, suggested, count in summary.pairs
        ],
        "curve": None
        if summary.curve is None
        else [list(summary.curve[0]), [_digits(wrong) for wrong in summary.curve[1]]],
        "histogram": list(summary.histogram),
        # Their names once, and not in every row.
        "fields": list(lines[0]) if lines else [],
        "rows": [list(line.values()) for line in lines],
        "pool": pool.lines,
        "judges": judges.texts,
        "decided": decided,
        "elsewhere": len(elsewhere),
        "labels": labels.texts,
    }


def _line(row: ReviewRow, labels: _Places, judges: _Places, pool: _Pool) -> dict[str, Any]:
    """A row of the list without what the pool has."""
    return {
        "suggested": labels[row.suggested],
        "p_wrong": _digits(row.p_wrong),
        "p_suggested": _digits(row.p_suggested),
        "agreement": _digits(row.agreement),
        "margin": _digits(row.margin),
        "rank": row.rank,
        "flag": int(row.flag),
        "judges": [
            [judges[each.name], labels[each.says], _digits(each.p_own), _digits(each.p_suggested)]
            for each in row.judges
        ],
        "near_own": [[pool[near], _digits(near.distance)] for near in row.near_own],
        "near_suggested": [[pool[near], _digits(near.distance)] for near in row.near_suggested],
        "value": row.value,
        "conflicts": [[number, labels[label]] for number, label in row.conflicts],
        "picture": row.picture,
        "text": _cut(row.text),
        "interval": row.interval,
    }


class _Places:
    """Texts by their places, in the order in which they are first asked for."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._places = {text: place for place, text in enumerate(dict.fromkeys(texts))}

    def __getitem__(self, text: str) -> int:
        return self._places.setdefault(text, len(self._places))

    @property
    def texts(self) -> list[str]:
        return list(self._places)


class _Pool:
    """Rows by their places: those of the list, then others that are near them."""

    def __init__(self, rows: Sequence[ReviewRow], labels: _Places) -> None:
        self._labels, self._places = labels, {}  # type: _Places, dict[int, int]
        self._room = MOST_NEAR_CELLS
        self.lines: list[list[Any]] = []
        self.named: list[tuple[int, str, str]] = []
        for row in rows:
            self._add(row, [cell(text) for text in row.cells])

    def __getitem__(self, near: NearRow) -> int:
        if near.row not in self._places:
            cells = [cell(text) for text in near.cells]
            self._room -= sum(len(text) + 3 for text in cells)
            self._add(near, cells if self._room >= 0 else None)
        return self._places[near.row]

    def _add(self, row: ReviewRow | NearRow, cells: list[str] | None) -> None:
        self._places[row.row] = len(self.lines)
        self.lines.append([row.row, row.id, self._labels[row.label], cells])
        self.named.append((row.row, row.id or "", row.label))


def _digits(number: float | None) -> float | None:
    """Four digits, as many as the page needs; None for what is not finite."""
    return float(f"{number:.4g}") if number is not None and math.isfinite(number) else None


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"
