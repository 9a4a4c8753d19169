"""Checksums of what a ledger holds, so that damage is noticed when it is read.

A row's checksum folds the run that it belongs to, its place and the bits of its numbers, as
`chance` folds keys: a pure function of the row, 64 bits long. A change of one bit, or of many, or a
row of another run, gives another one but for a chance of 2^-64.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from databanzhaf import chance
from databanzhaf.protocols import FloatArray, IntArray, KeyArray


def of_facts(facts: dict[str, str]) -> str:
    """One checksum for all facts, by their names and texts."""
    return hashlib.sha256(json.dumps(sorted(facts.items())).encode()).hexdigest()


def run_key(facts: dict[str, str]) -> KeyArray:
    """What all rows of a run have in common, uint64 (1,): its game, its design and its seed."""
    what = {name: facts.get(name, "") for name in ("game", "design", "seed")}
    return np.array([int(of_facts(what)[:16], 16)], dtype=np.uint64)


def of_evaluations(
    run: KeyArray, indices: IntArray, repeats: IntArray, utilities: FloatArray, seconds: FloatArray
) -> IntArray:
    """One checksum for each evaluation, int64 (m,)."""
    keys = _places(run, indices, repeats)
    for numbers in (utilities, seconds):
        # SQLite keeps -0.0 as 0.
        bits = np.ascontiguousarray(numbers + 0.0, dtype=np.float64).view(np.uint64)
        keys = chance.fold(keys, bits)
    return keys.view(np.int64)


def of_outcomes(
    run: KeyArray, indices: IntArray, repeats: IntArray, outcomes: Sequence[bytes]
) -> IntArray:
    """One checksum for each packed outcome, int64 (m,)."""
    digests = (hashlib.blake2b(outcome, digest_size=8).digest() for outcome in outcomes)
    words = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return chance.fold(_places(run, indices, repeats), words).view(np.int64)


def total(before: int, checksums: IntArray) -> int:
    """The sum of all checksums, modulo 2^64, which rows that come or go change; `before` is that of
    earlier rows.
    """
    both = (before + int(checksums.sum(dtype=np.int64))) % 2**64
    return both - 2**64 if both >= 2**63 else both


def _places(run: KeyArray, indices: IntArray, repeats: IntArray) -> KeyArray:
    return chance.fold(chance.fold(run, indices.astype(np.uint64)), repeats.astype(np.uint64))
