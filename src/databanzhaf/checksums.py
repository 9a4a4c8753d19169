"""Checksums of what a ledger holds, so that damage is noticed when it is read.

A row's checksum folds its place and the bits of its numbers, as `chance` folds keys: a pure function of the row, 64 bits long. A change of
one bit, or of many, gives another one but for a chance of 2^-64.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence

import numpy as np

from databanzhaf import chance
from databanzhaf.types import FloatArray, IntArray, KeyArray


def of_evaluations(indices: IntArray, repeats: IntArray, utilities: FloatArray, seconds: FloatArray) -> IntArray:
    """One checksum for each evaluation, int64 (m,)."""
    keys = _places(indices, repeats)
    for numbers in (utilities, seconds):
        # SQLite keeps -0.0 as 0.
        keys = chance.fold(keys, np.ascontiguousarray(numbers + 0.0, dtype=np.float64).view(np.uint64))
    return keys.view(np.int64)


def of_outcomes(indices: IntArray, repeats: IntArray, outcomes: Sequence[bytes]) -> IntArray:
    """One checksum for each packed outcome, int64 (m,)."""
    digests = np.array([zlib.crc32(outcome) for outcome in outcomes], dtype=np.uint64)
    return chance.fold(_places(indices, repeats), digests).view(np.int64)


def of_facts(facts: dict[str, str]) -> str:
    """One checksum for all facts, by their names and texts."""
    return hashlib.sha256(json.dumps(sorted(facts.items())).encode()).hexdigest()


def total(before: int, checksums: IntArray) -> int:
    """The sum of all checksums, modulo 2^64, which rows that come or go change; `before` is that of earlier rows."""
    both = (before + int(checksums.sum(dtype=np.int64))) % 2**64
    return both - 2**64 if both >= 2**63 else both


def _places(indices: IntArray, repeats: IntArray) -> KeyArray:
    root = np.zeros(1, np.uint64)
    return chance.fold(chance.fold(root, indices.astype(np.uint64)), repeats.astype(np.uint64))
