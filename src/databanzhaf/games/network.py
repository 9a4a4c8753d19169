"""A game that trains a fully connected network on each coalition's rows, thousands at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.games.descent_game import DescentGame
from databanzhaf.games.inputs import resolve_device
from databanzhaf.kernels.recipe import ACTIVATIONS, Trained, narrowed
from databanzhaf.protocols import BoolArray, KeyArray


class Network(DescentGame):
    """U(S) is the validation score of a network trained on the rows of S.

    Parameters
    ----------
    dataset : Dataset
        Numbers, without NaN; scale them. Labels of any kind for a classification, numbers for a
        regression (scaled here by the mean and deviation of all training rows; scores and
        predictions are in their own units).
    hidden : sequence of int
        Units of each hidden layer; () is logistic or linear regression by the same loop.
    activation : "leaky_relu", "relu" or "tanh"
    epochs, batch_size, learning_rate
        Each epoch shuffles the coalition's rows again; `batch_size=None` is full-batch gradient
        descent.
    batches_per_epoch : int, optional
        Stop each epoch after so many mini-batches; by default an epoch sees every row.
    optimizer : "adam" or "sgd"
        `betas` and `eps` are Adam's, `momentum` is for "sgd".
    loss : "cross_entropy", "squared" or "double_softmax"
        "squared" makes it a regression. "double_softmax" applies softmax twice,
        cross_entropy(softmax(softmax(z))), as the code behind the paper does; it is there to
        reproduce the paper and flattens the gradients.
    metric : str, optional
        "probability" (mean probability of the true class; the default), "accuracy", "log_loss"
        (negated: more is better); for a regression "r2" (the default) or "mse" (negated); or the
        name of a scikit-learn scorer, computed from the predictions.
    metric_at : "last" or "best_epoch"
        "best_epoch" is the paper's protocol, the best score over the epochs; it looks at the
        validation rows while training.
    sample_weight : array (rows,), optional
        With `weighting="loss"` each row's loss is multiplied by it; with "sampling" each epoch
        draws as many rows as the coalition has, with replacement, in proportion to it. A row of
        weight 0 is left out.
    smoothing : (draws, radius), optional
        Randomized smoothing (Duchi et al. 2012): the gradient is the mean over `draws` of gradients
        at theta + radius * Gaussian.
    device : "auto", "cpu" or "cuda"
        "cpu" is a Numba kernel that needs no torch; "auto" takes CUDA if torch sees it.
    threads : int, optional
        Of the Numba kernel; by default one for each core. Values do not depend on it.
    tf32, compiles, chunk
        CUDA only: allow TF32 products (off: float32), use compiled code (on), models at a time
        (from free memory). Compiled code is a Triton kernel for networks of two classes or one
        target, with one hidden layer of at most 128 units, on at most 32 columns and 2,048 rows
        (not with `smoothing` or `weighting="sampling"`), and torch.compile's for others.

    Initial weights, batches and noise are functions of (seed, index, repeat): the same bits on
    every device, and utilities that agree to float32. An empty coalition predicts the majority
    class, or the mean.
    """

    def __init__(
        self,
        dataset: Dataset,
        hidden: Sequence[int] = (100,),
        *,
        activation: str = "leaky_relu",
        epochs: int = 15,
        batch_size: int | None = 32,
        batches_per_epoch: int | None = None,
        learning_rate: float = 1e-2,
        optimizer: str = "adam",
        momentum: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        loss: str = "cross_entropy",
        metric: str | None = None,
        metric_at: str = "last",
        sample_weight: Any = None,
        weighting: str = "loss",
        smoothing: tuple[int, float] | None = None,
        device: str = "auto",
        threads: int | None = None,
        tf32: bool = False,
        compiles: bool = True,
        chunk: int | None = None,
    ) -> None:
        self.dataset, self.loss, self.sample_weight = dataset, loss, sample_weight
        if not isinstance(loss, str):
            raise InvalidInput(
                "`loss` must be a name",
                got=short(loss),
                remedy="games.Module takes a loss of your own.",
            )
        if (
            isinstance(hidden, (str, bytes))
            or not isinstance(hidden, Sequence)
            or not all(isinstance(units, (int, np.integer)) and units > 0 for units in hidden)
        ):
            raise InvalidInput(
                "`hidden` must list the units of each hidden layer, such as (100,) or ()",
                got=short(hidden),
                remedy="Try (100,).",
            )
        if activation not in ACTIVATIONS:
            raise InvalidInput(
                f"`activation` must be one of {', '.join(ACTIVATIONS)}",
                got=short(activation),
                remedy='Try "leaky_relu".',
            )
        if threads is not None:
            check_count("threads", threads)
        recipe = self._configure(
            tuple(int(units) for units in hidden),
            activation=activation,
            optimizer=optimizer,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            momentum=momentum,
            betas=betas,
            eps=eps,
            metric=metric,
            metric_at=metric_at,
            weighting=weighting,
            smoothing=smoothing,
            chunk=chunk,
            batches_per_epoch=batches_per_epoch,
        )
        if self.rows.X.ndim != 2:
            raise InvalidInput(
                "a Network takes tables",
                got=f"rows of shape {self.rows.X.shape[1:]}",
                remedy="Flatten them, or use games.Module.",
            )
        self.recipe = replace(recipe, sizes=(self.rows.X.shape[1], *recipe.sizes))
        self.device = resolve_device(device)
        self.threads, self.tf32, self.compiles, self.chunk = threads, tf32, compiles, chunk

    @cached_property
    def _target_scale(self) -> tuple[float, float]:
        y = self.dataset.y.astype(np.float64)
        return float(y.mean()), float(y.std()) or 1.0

    @property
    def call_size(self) -> int:
        """Coalitions per call: one chunk on CUDA; on the CPU about a tenth of a second of work."""
        if self.device != "cpu":
            return 16384
        recipe, n_val = self.recipe, len(self.rows.X_val)
        scored = n_val * (recipe.epochs if recipe.best_epoch else 1)
        passes = recipe.epochs * self.dataset.n_rows * (1 + 20 * recipe.smoothing_draws) + scored
        work = 4.0 * recipe.n_parameters * passes + 50.0 * scored * recipe.sizes[-1]
        predictions = 4 * n_val * recipe.sizes[-1]
        return int(np.clip(min(4e9 / work, 2**26 / predictions), 1, 4096))

    @cached_property
    def _trainer(self) -> Any:
        from databanzhaf.kernels import on_chip
        from databanzhaf.kernels.programs import fully_connected
        from databanzhaf.kernels.stacked import Trainer

        recipe, rows, numbers = narrowed(self.recipe, self.rows)
        program = fully_connected(recipe, numbers, self.recipe)
        how: dict[str, Any] = {"device": self.device, "tf32": self.tf32, "chunk": self.chunk}
        if self.compiles and on_chip.fits(recipe, len(rows.X), self.device):
            return on_chip.OnChip(program, recipe, rows, **how)
        return Trainer(program, recipe, rows, compiles=self.compiles, **how)

    def _train(
        self, members: BoolArray, keys: KeyArray, predictions: bool, unseen: bool
    ) -> Trained:
        from databanzhaf.kernels import cpu

        trained = (
            self._trainer.train(members, keys, predictions=predictions, unseen=unseen)
            if self.device != "cpu"
            else cpu.train(
                self.recipe,
                self.rows,
                members,
                keys,
                predictions=predictions,
                unseen=unseen,
                threads=self.threads,
            )
        )
        return self._in_units_of_the_target(trained)

    def fingerprint(self) -> dict[str, str]:
        recipe = {
            f"network.{name}": str(value)
            for name, value in asdict(self.recipe).items()
            if name != "metric"
        }
        weights = "none" if self.sample_weight is None else self._weight_digest()
        return {
            "game": "network",
            "data": self.dataset.fingerprint(),
            **recipe,
            "sample_weight": weights,
            "epoch": self._chosen_epoch(),
            **self._judged(),
            "metric": self.metric,
        }

    def _weight_digest(self) -> str:
        from databanzhaf.fingerprint import describe

        return describe(self.rows.weights)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_trainer"}

    def __repr__(self) -> str:
        shape = "-".join(map(str, self.recipe.sizes))
        return f"Network({shape}, {self.dataset!r}, metric={self.metric!r}, device={self.device!r})"
