"""A name → its dataset, from the nearest place that has it."""

from __future__ import annotations

import os
from pathlib import Path

from databanzhaf.datasets import folders, images, openml, suppliers
from databanzhaf.datasets.source import ORIGINALS, Source
from databanzhaf.errors import InvalidInput

_NAMES = [*ORIGINALS, *folders.FEATURES, "suppliers"]


def names() -> list[str]:
    """The names that `load` takes: the paper's thirteen sets, two stand-ins for its CIFAR-10
    features, and `suppliers`.
    """
    return list(_NAMES)


def load(name: str, *, folder: str | os.PathLike[str] | None = None) -> Source:
    """One dataset, from the first of these places that is named.

    1. `folder`, or else the folder in the environment variable DATABANZHAF_DATA: a file
       `<name>.npz` with X and y (and perhaps feature_names), or X_train, y_train, X_test and
       y_test. A file that is missing there is an error, never a download.
    2. Tables: OpenML, by scikit-learn, which keeps what it fetched.
    3. Images: the files of torchvision's layout in the folder in DATABANZHAF_CACHE, or else in
       ~/.cache/databanzhaf.

    `suppliers` comes with the library, wherever the others are.

    Rows are in their source's order, which can be that of the classes: shuffle before you split.
    Where the paper balances the classes by leaving rows out, this does not.

    Parameters
    ----------
    name : str
        One of `names()`, in capitals or not.
    folder : path, optional

    Returns
    -------
    Source

    >>> load("suppliers")
    Source(suppliers: 300 x 6 table, 131 of class no and 169 of class yes, no test rows)
    """
    key = name.lower() if isinstance(name, str) else name
    if key not in _NAMES:
        raise InvalidInput(
            f"`name` must be one of {', '.join(_NAMES)}",
            got=repr(name),
            remedy="`names()` lists them.",
        )
    if key == "suppliers":
        return suppliers.source()
    place = folder if folder is not None else os.environ.get("DATABANZHAF_DATA") or None
    if place is not None:
        return folders.read(key, Path(place).expanduser())
    if key in folders.FEATURES:
        raise InvalidInput(
            f"{key!r} comes from a file only",
            got="no folder",
            remedy="Pass `folder`, or set DATABANZHAF_DATA, to the one with "
            f"{folders.FEATURES[key].file}.",
        )
    return images.read(key) if ORIGINALS[key].openml is None else openml.fetch(key)
