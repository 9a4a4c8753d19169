"""Small ledgers of one run with every kind of row, and what stands in a file."""

import sqlite3
from contextlib import closing

import numpy as np

import databanzhaf as db

TABLES = ("facts", "evaluations", "outcomes", "total")
GAME = {"game": "made up", "players": "12", "metric": "accuracy"}
DESIGN = {"design": "Coin", "n_players": 12, "seed": 0, "p": 0.5}


def contents(path):
    """Every row of every table, sorted."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
            for table in TABLES
        }


def bound(path, *, keep="utilities", players=None, seed=0, game=None):
    """A ledger of the made-up run, bound and open."""
    ledger = db.Ledger(path, keep=keep)
    ledger.bind(
        {**GAME, **(game or {})},
        {**DESIGN, "seed": seed},
        seed=seed,
        stochastic=True,
        players=players,
    )
    return ledger


def evaluations(count, repeats=1, size=None):
    """Places, numbers and outcomes of `size` bytes at most, all of them functions of the place."""
    indices = np.repeat(np.arange(count), repeats)
    runs = np.tile(np.arange(repeats), count)
    rng = np.random.default_rng(5)
    utilities, seconds = rng.normal(size=len(indices)), rng.random(len(indices))
    utilities[::7] = np.round(utilities[::7])  # SQLite stores these as whole numbers
    outcomes = None
    if size is not None:
        outcomes = [rng.bytes(int(rng.integers(0, size))) for _ in indices]
    return indices, runs, utilities, seconds, outcomes


def append(ledger, given, which=slice(None), batch=40):
    """Add some of these evaluations, a batch at a time."""
    indices, runs, utilities, seconds, outcomes = given
    places = np.arange(len(indices))[which]
    for low in range(0, len(places), batch):
        now = places[low : low + batch]
        packed = None if outcomes is None else [outcomes[place] for place in now]
        ledger.append(indices[now], runs[now], utilities[now], seconds[now], packed)


def made(path, given, which=slice(None), **run):
    """The file of a ledger with these evaluations."""
    keep = "utilities" if given[4] is None else "outcomes"
    with bound(path, keep=keep, **run) as ledger:
        append(ledger, given, which)
    return path
