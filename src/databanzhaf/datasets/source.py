"""Source: what a loader gives, and what there is to load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np


@dataclass(frozen=True)
class Original:
    """What the paper took: its title, the training images of the whole set, or its OpenML
    number.
    """

    title: str
    n_images: int | None = None
    openml: int | None = None


# The paper's table names OpenML numbers for seven sets; for Fraud, Creditcard and Vehicle it cites
# articles, and the numbers are those in the names of its authors' files.
ORIGINALS: Final = {
    "mnist": Original("MNIST", 60_000),
    "fmnist": Original("Fashion-MNIST", 60_000),
    "cifar10": Original("CIFAR-10", 50_000),
    "click": Original("Click_prediction_small", openml=1218),
    "fraud": Original("CreditCardFraudDetection", openml=42397),
    "creditcard": Original("default-of-credit-card-clients", openml=42477),
    "vehicle": Original("vehicle_sensIT", openml=357),
    "apsfail": Original("APSFailure", openml=41138),
    "phoneme": Original("phoneme", openml=1489),
    "wind": Original("wind", openml=847),
    "pol": Original("pol", openml=722),
    "cpu": Original("cpu_act", openml=761),
    "2dplanes": Original("2dplanes", openml=727),
}


@dataclass(frozen=True, eq=False, repr=False)
class Source:
    """Rows and labels as their source has them: not shuffled, not scaled, not balanced.

    Attributes
    ----------
    name : str
    X : array (rows, ...) or pandas DataFrame
    y : array (rows,)
    X_test, y_test : the same, or None
        The source's own test part, if it has one.
    feature_names : tuple of str or None
    origin : str
        Where this copy comes from, and how it differs from the paper's set.
    """

    name: str
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    feature_names: tuple[str, ...] | None
    origin: str

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.X.shape))
        kind = getattr(self.X, "dtype", "table")
        tests = "no" if self.y_test is None else len(self.y_test)
        return f"Source({self.name}: {shape} {kind}, {class_counts(self.y)}, {tests} test rows)"


def reason(error: Exception) -> str:
    """The kind of an error and its text, on one line."""
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def class_counts(y: Any) -> str:
    """The rows of each class, in words.

    >>> class_counts(np.array([0, 1, 1]))
    '1 of class 0 and 2 of class 1'
    """
    classes, counts = np.unique(y, return_counts=True)
    if len(classes) > 2:
        return f"{len(classes)} classes"
    return " and ".join(
        f"{count} of class {label}"
        for label, count in zip(classes.tolist(), counts.tolist(), strict=True)
    )
