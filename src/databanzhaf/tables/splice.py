"""Text files with some cells and lines changed, and every other byte as it was."""

from __future__ import annotations

import codecs
import gzip
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from databanzhaf.errors import InvalidInput, short
from databanzhaf.tables.labels import suffix_of

# What ends a line; pandas takes each of them, in any mixture.
_END = re.compile(r"\r\n?|\n")


def spliced(
    path: Path,
    column: int,
    labels: Mapping[int, str],
    dropped: Collection[int],
    *,
    rows: int,
    encoding: str,
    separator: str | None,
) -> bytes:
    """The bytes of the file with `labels` (by row) in one column, and without the dropped rows.

    Rows are found as pandas finds them: lines of nothing but blanks are no rows, and a line end
    between quotes belongs to its cell. `rows` is their number, which must come out.
    """
    packed = path.suffix.lower() == ".gz"
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    codec = _codec(encoding, content)
    text = content.decode(codec)
    if separator is None:  # as `read_table` chooses it
        separator = "\t" if suffix_of(path).startswith((".tsv", ".tab")) else ","
    separator = separator.replace("\\t", "\t")
    edits, found = _edits(text, column, labels, dropped, separator)
    # Encoded piece by piece, each piece keeps its bytes, unless the encoding has states or several
    # spellings of one character.
    old, new, place = [], [], 0
    for start, end, cell in edits:
        between = text[place:start].encode(codec)
        old += [between, text[start:end].encode(codec)]
        new += [between, _encoded(cell, codec, encoding)]
        place = end
    rest = text[place:].encode(codec)
    if found != rows or b"".join([*old, rest]) != content:
        raise InvalidInput(
            f"the lines of `{path}` must be found byte by byte",
            got=f"{found:,} of {rows:,} rows"
            if found != rows
            else f"bytes that {encoding} writes differently",
            remedy="Save the table again, as UTF-8 and without blank lines, and review that file.",
        )
    changed = b"".join([*new, rest])
    return gzip.compress(changed, mtime=0) if packed else changed


def cells(text: str, start: int, stop: re.Pattern[str]) -> tuple[list[tuple[int, int]], int]:
    """Where the cells of the row that begins at `start` lie, quotes included, and where the next
    line begins. `stop` matches a separator or the first character of a line's end.

    >>> cells('a,"b,c"\\nd', 0, re.compile(r"[,\\r\\n]"))
    ([(0, 1), (2, 7)], 8)
    """
    spans, place = [], start
    while True:
        begin = place
        if text.startswith('"', place):
            place = _after_quotes(text, place)
        # Text after a closing quote belongs to the cell, and a quote in it is a character.
        found = stop.search(text, place)
        end = found.start() if found else len(text)
        spans.append((begin, end))
        if found is None:
            return spans, end
        if found[0] in "\r\n":
            return spans, end + (2 if text.startswith("\r\n", end) else 1)
        place = end + 1


def _after_quotes(text: str, place: int) -> int:
    """The place behind the quote that closes the one at `place`; two quotes are one of the
    cell's characters.
    """
    while True:
        place = text.find('"', place + 1)
        if place < 0:
            return len(text)
        if not text.startswith('"', place + 1):
            return place + 1
        place += 1


def _edits(
    text: str,
    column: int,
    labels: Mapping[int, str],
    dropped: Collection[int],
    separator: str,
) -> tuple[list[tuple[int, int, str]], int]:
    """What to replace in the text, in order, and how many rows it has."""
    stop = re.compile(f"[{re.escape(separator)}\r\n]")
    blank = " \t".replace(separator, "")
    edits: list[tuple[int, int, str]] = []
    place, row = int(text.startswith("\ufeff")), -2
    while place < len(text):
        line = _END.search(text, place)
        end = line.end() if line else len(text)
        if not text[place : line.start() if line else end].strip(blank):
            place = end
            continue
        row += 1  # the header is row -1
        if row in labels:
            spans, end = cells(text, place, stop)
            if column >= len(spans):
                raise InvalidInput(
                    f"row {row} must have a field for its label",
                    got=f"{len(spans)} fields",
                    remedy="Add the missing separators to the table, and review it again.",
                )
            start, stop_at = spans[column]
            quoted = text.startswith('"', start)
            edits.append((start, stop_at, _written(labels[row], separator, quoted)))
        elif text.find('"', place, end) >= 0:
            end = cells(text, place, stop)[1]
        if row in dropped:
            edits.append((place, end, ""))
        place = end
    return edits, row + 1


def _written(label: str, separator: str, quoted: bool) -> str:
    """The label as a cell, in quotes if the old one was or if it could be read as something else.
    A cell of blanks alone might make a blank line, which is no row.
    """
    special = any(mark in label for mark in (separator, '"', "\r", "\n")) or not label.strip()
    doubled = label.replace('"', '""')
    return f'"{doubled}"' if quoted or special else label


def _codec(encoding: str, content: bytes) -> str:
    """The encoding under a name by which a byte order mark stays a character of the text."""
    name = codecs.lookup(encoding).name
    first = {"utf-16": codecs.BOM_UTF16_BE, "utf-32": codecs.BOM_UTF32_BE}
    if name in first:
        return f"{name}-be" if content.startswith(first[name]) else f"{name}-le"
    return "utf-8" if name == "utf-8-sig" else name


def _encoded(cell: str, codec: str, encoding: str) -> bytes:
    try:
        return cell.encode(codec)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"new labels must be writable in the table's encoding, {encoding}",
            got=short(cell),
            remedy="Save the table as UTF-8 and review that file, or decide another label.",
        ) from error
