"""Training kernels for the CPU (Numba): one fused loop per model, whose weights and moments stay in
the core's cache.

Float32. Products are blocked four rows by four terms, so that each load of a weight serves four
rows: 75 to 100 GFLOP/s on one core whose BLAS does 98 on large matrices and 40 on ones of this size
(32 x 48 x 100). Tolerance against the reference: see `tests/kernels`. Models run in Python threads,
each in its own workspace, without the interpreter's lock; which thread trains a model does not
change a bit of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from databanzhaf import chance
from databanzhaf.kernels.cpu_layers import (
    SCORING_ROWS,
    backward,
    compiled,
    copy,
    evaluate,
    forward,
    initialise,
    loss_slope,
    order_rows,
    predict_unseen,
    smoothed,
    update,
)
from databanzhaf.kernels.recipe import ACTIVATIONS, Recipe, Rows, Trained, narrowed
from databanzhaf.kernels.threads import in_threads
from databanzhaf.protocols import BoolArray, IntArray, KeyArray

_SCORES: Final = ("probability", "accuracy", "log_loss", "r2", "mse")
_LOSSES: Final = ("cross_entropy", "double_softmax", "squared")


def train(
    recipe: Recipe,
    rows: Rows,
    members: BoolArray,
    keys: KeyArray,
    *,
    predictions: bool = False,
    unseen: bool = False,
    threads: int | None = None,
) -> Trained:
    """Train one model for each row of `members`; the same answer as `reference.train`, to float32,
    for any number of threads.
    """
    members = members & (rows.weights > 0)
    m, n = members.shape
    full = recipe
    recipe, rows, numbers = narrowed(full, rows)
    n_val, n_out = len(rows.X_val), recipe.sizes[-1]
    scores = np.empty(m)
    predicted = np.empty((m if predictions else 0, n_val, n_out), np.float32)
    outside = np.full((m if unseen else 0, n, n_out), np.nan, np.float32)
    row_hashes = chance.mix(np.arange(n, dtype=np.uint64) + chance.GOLDEN)
    plain = np.array(
        [
            recipe.epochs,
            min(recipe.batch_size or n, n),
            ACTIVATIONS.index(recipe.activation),
            _LOSSES.index(recipe.loss),
            recipe.optimizer == "adam",
            recipe.weighted_sampling,
            recipe.smoothing_draws,
            _SCORES.index(recipe.metric),
            recipe.best_epoch,
            min(n, (recipe.batches_per_epoch or n) * min(recipe.batch_size or n, n)),
        ],
        dtype=np.int64,
    )
    rates = np.array(
        [recipe.learning_rate, recipe.momentum, *recipe.betas, recipe.eps, recipe.smoothing_radius]
    )
    y, y_val = (labels.astype(np.float32) for labels in (rows.y, rows.y_val))
    sizes = np.array(recipe.sizes, dtype=np.int64)
    # Parameters lie as the kernel wants them (see `_layer`); each keeps the bound and the hash of
    # its number in the full network.
    numbers = _kernel_order(recipe, numbers)
    bounds, hashes = full.bounds()[numbers], chance.mix(numbers.astype(np.uint64) + chance.GOLDEN)

    def work(worker: int, workers: int) -> None:
        _train_many(
            rows.X, y, rows.X_val, y_val, rows.weights, row_hashes, members, keys, worker, workers,
            sizes, bounds, hashes, plain, rates,
            *_workspace(recipe, n, n_val), scores, predicted, outside,
        )  # fmt: skip

    in_threads(work, m, threads)
    return Trained(scores, predicted if predictions else None, outside if unseen else None)


def _kernel_order(recipe: Recipe, numbers: IntArray) -> IntArray:
    """Parameter numbers in the kernel's order: hidden layers' weights lie (inputs, outputs), the
    last layer's (outputs, inputs).
    """
    numbers = numbers.copy()
    for (inputs, outputs), (weights, biases) in list(
        zip(recipe.layers, recipe.offsets(), strict=True)
    )[:-1]:
        numbers[weights:biases] = numbers[weights:biases].reshape(outputs, inputs).T.ravel()
    return numbers


def _workspace(recipe: Recipe, n: int, n_val: int) -> tuple[Any, ...]:
    """One worker's memory: parameters, gradients and moments; layer values and their slopes; row
    numbers and sort keys.
    """
    batch = max(min(recipe.batch_size or n, n), SCORING_ROWS)
    parameters = np.empty((6, recipe.n_parameters), np.float32)
    width = sum(recipe.sizes)
    return (
        parameters,
        np.empty((2, batch * width), np.float32),
        np.empty((2, n), np.int64),
        np.empty(n, np.uint64),
        np.empty(n, np.float64),
        np.empty((n_val, recipe.sizes[-1]), np.float32),
        np.empty((SCORING_ROWS, recipe.sizes[0]), np.float32),
    )


@compiled
def _train_many(  # type: ignore[no-untyped-def]
    X, y, X_val, y_val, weights, row_hashes, members, keys, worker, workers,
    sizes, bounds, hashes, plain, rates,
    parameters, layers, numbers, sort_keys, edges, kept, gathered, scores, predicted, outside,
):  # fmt: skip
    """Train models worker, worker + workers, ...; everything they need lies in the worker's own
    memory.
    """
    epochs, batch_size, activation, loss = plain[0], plain[1], plain[2], plain[3]
    adam, sampled, draws, score, best_epoch = (
        plain[4] == 1,
        plain[5] == 1,
        plain[6],
        plain[7],
        plain[8] == 1,
    )
    rows_per_epoch = plain[9]
    theta, grad, first, second, moved, summed = (
        parameters[0], parameters[1], parameters[2], parameters[3], parameters[4], parameters[5],
    )  # fmt: skip
    values, deltas, present, order = layers[0], layers[1], numbers[0], numbers[1]
    capacity = len(values) // np.sum(sizes)
    n_out = sizes[-1]
    end = capacity * (np.sum(sizes) - sizes[0])
    inputs = values[end : end + capacity * sizes[0]].reshape(capacity, sizes[0])
    last_delta = deltas[end - capacity * n_out : end].reshape(capacity, n_out)
    keep = len(predicted) > 0
    for model in range(worker, len(keys), workers):
        key, member = keys[model], members[model]
        n_present = 0
        for i in range(len(X)):
            if member[i] and weights[i] > 0:
                present[n_present] = i
                n_present += 1
        initialise(theta, bounds, hashes, key)
        first[:] = 0
        second[:] = 0
        best, step = -np.inf, 0
        for epoch in range(epochs):
            order_rows(
                order,
                sort_keys,
                edges,
                present,
                n_present,
                weights,
                row_hashes,
                key,
                epoch,
                sampled,
            )
            for low in range(0, min(n_present, rows_per_epoch), batch_size):
                rows = min(batch_size, n_present - low)
                batch = order[low : low + rows]
                for i in range(rows):
                    copy(inputs[i], X[batch[i]])
                step += 1
                for draw in range(max(draws, 1)):
                    at = theta
                    if draws:
                        smoothed(theta, moved, hashes, key, step, draw, rates[5])
                        at = moved
                    outputs = forward(at, sizes, inputs, values, rows, activation)
                    loss_slope(outputs, last_delta, y, batch, rows, weights, not sampled, loss)
                    backward(at, grad, sizes, inputs, values, deltas, rows, activation)
                    if draws > 1:
                        if draw == 0:
                            summed[:] = 0
                        for q in range(len(grad)):
                            summed[q] += grad[q] / np.float32(draws)
                update(theta, summed if draws > 1 else grad, first, second, step, adam, rates)
            if best_epoch or epoch == epochs - 1:
                now = evaluate(theta, sizes, X_val, y_val, values, activation, score, keep, kept)
                if not now <= best:
                    best = now
                    if keep and np.isfinite(now):
                        predicted[model] = kept
                    elif keep:
                        predicted[model] = np.float32(np.nan)
        scores[model] = best
        if len(outside):
            predict_unseen(
                theta, sizes, X, member, values, gathered, activation, loss == 2, outside[model]
            )
