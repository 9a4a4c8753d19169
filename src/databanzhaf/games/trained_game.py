"""What the games that train models by a kernel share: labels as numbers, coalitions without rows,
scores of kept outcomes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, short
from databanzhaf.games.judging import Judged
from databanzhaf.kernels.recipe import (
    CLASSIFICATION_METRICS,
    LOG_FLOOR,
    REGRESSION_METRICS,
    Trained,
)
from databanzhaf.protocols import BoolArray, FloatArray, Int32Array, KeyArray, Labels

# Squares of larger targets are no numbers.
LARGEST_TARGET = 1e150
# Outcomes that are scored at a time: more would not stay in the processor's cache.
_AT_ONCE = 256


class TrainedGame(Judged):
    """A game whose utility is the validation score of a model that a kernel trains on the
    coalition's rows.
    """

    metric: str
    loss: Any

    stochastic = True

    @abstractmethod
    def _train(
        self, members: BoolArray, keys: KeyArray, predictions: bool, unseen: bool
    ) -> Trained:
        """Train one model for each row of `members`, none of which is empty."""

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    @property
    def classifies(self) -> bool:
        return bool(self.loss != "squared")

    @cached_property
    def classes(self) -> Any:
        """The classes of the training labels, sorted; None for a regression."""
        return np.unique(self.dataset.y) if self.classifies else None

    @cached_property
    def class_numbers(self) -> tuple[Int32Array, Int32Array]:
        """The training and the validation labels as places among the classes."""
        train, validation = (
            np.searchsorted(self.classes, labels).astype(np.int32)
            for labels in (self.dataset.y, self.dataset.y_val)
        )
        return train, validation

    @property
    def _counts(self) -> BoolArray:
        """The training rows that models can learn from."""
        return np.ones(self.dataset.n_rows, dtype=np.bool_)

    @cached_property
    def _without_training(self) -> FloatArray:
        """What an empty coalition predicts: the majority of all training labels, with certainty, or
        their mean.
        """
        n_val = len(self.dataset.y_val)
        if not self.classifies:
            return np.full((n_val, 1), self.dataset.y.mean(dtype=np.float64))
        out = np.zeros((n_val, len(self.classes)))
        out[:, np.bincount(self.class_numbers[0]).argmax()] = 1.0
        return out

    def train(
        self,
        coalitions: BoolArray,
        keys: KeyArray,
        *,
        predictions: bool = False,
        unseen: bool = False,
    ) -> Trained:
        """Train one model for each coalition: its score; if asked for, its predictions on the
        validation rows, and those for the training rows that it did not see.

        Coalitions without rows predict without training.
        """
        members, keys = (
            self.dataset.members(coalitions),
            np.ascontiguousarray(keys).astype(np.uint64),
        )
        has_rows = (members & self._counts).any(axis=1)
        trained = (
            self._train(
                np.ascontiguousarray(members[has_rows]), keys[has_rows], predictions, unseen
            )
            if has_rows.any()
            else None
        )
        if trained is not None and has_rows.all():
            return trained
        answer = self._without_training
        scores = np.full(len(keys), self._score_predictions(answer))
        kind = np.float32 if self.classifies else np.float64
        predicted, outside = (
            np.broadcast_to(answer[:1].astype(kind), (len(keys), n, answer.shape[1])).copy()
            if wanted
            else None
            for wanted, n in ((predictions, len(answer)), (unseen, members.shape[1]))
        )
        if trained is not None:
            scores[has_rows] = trained.scores
            if predicted is not None:
                predicted[has_rows] = trained.predictions
            if outside is not None:
                outside[has_rows] = trained.unseen
        return Trained(scores, predicted, outside)

    def own(self, answers: Any) -> FloatArray:
        """The probability of each row's own label, from predictions for the training rows (...,
        rows, classes). The mean over the models that did not see a row is its confidence.
        """
        if not self.classifies:
            raise InvalidInput(
                "the probability of a row's own label needs classes; this is a regression",
                remedy="Compare predictions and targets.",
            )
        y = self.class_numbers[0]
        return np.asarray(answers[..., np.arange(len(y)), y], dtype=np.float64)

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        if self._scores_in_kernel and not self._across:
            return self.train(coalitions, keys).scores
        return np.array([self.score(outcome) for outcome in self.outcomes(coalitions, keys)])

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        predicted = self.train(coalitions, keys, predictions=True).predictions
        assert predicted is not None
        judging = self.dataset.judging(coalitions)
        return [
            self._packed(self._answers(each), own)
            for each, own in zip(predicted, judging, strict=True)
        ]

    def score(self, outcome: bytes) -> float:
        from databanzhaf.games.predictions import unpack

        if self._across or self.metric == "balanced_probability":
            return self._mean_verdict(outcome)
        answers = unpack(outcome, self.classes)
        predicted = (
            answers.predict_proba(None)
            if self.classifies
            else np.asarray(answers.predict(None))[:, None]
        )
        if self._scores_in_kernel:
            return self._score_predictions(predicted)
        if not np.isfinite(predicted).all():
            return float("nan")
        from sklearn.metrics import get_scorer

        return float(get_scorer(self.metric)(answers, self.dataset.X_val, self.dataset.y_val))

    def score_many(self, outcomes: Sequence[bytes]) -> FloatArray:
        """`score` of each, to the same bits."""
        own = type(self).score is not TrainedGame.score  # of a subclass
        if own or self._across or not self._scores_in_kernel:
            return np.array([self.score(outcome) for outcome in outcomes])
        parts = [
            self._scores_of(outcomes[low : low + _AT_ONCE])
            for low in range(0, len(outcomes), _AT_ONCE)
        ]
        return np.concatenate([np.empty(0), *parts])

    def _scores_of(self, outcomes: Sequence[bytes]) -> FloatArray:
        from databanzhaf.games.predictions import unpack_many

        together = unpack_many(outcomes, self.classes)
        if together is None:
            return np.array([self.score(outcome) for outcome in outcomes])
        if self.classifies:
            return self._scores(together.predict_proba(None))
        return self._scores(np.asarray(together.predict(None))[..., None])

    def _answers(self, predicted: Any) -> Any:
        from databanzhaf.games.predictions import ClassifierAnswers, RegressorAnswers

        if not self.classifies:
            return RegressorAnswers({"predict": predicted[:, 0]})
        labels = self.classes[predicted.argmax(axis=1)]
        return ClassifierAnswers({"predict": labels, "predict_proba": predicted}, self.classes)

    def _score_predictions(self, predicted: Any) -> float:
        """A built-in score from one model's probabilities or predicted targets."""
        return float(self._scores(predicted[None])[0])

    def _scores(self, predicted: Any) -> FloatArray:
        """A built-in score for each model from predictions (m, validation rows, outputs).

        Rows lie one after the other, so that a sum is rounded alike for every m.
        """
        if self.classifies:
            y = self.class_numbers[1]
            if self.metric == "accuracy":
                scores = (predicted.argmax(axis=2) == y).mean(axis=1)
            else:
                own = predicted[:, np.arange(len(y)), y].astype(np.float64, order="C")
                if self.metric == "log_loss":
                    own = np.maximum(np.log(np.maximum(own, 1e-300)), LOG_FLOOR)
                scores = own.mean(axis=1)
        else:
            target = self.dataset.y_val.astype(np.float64)
            errors = np.ascontiguousarray((predicted[:, :, 0] - target) ** 2).mean(axis=1)
            scores = 1 - errors / target.var() if self.metric == "r2" else -errors
        return np.where(np.isfinite(predicted).all(axis=(1, 2)), scores, np.nan)

    def _check_dataset(self) -> None:
        if not isinstance(self.dataset, Dataset):
            raise InvalidInput(
                "`dataset` must be a databanzhaf.Dataset",
                got=f"{type(self.dataset).__name__}",
                remedy="Pass Dataset(X, y).",
            )

    def _choose_metric(self, metric: str | None) -> None:
        """Set the metric, by default that of the target's kind, and check it with the labels."""
        if metric is not None and not isinstance(metric, str):
            raise InvalidInput(
                "`metric` must be a name", got=short(metric), remedy='Try "accuracy".'
            )
        self.metric = metric or ("probability" if self.classifies else "r2")
        self._check_metric()
        self._check_labels()
        self._check_jury()

    @property
    def _scores_in_kernel(self) -> bool:
        return self.metric in (*CLASSIFICATION_METRICS, *REGRESSION_METRICS)

    def _check_metric(self) -> None:
        from sklearn.metrics import get_scorer_names

        own, other = (
            (CLASSIFICATION_METRICS, REGRESSION_METRICS)
            if self.classifies
            else (REGRESSION_METRICS, CLASSIFICATION_METRICS)
        )
        if self.metric in own or (self.classifies and self.metric == "balanced_probability"):
            return
        # scikit-learn's scorers of numbers would take class numbers for amounts.
        of_numbers = "error" in self.metric or self.metric in ("explained_variance", "r2")
        misfit = self.metric in other or (self.classifies and of_numbers)
        if misfit or self.metric not in get_scorer_names():
            kind = "classification" if self.classifies else "regression"
            near = get_close_matches(self.metric, [] if misfit else [*own, *get_scorer_names()], 1)
            raise InvalidInput(
                f"`metric` for {kind} must be {', '.join(own)} or a scikit-learn scorer's name",
                got=short(self.metric),
                remedy=f"Did you mean {near[0]!r}?" if near else f"Try {own[0]!r}.",
            )

    def _check_labels(self) -> None:
        data = self.dataset
        if not self.classifies:
            for name, labels in (("y", data.y), ("y_val", data.y_val)):
                if labels.dtype.kind not in "biuf":
                    raise InvalidInput(
                        f"a regression needs numbers as labels in `{name}`",
                        got=f"{labels.dtype}",
                        remedy="Leave `loss` out for classes.",
                    )
                targets = labels.astype(np.float64)
                if not np.isfinite(targets).all():
                    raise InvalidInput(
                        f"`{name}` must be finite for a regression",
                        got="infinite targets",
                        remedy="Drop those rows.",
                    )
                size = float(np.abs(targets).max())
                if size > LARGEST_TARGET or 0 < float(np.ptp(targets)) < 1 / LARGEST_TARGET:
                    raise InvalidInput(
                        f"the targets in `{name}` must have squares that a computer can hold",
                        got=f"targets up to {size:.3g} that differ by {np.ptp(targets):.3g}",
                        remedy="Give them in another unit.",
                    )
            if self.metric == "r2" and np.ptp(data.y_val.astype(np.float64)) == 0:
                raise InvalidInput(
                    "`r2` needs validation targets that differ; all are equal",
                    remedy='Use metric="mse".',
                )
            return
        if data.y.dtype.kind == "f" and (data.y != np.round(data.y)).any():
            raise InvalidInput(
                "`y` holds numbers that are no class labels",
                remedy='Use loss="squared" for a regression.',
            )
        if len(self.classes) < 2:
            raise InvalidInput(
                "a classification needs rows of two classes or more",
                got=f"one class only, {self.classes.tolist()}",
                remedy="Add rows of other classes.",
            )
        if (data.y.dtype.kind == "f") != (data.y_val.dtype.kind == "f"):
            whole = [part for part in (data.y, data.y_val) if part.dtype.kind in "iu"]
            if whole and np.abs(whole[0].astype(np.float64)).max() >= 2**53:
                raise InvalidInput(
                    "labels of 2^53 and more must be whole numbers in `y` and in `y_val`",
                    got=f"{data.y.dtype} and {data.y_val.dtype}",
                    remedy="Convert both to text.",
                )
        outside = np.setdiff1d(data.y_val, data.y)
        if outside.size:
            raise InvalidInput(
                "`y_val` must hold classes of `y` only",
                got=f"{outside[:3].tolist()} as well",
                remedy="Drop those validation rows.",
            )
