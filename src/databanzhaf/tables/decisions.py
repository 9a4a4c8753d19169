"""What a person decided about the labels of a table, row by row: decisions.csv."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from databanzhaf.errors import InvalidInput, check_path, first_line, short
from databanzhaf.files import write_text
from databanzhaf.tables.read import file_digest

COLUMNS: Final = ("row", "id", "label", "decision", "new_label", "table", "target")
# What a corrected table's own file has as well: each label as it was before any review.
WAS: Final = "was"
KINDS: Final = ("keep", "fix", "drop")
# Hexadecimal digits of a file's SHA-256 that are compared: 64 bits tell versions of a table apart.
_DIGITS = 16


@dataclass(frozen=True)
class Decision:
    """What becomes of one row of a table.

    Attributes
    ----------
    row : int
        Counts the data rows of the table from 0.
    label : str
        The label as the table has it; "" where it has none.
    decision : str
        keep, fix or drop.
    new_label : str
        The label that a fix writes; "" for other decisions.
    id : str
        The row's name, for people; may be "".
    was : str
        The label before an earlier review; "" where there was none.
    """

    row: int
    label: str
    decision: str
    new_label: str = ""
    id: str = ""
    was: str = ""


@dataclass(frozen=True)
class Decisions:
    """All decisions about the column `target` of one table, whose `file_fingerprint` is `table`."""

    table: str
    target: str
    made: tuple[Decision, ...]


def file_fingerprint(path: str | Path) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of the file's bytes."""
    return file_digest(path)[:_DIGITS]


def read_decisions(path: str | Path) -> Decisions:
    """The decisions in a file. It is checked in itself; `rewrite` compares it with its table."""
    path = Path(path)
    lines = _lines(path)
    header = next(lines, [])
    if sorted(header) not in (sorted(COLUMNS), sorted((*COLUMNS, WAS))):
        raise InvalidInput(
            f"`{path}` must have the columns {', '.join(COLUMNS)}",
            got=short(",".join(header)),
            remedy="Save it again from the review page.",
        )
    made, about = [], set()
    for number, line in enumerate(lines):
        if len(line) != len(header):
            raise InvalidInput(
                f"every line of `{path}` must have {len(header)} fields",
                got=f"{len(line)} in decision {number + 1}",
                remedy="Save it again from the review page.",
            )
        cells = dict(zip(header, line, strict=True))
        if not re.fullmatch(r"[0-9]{1,18}", cells["row"]):
            raise InvalidInput(
                f"`row` in `{path}` must be a whole number, 0 or more",
                got=short(cells["row"]),
                remedy="Rows of the table count from 0.",
            )
        about.add((cells.pop("table"), cells.pop("target")))
        made.append(Decision(**{**cells, "row": int(cells["row"])}))  # type: ignore[arg-type]
    if len(about) > 1:
        raise InvalidInput(
            f"`{path}` must be about one column of one table",
            got=f"{len(about)} different pairs of `table` and `target`",
            remedy="Apply the decisions about one table at a time.",
        )
    decisions = Decisions(*(about.pop() if about else ("", "")), tuple(made))
    check_decisions(decisions, f"`{path}`")
    return decisions


def write_decisions(path: str | Path, decisions: Decisions) -> None:
    """A file that `read_decisions` reads back, whole or not at all."""
    check_decisions(decisions)
    check_path(path)
    write_text(Path(path), as_text(decisions))


def as_text(decisions: Decisions) -> str:
    """The content of decisions.csv."""
    lines = [
        (each.row, each.id, each.label, each.decision, each.new_label) for each in decisions.made
    ]
    # Before Python 3.13 a carriage return alone is not quoted, and would end the line.
    bare = any("\r" in str(cell) for line in [*lines, (decisions.target,)] for cell in line) or any(
        "\r" in each.was for each in decisions.made
    )
    file = io.StringIO(newline="")
    how: dict[str, Any] = {"quoting": csv.QUOTE_ALL if bare else csv.QUOTE_MINIMAL}
    writer = csv.writer(file, lineterminator="\n", **how)
    known = any(each.was for each in decisions.made)
    writer.writerow((*COLUMNS, *([WAS] if known else [])))
    writer.writerows(
        (*line, decisions.table, decisions.target, *([each.was] if known else []))
        for line, each in zip(lines, decisions.made, strict=True)
    )
    return file.getvalue()


