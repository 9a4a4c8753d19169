"""What is whole in a ledger's file, whatever became of the rest."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.ledger import checksums, schema
from databanzhaf.ledger.pages import Pages, layouts
from databanzhaf.protocols import IntArray, KeyArray

Row = tuple[Any, ...]
# Rows whose checksums are computed at a time; fewer where outcomes are large.
_PORTION = 1 << 14
_PORTION_BYTES = 1 << 26
_EVALUATIONS = [
    [int, int, utility, seconds, int] for utility in (float, int) for seconds in (float, int)
]


def facts_and_totals(path: Path) -> tuple[dict[str, str] | None, dict[str, int]]:
    """What the run is, None where that is not whole; and how many rows were written to each table,
    as far as the file still says it.
    """
    together: dict[str, str] = {}
    pages, totals = [together], dict[str, int]()
    for page in _small_pages(path):
        facts = {row[0]: row[1] for row in page if list(map(type, row)) == [str, str]}
        if facts:
            pages.append(facts)
            together.update(facts)
        for row in page:
            if list(map(type, row)) == [str, int, int]:
                totals[row[0]] = max(row[1], totals.get(row[0], 0))
    # The newest image of a page comes last. The facts take one page if pages are as large as usual.
    found = next((facts for facts in reversed(pages) if schema.whole(facts)), None)
    return found, totals


def _small_pages(path: Path) -> Iterator[list[Row]]:
    """The rows of the pages whose first row begins with a text."""
    for layout in layouts(path):
        with Pages(path, layout) as pages:
            for page in pages:
                rows = pages.records(page)
                first = next(rows, ())
                if first and isinstance(first[0], str):
                    yield [first, *rows]


def whole_rows(path: Path, run: KeyArray) -> Iterator[tuple[str, list[Row]]]:
    """The table and the rows, with their checksums, of some evaluations or outcomes of a run at a
    time, in no order; a row may come several times.
    """
    for layout in layouts(path):
        evaluations: list[Row] = []
        outcomes: list[Row] = []
        size = 0
        with Pages(path, layout) as pages:
            for page in pages:
                for row in pages.records(page):
                    if _is_evaluation(row):
                        evaluations.append(row)
                    elif list(map(type, row)) == [int, int, bytes, int]:
                        outcomes.append(row)
                        size += len(row[2])
                if len(evaluations) >= _PORTION:
                    yield "evaluations", _whole_evaluations(evaluations, run)
                    evaluations = []
                if len(outcomes) >= _PORTION or size >= _PORTION_BYTES:
                    yield "outcomes", _whole_outcomes(outcomes, run)
                    outcomes, size = [], 0
        yield "evaluations", _whole_evaluations(evaluations, run)
        yield "outcomes", _whole_outcomes(outcomes, run)


def fill(
    connection: sqlite3.Connection, path: Path, facts: dict[str, str], *, packed: bool = True
) -> None:
    """Make a ledger's tables with all rows of a file that are whole: where outcomes are kept,
    evaluations with an outcome alone. Without `packed` the outcomes are empty, to be counted.
    """
    schema.make(connection, facts)
    tables = {"evaluations": 5}
    if json.loads(facts["keep"]) == "outcomes":
        tables["outcomes"] = 4
    for table, rows in whole_rows(path, checksums.run_key(facts)):
        if table in tables:
            if table == "outcomes" and not packed:
                rows = [(*row[:2], b"", row[3]) for row in rows]
            # A row may come several times.
            places = ", ".join("?" * tables[table])
            connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({places})", rows)
    if "outcomes" in tables:
        for table, other in (("evaluations", "outcomes"), ("outcomes", "evaluations")):
            connection.execute(
                f"DELETE FROM {table} WHERE NOT EXISTS (SELECT 1 FROM {other} WHERE "
                f"{other}.idx = {table}.idx AND {other}.rep = {table}.rep)"
            )
    for table in tables:
        count = total = 0
        marks = connection.execute(f"SELECT checksum FROM {table}")
        while chunk := marks.fetchmany(65536):
            count += len(chunk)
            total = checksums.total(total, np.array(chunk, dtype=np.int64))
        now = count, total, table
        connection.execute("UPDATE total SET count = ?, checksum = ? WHERE name = ?", now)


def _is_evaluation(row: Row) -> bool:
    # SQLite stores a real number without a fraction as a whole one, and no NaN.
    return list(map(type, row)) in _EVALUATIONS and row[2] == row[2] and row[3] == row[3]


def _whole_evaluations(rows: list[Row], run: KeyArray) -> list[Row]:
    if not rows:
        return []
    indices, repeats, utilities, seconds, _ = zip(*rows, strict=True)
    marks = checksums.of_evaluations(
        run, _integers(indices), _integers(repeats), _reals(utilities), _reals(seconds)
    )
    return [row for row, mark in zip(rows, marks.tolist(), strict=True) if row[4] == mark]


def _whole_outcomes(rows: list[Row], run: KeyArray) -> list[Row]:
    if not rows:
        return []
    indices, repeats, outcomes, _ = zip(*rows, strict=True)
    marks = checksums.of_outcomes(run, _integers(indices), _integers(repeats), outcomes)
    return [row for row, mark in zip(rows, marks.tolist(), strict=True) if row[3] == mark]


def _integers(numbers: Iterable[int]) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def _reals(numbers: Iterable[float]) -> Any:
    return np.array(numbers, dtype=np.float64)
