"""The table `suppliers`: six suppliers of rows, one of whom mislabels half of hers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from databanzhaf.datasets.source import Source
from databanzhaf.errors import InvalidInput
from databanzhaf.protocols import IntArray

_FILE = Path(__file__).with_name("suppliers.csv")

# Rows whose label is flipped; `examples/make_suppliers.py` draws the table.
_FLIPPED = (
    9,
    18,
    22,
    80,
    91,
    92,
    97,
    111,
    114,
    129,
    158,
    169,
    175,
    181,
    182,
    184,
    190,
    218,
    219,
    226,
    244,
    255,
    261,
    291,
)


def source() -> Source:
    """X as a DataFrame without the target, y as "yes" and "no"."""
    import pandas as pd

    table = pd.read_csv(_FILE)
    bought = table.pop("bought").to_numpy(dtype=str)
    origin = (
        "Synthetic, made for this library and no set of the paper; `flipped_suppliers()` "
        "tells which labels are wrong."
    )
    return Source("suppliers", table, bought, None, None, tuple(table.columns), origin)


def path(name: str) -> Path:
    """The CSV file of a dataset that comes with the library; there is one, "suppliers".

    >>> path("suppliers").name
    'suppliers.csv'
    """
    if not isinstance(name, str) or name.lower() != "suppliers":
        raise InvalidInput(
            "`name` must be 'suppliers', the one set that comes as a file",
            got=repr(name),
            remedy="Use `load` for the others.",
        )
    return _FILE


def flipped_suppliers() -> IntArray:
    """The rows of `suppliers` whose label is flipped, increasing; all of them are eve's.

    >>> flipped_suppliers()[:3]
    array([ 9, 18, 22])
    """
    return np.array(_FLIPPED, dtype=np.int64)