def check_decisions(decisions: Decisions, where: str = "`decisions`") -> None:
    """Refuse decisions that no table could follow."""
    if not decisions.made:
        raise InvalidInput(f"{where} must hold one decision or more", remedy="Review some rows.")
    rows = set()
    for each in decisions.made:
        got = f"{short(each.decision)} for row {each.row}"
        if each.decision not in KINDS:
            raise InvalidInput(
                f"every decision in {where} must be keep, fix or drop",
                got=got,
                remedy="Decide that row again.",
            )
        if each.decision == "fix" and not each.new_label:
            raise InvalidInput(
                f"a fix in {where} must have a `new_label`",
                got=f"none for row {each.row}",
                remedy="Fill it in, or drop the row.",
            )
        if each.decision != "fix" and each.new_label:
            raise InvalidInput(
                f"only a fix in {where} may have a `new_label`",
                got=f"{got} with {short(each.new_label)}",
                remedy="Write fix, or remove the new label.",
            )
        if each.decision == "fix" and each.new_label == each.label:
            raise InvalidInput(
                f"a fix in {where} must change the label",
                got=f"{short(each.label)} again for row {each.row}",
                remedy="Write keep.",
            )
        if each.row in rows:
            raise InvalidInput(
                f"{where} must decide each row once",
                got=f"row {each.row} twice",
                remedy="Remove one of the two lines.",
            )
        rows.add(each.row)


def sidecar_path(table: str | Path) -> Path:
    """Where the decisions of a corrected table are kept: train.decisions.csv for train.csv or
    train.csv.gz.

    >>> sidecar_path("train.fixed.csv").name
    'train.fixed.decisions.csv'
    """
    path = Path(table)
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return path.with_name(f"{plain.stem}.decisions.csv")


def read_sidecar(table: str | Path, target: str) -> Decisions | None:
    """The rows that were decided before this table was written, each as a keep; None if no file
    beside the table lists them, or if it cannot be used (`unused_sidecar` says why).

    Decisions to fix or drop are left out: the table has not followed them.
    """
    found = _sidecar(table, target)
    return found if isinstance(found, Decisions) and found.made else None


def unused_sidecar(table: str | Path, target: str) -> str | None:
    """Why the file of decided rows beside a table is not used, as a sentence; None if it is used,
    or if there is none.
    """
    found = _sidecar(table, target)
    return found if isinstance(found, str) else None


def _sidecar(table: str | Path, target: str) -> Decisions | str | None:
    path = sidecar_path(table)
    if not path.is_file():
        return None
    ignored = f"`{path.name}` is not used, and no row counts as checked"
    try:
        found = read_decisions(path)
    except InvalidInput as error:
        return f"{ignored}: {error.rule.replace(str(path), path.name)}."
    if found.target != target:
        return f"{ignored}: it is about the column `{found.target}`."
    if found.table != file_fingerprint(table):
        return f"{ignored}: `{Path(table).name}` has changed since it was written."
    kept = tuple(each for each in found.made if each.decision == "keep")
    return Decisions(found.table, found.target, kept)


def _lines(path: Path) -> Iterator[list[str]]:
    """The lines of a CSV file that are not blank."""
    check_path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"the decisions `{path}` cannot be read ({error.strerror})", remedy="Check the path."
        ) from error
    try:
        # Spreadsheets begin a file with a byte order mark.
        text = content.decode("utf-8-sig")
        # Spreadsheets of many countries save commas as semicolons.
        first = text.partition("\n")[0]
        separator = ";" if ";" in first and "," not in first else ","
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
        yield from (line for line in lines if line)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"`{path}` must be UTF-8 text",
            got=f"byte 0x{content[error.start]:02x} at {error.start}",
            remedy="Save it again from the review page.",
        ) from error
    except csv.Error as error:
        raise InvalidInput(
            f"`{path}` cannot be read as CSV ({first_line(error)})",
            remedy="Save it again from the review page.",
        ) from error
