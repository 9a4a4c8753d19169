"""Data and networks as the paper has them ("Experiment Settings"; where it is silent, its authors'
own choices).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments.setting import Setting

TABULAR: Final = (
    "click",
    "fraud",
    "creditcard",
    "vehicle",
    "apsfail",
    "phoneme",
    "wind",
    "pol",
    "cpu",
    "2dplanes",
)
LENET: Final = ("mnist", "fmnist")
IMAGES: Final = (*LENET, "cifar10")
ROWS: Final = {"phoneme": 500, "click": 1000, "mnist": 2000, "fmnist": 2000, "cifar10": 2000}
LARGE_BATCH: Final = ("creditcard", "apsfail", "click", "cpu")
VALIDATION, TEST, FLIPPED = 200, 2000, 0.1
FURTHEST = 50.0  # standard deviations
# The paper's CIFAR10 features come from ResNet18; these stand in for them.
CIFAR_FEATURES = "cifar10_catdog_32px"


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of the data: rows to value (the first tenth with flipped labels), validation rows,
    and further rows for testing.
    """

    name: str
    X: Any
    y: Any
    X_val: Any
    y_val: Any
    X_test: Any
    y_test: Any
    flipped: NDArray[np.bool_]

    def judged_by_validation(self) -> db.Dataset:
        return db.Dataset(self.X, self.y, self.X_val, self.y_val)

    def judged_by_test(self) -> db.Dataset:
        return db.Dataset(self.X, self.y, self.X_test, self.y_test)

    def judged_by_images(self, setting: Setting) -> db.Dataset:
        """By all 2,000 test images, where one model's luck on each of a few would drown its
        utility; a trial takes the few.
        """
        return self.judged_by_validation() if setting.small else self.judged_by_test()


def draw(
    name: str, number: int, setting: Setting, *, rows: int | None = None, flipped: float = FLIPPED
) -> Draw:
    """Draw `number` of a dataset: classes balanced without replacement, no row on two sides of a
    split; a pure function of its arguments.
    """
    source = load(name)
    try:
        return _drawn(source, name, number, setting, rows, flipped)
    except (ValueError, TypeError, ArithmeticError, LookupError) as error:
        if isinstance(error, db.DatabanzhafError):
            raise
        raise db.InvalidInput(
            f"the dataset {name} is not the paper's ({error})", remedy="Restore its file."
        ) from error


def _drawn(
    source: Any, name: str, number: int, setting: Setting, rows: int | None, flipped: float
) -> Draw:
    rng = np.random.default_rng([setting.seed, number, zlib.crc32(name.encode())])
    n = rows or ROWS.get(name, 200)
    if (
        source.X_test is None
    ):  # a table: one class against the rest, and test rows from what is left
        labels = (np.asarray(source.y) == 1).astype(np.int64)
        train, held, test = _balanced(labels, (n, VALIDATION, TEST), rng)
        X_test, y_test = source.X[test], labels[test]
    else:
        labels = np.asarray(source.y, dtype=np.int64)
        train, held = _balanced(labels, (n, VALIDATION), rng)
        (test,) = _balanced(source.y_test, (TEST,), rng)
        X_test, y_test = source.X_test[test], np.asarray(source.y_test[test], dtype=np.int64)
    X, X_val, X_test = (_numbers(part, name) for part in (source.X[train], source.X[held], X_test))
    if not all(np.isfinite(part).all() for part in (X, X_val, X_test)):
        raise ValueError("numbers that are not finite")
    if name not in (*LENET, "cifar10_images"):
        center, spread = X.mean(axis=0), X.std(axis=0)
        # A column that is constant in training has no scale: it says nothing. What lies further out
        # than any row that was trained on is cut.
        seen = spread > 0
        X, X_val, X_test = (
            np.where(
                seen, np.clip((part - center) / np.where(seen, spread, 1), -FURTHEST, FURTHEST), 0
            )
            for part in (X, X_val, X_test)
        )
    y = labels[train]
    wrong = np.zeros(n, dtype=np.bool_)
    wrong[: round(flipped * n)] = True
    classes = len(np.unique(labels))
    if classes < 2:
        raise ValueError("one class only")
    y[wrong] = (y[wrong] + rng.integers(1, classes, wrong.sum())) % classes
    X, X_val, X_test = (part.astype(np.float32) for part in (X, X_val, X_test))
    return Draw(name, X, y, X_val, labels[held], X_test, y_test, wrong)


