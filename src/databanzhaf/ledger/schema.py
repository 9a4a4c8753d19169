"""The tables of a ledger's file, and the description of the run in it.

Tables
------
facts(name, value)
    What the run is: game, design, library version, ... as JSON, and a checksum of them all.
evaluations(idx, rep, utility, seconds, checksum)
    One row per training.
outcomes(idx, rep, outcome, checksum)
    The packed predictions, with ``keep="outcomes"``.
total(name, count, checksum)
    How many rows a table has, and the sum of their checksums: rows that are lost are noticed too.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from databanzhaf.errors import LedgerFailed, LedgerMismatch
from databanzhaf.ledger import checksums
from databanzhaf.ledger.storage import Storage

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS evaluations (
    idx INTEGER, rep INTEGER, utility REAL NOT NULL, seconds REAL NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (idx, rep)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS outcomes (
    idx INTEGER, rep INTEGER, outcome BLOB NOT NULL,
    checksum INTEGER NOT NULL, PRIMARY KEY (idx, rep)
);
CREATE TABLE IF NOT EXISTS total (
    name TEXT PRIMARY KEY, count INTEGER NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
"""
_APPLICATION_ID = 0x44425A46  # "DBZF"
FORMAT = 2
WITHOUT_CHECKSUMS = 1  # the format of databanzhaf 0.1


def make(connection: sqlite3.Connection, facts: Mapping[str, str]) -> None:
    """Empty tables for the run that `facts`, as JSON texts, describe."""
    for table in ("facts", "evaluations", "outcomes", "total"):
        # Empty ones may be there, perhaps of an older format.
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _TABLES.strip().split(";\n"):
        connection.execute(statement)
    plain = {name: text for name, text in facts.items() if name != "checksum"}
    connection.executemany(
        "INSERT INTO facts VALUES (?, ?)",
        [*plain.items(), ("checksum", checksums.of_facts(plain))],
    )
    connection.execute("INSERT INTO total VALUES ('evaluations', 0, 0), ('outcomes', 0, 0)")
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def check(storage: Storage) -> int:
    """The format of a ledger whose description is whole, or that is empty; what is no ledger, and a
    damaged one, is refused.
    """
    facts: dict[Any, Any] = {}
    with storage.transaction("DEFERRED") as connection:
        [(tables,)] = connection.execute("SELECT count(*) FROM sqlite_master")
        [(identity,)] = connection.execute("PRAGMA application_id")
        [(found,)] = connection.execute("PRAGMA user_version")
        if tables and identity == _APPLICATION_ID and found == FORMAT:
            facts = dict(connection.execute("SELECT name, value FROM facts").fetchall())
    if not tables and not identity:
        return FORMAT
    if identity != _APPLICATION_ID:
        raise LedgerFailed(
            f"`{storage.path}` is a SQLite file, but not a ledger", remedy="Give another path."
        )
    if found not in (FORMAT, WITHOUT_CHECKSUMS):
        raise LedgerFailed(
            f"`{storage.path}` has ledger format {found}; this version reads up to {FORMAT}",
            remedy="Upgrade databanzhaf.",
        )
    if found == WITHOUT_CHECKSUMS and _has_checksums(storage):
        raise storage.damaged("its format is not that of its tables")
    if found == FORMAT and not whole(facts):
        raise storage.damaged("the description of its run does not match its checksum")
    return int(found)


def _has_checksums(storage: Storage) -> bool:
    with storage.translated():
        columns = storage.connection.execute("PRAGMA table_info(evaluations)").fetchall()
    return any(column[1] == "checksum" for column in columns)


def whole(facts: Mapping[Any, Any]) -> bool:
    """Whether all facts are texts that match their checksum."""
    if {type(part) for item in facts.items() for part in item} != {str}:
        return False
    plain = {name: text for name, text in facts.items() if name != "checksum"}
    return bool(facts.get("checksum") == checksums.of_facts(plain))


def plain(facts: Mapping[str, str]) -> dict[str, Any]:
    """What a run is, as values: game, design, seed, stochastic, keep, players and version."""
    return {name: json.loads(text) for name, text in facts.items() if name != "checksum"}


def _in_one(facts: Mapping[str, str]) -> dict[str, Any]:
    """What a run is, the fields of its game and design beside the others."""
    known = plain(facts)
    rest = {name: known.get(name) for name in ("seed", "stochastic", "keep")}
    game, design = known.get("game") or {}, known.get("design") or {}
    return {**design, **game, **rest, "names of the players": known.get("players")}


def check_same_run(
    facts: Mapping[str, str], here: str, others: Mapping[str, str], there: str
) -> None:
    """Refuse facts of another run; both sides are shown."""
    one, other = plain(facts), plain(others)
    names = ("game", "design", "seed", "stochastic", "keep", "players")
    if any(one.get(name) != other.get(name) for name in names):
        shown = differences(_in_one(facts), _in_one(others), here, there)
        raise LedgerMismatch(
            f"{there} belongs to another run than {here}",
            remedy="Leave it out: a ledger holds the evaluations of one run.",
            differences=tuple(shown.values()),
        )


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], here: str, there: str
) -> dict[str, str]:
    """By name, what differs between two descriptions and how, as one line each."""
    names = [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]
    return {
        name: f"{name}: {here} has {_short(old.get(name))}, {there} has {_short(new.get(name))}"
        for name in names
    }


def _short(value: Any) -> str:
    text = (
        "nothing" if value is None else json.dumps(value) if not isinstance(value, str) else value
    )
    return text if len(text) <= 120 else f"{text[:117]}..."
