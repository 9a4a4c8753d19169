"""The durable store of evaluations: a SQLite file, or memory.

Tables
------
facts(name, value)
    What the run is: game, design, library version, ... as JSON, and a checksum of them all.
evaluations(idx, rep, utility, seconds, checksum)
    One row per training.
outcomes(idx, rep, outcome, checksum)
    The packed predictions, with ``keep="outcomes"``.
total(count, checksum)
    How many evaluations there are, and the sum of their checksums: rows that are lost are noticed too.

Each batch is one transaction in write-ahead mode, so that kill -9 loses at most the batch in flight. A run
holds a lock beside the file (``run.db.lock``), which the system frees when the process ends, however it ends: a second
run on the same file is refused, while readers may look at any time. The file is made when a run is bound to it, and never removed.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from databanzhaf import checksums
from databanzhaf._version import __version__
from databanzhaf.errors import DatabanzhafWarning, InvalidInput, LedgerFailed, LedgerMismatch, short
from databanzhaf.storage import Storage
from databanzhaf.types import FloatArray, IntArray, Labels

_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluations (
    idx INTEGER, rep INTEGER, utility REAL NOT NULL, seconds REAL NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (idx, rep)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (idx INTEGER, rep INTEGER, outcome BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (idx, rep));
CREATE TABLE IF NOT EXISTS total (count INTEGER NOT NULL, checksum INTEGER NOT NULL);
"""
_APPLICATION_ID = 0x44425A46  # "DBZF"
_FORMAT = 2
_WITHOUT_CHECKSUMS = 1  # the format of databanzhaf 0.1
# More evaluations than a run may have: an index beyond is damage.
_MOST = 10**9