def load(name: str) -> Any:
    """The dataset; where it is missing or damaged, what its loader says."""
    known = {"cifar10": CIFAR_FEATURES, "cifar10_images": "cifar10"}.get(name, name)
    try:
        return db.datasets.load(known)
    except db.DatabanzhafError as error:
        raise db.InvalidInput(f"the dataset {name} cannot be loaded: {error}") from error
    except OSError as error:
        raise db.InvalidInput(
            f"the dataset {name} cannot be read ({error})",
            remedy="Check the permissions of DATABANZHAF_DATA.",
        ) from error


def held_out_images(setting: Setting) -> int:
    """How many images judge in the experiments on images: see `Draw.judged_by_images`."""
    return VALIDATION if setting.small else TEST


def origin(name: str) -> str:
    """Where the data come from, for a page."""
    text = str(load(name).origin).split(": ", 1)[-1]
    if name == "cifar10_images":
        text = text.split("; ")[0] + ", classes balanced."  # its features stand in the tables
    return f"{name}: {text}"


def check(names: tuple[str, ...]) -> None:
    """Load every dataset once, so that a missing one is noticed before the first is valued."""
    for name in names:
        load(name)


def _balanced(y: Any, counts: tuple[int, ...], rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Row numbers of disjoint parts, each with as many rows of every class, in random order; the
    last part has what is left, at most.
    """
    y = np.asarray(y)
    piles = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    parts, start = [], 0
    for position, count in enumerate(counts):
        each = count // len(piles)
        left = min(len(pile) for pile in piles) - start
        if left < each and (position < len(counts) - 1 or left < 1):
            raise ValueError(f"{left} further rows of a class, and {each} are needed")
        each = min(each, left)
        parts.append(
            rng.permutation(np.concatenate([pile[start : start + each] for pile in piles])).astype(
                np.int64
            )
        )
        start += each
    return parts


def _numbers(X: Any, name: str) -> Any:
    X = np.asarray(X, dtype=np.float64)
    if name in LENET:
        return (X / 255)[:, None]
    return np.moveaxis(X / 255, -1, 1) if name == "cifar10_images" else X


def network(dataset: db.Dataset, name: str, setting: Setting, **changes: Any) -> Any:
    """The network that the paper trains on a dataset; by default with its loss and its score."""
    how: dict[str, Any] = {
        "loss": "double_softmax",
        "metric": "accuracy",
        "metric_at": "best_epoch",
        "eps": 1e-7,
        "device": setting.device,
    }
    if name in LENET:
        return db.games.Module(
            lenet,
            dataset,
            **{**how, "batch_size": 128, "learning_rate": 1e-3, "epochs": 30, **changes},
        )
    if name == "cifar10":
        how |= {"activation": "relu", "batch_size": 128, "learning_rate": 1e-3, "epochs": 15}
        return db.games.Network(dataset, (256,), **{**how, **changes})
    how |= {"batch_size": 128 if name in LARGE_BATCH else 32, "learning_rate": 1e-2, "epochs": 15}
    return db.games.Network(dataset, (max(100, dataset.X.shape[1] // 2),), **{**how, **changes})


def lenet() -> Any:
    """LeNet: 5x5 convolutions of 20 and 40 channels, 500 hidden units."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 40, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(640, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


def small_cnn() -> Any:
    """The network of torch's CIFAR10 tutorial."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


CUT = (
    "Columns that are constant in the training rows are 0 in all rows, and standardised "
    f"numbers are cut at {FURTHEST:g}: beyond, a row's prediction is the luck of the initial "
    "weights."
)
BALANCED = (
    "Classes are balanced by leaving rows out. The authors' code oversamples the smaller "
    "class before it splits, which puts copies of a row on both sides."
)
