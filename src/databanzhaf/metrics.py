"""Metrics that are a mean over the judging rows: what each row says of a model, and how that is
kept.

A kept answer of a classifier is 2 bytes for each judging row: the probability of its own label in
32,767 steps, and whether the label with the largest probability is its own. That of a regression
is 4 bytes: prediction minus target, in units of the targets' standard deviation. Rows that do not
judge have a mark of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from databanzhaf.errors import InvalidInput
from databanzhaf.protocols import BoolArray, FloatArray, IntArray

# Steps of a kept probability; twice that and one more still lies below the marks of a model that
# gives no number and of a row that does not judge.
_STEPS = 32_766
_NO_NUMBER, _SILENT = 65_534, 65_535
_LOG_FLOOR = float(np.log(1e-12))

# name → (what of the answer, whether every class weighs the same)
_OF_CLASSES = {
    "probability": ("probability", False),
    "balanced_probability": ("probability", True),
    "accuracy": ("hit", False),
    "balanced_accuracy": ("hit", True),
    "log_loss": ("log", False),
    "neg_log_loss": ("log", False),
}
_OF_NUMBERS = {
    "r2": "r2",
    "mse": "squared",
    "neg_mean_squared_error": "squared",
    "neg_mean_absolute_error": "absolute",
}
# What can be judged across, in the words that people use.
CLASS_METRICS = ("probability", "balanced_probability", "accuracy", "balanced_accuracy", "log_loss")
NUMBER_METRICS = ("r2", "mse", "mae")


@dataclass(frozen=True)
class RowMetric:
    """A metric that is a weighted mean over rows; `unit` is the standard deviation of the targets
    of a regression.
    """

    of: str
    balanced: bool = False
    unit: float = 1.0

    @property
    def classifies(self) -> bool:
        return self.of in ("probability", "hit", "log")

    def of_classes(self, own: FloatArray, hit: BoolArray) -> FloatArray:
        """The score of each row, from the probability of its own label and whether that label is
        the predicted one.
        """
        if self.of == "hit":
            return hit.astype(np.float64)
        if self.of == "log":
            return np.maximum(np.log(np.maximum(own, np.finfo(own.dtype).tiny)), _LOG_FLOOR)
        return own.astype(np.float64)

    def of_numbers(self, residuals: FloatArray) -> FloatArray:
        """The score of each row, from prediction minus target, in units."""
        if self.of == "absolute":
            return -np.abs(residuals) * self.unit
        squared = np.asarray(residuals, dtype=np.float64) ** 2
        return 1 - squared if self.of == "r2" else -squared * self.unit**2

    def weights(self, labels: object) -> FloatArray:
        """How much each row counts, (rows,), summing to 1."""
        column = np.asarray(labels)
        if not self.balanced:
            return np.full(len(column), 1 / len(column))
        classes, which = np.unique(column, return_inverse=True)
        return np.asarray(1 / (len(classes) * np.bincount(which)[which]))

    def guesses(self, labels: object, weights: FloatArray) -> FloatArray:
        """What each row says of a guess that knows nothing but how often each label occurs, or the
        mean target.
        """
        column = np.asarray(labels)
        if not self.classifies:
            target = column.astype(np.float64)
            return self.of_numbers((weights @ target - target) / self.unit)
        _, which = np.unique(column, return_inverse=True)
        shares = np.bincount(which, weights=weights)
        own = np.asarray(shares[which], dtype=np.float64)
        return self.of_classes(own, np.asarray(which == shares.argmax()))

    def scores(self, outcomes: Sequence[bytes]) -> FloatArray:
        """What each judging row says of each model, (models, rows); NaN where it does not judge."""
        if self.classifies:
            code = np.stack([np.frombuffer(outcome, dtype="<u2") for outcome in outcomes])
            own = (code >> 1).astype(np.float64) / _STEPS
            scores = self.of_classes(own, (code & 1).astype(np.bool_))
            scores[code == _NO_NUMBER] = -np.inf
            return np.where(code == _SILENT, np.nan, scores)
        residuals = np.stack([np.frombuffer(outcome, dtype="<f4") for outcome in outcomes])
        return self.of_numbers(residuals.astype(np.float64))


def row_metric(name: object, *, classifies: bool, unit: float = 1.0) -> RowMetric | None:
    """The metric of a name; None if it is not a mean over rows."""
    if not isinstance(name, str):
        return None
    if classifies:
        found = _OF_CLASSES.get(name)
        return None if found is None else RowMetric(*found)
    kind = _OF_NUMBERS.get(name)
    return None if kind is None else RowMetric(kind, unit=unit)


def kept_metric(name: str) -> RowMetric:
    """The metric of a ledger whose game is not at hand."""
    found = row_metric(name, classifies=True) or row_metric(name, classifies=False)
    if found is None or found.balanced or found.of in ("squared", "absolute"):
        raise InvalidInput(
            f"the metric {name} of this ledger needs the labels of its rows",
            remedy="Pass game=..., the game that made the run.",
        )
    return found


def pack_classes(own: FloatArray, hit: BoolArray, judging: BoolArray) -> bytes:
    """One model's answers: 2 bytes for each judging row."""
    known = np.isfinite(own)
    code = 2 * np.rint(np.clip(np.where(known, own, 0.0), 0.0, 1.0) * _STEPS).astype("<u2") + hit
    return np.where(judging, np.where(known, code, _NO_NUMBER), _SILENT).astype("<u2").tobytes()


def pack_numbers(residuals: FloatArray, judging: BoolArray) -> bytes:
    """One model's answers: 4 bytes for each judging row."""
    known = np.where(np.isfinite(residuals), residuals, np.inf)
    return np.where(judging, known, np.nan).astype("<f4").tobytes()


def mean_score(scores: FloatArray, weights: FloatArray) -> float:
    """The score of one model by the rows that judge it; 0 if none does."""
    judging = ~np.isnan(scores)
    total = float(weights[judging].sum())
    return float((weights[judging] * scores[judging]).sum() / total) if total > 0 else 0.0


def f1_of_many(predicted: IntArray, truth: IntArray, positive: int | None) -> FloatArray:
    """scikit-learn's F1 of a class for many models, or its mean over the classes that are predicted
    or true (`positive` is None): predicted (models, rows) and truth (rows,) are class numbers.
    """
    classes = range(int(max(predicted.max(), truth.max())) + 1) if positive is None else [positive]
    scores, present = [], []
    for number in classes:
        said, true = predicted == number, truth == number
        both = (said & true).sum(axis=1)
        either = said.sum(axis=1) + true.sum()
        scores.append(np.divide(2 * both, either, out=np.zeros(len(said)), where=either > 0))
        present.append(either > 0)
    counted = np.maximum(np.sum(present, axis=0), 1)
    return np.asarray(np.sum(scores, axis=0) / (counted if positive is None else 1))


def auc_of_many(scores: FloatArray, truth: BoolArray) -> FloatArray:
    r"""The area under the ROC curve of many models, from the ranks of the scores (models, rows):
    :math:`(\sum_{j \in +} r_j - n_+ (n_+ + 1) / 2) / (n_+ n_-)`.
    """
    from scipy.stats import rankdata

    positives = int(truth.sum())
    ranks = rankdata(scores, axis=1)[:, truth].sum(axis=1)
    area = (ranks - positives * (positives + 1) / 2) / (positives * (len(truth) - positives))
    return np.asarray(area)
