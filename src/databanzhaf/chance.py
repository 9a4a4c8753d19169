r"""The sole source of randomness: (seed, stream, index, repeat) → key → words.

Everything is one operation on 64-bit integers, written so that NumPy, Numba and torch give the same
bits (multiplication modulo 2^64, exclusive or, logical shift):

.. math:: \mathrm{fold}(k, a) = \mathrm{mix}(k \oplus \mathrm{mix}(a + \gamma)),

where mix is the finaliser of SplitMix64 (Steele, Lea & Flood 2014, variant 13 of Stafford) and γ is
2^64 divided by the golden ratio. Folding a seed, a stream, an index and a repeat gives a key;
folding a counter into a key gives a word. Counters are mixed before they meet the key, so two keys
never walk through the same sequence at an offset.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, KeyArray

# Streams: what the numbers are for. The noise that judges an estimate (curves) is not the noise
# that made it.
DESIGN: Final = 1
TRAINING: Final = 2
CURVE_ORDERS: Final = 3
CURVE_TRAINING: Final = 4
SPLIT: Final = 5
FOLDS: Final = 6
CLUSTERS: Final = 7
PLANTS: Final = 8

GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_ROW_BYTES: Final = 1 << 16


def mix(numbers: KeyArray) -> KeyArray:
    """SplitMix64's finaliser, a bijection of 64-bit integers; `numbers` is left as it is."""
    mixed = numbers.copy()
    _mix_in_place(mixed, np.empty_like(mixed))
    return mixed


def _mix_in_place(numbers: KeyArray, scratch: KeyArray) -> None:
    for shift, factor in ((30, _FIRST), (27, _SECOND), (31, None)):
        np.right_shift(numbers, np.uint64(shift), out=scratch)
        np.bitwise_xor(numbers, scratch, out=numbers)
        if factor is not None:
            np.multiply(numbers, factor, out=numbers)


def fold(keys: KeyArray, numbers: KeyArray) -> KeyArray:
    """Child keys: one number folded into each key (arrays broadcast)."""
    return mix(np.bitwise_xor(keys, mix(np.add(numbers, GOLDEN, dtype=np.uint64))))


def check_seed(seed: int) -> int:
    """Return `seed` if it is a whole number that fits in 64 bits."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise InvalidInput(
            "`seed` must be a whole number from 0 to 2**64 - 1",
            got=short(seed),
            remedy="Try seed=0.",
        )
    return int(seed)


def keys(seed: int, stream: int, indices: IntArray, repeats: IntArray | int = 0) -> KeyArray:
    """One key for each (index, repeat) of a stream, uint64 of the indices' shape."""
    root = fold(np.zeros(1, np.uint64), np.array([seed], np.uint64))
    root = fold(root, np.array([stream], np.uint64))
    by_index = fold(root, np.atleast_1d(np.asarray(indices)).astype(np.uint64))
    return fold(by_index, np.atleast_1d(np.asarray(repeats)).astype(np.uint64))


def words(key_array: KeyArray, count: int, start: int = 0) -> KeyArray:
    """Words `start` to `start + count - 1` of each key, uint64 (m, count)."""
    counters = mix(np.arange(start, start + count, dtype=np.uint64) + GOLDEN)
    out = np.empty((len(key_array), count), np.uint64)
    # Rows go through in slices that stay in cache: 1.5 times as fast as one pass over 200,000 rows
    # of 50 words.
    step = max(1, _ROW_BYTES // max(1, count * 8))
    scratch = np.empty((step, count), np.uint64)
    for low in range(0, len(out), step):
        rows = out[low : low + step]
        np.bitwise_xor(key_array[low : low + step, None], counters, out=rows)
        _mix_in_place(rows, scratch[: len(rows)])
    return out


def uniform(key_array: KeyArray, count: int, start: int = 0) -> FloatArray:
    """Uniform numbers in [0, 1) with 53 bits, float64 (m, count)."""
    return (words(key_array, count, start) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bits(key_array: KeyArray, count: int) -> BoolArray:
    """Fair bits, bool (m, count): bit j is bit j % 64 of word j // 64."""
    packed = words(key_array, -(-count // 64)).astype("<u8", copy=False).view(np.uint8)
    return np.unpackbits(packed, axis=1, count=count, bitorder="little").view(np.bool_)
