"""What a committee found → the review page, and its file."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.applications.evidence import Neighbors, nearest
from databanzhaf.errors import InvalidInput
from databanzhaf.files import write_text
from databanzhaf.labels import Mislabels
from databanzhaf.pipeline import LabelResult
from databanzhaf.pipeline.record import read_record
from databanzhaf.protocols import IntArray
from databanzhaf.report.content import cell
from databanzhaf.report.picture import data_address, is_image
from databanzhaf.report.review import (
    JudgeSays,
    NearRow,
    ReviewContent,
    ReviewRow,
    ReviewSummary,
    render,
)
from databanzhaf.tables import Encoder

MOST_ROWS, MOST_COLUMNS, MOST_PICTURES = 2000, 40, 300
# A cell longer than this is shown as a text of its own.
LONG = 200
_BARS, _POINTS = 20, 60


@dataclass(frozen=True, eq=False)
class Reviewed:
    """What a page is made of: what was found, and the rows as a person knows them.

    Attributes
    ----------
    name, table, target : of the table, its fingerprint, and its column of labels
    features : data frame, one line for each row
    ids : names of the rows, or None
    shape : of the rows' pictures, if rows are pictures
    values : data values of rows, as texts
    """

    found: Mislabels
    name: str
    table: str
    target: str
    features: Any
    ids: Any = None
    shape: tuple[int, ...] | None = None
    values: Mapping[int, str] = field(default_factory=dict)
    command: str = ""
    notes: tuple[str, ...] = ()
    read_as: str = ""
    seconds: float | None = None
    reading: tuple[str, ...] = ()


def write_review(result: LabelResult, folder: Path) -> Path:
    """Write report.html beside the ledger."""
    path = folder / "report.html"
    write_text(path, render(review_of(_reviewed(result, folder))))
    return path


def _reviewed(result: LabelResult, folder: Path) -> Reviewed:
    job, source = result.job, result.job.settings.source
    shape = tuple(job.table.attrs.get("shape", ()))
    return Reviewed(
        result.found,
        str(source.data),
        result.fingerprint,
        source.target,
        job.features,
        job.ids,
        shape if is_image(shape) else None,
        _values(result, folder),
        job.settings.command(folder),
        job.notes,
        job.read_as,
        result.seconds,
        job.settings.reading,
    )


def review_of(reviewed: Reviewed) -> ReviewContent:
    """Everything that the page shows."""
    found = reviewed.found
    # Rows decided in an earlier review are not judged again.
    order = found.order[~found.known[found.order]]
    return ReviewContent(
        title=f"Labels of {Path(reviewed.name).name}",
        command=reviewed.command,
        table_name=reviewed.name,
        table=reviewed.table,
        target=reviewed.target,
        classes=[] if found.classes is None else [str(each) for each in found.classes],
        n_rows=len(found.labels),
        columns=[str(column) for column in _shown(reviewed)],
        summary=_summary(found),
        rows=_rows(reviewed, order[:MOST_ROWS]),
        task="regression" if found.classes is None else "classification",
        alerts=alerts(found),
        notes=[*reviewed.notes, *_about(found)],
        facts=_facts(reviewed),
        reading=reviewed.reading,
    )


def alerts(found: Mislabels) -> list[str]:
    """What to know before the list."""
    said = []
    if not found.learned:
        said.append(
            "The committee predicts the labels no better than a guess, so nothing is flagged: from "
            "these columns nobody can tell which labels are wrong."
        )
    if found.conflicts and found.classes is not None:
        rows = sum(len(part) for part in found.conflicts)
        said.append(
            f"{rows:,} rows have the same cells as another row and a different label; at least "
            f"{sum(_fewest(found.labels[part]) for part in found.conflicts):,} of these labels "
            "must be wrong, unless a column is missing."
        )
    return said


def _fewest(labels: Any) -> int:
    counts = np.unique(labels, return_counts=True)[1]
    return int(counts.sum() - counts.max())


def _about(found: Mislabels) -> list[str]:
    said = [
        "Labels changed at random follow the confusions that the run itself sees. Mistakes on rows "
        "that really look like another class are harder to find."
    ]
    if len(found.labels) > MOST_ROWS:
        said.append(
            f"The page has the {MOST_ROWS:,} most doubtful rows; mislabels.csv has all of them."
        )
    if found.learned and found.share[2] - found.share[1] > 0.15:
        said.append(
            "The share of wrong labels is not well known here: the committee is too unsure to tell "
            "wrong labels from difficult rows. Rows with checked labels (--checked) would help."
        )
    return said


def _summary(found: Mislabels) -> ReviewSummary:
    expected = np.cumsum(found.p_wrong[found.order])
    firsts = [count for count in (10, 20, 50, 100, 200, 500) if count <= len(expected)]
    near = min(firsts, key=lambda count: abs(count - int(found.flag.sum())), default=0)
    at = np.unique(np.geomspace(1, len(expected), _POINTS).astype(np.int64))
    flagged = found.rows()
    pairs: dict[tuple[str, str], int] = {}
    for row in flagged if found.classes is not None else ():
        pair = str(found.labels[row]), str(found.suggested[row])
        pairs[pair] = pairs.get(pair, 0) + 1
    judged = found.p_wrong[~found.known]
    unknown = (
        "The share of wrong labels cannot be told from these columns." if not found.learned else ""
    )
    share, low, high = found.share
    return ReviewSummary(
        n_flagged=len(flagged),
        fdr=found.fdr,
        share=share if found.learned else None,
        share_interval=(low, high) if found.learned else None,
        share_unknown=unknown,
        found_of_100=found.found_of_100 if len(flagged) else None,
        expected_first=[(near, float(expected[near - 1]))] if near and found.learned else [],
        curve=(at.tolist(), [round(float(each), 2) for each in expected[at - 1]])
        if found.learned
        else None,
        histogram=np.histogram(judged, bins=_BARS, range=(0, 1))[0].tolist()
        if found.learned
        else (),
        pairs=sorted(((*pair, n) for pair, n in pairs.items()), key=lambda each: -each[2]),
    )


def _facts(reviewed: Reviewed) -> list[tuple[str, str]]:
    found = reviewed.found
    facts = [
        ("rows judged", f"{int((~found.known).sum()):,}"),
        ("checked rows", f"{found.n_checked:,}"),
        ("models trained", f"{found.n_trainings:,}"),
        ("judges", ", ".join(found.judges)),
        ("right labels among the flagged", f"{found.fdr:.0%} at most, expected"),
    ]
    if reviewed.seconds is not None:
        facts.append(("time", f"{reviewed.seconds:,.1f} s"))
    return [*facts, ("table", reviewed.read_as)] if reviewed.read_as else facts


def _shown(reviewed: Reviewed) -> list[Any]:
    """The columns that a row shows: none of a picture, whose cells are its dots."""
    return [] if reviewed.shape is not None else list(reviewed.features.columns[:MOST_COLUMNS])


def _rows(reviewed: Reviewed, rows: IntArray) -> list[ReviewRow]:
    found, ids, shape = reviewed.found, reviewed.ids, reviewed.shape
    labels, texts = found.labels, [str(label) for label in found.labels]
    near = _near(reviewed, rows)
    shown = reviewed.features[_shown(reviewed)]
    against = {int(row): part for part in found.conflicts for row in part}
    ranks = found.rank

    def cells(row: int) -> list[str]:
        return [str(cell(value)) for value in shown.iloc[row]]

    def close(pairs: tuple[tuple[int, float], ...]) -> list[NearRow]:
        return [
            NearRow(row, _id(ids, row), texts[row], cells(row), round(distance, 4))
            for row, distance in pairs
        ]

    out = []
    for place, row in enumerate(rows.tolist()):
        number = found.classes is None
        out.append(
            ReviewRow(
                row=row,
                id=_id(ids, row),
                label=texts[row],
                suggested=_target(found, row) if number else str(found.suggested[row]),
                p_wrong=_short(found.p_wrong[row]) if found.learned else None,
                rank=int(ranks[row]),
                flag=bool(found.flag[row]),
                cells=cells(row),
                p_suggested=None if number or not found.learned else _short(found.p_suggested[row]),
                agreement=_short(found.agreement[row]),
                margin=_short(found.margin[row]),
                judges=_judges(found, row),
                near_own=close(near[place].same),
                near_suggested=close(near[place].other),
                value=reviewed.values.get(row),
                conflicts=[
                    (int(other), texts[other])
                    for other in against.get(row, ())
                    if labels[other] != labels[row]
                ][:10],
                picture=None
                if shape is None or place >= MOST_PICTURES
                else data_address(reviewed.features.iloc[row].to_numpy().reshape(shape)),
                text=_long_text(shown.iloc[row]),
                interval=_interval(found, row),
            )
        )
    return out


def _near(reviewed: Reviewed, rows: IntArray) -> list[Neighbors]:
    """The nearest rows with a row's own label and with the suggested one."""
    found, features = reviewed.found, reviewed.features
    points = Encoder(features)(features)
    points = points.toarray() if hasattr(points, "toarray") else points
    if found.classes is None:
        return nearest(points, rows)
    return nearest(points, rows, found.labels, toward=found.suggested[rows])


