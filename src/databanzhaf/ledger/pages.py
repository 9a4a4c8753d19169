"""The rows in the pages of a SQLite file, read without SQLite.

SQLite finds a page through the pages above it, so one broken page may hide many whole ones. Here
every page is read by itself: neither the file's header nor its schema nor inner pages are needed,
and a page that is whole gives all of its rows. Their checksums tell which rows are whole.

The format is that of https://www.sqlite.org/fileformat2.html. Rows of tables without a rowid are
keys of an index, and stand in inner pages too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from databanzhaf.errors import LedgerFailed
from databanzhaf.ledger.storage import log_of

# What a page begins with, and where the positions of its cells begin.
_INNER_INDEX, _LEAF_INDEX, _LEAF_TABLE = 2, 10, 13
_CELLS = {_INNER_INDEX: 12, _LEAF_INDEX: 8, _LEAF_TABLE: 8}
_LOG_HEADER, _FRAME_HEADER = 32, 24
# The bytes of a whole number, by its type in a record.
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL = struct.Struct(">d")


@dataclass(frozen=True)
class Layout:
    """How many bytes a page has, and how many of them are used."""

    size: int
    usable: int


# What SQLite makes.
USUAL = Layout(4096, 4096)


def layouts(path: Path) -> list[Layout]:
    """The layouts to read a file by: what its header says, and the usual one, since the header may
    be damaged.
    """
    with _opened(path) as file:
        header = _read(file, 0, 100)
    size = int.from_bytes(header[16:18], "big")
    size = 65536 if size == 1 else size
    reserved = header[20] if len(header) > 20 else 0
    sound = 512 <= size <= 65536 and size & (size - 1) == 0 and size - reserved >= 480
    said = Layout(size, size - reserved)
    return [said, USUAL] if sound and said != USUAL else [USUAL]


class Pages:
    """Every page in a file and in its write-ahead log. The log may hold several images of a page,
    and all are read: rows of a ledger never change.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self._layout, self._open = layout, ExitStack()
        self._file = self._open.enter_context(_opened(path))
        self._stored_size = self._size = path.stat().st_size
        self._log: BinaryIO | None = None
        self._frames: list[int] = []
        self._newest: dict[int, int] = {}
        log = log_of(path)
        if log.is_file():
            self._log = self._open.enter_context(_opened(log))
            self._size += log.stat().st_size
            self._find_frames(self._log, log.stat().st_size)

    def _find_frames(self, log: BinaryIO, size: int) -> None:
        salts, found = _read(log, 0, _LOG_HEADER)[16:24], []
        for start in range(_LOG_HEADER, size, _FRAME_HEADER + self._layout.size):
            header = _read(log, start, _FRAME_HEADER)
            found.append((header[8:16] == salts, start + _FRAME_HEADER, header[:4]))
        # A log is written from its beginning again after a checkpoint, with other salts: frames
        # with those of the header are newer, wherever they stand.
        for _, offset, number in sorted(found):
            self._frames.append(offset)
            self._newest[int.from_bytes(number, "big")] = offset

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def __iter__(self) -> Iterator[bytes]:
        """Every image of a page; the last one of a file may be cut short."""
        for offset in range(0, self._stored_size, self._layout.size):
            yield _read(self._file, offset, self._layout.size)
        for offset in self._frames:
            yield self._logged(offset)

    def _logged(self, offset: int) -> bytes:
        assert self._log is not None
        return _read(self._log, offset, self._layout.size)

    def page(self, number: int) -> bytes:
        """The newest image of a page; empty where there is none."""
        if number in self._newest:
            return self._logged(self._newest[number])
        size = self._layout.size
        return _read(self._file, (number - 1) * size, size) if number else b""

    def records(self, page: bytes) -> Iterator[tuple[Any, ...]]:
        """The rows on a page as far as they can be read: numbers, texts, bytes and None."""
        if len(page) < 8 or page[0] not in _CELLS:
            return
        kind = page[0]
        start, count = _CELLS[kind], int.from_bytes(page[3:5], "big")
        for place in range(start, min(start + 2 * count, len(page) - 1), 2):
            try:
                found = _values(self._payload(page, int.from_bytes(page[place : place + 2]), kind))
            except (IndexError, ValueError, struct.error):  # not a row, or a damaged one
                continue
            yield found

    def _payload(self, page: bytes, at: int, kind: int) -> bytes:
        """The bytes of one row, those on overflow pages included."""
        usable = self._layout.usable
        size, at = _varint(page, at + 4 if kind == _INNER_INDEX else at)
        largest = (usable - 12) * 64 // 255 - 23
        if kind == _LEAF_TABLE:
            _, at = _varint(page, at)
            largest = usable - 35
        if size > self._size:
            raise ValueError("a row cannot be larger than its file")
        if size <= largest:
            return _exactly(page[at : at + size], size)
        least = (usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (usable - 4)
        here = least if here > largest else here
        parts, left = [_exactly(page[at : at + here], here)], size - here
        following = _exactly(page[at + here : at + here + 4], 4)
        while left:
            overflow = self.page(int.from_bytes(following, "big"))
            step = min(left, usable - 4)
            parts.append(_exactly(overflow[4 : 4 + step], step))
            following, left = overflow[:4], left - step
        return b"".join(parts)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise LedgerFailed(
            f"`{path}` cannot be read ({error.strerror})", remedy="Check its permissions."
        ) from error


def _read(file: BinaryIO, offset: int, size: int) -> bytes:
    """Bytes of a file; none where the disk cannot give them."""
    try:
        file.seek(offset)
        return file.read(size)
    except OSError:
        return b""


def _exactly(part: bytes, size: int) -> bytes:
    if len(part) != size:
        raise ValueError("a row is cut short")
    return part


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A whole number of one to nine bytes, and where the next begins."""
    number = 0
    for place in range(at, at + 8):
        number = number << 7 | data[place] & 127
        if data[place] < 128:
            return number, place + 1
    return number << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> tuple[Any, ...]:
    """The columns of one row."""
    end, at = _varint(payload, 0)
    if end > len(payload):
        raise ValueError("a row is cut short")
    place, found = end, []
    while at < end:
        kind, at = _varint(payload, at)
        size = _INTEGERS.get(kind, 8 if kind == 7 else max(0, (kind - 12) // 2))
        part = _exactly(payload[place : place + size], size)
        found.append(_value(kind, part))
        place += size
    return tuple(found)


def _value(kind: int, part: bytes) -> Any:
    if kind in _INTEGERS:
        return int.from_bytes(part, "big", signed=True)
    if kind == 7:
        return _REAL.unpack(part)[0]
    if kind in (8, 9):
        return kind - 8
    if kind < 12:
        return None
    return part.decode() if kind % 2 else part
