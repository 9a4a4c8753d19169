"""MNIST, Fashion-MNIST and CIFAR-10 from the files that their authors publish, where torchvision
puts them.
"""

from __future__ import annotations

import gzip
import math
import os
import pickle
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from databanzhaf.datasets.source import ORIGINALS, Source, reason
from databanzhaf.errors import BackendUnavailable, InvalidInput
from databanzhaf.protocols import IntArray

_IDX: Final = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_CIFAR: Final = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
# The name of torchvision's class, the folder it makes and the files in it.
_LAYOUTS: Final = {
    "mnist": ("MNIST", "MNIST/raw", _IDX),
    "fmnist": ("FashionMNIST", "FashionMNIST/raw", _IDX),
    "cifar10": ("CIFAR10", "cifar-10-batches-py", _CIFAR),
}


def read(name: str) -> Source:
    """Images uint8, (rows, 28, 28) or (rows, 32, 32, 3), and labels int64, with the
    authors' split.
    """
    cache = Path(os.environ.get("DATABANZHAF_CACHE") or "~/.cache/databanzhaf").expanduser()
    kind, below, files = _LAYOUTS[name]
    folder = cache / below
    found = [_find(folder / file, packed=files is _IDX) for file in files]
    missing = [file for file, at in zip(files, found, strict=True) if at is None]
    paths = [at for at in found if at is not None]
    if missing:
        raise BackendUnavailable(
            f"{name!r} needs the files {', '.join(files)}; {folder} lacks {', '.join(missing)}",
            remedy="Put them there, as "
            f'torchvision.datasets.{kind}("{cache}", download=True) does, or set DATABANZHAF_DATA '
            "to a folder of .npz files.",
        )
    if files is _IDX:
        (X, y), (X_test, y_test) = _idx_pair(paths[0], paths[1]), _idx_pair(paths[2], paths[3])
    else:
        parts = [_cifar(path) for path in paths]
        X, y = (
            np.concatenate([images for images, _ in parts[:-1]]),
            np.concatenate([labels for _, labels in parts[:-1]]),
        )
        X_test, y_test = parts[-1]
    use = (
        "the paper values features of its cats and dogs"
        if name == "cifar10"
        else "the paper values 2000"
    )
    origin = (
        f"{folder}: {ORIGINALS[name].title} as published, {len(y)} training images and "
        f"{len(y_test)} test images; {use}."
    )
    return Source(name, X, y, X_test, y_test, None, origin)


def _find(path: Path, packed: bool) -> Path | None:
    """The file, or its gzipped form if that is allowed."""
    forms = [path, path.with_name(path.name + ".gz")] if packed else [path]
    return next((form for form in forms if form.is_file()), None)


def _idx_pair(images: Path, labels: Path) -> tuple[NDArray[np.uint8], IntArray]:
    X, y = _idx(images, 3), _idx(labels, 1)
    if len(X) != len(y):
        raise InvalidInput(
            f"{images} and {labels} must have as many images as labels",
            got=f"{len(X)} and {len(y)}",
            remedy="Fetch both again.",
        )
    return X, y.astype(np.int64)


def _idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """An array of bytes: 0, 0, 8 (for uint8), the number of axes; the length of each axis, four
    bytes, highest first; the entries.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(
            f"{path} must be a readable file", got=f"{reason(error)}", remedy="Fetch it again."
        ) from error
    start = 4 + 4 * n_axes
    shape = tuple(
        int.from_bytes(content[4 + 4 * axis : 8 + 4 * axis], "big") for axis in range(n_axes)
    )
    size = math.prod(shape)
    if content[:4] != bytes((0, 0, 8, n_axes)) or len(content) != start + size:
        raise InvalidInput(
            f"{path} must be an idx file of {n_axes} axes of uint8",
            got=f"{len(content)} bytes that begin {content[:4]!r}, "
            f"where shape {shape} takes {start + size}",
            remedy="Fetch it again.",
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()


class _Array:
    """What a pickled NumPy array of bytes says of itself, kept as plain values until it
    is checked.
    """

    state: tuple[Any, ...] = ()

    def __init__(self, *arguments: object) -> None:
        """Pickles name the class, an empty shape and a placeholder; the state brings what
        counts.
        """

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state


class _Dtype(_Array):
    def __init__(self, *arguments: object) -> None:
        self.code = arguments[0] if arguments else None


class _Reader(pickle.Unpickler):
    """Reads lists, dicts, numbers, bytes and arrays. Any other name could run code, so it is
    refused.
    """

    _NAMES: Final = {
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._NAMES:
            raise pickle.UnpicklingError(f"the file asks for {module}.{name}")
        return self._NAMES[module, name]


def _cifar(path: Path) -> tuple[NDArray[np.uint8], IntArray]:
    """One batch: b"data", uint8 (rows, 3072), red, green and blue planes in turn; b"labels", a list
    of numbers.
    """
    try:
        with path.open("rb") as stream:
            batch = _Reader(stream, encoding="bytes").load()
        _, shape, dtype, by_column, content = batch[b"data"].state
        labels = np.array(batch[b"labels"], dtype=np.int64)
        if (
            dtype.code not in (b"u1", "u1")
            or by_column
            or labels.ndim != 1
            or shape != (len(labels), 3072)
        ):
            raise ValueError(
                f"data of shape {shape} and type {dtype.code!r} for {len(labels)} labels"
            )
        planes = np.frombuffer(content, np.uint8).reshape(len(labels), 3, 32, 32)
    except Exception as error:  # a broken pickle can raise anything
        raise InvalidInput(
            f"{path} must be a batch of CIFAR-10 for Python and hold nothing else",
            got=f"{reason(error)}",
            remedy="Fetch it again from a source that you trust.",
        ) from error
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels
