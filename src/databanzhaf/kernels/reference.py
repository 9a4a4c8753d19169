"""The plain NumPy twin of the training kernels: float64, one model after the other, every formula
in the open.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from databanzhaf import chance
from databanzhaf.kernels.recipe import (
    INITIAL,
    LOG_FLOOR,
    ORDER,
    ROW_BITS,
    SLOPE,
    SMOOTHING,
    Recipe,
    Rows,
    Trained,
)
from databanzhaf.protocols import BoolArray, Float32Array, FloatArray, IntArray, KeyArray

Layers = list[tuple[FloatArray, FloatArray]]


def train(
    recipe: Recipe,
    rows: Rows,
    members: BoolArray,
    keys: KeyArray,
    *,
    predictions: bool = False,
    unseen: bool = False,
) -> Trained:
    """Train one model for each row of `members` (m, training rows) and score it on the validation
    rows.
    """
    members = members & (rows.weights > 0)
    models = [
        train_one(recipe, rows, member, key) for member, key in zip(members, keys, strict=True)
    ]
    scores = np.array([score for score, _, _ in models])
    predicted = (
        np.stack([prediction for _, prediction, _ in models]).astype(np.float32)
        if predictions
        else None
    )
    if not unseen:
        return Trained(scores, predicted)
    outside = np.full((len(keys), len(rows.X), recipe.sizes[-1]), np.nan, np.float32)
    for answers, (_, _, theta), member in zip(outside, models, members, strict=True):
        answers[~member] = predict(recipe, forward(recipe, theta, rows.X[~member])[-1])
    return Trained(scores, predicted, outside)


def train_one(
    recipe: Recipe, rows: Rows, member: BoolArray, key: np.uint64
) -> tuple[float, FloatArray, FloatArray]:
    """(score, predictions on the validation rows, parameters) of one model."""
    theta = initial(recipe, key).astype(np.float64)
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    best, kept, step = -np.inf, np.empty(0), 0
    for epoch in range(recipe.epochs):
        for batch in batches(recipe, rows, member, key, epoch):
            step += 1
            theta = update(
                recipe, theta, gradient(recipe, rows, theta, batch, key, step), first, second, step
            )
        if recipe.best_epoch or epoch == recipe.epochs - 1:
            outputs = forward(recipe, theta, rows.X_val)[-1]
            now = score(recipe, outputs, rows.y_val)
            if not now <= best:
                best, kept = now, predict(recipe, outputs)
    return best, kept, theta


def stream(key: np.uint64, *numbers: int) -> KeyArray:
    """The key of a stream, shape (1,)."""
    folded = np.array([key], np.uint64)
    for number in numbers:
        folded = chance.fold(folded, np.array([number], np.uint64))
    return folded


def initial(recipe: Recipe, key: np.uint64) -> Float32Array:
    """Initial parameters, uniform within `recipe.bounds()`, by the top 24 bits of one word each:
    float32 in every kernel.
    """
    words = chance.words(stream(key, INITIAL), recipe.n_parameters)[0]
    unit = (words >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)
    start: Float32Array = (np.float32(2) * unit - np.float32(1)) * recipe.bounds()
    return start


def batches(
    recipe: Recipe, rows: Rows, member: BoolArray, key: np.uint64, epoch: int
) -> Iterator[IntArray]:
    """The mini-batches of one epoch, as row numbers."""
    present = np.flatnonzero(member & (rows.weights > 0))
    if recipe.weighted_sampling:
        edges = np.cumsum(rows.weights[present].astype(np.float64))
        drawn = chance.uniform(stream(key, ORDER, epoch), len(present))[0] * (
            edges[-1] if len(edges) else 1.0
        )
        order = present[np.minimum(np.searchsorted(edges, drawn, side="right"), len(present) - 1)]
    else:
        words = chance.fold(stream(key, ORDER, epoch), present.astype(np.uint64))
        low = np.uint64((1 << ROW_BITS) - 1)
        sort_keys = (words >> np.uint64(1)) & ~low | present.astype(np.uint64)
        order = (np.sort(sort_keys) & low).astype(np.int64)
    size = recipe.batch_size or max(1, len(order))
    for low_end in range(0, len(order), size)[: recipe.batches_per_epoch]:
        yield order[low_end : low_end + size]


def unpack(recipe: Recipe, theta: FloatArray) -> Layers:
    """(weights (outputs, inputs), biases) of each layer."""
    return [
        (theta[w:b].reshape(outputs, inputs), theta[b : b + outputs])
        for (inputs, outputs), (w, b) in zip(recipe.layers, recipe.offsets(), strict=True)
    ]


def forward(recipe: Recipe, theta: FloatArray, X: NDArray[np.floating]) -> list[FloatArray]:
    """The values of every layer, the input first; the last are logits or predicted targets."""
    values = [X.astype(np.float64)]
    layers = unpack(recipe, theta)
    for depth, (weights, biases) in enumerate(layers):
        z = values[-1] @ weights.T + biases
        values.append(z if depth == len(layers) - 1 else activate(recipe, z))
    return values


def activate(recipe: Recipe, z: FloatArray) -> FloatArray:
    if recipe.activation == "tanh":
        return np.tanh(z)
    return np.where(z > 0, z, (SLOPE if recipe.activation == "leaky_relu" else 0.0) * z)


def slope(recipe: Recipe, value: FloatArray) -> FloatArray:
    """The activation's derivative, from its value."""
    if recipe.activation == "tanh":
        return 1 - value**2
    return np.where(value > 0, 1.0, SLOPE if recipe.activation == "leaky_relu" else 0.0)


