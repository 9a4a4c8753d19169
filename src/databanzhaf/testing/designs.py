"""What every design promises: a pure function of the index, whatever the batch."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DatabanzhafError
from databanzhaf.protocols import BoolArray, Design, IntArray
from databanzhaf.testing.promises import has_members, is_count, promise, same

_MOST = 240
# Where an endless design is searched for a cycle: the first indices one by one (fewer
# if there are many players), then where 16 and 32 bits end.
_FIRST, _FEWEST, _CELLS = 4096, 1024, 1 << 22
_FAR = 2**15, 2**16, 2**31, 2**32


def check_design(design: Design) -> None:
    """Check the promises of `protocols.Design`, and that a ledger can store it.

    An endless design may repeat a cycle of fewer than 240 coalitions, which can be its purpose; a
    longer one is taken for an index that wraps.
    """
    has_members(design, Design, "a design")
    is_count(design.n_players, "n_players")
    is_count(design.size, "size", optional=True)
    is_count(design.unit, "unit")
    _check_fields(design)
    index = np.arange(min(design.size or _MOST, _MOST))
    whole = _coalitions(design, index)
    again = _coalitions(design, index)
    same(again, whole, "the same call gives the same coalitions", _index)
    none = design.coalitions(np.empty(0, dtype=np.int64))
    promise(none.shape == (0, design.n_players), "no index gives no coalition")
    order = np.random.default_rng(0).permutation(index)
    shuffled = np.empty_like(whole)
    shuffled[order] = design.coalitions(order)
    same(shuffled, whole, "the order of the indices does not matter", _index)
    alone = np.vstack([design.coalitions(index[i : i + 1]) for i in range(len(index))])
    same(alone, whole, "a coalition does not depend on the other indices of a call", _index)
    _check_storing(design, index, whole)
    if design.size is None:
        _check_endless(design, whole)
    else:
        _coalitions(design, np.unique(np.linspace(0, design.size - 1, _MOST).astype(np.int64)))


def _index(row: int) -> str:
    return f"index {row}"


def _coalitions(design: Design, indices: IntArray) -> BoolArray:
    """The coalitions of indices that exist, whose kind and shape are right."""
    try:
        found = design.coalitions(indices)
    except Exception as error:
        size = "an endless design has a coalition for every index"
        if design.size is not None:
            size = f"a design has a coalition for every index below its size of {design.size:,}"
        raise AssertionError(
            f"{size}; indices {indices[0]:,} to {indices[-1]:,} gave {_text(error)}"
        ) from error
    dtype, shape = getattr(found, "dtype", type(found).__name__), (len(indices), design.n_players)
    promise(dtype == np.bool_, f"coalitions are bool; got {dtype}")
    promise(found.shape == shape, f"coalitions have shape {shape}; got {found.shape}")
    return found


def _check_endless(design: Design, whole: BoolArray) -> None:
    """Later coalitions are not those of the first indices again."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2**63, design.n_players, dtype=np.uint64)
    count = min(_FIRST, max(_FEWEST, _CELLS // design.n_players))
    blocks = np.array_split(np.arange(count), -(-count // _MOST))
    rows = np.concatenate([_coalitions(design, block) @ labels for block in blocks])
    first = rows[:_MOST]
    runs = np.lib.stride_tricks.sliding_window_view(rows, _MOST)[_MOST:]
    found = (np.flatnonzero((runs == first).all(axis=1)) + _MOST).tolist()
    far = (low for low in _FAR if low >= count)
    found += [low for low in far if _repeats(design, low, whole)]
    cycles = any((first[step:] == first[:-step]).all() for step in range(1, _MOST // 2 + 1))
    if found and not cycles:
        low = found[0]
        raise AssertionError(
            "an endless design does not start over; the coalitions of indices "
            f"{low:,} to {low + _MOST - 1:,} are those of 0 to {_MOST - 1} again"
        )


def _repeats(design: Design, low: int, whole: BoolArray) -> bool:
    return bool((_coalitions(design, np.arange(low, low + _MOST)) == whole).all())


def _check_fields(design: Design) -> None:
    """A ledger stores the fields under their names, and makes the design from them."""
    kind: Any = type(design)
    promise(
        getattr(getattr(kind, "__dataclass_params__", None), "frozen", False),
        f"a design is a frozen dataclass; {kind.__name__} is not decorated by "
        "@dataclass(frozen=True)",
    )
    for field in fields(kind):
        promise(
            field.init,
            f"a ledger makes a design from its fields, and the field `{field.name}` cannot be "
            "passed: it has init=False; make it a property",
        )
        promise(
            field.name != "design",
            "no field of a design is called `design`: a ledger stores the name of the class there",
        )


def _check_storing(design: Design, index: IntArray, whole: BoolArray) -> None:
    try:
        stored = json.dumps(designs.describe(design))
    except (TypeError, ValueError) as error:
        raise AssertionError(f"the fields of a design go into JSON; got {_text(error)}") from error
    try:
        restored = designs.restore(json.loads(stored))
    except (DatabanzhafError, TypeError) as error:
        raise AssertionError(f"a ledger can restore a design; got {_text(error)}") from error
    promise(
        restored == design,
        f"a design is the same after a ledger has stored it; got {restored!r}, not {design!r}",
    )
    same(restored.coalitions(index), whole, "a restored design makes the same coalitions", _index)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