class Ledger:
    """Every evaluation of one run.

    Parameters
    ----------
    path : str or Path, optional
        The file; without it the ledger lives in memory.
    keep : "utilities" or "outcomes", optional
        "outcomes" also keeps each model's predictions, so that another metric needs no training. By default
        what the file keeps already; "utilities" for a new one.
    """

    def __init__(self, path: str | Path | None = None, *, keep: str | None = None) -> None:
        if keep not in (None, "utilities", "outcomes"):
            raise InvalidInput(f'`keep` must be "utilities" or "outcomes"; got {short(keep)}. Outcomes let you change the metric later.')
        self._asked_keep = keep
        self._storage = Storage(path)
        self.path = self._storage.path
        try:
            self._check()
        except BaseException:
            self._storage.close()
            raise

    def _check(self) -> None:
        facts: dict[str, str] = {}
        with self._storage.transaction("DEFERRED") as connection:
            [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
            [(identity,)] = connection.execute("PRAGMA application_id")
            [(self._format,)] = connection.execute("PRAGMA user_version")
            if tables and identity == _APPLICATION_ID and self._format == _FORMAT:
                facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
        if not tables and not identity:
            self._format = _FORMAT
            return
        if identity != _APPLICATION_ID:
            raise LedgerFailed(f"`{self.path}` is a SQLite file, but not a ledger. Give another path.")
        if self._format not in (_FORMAT, _WITHOUT_CHECKSUMS):
            raise LedgerFailed(f"`{self.path}` has ledger format {self._format}; this version reads up to {_FORMAT}. Upgrade databanzhaf.")
        if self._format == _FORMAT and facts.pop("checksum", None) != checksums.of_facts(facts):
            raise self._storage.damaged("the description of its run does not match its checksum")
        if not self.is_new and self._asked_keep not in (None, self.keep):
            raise LedgerMismatch(
                f"the ledger `{self.path}` keeps {self.keep}, but keep={self._asked_keep!r} was asked for. "
                "Leave `keep` out, or give another path."
            )

    def _fact(self, name: str) -> Any:
        with self._storage.translated():
            if not self._storage.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return None
            row = self._storage.connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except json.JSONDecodeError as error:
            raise self._storage.damaged(f"its fact {name!r} cannot be read") from error

    def _described(self, name: str) -> dict[str, Any]:
        found = self._fact(name)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self._storage.damaged(f"its fact {name!r} cannot be read")
        return found

    @property
    def is_new(self) -> bool:
        """Whether it holds no evaluation yet. Then it belongs to no run, and the next may bind it."""
        if self._fact("design") is None:
            return True
        total = "(SELECT max(count) FROM total)" if self._format == _FORMAT else "0"
        with self._storage.translated():  # one statement, since a run may be writing
            [(some, written)] = self._storage.connection.execute(f"SELECT EXISTS (SELECT 1 FROM evaluations), {total}")
        if written and not some:
            raise self._storage.damaged(f"its {written} evaluations are gone")
        return not some

    def _total(self) -> tuple[int, int]:
        """How many evaluations were appended, and the sum of their checksums."""
        with self._storage.translated():
            rows = self._storage.connection.execute("SELECT count, checksum FROM total").fetchall()
        if len(rows) != 1 or {type(number) for number in rows[0]} != {int}:
            raise self._storage.damaged("the count of its evaluations cannot be read")
        return rows[0]  # type: ignore[no-any-return]

    @property
    def keep(self) -> str:
        stored = self._fact("keep")
        return str(self._asked_keep or stored or "utilities") if self.is_new else str(stored)

    @property
    def game(self) -> dict[str, str]:
        """The fingerprint of the game."""
        return self._described("game")

    @property
    def design(self) -> dict[str, Any]:
        """The description of the design."""
        return self._described("design")

    @property
    def stochastic(self) -> bool:
        return bool(self._fact("stochastic"))

    @property
    def players(self) -> Labels | None:
        """The user's own names of the players, a pandas index as one."""
        names: Labels | dict[str, Any] | None = self._fact("players")
        return _read_index(names) if isinstance(names, dict) else names

    @property
    def library_version(self) -> str:
        """The version that began the run."""
        return str(self._fact("version"))

    def bind(self, game: dict[str, str], design: dict[str, Any], *, seed: int, stochastic: bool, players: Labels | None = None) -> None:
        """Begin a run, or make sure that the run in this ledger is this one; `LedgerMismatch` shows both sides."""
        if self._storage.claim():
            self._check()
        asked = {"game": game, "design": json.loads(json.dumps(design)), "seed": seed}
        if self.is_new:
            names = None if players is None else _plain_names(players)
            known = {**asked, "stochastic": stochastic, "players": names, "keep": self.keep, "version": __version__}
            facts = {name: json.dumps(value) for name, value in known.items()}
            with self._storage.transaction() as connection:
                for table in ("facts", "evaluations", "outcomes", "total"):  # empty ones, perhaps of an older format
                    connection.execute(f"DROP TABLE IF EXISTS {table}")
                for statement in _SCHEMA.strip().split(";\n"):
                    connection.execute(statement)
                connection.executemany("INSERT INTO facts VALUES (?, ?)", [*facts.items(), ("checksum", checksums.of_facts(facts))])
                connection.execute("INSERT INTO total VALUES (0, 0)")
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_FORMAT}")
            self._format = _FORMAT
            return
        found = {"game": self.game, "design": self.design, "seed": self._fact("seed")}
        if found != asked:
            raise LedgerMismatch(self._difference(found, asked))

    def _difference(self, found: dict[str, Any], asked: dict[str, Any]) -> str:
        old = {**found["design"], **found["game"], "seed": found["seed"]}
        new = {**asked["design"], **asked["game"], "seed": asked["seed"]}
        lines = [
            f"  {name}: the ledger has {_short(old.get(name))}, this call has {_short(new.get(name))}"
            for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name)
        ]
        remedy = "Give another path for this run, or repeat the call that wrote the ledger."
        if self.keep == "outcomes" and len(lines) == 1 and lines[0].startswith("  metric:"):
            remedy = "It keeps outcomes, so no training is needed: databanzhaf.estimate(ledger, notion, game=...)."
        where = "in memory" if self.path is None else f"`{self.path}`"
        return "\n".join([f"the ledger {where} belongs to another run:", *lines, remedy])

    def append(
        self,
        indices: IntArray,
        repeats: IntArray,
        utilities: FloatArray,
        seconds: FloatArray,
        outcomes: list[bytes | None] | None = None,
    ) -> None:
        """Add evaluations in one transaction."""
        if not self._storage.in_place:
            raise LedgerFailed(
                f"`{self.path}` was deleted or replaced while a run was writing to it, and its evaluations are gone. "
                "Restore a copy, or run again."
            )
        utilities, seconds = utilities + 0.0, seconds + 0.0
        marks = checksums.of_evaluations(indices, repeats, utilities, seconds)
        with self._storage.transaction() as connection:
            self._insert("evaluations", indices, repeats, [utilities.tolist(), seconds.tolist()], marks)
            if outcomes is not None:
                packed = [outcome or b"" for outcome in outcomes]
                self._insert("outcomes", indices, repeats, [packed], checksums.of_outcomes(indices, repeats, packed))
            if self._format == _FORMAT:
                count, before = self._total()
                connection.execute("UPDATE total SET count = ?, checksum = ?", (count + len(marks), checksums.total(before, marks)))

    def _insert(self, table: str, indices: IntArray, repeats: IntArray, columns: list[Any], marks: IntArray) -> None:
        parts = [indices.tolist(), repeats.tolist(), *columns, *([marks.tolist()] if self._format == _FORMAT else [])]
        self._storage.connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(parts))})", zip(*parts, strict=True))

    def _chunks(self, table: str, columns: str, kinds: tuple[type, ...]) -> Iterator[list[Any]]:
        """The rows of a table, some tens of thousands at a time: their places, the columns, and the checksums if there are any."""
        checked = self._format == _FORMAT
        rows = self._storage.connection.execute(f"SELECT idx, rep, {columns}{', checksum' if checked else ''} FROM {table}")
        while chunk := rows.fetchmany(65536):
            parts = list(zip(*chunk, strict=True))
            expected = (int, int, *kinds, *([int] if checked else []))
            bad = next((part for part, kind in zip(parts, expected, strict=True) if set(map(type, part)) != {kind}), None)
            if bad is not None or min(parts[0]) < 0 or min(parts[1]) < 0 or (max(parts[0]) + 1) * (max(parts[1]) + 1) > _MOST:
                raise self._storage.damaged(f"some of its {table} hold what cannot be")
            arrays = [np.array(part, dtype=np.int64) for part in parts[:2]]
            marks = np.array(parts.pop(), dtype=np.int64) if checked else None
            yield [*arrays, *parts[2:], marks]

    def _evaluations(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """All evaluations, every one as it was written: index, repeat, utility, seconds."""
        parts: list[tuple[Any, ...]] = []
        wrong, sum_of_marks, rows = 0, 0, 0
        for indices, repeats, utility, seconds, marks in self._chunks("evaluations", "utility, seconds", (float, float)):
            parts.append((indices, repeats, np.array(utility), np.array(seconds)))
            if marks is not None:
                wrong += int(np.count_nonzero(marks != checksums.of_evaluations(*parts[-1])))
                sum_of_marks = checksums.total(sum_of_marks, marks)
            rows += len(indices)
        if wrong:
            raise self._storage.damaged(f"{wrong:,} of its {rows:,} evaluations do not match their checksums")
        if self._format == _FORMAT and self._total() != (rows, sum_of_marks):
            held = f"{self._total()[0]:,} evaluations were written, and it holds {rows:,}"
            raise self._storage.damaged(held if self._total()[0] != rows else "its evaluations are not those that were written")
        if self._format == _WITHOUT_CHECKSUMS:
            warnings.warn(
                f"the ledger `{self.path}` was written by databanzhaf {self.library_version}, which kept no checksums: "
                "damage to its numbers would not be noticed.",
                DatabanzhafWarning,
                stacklevel=3,
            )
        columns = [np.concatenate(part) for part in zip(*parts, strict=True)]
        return tuple(columns) if columns else (np.empty(0, np.int64),) * 2 + (np.empty(0),) * 2  # type: ignore[return-value]

    def utilities(self, score: Callable[[bytes], float] | None = None) -> FloatArray:
        """All utilities, (largest index + 1, largest repeat + 1) with NaN for what is missing.

        With `score` they are computed again from the outcomes kept.
        """
        if self.is_new:
            return np.empty((0, 0))
        if score is not None and self.keep != "outcomes":
            raise LedgerMismatch(
                "another metric needs the outcomes, and this ledger keeps utilities only. "
                'Begin a run with ledger=Ledger(path, keep="outcomes").'
            )
        with self._storage.transaction("DEFERRED"):  # one snapshot, though a run may be writing
            indices, repeats, utilities, _ = self._evaluations()
            out = np.full((indices.max() + 1, repeats.max() + 1), np.nan)
            if score is None:
                out[indices, repeats] = utilities
            else:
                self._score_outcomes(score, out)
                if np.isnan(out[indices, repeats]).any():
                    raise self._storage.damaged("some of its evaluations have no outcome")
        return out

    def _score_outcomes(self, score: Callable[[bytes], float], out: FloatArray) -> None:
        for indices, repeats, outcomes, marks in self._chunks("outcomes", "outcome", (bytes,)):
            wrong = 0 if marks is None else int(np.count_nonzero(marks != checksums.of_outcomes(indices, repeats, outcomes)))
            if wrong or indices.max() >= len(out) or repeats.max() >= out.shape[1]:
                raise self._storage.damaged(f"{wrong:,} of {len(outcomes):,} outcomes do not match their checksums")
            for index, repeat, outcome in zip(indices, repeats, outcomes, strict=True):
                out[index, repeat] = score(outcome)

    def count(self) -> int:
        """Evaluations so far."""
        if self.is_new:
            return 0
        with self._storage.translated():
            [(count,)] = self._storage.connection.execute("SELECT count(*) FROM evaluations")
        return int(count)

    def seconds(self) -> float:
        """Training time recorded so far."""
        if self.is_new:
            return 0.0
        with self._storage.transaction("DEFERRED"):
            return float(self._evaluations()[3].sum())

    def close(self) -> None:
        """Close the file; what was appended is on disk already."""
        self._storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else repr(str(self.path))
        return f"Ledger({where}, keeps {self.keep}{'' if self.is_new else f', {self.count():,} evaluations'})"


def _plain_names(players: Any) -> list[Any] | dict[str, Any]:
    """Names for JSON: a pandas index (dates, several levels, its own names) as a table with its types, else a list."""
    if hasattr(players, "to_frame"):
        # An index of a kind that JSON has no place for (periods, intervals, bytes, ...) is kept by its texts.
        with suppress(TypeError, ValueError, NotImplementedError, OverflowError):
            stored = _stored_index(players)
            if _read_index(stored).equals(players):
                return stored
        return [str(name) for name in players]
    plain = [name.item() if isinstance(name, np.generic) else name for name in players]
    return [name if isinstance(name, (bool, int, float, str)) else str(name) for name in plain]


def _stored_index(players: Any) -> dict[str, Any]:
    levels = [f"level {level}" for level in range(players.nlevels)]
    frame = players.to_frame(index=False, name=levels if len(levels) > 1 else levels[0])
    table: dict[str, Any] = json.loads(frame.to_json(orient="table", index=False, date_unit="ns"))
    return {"names": [None if name is None else str(name) for name in players.names], "table": table}


def _read_index(stored: dict[str, Any]) -> Any:
    import io

    import pandas as pd

    frame = pd.read_json(io.StringIO(json.dumps(stored["table"])), orient="table", precise_float=True)
    index: Any = pd.Index(frame.iloc[:, 0]) if frame.shape[1] == 1 else pd.MultiIndex.from_frame(frame)
    return index.set_names(stored["names"])


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value) if not isinstance(value, str) else value
    return text if len(text) <= 120 else f"{text[:117]}..."
