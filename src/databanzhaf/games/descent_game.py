"""What the games that train networks by gradient descent share: rows as arrays, checks of the
options.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.games.inputs import check_weights, numbers
from databanzhaf.games.trained_game import TrainedGame
from databanzhaf.kernels.recipe import (
    CLASSIFICATION_LOSSES,
    OPTIMIZERS,
    Recipe,
    Rows,
    Trained,
)
from databanzhaf.protocols import BoolArray


class DescentGame(TrainedGame):
    """A trained game whose model follows a `Recipe`."""

    sample_weight: Any
    recipe: Recipe

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
    def rows(self) -> Rows:
        """The dataset as float32 arrays and class numbers."""
        data = self.dataset
        X, X_val = numbers("X", data.X), numbers("X_val", data.X_val)
        if self.classifies:
            y, y_val = self.class_numbers
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
    def _counts(self) -> BoolArray:
        return np.asarray(self.rows.weights > 0)

    @property
    def _target_scale(self) -> tuple[float, float]:
        """(center, spread) by which the targets of a regression are scaled for training."""
        return 0.0, 1.0

    def _in_units_of_the_target(self, trained: Trained) -> Trained:
        if self.classifies:
            return trained
        center, spread = self._target_scale
        scores = trained.scores * spread**2 if self.recipe.metric == "mse" else trained.scores
        predicted, unseen = (
            None if part is None else center + spread * part.astype(np.float64)
            for part in (trained.predictions, trained.unseen)
        )
        return Trained(scores, predicted, unseen)

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
        self._check_dataset()
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
        self._choose_metric(metric)
        if not self._scores_in_kernel and metric_at == "best_epoch":
            raise InvalidInput(
                'metric_at="best_epoch" needs a built-in metric',
                got=short(self.metric),
                remedy='Use "accuracy" or "probability".',
            )
        if self._across and metric_at == "best_epoch":
            raise InvalidInput(
                'metric_at="best_epoch" needs validation rows to choose an epoch by',
                remedy="Pass Dataset(X, y, X_val, y_val).",
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
