"""What the games that train networks share: rows as arrays, checks of the options, scores of kept
outcomes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.games.inputs import check_weights, numbers
from databanzhaf.kernels.recipe import (
    CLASSIFICATION_LOSSES,
    CLASSIFICATION_METRICS,
    LOG_FLOOR,
    OPTIMIZERS,
    REGRESSION_METRICS,
    Recipe,
    Rows,
    Trained,
)
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray, Labels


class TrainedGame:
    """A game whose utility is the validation score of a model that a kernel trains on the
    coalition's rows.
    """

    dataset: Dataset
    metric: str
    loss: Any
    sample_weight: Any
    recipe: Recipe

    stochastic = True

    @abstractmethod
    def train(
        self,
        coalitions: BoolArray,
        keys: KeyArray,
        *,
        predictions: bool = False,
        confidence: bool = False,
    ) -> Trained:
        """Train one model for each coalition."""

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    @property
    def classifies(self) -> bool:
        """A named loss says so; with a loss of the user's own, labels that are no whole numbers
        make a regression.
        """
        if not callable(self.loss):
            return bool(self.loss != "squared")
        return not (
            self.dataset.y.dtype.kind == "f"
            and bool((self.dataset.y != np.round(self.dataset.y)).any())
        )

    @cached_property
    def classes(self) -> Any:
        """The classes of the training labels, sorted; None for a regression."""
        return np.unique(self.dataset.y) if self.classifies else None

    @cached_property
    def rows(self) -> Rows:
        """The dataset as float32 arrays and class numbers."""
        data = self.dataset
        X, X_val = numbers("X", data.X), numbers("X_val", data.X_val)
        if self.classifies:
            y, y_val = (
                np.searchsorted(self.classes, labels).astype(np.int32)
                for labels in (data.y, data.y_val)
            )
        else:
            center, spread = self._target_scale
            y, y_val = (
                ((labels.astype(np.float64) - center) / spread).astype(np.float32)
                for labels in (data.y, data.y_val)
            )
        weights = (
            np.ones(len(X), np.float32)
            if self.sample_weight is None
            else np.array(self.sample_weight, dtype=np.float32)
        )
        return Rows(X, y, X_val, y_val, weights)

    @property
    def _target_scale(self) -> tuple[float, float]:
        """(center, spread) by which the targets of a regression are scaled for training."""
        return 0.0, 1.0

    @cached_property
    def _without_training(self) -> FloatArray:
        """What an empty coalition predicts: the majority of all training labels, with certainty, or
        their mean.
        """
        n_val = len(self.rows.y_val)
        if not self.classifies:
            return np.full((n_val, 1), self.dataset.y.mean(dtype=np.float64))
        out = np.zeros((n_val, len(self.classes)))
        out[:, np.bincount(self.rows.y).argmax()] = 1.0
        return out

    def _train_all(
        self,
        coalitions: BoolArray,
        keys: KeyArray,
        kernel: Any,
        predictions: bool,
        confidence: bool,
    ) -> Trained:
        """Give the kernel the coalitions that have rows; the others predict without training."""
        members, keys = (
            self.dataset.members(coalitions),
            np.ascontiguousarray(keys).astype(np.uint64),
        )
        has_rows = (members & (self.rows.weights > 0)).any(axis=1)
        trained = (
            kernel(np.ascontiguousarray(members[has_rows]), keys[has_rows], predictions, confidence)
            if has_rows.any()
            else None
        )
        if trained is not None and not self.classifies:
            trained = self._in_units_of_the_target(trained)
        if trained is not None and has_rows.all():
            return trained  # type: ignore[no-any-return]
        scores = np.full(len(keys), self._score_predictions(self._without_training))
        kind = np.float32 if self.classifies else np.float64
        predicted = (
            np.repeat(self._without_training[None].astype(kind), len(keys), axis=0)
            if predictions
            else None
        )
        none = np.zeros(members.shape[1])
        if trained is None:
            return Trained(
                scores, predicted, *((none, none.astype(np.int64)) if confidence else ())
            )
        scores[has_rows] = trained.scores
        if predicted is not None:
            predicted[has_rows] = trained.predictions
        return Trained(scores, predicted, trained.confidence, trained.unseen)

    def _in_units_of_the_target(self, trained: Trained) -> Trained:
        center, spread = self._target_scale
        scores = trained.scores * spread**2 if self.recipe.metric == "mse" else trained.scores
        predicted = (
            None
            if trained.predictions is None
            else center + spread * trained.predictions.astype(np.float64)
        )
        return replace(trained, scores=scores, predictions=predicted)

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        if self._scores_in_kernel:
            return self.train(coalitions, keys).scores
        return np.array([self.score(outcome) for outcome in self.outcomes(coalitions, keys)])

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        predicted = self.train(coalitions, keys, predictions=True).predictions
        assert predicted is not None
        return [self._answers(each).pack() for each in predicted]

    def score(self, outcome: bytes) -> float:
        from databanzhaf.games.predictions import unpack

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

    def _answers(self, predicted: Any) -> Any:
        from databanzhaf.games.predictions import ClassifierAnswers, RegressorAnswers

        if not self.classifies:
            return RegressorAnswers({"predict": predicted[:, 0]})
        labels = self.classes[predicted.argmax(axis=1)]
        return ClassifierAnswers({"predict": labels, "predict_proba": predicted}, self.classes)

    def _score_predictions(self, predicted: Any) -> float:
        """A built-in score from probabilities or predicted targets."""
        y = self.rows.y_val
        if not np.isfinite(predicted).all():
            return float("nan")
        if self.metric == "accuracy":
            return float(np.mean(predicted.argmax(axis=1) == y))
        if self.classifies:
            own = predicted[np.arange(len(y)), y].astype(np.float64)
            return float(
                np.maximum(np.log(np.maximum(own, 1e-300)), LOG_FLOOR).mean()
                if self.metric == "log_loss"
                else own.mean()
            )
        target = self.dataset.y_val.astype(np.float64)
        errors = float(np.mean((predicted[:, 0] - target) ** 2))
        return 1 - errors / float(target.var()) if self.metric == "r2" else -errors

    def _configure(
        self,
        inner_sizes: tuple[int, ...],
        *,
        activation: str,
        optimizer: str,
        epochs: int,
        batch_size: int | None,
        learning_rate: float,
        momentum: float,
        betas: tuple[float, float],
        eps: float,
        metric: str | None,
        metric_at: str,
        weighting: str,
        smoothing: tuple[int, float] | None,
        chunk: int | None,
        batches_per_epoch: int | None,
    ) -> Recipe:
        """Check the options that both games have and write them down; `inner_sizes` come before the
        outputs.
        """
        if not isinstance(self.dataset, Dataset):
            raise InvalidInput(
                "`dataset` must be a databanzhaf.Dataset",
                got=f"{type(self.dataset).__name__}",
                remedy="Pass Dataset(X, y, X_val, y_val).",
            )
        losses = (*CLASSIFICATION_LOSSES, "squared")
        if not callable(self.loss) and self.loss not in losses:
            raise InvalidInput(
                f"`loss` must be one of {', '.join(losses)}",
                got=short(self.loss),
                remedy='Try "cross_entropy".',
            )
        if optimizer not in OPTIMIZERS:
            raise InvalidInput(
                f"`optimizer` must be one of {', '.join(OPTIMIZERS)}",
                got=short(optimizer),
                remedy='Try "adam".',
            )
        if metric_at not in ("last", "best_epoch"):
            raise InvalidInput(
                '`metric_at` must be "last" or "best_epoch"',
                got=short(metric_at),
                remedy="The last epoch is the honest choice.",
            )
        for name, count in (
            ("epochs", epochs),
            ("batch_size", batch_size),
            ("chunk", chunk),
            ("batches_per_epoch", batches_per_epoch),
        ):
            if count is not None or name == "epochs":
                check_count(name, count)
        check_between("learning_rate", learning_rate, 0, np.inf, "Try 0.01.")
        if smoothing is not None and (
            not isinstance(smoothing, (tuple, list)) or len(smoothing) != 2
        ):
            raise InvalidInput(
                "`smoothing` must be (draws, radius)",
                got=short(smoothing),
                remedy="The paper takes (1, learning_rate).",
            )
        if (
            not isinstance(betas, (tuple, list))
            or len(betas) != 2
            or not all(0 <= beta < 1 for beta in betas)
        ):
            raise InvalidInput(
                "`betas` must be two numbers from 0 to below 1",
                got=short(betas),
                remedy="Adam's own are (0.9, 0.999).",
            )
        check_between("eps", eps, 0, np.inf, "Adam's own is 1e-8.")
        check_between("momentum", momentum, -1e-300, 1, "0.9 is common, 0 is none.")
        draws, radius = (0, 0.0) if smoothing is None else smoothing
        if smoothing is not None:
            check_count("smoothing draws", draws)
            check_between(
                "smoothing radius", radius, 0, np.inf, "The paper takes the learning rate."
            )
        check_weights(self.sample_weight, weighting, self.dataset.n_rows)
        self.metric = metric or ("probability" if self.classifies else "r2")
        self._check_metric()
        self._check_labels()
        if not self._scores_in_kernel and metric_at == "best_epoch":
            raise InvalidInput(
                'metric_at="best_epoch" needs a built-in metric',
                got=short(self.metric),
                remedy='Use "accuracy" or "probability".',
            )
        return Recipe(
            sizes=(*inner_sizes, len(self.classes) if self.classifies else 1),
            activation=activation,
            loss=self.loss
            if isinstance(self.loss, str)
            else ("cross_entropy" if self.classifies else "squared"),
            optimizer=optimizer,
            learning_rate=float(learning_rate),
            momentum=float(momentum),
            betas=(float(betas[0]), float(betas[1])),
            eps=float(eps),
            epochs=int(epochs),
            batch_size=None if batch_size is None else int(batch_size),
            weighted_sampling=weighting == "sampling",
            smoothing_draws=int(draws),
            smoothing_radius=float(radius),
            metric=self.metric
            if self._scores_in_kernel
            else ("probability" if self.classifies else "mse"),
            best_epoch=metric_at == "best_epoch",
            batches_per_epoch=None if batches_per_epoch is None else int(batches_per_epoch),
        )

    def _chosen_epoch(self) -> str:
        """For the fingerprint: which epoch's predictions are kept. The best one depends on the
        score that chose it.
        """
        return f"best by {self.metric}" if self.recipe.best_epoch else "last"

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
        if self.metric in own:
            return
        if self.metric in other or self.metric not in get_scorer_names():
            kind = "classification" if self.classifies else "regression"
            raise InvalidInput(
                f"`metric` for {kind} must be {', '.join(own)} or a scikit-learn scorer's name",
                got=short(self.metric),
                remedy=f"Try {own[0]!r}.",
            )

    def _check_labels(self) -> None:
        data = self.dataset
        if not self.classifies:
            if data.y.dtype.kind not in "biuf":
                raise InvalidInput(
                    "a regression needs numbers as labels",
                    got=f"{data.y.dtype}",
                    remedy='Use loss="cross_entropy" for classes.',
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
        outside = np.setdiff1d(data.y_val, data.y)
        if outside.size:
            raise InvalidInput(
                "`y_val` must hold classes of `y` only",
                got=f"{outside[:3].tolist()} as well",
                remedy="Drop those validation rows.",
            )