def _judges(found: Mislabels, row: int) -> list[JudgeSays]:
    if found.classes is None:
        says = [_number(each) for each in found.says[:, row]]
        return [JudgeSays(name, said) for name, said in zip(found.judges, says, strict=True)]
    return [
        JudgeSays(name, str(said), _short(own), _short(other))
        for name, said, own, other in zip(
            found.judges, found.says[:, row], found.own[:, row], found.other[:, row], strict=True
        )
    ]


def _interval(found: Mislabels, row: int) -> str | None:
    if found.low is None or found.high is None:
        return None
    return f"{_number(found.low[row])} to {_number(found.high[row])}"


def _long_text(cells: Any) -> str | None:
    longest = max((cell for cell in cells if isinstance(cell, str)), key=len, default="")
    return longest if len(longest) > LONG else None


def _id(ids: Any, row: int) -> str | None:
    return None if ids is None else str(ids[row])


def _target(found: Mislabels, row: int) -> str:
    """The expected target as the table could have it: whole where all are."""
    expected = float(found.suggested[row])
    return str(round(expected)) if found.labels.dtype.kind in "iu" else f"{expected:.10g}"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _values(result: LabelResult, folder: Path) -> dict[int, str]:
    """The values of a `value` run of the same table, if its folder is beside this one."""
    data = Path(result.job.settings.source.data)
    other = folder.parent / data.name.split(".")[0]
    digest = result.job.digests[str(data)]
    try:
        if digest not in read_record(other).files.values():
            return {}
        with (other / "values.csv").open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        found = {int(line["row"]): float(line["value"]) for line in lines}
    except (OSError, ValueError, KeyError, InvalidInput):
        return {}
    return {row: f"{value:+.3g}" for row, value in found.items() if math.isfinite(value)}
