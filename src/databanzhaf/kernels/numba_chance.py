"""How kernels are compiled by Numba, and `chance`, word for word, for them."""

from __future__ import annotations

from typing import Any

from numba import int64, njit, uint64
from numba.core import event
from numba.core.options import DefaultOptions

from databanzhaf import chance
from databanzhaf.kernels import compiling

GOLDEN = uint64(int(chance.GOLDEN))
_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}
# Numba's own name for it has no promise: where the option is gone, arrays are counted.
_UNCOUNTED: dict[str, Any] = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}
_FIRST, _SECOND = uint64(0xBF58476D1CE4E5B9), uint64(0x94D049BB133111EB)


class _Listener(event.Listener):
    """Hears what Numba compiles; what it finds in its cache is not compiled."""

    def on_start(self, event: Any) -> None:
        compiling.begins()

    def on_end(self, event: Any) -> None: ...


event.register("numba:compile", _Listener())  # type: ignore[no-untyped-call]


def compiled(function: Any) -> Any:
    """Compile without the interpreter's lock; sums and products stay in the order written.

    The function makes no array, so it need not count who holds one. Without Numba's atomic
    counters a forest is grown about a quarter faster.
    """
    return njit(**_OPTIONS, **_UNCOUNTED)(function)


def inlined(function: Any) -> Any:
    """The same, written into its caller before compilation."""
    return njit(**_OPTIONS, **_UNCOUNTED, inline="always")(function)


def allocating(function: Any) -> Any:
    """The same for a function that makes arrays: the outermost one, which calls the others."""
    return njit(**_OPTIONS)(function)


@compiled
def mix(x):  # type: ignore[no-untyped-def]
    x = (x ^ (x >> uint64(30))) * _FIRST
    x = (x ^ (x >> uint64(27))) * _SECOND
    return x ^ (x >> uint64(31))


@compiled
def fold(key, number):  # type: ignore[no-untyped-def]
    return mix(key ^ mix(uint64(number) + GOLDEN))


@compiled
def below(bits, bound):  # type: ignore[no-untyped-def]
    """A number below `bound` from the lowest 32 bits of a word."""
    return int64(((bits & uint64(0xFFFFFFFF)) * uint64(bound)) >> uint64(32))
