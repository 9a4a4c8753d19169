"""Datasets from a folder of .npz files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from databanzhaf.datasets.source import ORIGINALS, Source, class_counts, reason
from databanzhaf.errors import InvalidInput


@dataclass(frozen=True)
class Feature:
    """A file of features that stands in for the paper's: its name and what it holds."""

    file: str
    what: str


_STAND_IN = "not the paper's 512 of ResNet18"
FEATURES: Final = {
    "cifar10_catdog_227px": Feature(
        "cifar10_catdog_squeezenet_227px.npz",
        f"cats and dogs of CIFAR-10 as features of SqueezeNet at 227 pixels, {_STAND_IN}",
    ),
    "cifar10_catdog_32px": Feature(
        "cifar10_catdog_squeezenet_32px.npz",
        f"cats and dogs of CIFAR-10 as features of SqueezeNet at 32 pixels, {_STAND_IN}",
    ),
}

_CUT = "cut by the paper's authors"
# What is known of some files beyond what they hold, by the first 16 digits of their SHA-256: a name
# alone would not prove it.
_KNOWN: Final = {
    "ef3bf7e3042962c9": _CUT,  # click
    "8d48614579c1397d": f"{_CUT}, with all 492 frauds",  # fraud
    "9c4d525133b6df3d": _CUT,  # creditcard
    "33a6bfbd9770d707": _CUT,  # pol
    "aba549ddda3f1fdc": _CUT,  # 2dplanes
    # apsfail, then vehicle
    "f9010e02f3eff146": "gathered from several copies, with a larger share of class 1, missing "
    "values replaced by the column median",
    "25a355c8adc18d18": "another version with 23 sensors, standardised within each, and not "
    "compared with the OpenML rows",
}


def read(name: str, folder: Path) -> Source:
    """The dataset of a folder, or InvalidInput that names the missing file."""
    if name in FEATURES:
        files = [FEATURES[name].file]
    elif name == "cifar10":
        files = ["cifar10_10class.npz", "cifar10.npz"]
    else:
        files = [f"{name}.npz"]
    file = next((folder / each for each in files if (folder / each).is_file()), None)
    if file is None:
        what = "does not" if folder.is_dir() else "does not exist"
        raise InvalidInput(
            f"the folder of datasets must hold {' or '.join(files)}; {folder} {what}",
            remedy="Put the file there, or name another folder "
            "by `folder` or DATABANZHAF_DATA (without either, datasets come from their sources).",
        )
    arrays = _arrays(file)
    X, y = (arrays["X"], arrays["y"]) if "X" in arrays else (arrays["X_train"], arrays["y_train"])
    columns = arrays.get("feature_names")
    return Source(
        name,
        X,
        y,
        arrays.get("X_test"),
        arrays.get("y_test"),
        None if columns is None else tuple(map(str, columns.tolist())),
        _origin(name, file, y),
    )


def _arrays(file: Path) -> dict[str, Any]:
    wanted = ("X", "y", "X_train", "y_train", "X_test", "y_test", "feature_names")
    try:
        # np.load leaves a file open that it opened itself and could not read.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in wanted if key in archive}
    except MemoryError:
        raise
    except Exception as error:  # whatever NumPy makes of a damaged archive, or of a lone .npy file
        raise InvalidInput(
            f"{file} must be an .npz archive of plain arrays",
            got=f"{reason(error)}",
            remedy="Write it with np.savez_compressed.",
        ) from error
    _check(file, arrays)
    return arrays


def _check(file: Path, arrays: dict[str, Any]) -> None:
    pairs = [("X", "y")] if "X" in arrays else [("X_train", "y_train"), ("X_test", "y_test")]
    for X, y in pairs:
        if X not in arrays or y not in arrays:
            raise InvalidInput(
                f"{file} must hold X and y, or X_train, y_train, X_test and y_test",
                got=f"{', '.join(arrays) or 'none of them'}",
                remedy="Name the arrays so in np.savez_compressed.",
            )
        if not arrays[X].size:
            raise InvalidInput(
                f"{file} must have rows and columns",
                got=f"{X} of shape {arrays[X].shape}",
                remedy="Write the whole table.",
            )
        if arrays[X].ndim < 2 or arrays[y].shape != arrays[X].shape[:1]:
            raise InvalidInput(
                f"{file} must have one row of {X} per label of {y}",
                got=f"shapes {arrays[X].shape} and {arrays[y].shape}",
                remedy="Check that rows and labels match.",
            )
    names = arrays.get("feature_names")
    if names is not None and names.shape != arrays[pairs[0][0]].shape[1:]:
        raise InvalidInput(
            f"{file} must name each column once",
            got=f"feature_names of shape {names.shape} for rows of shape "
            f"{arrays[pairs[0][0]].shape[1:]}",
            remedy="Correct them or leave them out.",
        )


def _origin(name: str, file: Path, y: Any) -> str:
    """One sentence, of what the file itself shows and of what is known of it."""
    if name in FEATURES:
        return f"{file}: {FEATURES[name].what}."
    whole = ORIGINALS[name]
    if whole.openml is None:
        use = (
            "the paper values features of its cats and dogs"
            if name == "cifar10"
            else "the paper values 2000"
        )
        return f"{file}: {len(y)} of the {whole.n_images} training images of {whole.title}; {use}."
    with file.open("rb") as stream:
        known = _KNOWN.get(hashlib.file_digest(stream, "sha256").hexdigest()[:16])
    rows = f"{len(y)} rows ({class_counts(y)}{', sorted by class' if _sorted(y) else ''})"
    original = f"the paper takes as many rows of each class of {whole.title}, OpenML {whole.openml}"
    return f"{file}: {rows}{', ' + known if known else ''}; {original}."


def _sorted(y: Any) -> bool:
    return bool((y[1:] >= y[:-1]).all() or (y[1:] <= y[:-1]).all())
