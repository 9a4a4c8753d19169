"""`chance` on torch tensors: the same bits as NumPy's, on CPU and CUDA."""

from __future__ import annotations

import torch
from torch import Tensor


def _signed(number: int) -> int:
    """A 64-bit pattern as the signed number that torch.int64 holds."""
    return number - 2**64 if number >= 2**63 else number


GOLDEN, _FIRST, _SECOND = (
    _signed(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift of int64."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def mix(x: Tensor) -> Tensor:
    """`chance.mix` on int64 tensors: multiplication wraps modulo 2^64."""
    x = (x ^ shift(x, 30)) * _FIRST
    x = (x ^ shift(x, 27)) * _SECOND
    return x ^ shift(x, 31)


def fold(keys: Tensor, numbers: Tensor | int) -> Tensor:
    """`chance.fold` on int64 tensors."""
    if isinstance(numbers, int):
        numbers = torch.tensor(numbers, dtype=torch.int64, device=keys.device)
    return mix(keys ^ mix(numbers + GOLDEN))


def unit(words: Tensor) -> Tensor:
    """Uniform float32 numbers in [0, 1) from the top 24 bits."""
    return shift(words, 40).to(torch.float32) * 2.0**-24


def gaussian(words: Tensor) -> Tensor:
    """Standard normal numbers by Box and Muller, one word each, float64 inside."""
    radius = torch.sqrt(-2 * torch.log((shift(words, 32).to(torch.float64) + 0.5) * 2.0**-32))
    return radius * torch.cos(2 * torch.pi * (words & 0xFFFFFFFF).to(torch.float64) * 2.0**-32)