def softmax(z: FloatArray) -> FloatArray:
    exponent = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(exponent / exponent.sum(axis=1, keepdims=True))


def loss_slope(recipe: Recipe, outputs: FloatArray, y: NDArray[np.generic]) -> FloatArray:
    """d loss / d outputs of each row; see `games.Network` for the losses."""
    if recipe.loss == "squared":
        return 2 * (outputs - y.astype(np.float64)[:, None])
    own = np.eye(outputs.shape[1])[y]
    p = softmax(outputs)
    if recipe.loss == "cross_entropy":
        return np.asarray(p - own)
    inner = softmax(p) - own
    return np.asarray(p * (inner - (inner * p).sum(axis=1, keepdims=True)))


def gradient_at(recipe: Recipe, rows: Rows, theta: FloatArray, batch: IntArray) -> FloatArray:
    """Gradient of the batch's loss, the mean over its rows of weight times loss (weights count once
    if they also sample).
    """
    values = forward(recipe, theta, rows.X[batch])
    weight = (
        np.ones(len(batch)) if recipe.weighted_sampling else rows.weights[batch].astype(np.float64)
    )
    delta = loss_slope(recipe, values[-1], rows.y[batch]) * weight[:, None] / len(batch)
    parts: list[FloatArray] = []
    layers = unpack(recipe, theta)
    for depth in reversed(range(len(layers))):
        parts = [(delta.T @ values[depth]).ravel(), delta.sum(axis=0), *parts]
        if depth:
            delta = (delta @ layers[depth][0]) * slope(recipe, values[depth])
    return np.concatenate(parts)


def gradient(
    recipe: Recipe, rows: Rows, theta: FloatArray, batch: IntArray, key: np.uint64, step: int
) -> FloatArray:
    """The gradient, or with smoothing the mean of gradients at theta + radius * Gaussian."""
    if not recipe.smoothing_draws:
        return gradient_at(recipe, rows, theta, batch)
    total = np.zeros_like(theta)
    for draw in range(recipe.smoothing_draws):
        noise = gaussian(stream(key, SMOOTHING, step, draw), len(theta))[0]
        total += gradient_at(recipe, rows, theta + recipe.smoothing_radius * noise, batch)
    return total / recipe.smoothing_draws


def gaussian(keys: KeyArray, count: int) -> FloatArray:
    """Standard normal numbers (m, count), one word each, by Box and Muller."""
    words = chance.words(keys, count)
    radius = np.sqrt(-2 * np.log(((words >> np.uint64(32)).astype(np.float64) + 0.5) * 2.0**-32))
    return np.asarray(
        radius * np.cos(2 * np.pi * (words & np.uint64(0xFFFFFFFF)).astype(np.float64) * 2.0**-32)
    )


def update(
    recipe: Recipe,
    theta: FloatArray,
    g: FloatArray,
    first: FloatArray,
    second: FloatArray,
    step: int,
) -> FloatArray:
    """One step of Adam (Kingma & Ba) or of gradient descent with momentum, as torch.optim has them;
    moments change in place.
    """
    if recipe.optimizer == "sgd":
        first *= recipe.momentum
        first += g
        return theta - recipe.learning_rate * first
    b1, b2 = recipe.betas
    first *= b1
    first += (1 - b1) * g
    second *= b2
    second += (1 - b2) * g**2
    scale = recipe.learning_rate / (1 - b1**step)
    moved: FloatArray = theta - scale * first / (
        np.sqrt(second) / np.sqrt(1 - b2**step) + recipe.eps
    )
    return moved


def predict(recipe: Recipe, outputs: FloatArray) -> FloatArray:
    """Probabilities of the classes, or the predicted target."""
    return softmax(outputs) if recipe.classifies else outputs


def own_label(recipe: Recipe, outputs: FloatArray, y: NDArray[np.generic]) -> FloatArray:
    """Probability of each row's own class."""
    return np.asarray(softmax(outputs)[np.arange(len(y)), y])


def score(recipe: Recipe, outputs: FloatArray, y: NDArray[np.generic]) -> float:
    """The score, more is better; NaN if an output is not finite."""
    if not np.isfinite(outputs).all():
        return float("nan")
    if recipe.metric == "accuracy":
        return float(np.mean(outputs.argmax(axis=1) == y))
    if recipe.metric == "probability":
        return float(own_label(recipe, outputs, y).mean())
    if recipe.metric == "log_loss":
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return float(np.maximum(log_p[np.arange(len(y)), y], LOG_FLOOR).mean())
    target = y.astype(np.float64)
    errors = float(np.mean((outputs[:, 0] - target) ** 2))
    return -errors if recipe.metric == "mse" else 1 - errors / float(target.var())
