"""The evaluations and outcomes in a ledger's file, every one as it was written."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from databanzhaf.errors import DatabanzhafError, DatabanzhafWarning
from databanzhaf.ledger import checksums
from databanzhaf.ledger.storage import Storage
from databanzhaf.protocols import FloatArray, IntArray, KeyArray

# More evaluations than a run may have: an index beyond is damage.
_MOST = 10**9
# Rows that are read, and copied in one transaction, at a time; fewer where outcomes are large.
_PORTION = 1 << 14
_PORTION_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class Portion:
    """Some evaluations in the order of their places; with their outcomes where they are kept."""

    indices: IntArray
    repeats: IntArray
    utilities: FloatArray
    seconds: FloatArray
    outcomes: list[bytes] | None


class Rows:
    """The tables of one file; `run` is what the checksums of its rows have in common, None where
    they have none (0.1).
    """

    def __init__(self, storage: Storage, run: KeyArray | None, version: str) -> None:
        self._storage, self._run, self._version = storage, run, version

    def total(self, table: str) -> tuple[int, int]:
        """How many rows were appended, and the sum of their checksums."""
        with self._storage.translated():
            rows = self._storage.connection.execute(
                "SELECT count, checksum FROM total WHERE name = ?", (table,)
            ).fetchall()
        if len(rows) != 1 or {type(number) for number in rows[0]} != {int}:
            raise self._storage.damaged(f"the count of its {table} cannot be read")
        return rows[0]  # type: ignore[no-any-return]

    def append_evaluations(
        self, indices: IntArray, repeats: IntArray, utilities: FloatArray, seconds: FloatArray
    ) -> None:
        numbers = utilities + 0.0, seconds + 0.0
        marks = None
        if self._run is not None:
            marks = checksums.of_evaluations(self._run, indices, repeats, *numbers)
        columns = [indices.tolist(), repeats.tolist(), *(part.tolist() for part in numbers)]
        self._append("evaluations", columns, marks)

    def append_outcomes(
        self, indices: IntArray, repeats: IntArray, outcomes: list[bytes | None]
    ) -> None:
        packed, marks = [outcome or b"" for outcome in outcomes], None
        if self._run is not None:
            marks = checksums.of_outcomes(self._run, indices, repeats, packed)
        self._append("outcomes", [indices.tolist(), repeats.tolist(), packed], marks)

    def _append(self, table: str, columns: list[Any], marks: IntArray | None) -> None:
        connection = self._storage.connection
        parts = columns if marks is None else [*columns, marks.tolist()]
        places = ", ".join("?" * len(parts))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", zip(*parts, strict=True))
        if marks is not None:
            count, before = self.total(table)
            now = count + len(marks), checksums.total(before, marks), table
            connection.execute("UPDATE total SET count = ?, checksum = ? WHERE name = ?", now)

    def evaluations(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """All evaluations: index, repeat, utility, seconds."""
        parts = [
            (indices, repeats, np.array(utility), np.array(seconds))
            for indices, repeats, utility, seconds in self._read(
                "evaluations", "utility, seconds", (float, float), checksums.of_evaluations
            )
        ]
        if self._run is None:
            warnings.warn(
                f"the ledger `{self._storage.path}` was written by databanzhaf {self._version}, "
                "which kept no checksums: damage to its numbers would not be noticed.",
                DatabanzhafWarning,
                stacklevel=3,
            )
        if not parts:
            return (np.empty(0, np.int64),) * 2 + (np.empty(0),) * 2
        indices, repeats, utilities, seconds = (
            np.concatenate(part) for part in zip(*parts, strict=True)
        )
        return indices, repeats, utilities, seconds

    def score_outcomes(self, score: Callable[[list[bytes]], FloatArray], out: FloatArray) -> None:
        """The score of each outcome at its place in `out`; nothing is scored unless all
        are whole.
        """
        for indices, repeats, outcomes in self.outcomes():
            if indices.max() >= len(out) or repeats.max() >= out.shape[1]:
                raise self._storage.damaged("it has outcomes of evaluations that it does not hold")
            for low in range(0, len(outcomes), 256):
                part = slice(low, low + 256)
                out[indices[part], repeats[part]] = self._scored(score, outcomes[part])

    def outcomes(self) -> list[tuple[IntArray, IntArray, list[bytes]]]:
        """All outcomes in chunks: indices, repeats, outcomes; none unless all are whole."""
        return list(self._read("outcomes", "outcome", (bytes,), checksums.of_outcomes))

    def _scored(
        self, score: Callable[[list[bytes]], FloatArray], outcomes: list[bytes]
    ) -> FloatArray:
        if self._run is not None:
            return score(outcomes)
        try:
            return score(outcomes)
        except (ValueError, EOFError, OSError, SyntaxError) as error:
            if isinstance(error, DatabanzhafError):
                raise
            raise self._storage.damaged(f"an outcome cannot be read ({error})") from error

    def _read(
        self, table: str, columns: str, kinds: tuple[type, ...], checksum: Callable[..., IntArray]
    ) -> Iterator[tuple[Any, ...]]:
        """The rows of a table, some tens of thousands at a time: places as arrays, then the
        columns.

        Every row is checked against its checksum, and all of them against the total.
        """
        wrong, marked, count = 0, 0, 0
        for indices, repeats, values, marks in self._chunks(table, columns, kinds):
            if marks is not None and self._run is not None:
                parts = [np.array(part) for part in values] if kinds[0] is float else values
                expected = checksum(self._run, indices, repeats, *parts)
                wrong += int(np.count_nonzero(marks != expected))
                marked = checksums.total(marked, marks)
            count += len(indices)
            yield (indices, repeats, *values)
        if wrong:
            raise self._storage.damaged(
                f"{wrong:,} of its {count:,} {table} do not match their checksums"
            )
        if self._run is not None:
            self._check_total(table, count, marked)

    def _check_total(self, table: str, count: int, marked: int) -> None:
        """Compare what was read with how many rows, of what checksums, were written."""
        written = self.total(table)
        if written != (count, marked):
            held = f"{written[0]:,} {table} were written, and it holds {count:,}"
            other = f"its {table} are not those that were written"
            raise self._storage.damaged(held if written[0] != count else other)

    def _chunks(
        self, table: str, columns: str, kinds: tuple[type, ...]
    ) -> Iterator[tuple[Any, ...]]:
        """(indices, repeats, columns, checksums or None) of some tens of thousands of rows."""
        checked = self._run is not None
        mark = ", checksum" if checked else ""
        rows = self._storage.connection.execute(f"SELECT idx, rep, {columns}{mark} FROM {table}")
        while chunk := rows.fetchmany(65536):
            kinds_here = (int, int, *kinds, *([int] if checked else []))
            indices, repeats, *parts = self._columns(table, chunk, kinds_here)
            marks = np.array(parts.pop(), dtype=np.int64) if checked else None
            yield indices, repeats, parts, marks

    def _columns(
        self, table: str, chunk: list[tuple[Any, ...]], kinds: tuple[type, ...]
    ) -> list[Any]:
        """Places as arrays, then the other columns, of rows that a run can have."""
        parts = list(zip(*chunk, strict=True))
        right = all(set(map(type, part)) == {kind} for part, kind in zip(parts, kinds, strict=True))
        if not right or min(*parts[0], *parts[1]) < 0:
            raise self._storage.damaged(f"some of its {table} hold what cannot be")
        if (max(parts[0]) + 1) * (max(parts[1]) + 1) > _MOST:
            raise self._storage.damaged(f"some of its {table} lie beyond what a run can have")
        return [*(np.array(part, dtype=np.int64) for part in parts[:2]), *parts[2:]]

    def portions(self, outcomes: bool) -> Iterator[Portion]:
        """Every evaluation, with its outcome if they are kept, in the order of their places. Each
        row is checked before it is given, and the totals at the end. Only for rows with checksums.
        """
        tables = ["evaluations", "outcomes"] if outcomes else ["evaluations"]
        marks = ", ".join(f"{table}.checksum" for table in tables)
        kinds = (int, int, float, float, *([bytes] if outcomes else []), *([int] * len(tables)))
        rows = self._storage.connection.execute(
            f"SELECT idx, rep, utility, seconds{', outcome' * outcomes}, {marks} FROM "
            f"{' LEFT JOIN '.join(tables)}{' USING (idx, rep)' * outcomes} ORDER BY idx, rep"
        )
        count, marked = 0, [0] * len(tables)
        for chunk in _in_portions(rows, 4 if outcomes else None):
            if outcomes and any(row[4] is None for row in chunk):
                raise self._storage.damaged("some of its evaluations have no outcome")
            parts = self._columns("evaluations", chunk, kinds)
            written = [np.array(part, dtype=np.int64) for part in parts[-len(tables) :]]
            given = Portion(
                parts[0],
                parts[1],
                np.array(parts[2]),
                np.array(parts[3]),
                list(parts[4]) if outcomes else None,
            )
            for place, expected in enumerate(self._marks(given)):
                wrong = int(np.count_nonzero(expected != written[place]))
                if wrong:
                    which = f"from index {given.indices[0]:,} to {given.indices[-1]:,}"
                    raise self._storage.damaged(
                        f"{wrong:,} of its {tables[place]} {which} do not match their checksums"
                    )
                marked[place] = checksums.total(marked[place], written[place])
            count += len(chunk)
            yield given
        for table, mark in zip(tables, marked, strict=True):
            self._check_total(table, count, mark)

    def _marks(self, given: Portion) -> Iterator[IntArray]:
        """The checksums that its evaluations must have, then those of its outcomes."""
        assert self._run is not None
        places = self._run, given.indices, given.repeats
        yield checksums.of_evaluations(*places, given.utilities, given.seconds)
        if given.outcomes is not None:
            yield checksums.of_outcomes(*places, given.outcomes)

    def held(self, index: int, repeat: int, outcomes: bool) -> tuple[float, bytes | None] | None:
        """Utility and outcome, if they are kept, of one evaluation; None where it is not there."""
        query = "SELECT utility, NULL FROM evaluations WHERE idx = ? AND rep = ?"
        if outcomes:
            query = (
                "SELECT utility, outcome FROM evaluations LEFT JOIN outcomes USING (idx, rep) "
                "WHERE idx = ? AND rep = ?"
            )
        found = self._storage.connection.execute(query, (index, repeat))
        return found.fetchone()  # type: ignore[no-any-return]


def _in_portions(rows: sqlite3.Cursor, blob: int | None) -> Iterator[list[tuple[Any, ...]]]:
    """Rows of a query, as many at a time as fit in memory; `blob` is the column of the outcomes."""
    chunk: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        chunk.append(row)
        size += 0 if blob is None else len(row[blob] or b"")
        if len(chunk) >= _PORTION or size >= _PORTION_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
