"""What every kernel trains: the network, the loss, the optimiser and the score, as plain numbers
and names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from databanzhaf.protocols import Float32Array, FloatArray, Int32Array, IntArray

ACTIVATIONS: Final = ("relu", "leaky_relu", "tanh")
OPTIMIZERS: Final = ("adam", "sgd")
CLASSIFICATION_LOSSES: Final = ("cross_entropy", "double_softmax")
CLASSIFICATION_METRICS: Final = ("probability", "accuracy", "log_loss")
REGRESSION_METRICS: Final = ("r2", "mse")
SLOPE: Final = 0.01
# A probability counts as 1e-12 at least in the log loss, in every kernel and from kept outcomes.
LOG_FLOOR: Final = float(np.log(1e-12))

# Streams of a model's key (see `chance`): what its randomness is for.
INITIAL, ORDER, SMOOTHING, DROPOUT = range(4)
# A sort key is 63 bits: random bits on top, the row in the lowest 24.
ROW_BITS: Final = 24


@dataclass(frozen=True)
class Recipe:
    """A network of fully connected layers and how it is trained; see `games.Network` for the
    meaning of each field.
    """

    sizes: tuple[int, ...]
    activation: str
    loss: str
    optimizer: str
    learning_rate: float
    momentum: float
    betas: tuple[float, float]
    eps: float
    epochs: int
    batch_size: int | None
    weighted_sampling: bool
    smoothing_draws: int
    smoothing_radius: float
    metric: str
    best_epoch: bool
    batches_per_epoch: int | None = None

    @property
    def classifies(self) -> bool:
        return self.loss != "squared"

    @property
    def layers(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of each layer."""
        return list(zip(self.sizes[:-1], self.sizes[1:], strict=True))

    @property
    def n_parameters(self) -> int:
        return sum(inputs * outputs + outputs for inputs, outputs in self.layers)

    def offsets(self) -> list[tuple[int, int]]:
        """Where each layer's weights (outputs x inputs, row by row) and biases begin among the
        parameters.
        """
        places, position = [], 0
        for inputs, outputs in self.layers:
            places.append((position, position + inputs * outputs))
            position += inputs * outputs + outputs
        return places

    def bounds(self) -> Float32Array:
        """Half-width of each parameter's initial uniform law, 1 / sqrt(inputs) as torch's Linear
        has it; float32.
        """
        parts = [
            np.full(inputs * outputs + outputs, 1 / np.sqrt(inputs), np.float32)
            for inputs, outputs in self.layers
        ]
        return np.concatenate(parts)


def used_columns(rows: Rows) -> IntArray:
    """Columns that are not zero in every row. The others change no output and their weights never
    get a gradient.
    """
    flat, flat_val = rows.X.reshape(len(rows.X), -1), rows.X_val.reshape(len(rows.X_val), -1)
    present = (flat != 0).any(axis=0) | (flat_val != 0).any(axis=0)
    # Products go four columns at a time: keep a few of the others to fill the last four (and one at
    # least).
    spare = np.flatnonzero(~present)[: -int(present.sum()) % 4 or int(not present.any())]
    present[spare] = True
    return np.flatnonzero(present).astype(np.int64)


def narrowed(recipe: Recipe, rows: Rows) -> tuple[Recipe, Rows, IntArray]:
    """The same training without unused columns: recipe, rows, and where the remaining parameters
    stood among all of them.

    Initial weights keep the law and the words of the full network, so leaving columns out changes
    no result.
    """
    used = used_columns(rows)
    places: list[IntArray] = []
    for depth, ((inputs, outputs), (weights, biases)) in enumerate(
        zip(recipe.layers, recipe.offsets(), strict=True)
    ):
        matrix = weights + np.arange(inputs * outputs).reshape(outputs, inputs)
        places += [(matrix[:, used] if depth == 0 else matrix).ravel(), biases + np.arange(outputs)]
    smaller = replace(
        rows,
        X=np.ascontiguousarray(rows.X[:, used]),
        X_val=np.ascontiguousarray(rows.X_val[:, used]),
    )
    return replace(recipe, sizes=(len(used), *recipe.sizes[1:])), smaller, np.concatenate(places)


@dataclass(frozen=True)
class Rows:
    """Training and validation rows as the kernels want them.

    X (rows, columns) and X_val float32; y and y_val are class numbers (int32) or targets (float32);
    weights (rows,) float32; a row of weight 0 is left out.
    """

    X: Float32Array
    y: Int32Array | Float32Array
    X_val: Float32Array
    y_val: Int32Array | Float32Array
    weights: Float32Array


@dataclass(frozen=True)
class Trained:
    """What came of m trainings.

    scores float64 (m,); if asked for, predictions (m, validation rows, classes), or (m, validation
    rows, 1) of a regression, and `unseen` (m, rows, ...), those for the training rows that the
    model did not see, NaN for the others.
    """

    scores: FloatArray
    predictions: Float32Array | FloatArray | None = None
    unseen: Float32Array | FloatArray | None = None
