"""The pieces of the CPU kernel, compiled by Numba: hashing, products, layers, losses, updates and
scores.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit, uint64

from databanzhaf.kernels.numba_chance import fold, mix
from databanzhaf.kernels.recipe import INITIAL, LOG_FLOOR, ORDER, ROW_BITS, SLOPE, SMOOTHING

# Sums may be reordered and products fused; NaN and infinity keep their meaning, since a diverged
# model must be noticed.
_FAST: Final = {"reassoc", "contract", "arcp", "nsz"}
SCORING_ROWS: Final = 64

_LOW = uint64((1 << ROW_BITS) - 1)


def compiled(function: Any) -> Any:
    return njit(fastmath=_FAST, nogil=True, cache=True, error_model="numpy")(function)


@compiled
def _accumulate(C, A, B, rows, inner):  # type: ignore[no-untyped-def]
    """C[i, :] += sum over k of A[i, k] B[k, :], for i < rows and k < inner, four rows by four terms
    at a time.
    """
    columns = B.shape[1]
    for i in range(0, rows - rows % 4, 4):
        c0, c1, c2, c3 = C[i], C[i + 1], C[i + 2], C[i + 3]
        for k in range(0, inner - inner % 4, 4):
            b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
            a00, a01, a02, a03 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            a10, a11, a12, a13 = A[i + 1, k], A[i + 1, k + 1], A[i + 1, k + 2], A[i + 1, k + 3]
            a20, a21, a22, a23 = A[i + 2, k], A[i + 2, k + 1], A[i + 2, k + 2], A[i + 2, k + 3]
            a30, a31, a32, a33 = A[i + 3, k], A[i + 3, k + 1], A[i + 3, k + 2], A[i + 3, k + 3]
            for j in range(columns):
                x0, x1, x2, x3 = b0[j], b1[j], b2[j], b3[j]
                c0[j] += a00 * x0 + a01 * x1 + a02 * x2 + a03 * x3
                c1[j] += a10 * x0 + a11 * x1 + a12 * x2 + a13 * x3
                c2[j] += a20 * x0 + a21 * x1 + a22 * x2 + a23 * x3
                c3[j] += a30 * x0 + a31 * x1 + a32 * x2 + a33 * x3
        for k in range(inner - inner % 4, inner):
            b0 = B[k]
            a00, a10, a20, a30 = A[i, k], A[i + 1, k], A[i + 2, k], A[i + 3, k]
            for j in range(columns):
                x0 = b0[j]
                c0[j] += a00 * x0
                c1[j] += a10 * x0
                c2[j] += a20 * x0
                c3[j] += a30 * x0
    for i in range(rows - rows % 4, rows):
        c0 = C[i]
        for k in range(0, inner - inner % 4, 4):
            b0, b1, b2, b3 = B[k], B[k + 1], B[k + 2], B[k + 3]
            a00, a01, a02, a03 = A[i, k], A[i, k + 1], A[i, k + 2], A[i, k + 3]
            for j in range(columns):
                c0[j] += a00 * b0[j] + a01 * b1[j] + a02 * b2[j] + a03 * b3[j]
        for k in range(inner - inner % 4, inner):
            b0, a00 = B[k], A[i, k]
            for j in range(columns):
                c0[j] += a00 * b0[j]


@compiled
def _dots(C, A, B, rows, columns, bias):  # type: ignore[no-untyped-def]
    """C[i, j] = bias[j] + sum over k of A[i, k] B[j, k], two rows by two columns at a time: both
    run along their rows.
    """
    inner = B.shape[1]
    for j in range(0, columns - columns % 2, 2):
        b0, b1 = B[j], B[j + 1]
        for i in range(0, rows - rows % 2, 2):
            a0, a1 = A[i], A[i + 1]
            s00 = s01 = s10 = s11 = np.float32(0)
            for k in range(inner):
                x0, x1, y0, y1 = a0[k], a1[k], b0[k], b1[k]
                s00 += x0 * y0
                s01 += x0 * y1
                s10 += x1 * y0
                s11 += x1 * y1
            C[i, j], C[i, j + 1] = s00 + bias[j], s01 + bias[j + 1]
            C[i + 1, j], C[i + 1, j + 1] = s10 + bias[j], s11 + bias[j + 1]
    for j in range(columns):
        first = rows - rows % 2 if j < columns - columns % 2 else 0
        b0 = B[j]
        for i in range(first, rows):
            a0 = A[i]
            s00 = np.float32(0)
            for k in range(inner):
                s00 += a0[k] * b0[k]
            C[i, j] = s00 + bias[j]


@compiled
def copy(target, source):  # type: ignore[no-untyped-def]
    """target[:] = source, for short rows: Numba's own slice assignment costs 30 ns a row,
    this 5.
    """
    for j in range(len(source)):
        target[j] = source[j]


@compiled
def _layer(parameters, at, inputs, outputs, last):  # type: ignore[no-untyped-def]
    """A layer's weights and biases. The last layer lies (outputs, inputs), the others (inputs,
    outputs): long rows either way.
    """
    weights = parameters[at : at + inputs * outputs]
    biases = parameters[at + inputs * outputs : at + inputs * outputs + outputs]
    if last:
        return weights.reshape(outputs, inputs), biases
    return weights.reshape(inputs, outputs), biases


@compiled
def initialise(theta, bounds, hashes, key):  # type: ignore[no-untyped-def]
    """Uniform within each parameter's bound, by the word of its hashed number."""
    key = fold(key, INITIAL)
    for q in range(len(theta)):
        unit = np.float32(mix(key ^ hashes[q]) >> uint64(40)) * np.float32(2.0**-24)
        theta[q] = (np.float32(2) * unit - np.float32(1)) * bounds[q]


@compiled
def order_rows(  # type: ignore[no-untyped-def]
    order, sort_keys, edges, present, n_present, weights, row_hashes, key, epoch, sampled
):
    """The rows of one epoch in their order: shuffled, or drawn with replacement by weight."""
    key = fold(fold(key, ORDER), epoch)
    if sampled:
        total = 0.0
        for i in range(n_present):
            total += np.float64(weights[present[i]])
            edges[i] = total
        for i in range(n_present):
            drawn = np.float64(fold(key, i) >> uint64(11)) * 2.0**-53 * total
            order[i] = present[
                min(np.searchsorted(edges[:n_present], drawn, side="right"), n_present - 1)
            ]
        return
    for i in range(n_present):
        word = mix(key ^ row_hashes[present[i]])
        sort_keys[i] = (word >> uint64(1)) & ~_LOW | uint64(present[i])
    sort_keys[:n_present].sort()
    for i in range(n_present):
        order[i] = np.int64(sort_keys[i] & _LOW)


@compiled
def forward(theta, sizes, inputs, values, rows, activation):  # type: ignore[no-untyped-def]
    """Fill the layers' values from the input rows (rows, columns); return the last layer's."""
    at, place = 0, 0
    current = inputs
    capacity = len(values) // np.sum(sizes)
    for depth in range(len(sizes) - 1):
        n_in, n_out = sizes[depth], sizes[depth + 1]
        last = depth == len(sizes) - 2
        weights, biases = _layer(theta, at, n_in, n_out, last)
        out = values[place : place + capacity * n_out].reshape(capacity, n_out)
        if last:
            _dots(out, current, weights, rows, n_out, biases)
        else:
            for i in range(rows):
                copy(out[i], biases)
            _accumulate(out, current, weights, rows, n_in)
            flat = values[place : place + rows * n_out]
            if activation == 2:
                for j in range(len(flat)):
                    flat[j] = np.tanh(flat[j])
            else:
                leak = np.float32(SLOPE) if activation == 1 else np.float32(0)
                for j in range(len(flat)):
                    flat[j] = max(flat[j], np.float32(0)) + leak * min(flat[j], np.float32(0))
        current = out
        place += capacity * n_out
        at += n_in * n_out + n_out
    return current


@compiled
def _softmax(row, out):  # type: ignore[no-untyped-def]
    top = row[0]
    for c in range(1, len(row)):
        top = max(top, row[c])
    total = np.float32(0)
    for c in range(len(row)):
        out[c] = np.exp(row[c] - top)
        total += out[c]
    for c in range(len(row)):
        out[c] /= total


@compiled
def loss_slope(outputs, delta, y, batch, rows, weights, weighted, loss):  # type: ignore[no-untyped-def]
    """d loss / d outputs, times the row's weight, over the rows of the batch."""
    n_out = outputs.shape[1]
    for i in range(rows):
        scale = np.float32(1) / np.float32(rows)
        if weighted:
            scale *= weights[batch[i]]
        d = delta[i]
        if loss == 2:
            d[0] = scale * np.float32(2) * (outputs[i, 0] - y[batch[i]])
            continue
        own = np.int64(y[batch[i]])
        p = outputs[i]
        _softmax(p, p)
        if loss == 0:
            for c in range(n_out):
                d[c] = scale * p[c]
            d[own] -= scale
        else:
            _softmax(p, d)
            d[own] -= np.float32(1)
            mean = np.float32(0)
            for c in range(n_out):
                mean += d[c] * p[c]
            for c in range(n_out):
                d[c] = scale * p[c] * (d[c] - mean)


@compiled
def backward(theta, grad, sizes, inputs, values, deltas, rows, activation):  # type: ignore[no-untyped-def]
    """Gradient of all parameters, given the last layer's slopes at the end of `deltas`."""
    capacity = len(values) // np.sum(sizes)
    n_layers = len(sizes) - 1
    at = len(theta)
    place = capacity * (np.sum(sizes) - sizes[0])
    grad[:] = 0
    for depth in range(n_layers - 1, -1, -1):
        n_in, n_out = sizes[depth], sizes[depth + 1]
        last = depth == n_layers - 1
        at -= n_in * n_out + n_out
        place -= capacity * n_out
        delta = deltas[place : place + capacity * n_out].reshape(capacity, n_out)
        weights, _ = _layer(theta, at, n_in, n_out, last)
        slope, biases = _layer(grad, at, n_in, n_out, last)
        before = inputs
        if depth:
            before = values[place - capacity * n_in : place].reshape(capacity, n_in)
        for i in range(rows):
            for c in range(n_out):
                biases[c] += delta[i, c]
        if last:
            _accumulate(slope, delta.T, before, n_out, rows)
        else:
            _accumulate(slope, before.T, delta, n_in, rows)
        if depth:
            back = deltas[place - capacity * n_in : place].reshape(capacity, n_in)
            if last:
                back[:rows] = 0
                _accumulate(back, delta, weights, rows, n_out)
            else:
                _dots(back, delta, weights, rows, n_in, np.zeros(n_in, np.float32))
            value, flat = before[:rows].ravel(), back[:rows].ravel()
            if activation == 2:
                for j in range(len(flat)):
                    flat[j] *= np.float32(1) - value[j] * value[j]
            else:
                leak = np.float32(SLOPE) if activation == 1 else np.float32(0)
                for j in range(len(flat)):
                    flat[j] *= np.float32(1) if value[j] > 0 else leak


@compiled
def update(theta, grad, first, second, step, adam, rates):  # type: ignore[no-untyped-def]
    rate, momentum = rates[0], np.float32(rates[1])
    if not adam:
        pace = np.float32(rate)
        for q in range(len(theta)):
            first[q] = momentum * first[q] + grad[q]
            theta[q] -= pace * first[q]
        return
    b1, b2, eps = np.float32(rates[2]), np.float32(rates[3]), np.float32(rates[4])
    c1, c2 = np.float32(1 - rates[2]), np.float32(1 - rates[3])
    pace = np.float32(rate / (1 - rates[2] ** step))
    root = np.float32(1 / np.sqrt(1 - rates[3] ** step))
    for q in range(len(theta)):
        g = grad[q]
        mean = b1 * first[q] + c1 * g
        square = b2 * second[q] + c2 * g * g
        first[q] = mean
        second[q] = square
        theta[q] -= pace * mean / (np.sqrt(square) * root + eps)


@compiled
def smoothed(theta, moved, hashes, key, step, draw, radius):  # type: ignore[no-untyped-def]
    """moved = theta + radius * Gaussian, each parameter's noise by its own word (Box and
    Muller).
    """
    key = fold(fold(fold(key, SMOOTHING), step), draw)
    for q in range(len(theta)):
        word = mix(key ^ hashes[q])
        distance = np.sqrt(-2 * np.log((np.float64(word >> uint64(32)) + 0.5) * 2.0**-32))
        normal = distance * np.cos(2 * np.pi * np.float64(word & uint64(0xFFFFFFFF)) * 2.0**-32)
        moved[q] = theta[q] + np.float32(radius * normal)


@compiled
def evaluate(theta, sizes, X, y, values, activation, score, keep, kept):  # type: ignore[no-untyped-def]
    """Score on the validation rows; NaN if an output is not finite. `kept` receives predictions if
    `keep`.
    """
    total, squares, mean = 0.0, 0.0, 0.0
    n, n_out = len(X), sizes[-1]
    for low in range(0, n, SCORING_ROWS):
        rows = min(SCORING_ROWS, n - low)
        outputs = forward(theta, sizes, X[low : low + rows], values, rows, activation)
        for i in range(rows):
            row = outputs[i]
            for c in range(n_out):
                if not np.isfinite(row[c]):
                    return np.nan
            if score >= 3:
                error = np.float64(row[0]) - np.float64(y[low + i])
                total += error * error
                mean += np.float64(y[low + i]) / n
                if keep:
                    kept[low + i, 0] = row[0]
                continue
            own = np.int64(y[low + i])
            top = 0
            for c in range(1, n_out):
                if row[c] > row[top]:
                    top = c
            if score == 1:
                total += top == own
            else:
                exponents = np.float64(0)
                for c in range(n_out):
                    exponents += np.exp(np.float64(row[c]) - np.float64(row[top]))
                log_p = np.float64(row[own]) - np.float64(row[top]) - np.log(exponents)
                total += np.exp(log_p) if score == 0 else max(log_p, LOG_FLOOR)
            if keep:
                _softmax(row, kept[low + i])
    if score < 3:
        return total / n
    if score == 4:
        return -total / n
    for i in range(n):
        squares += (np.float64(y[i]) - mean) ** 2
    return 1 - total / squares


@compiled
def predict_unseen(  # type: ignore[no-untyped-def]
    theta, sizes, X, member, values, gathered, activation, plain, answers
):  # fmt: skip
    """Write what the model predicts for the training rows that it did not see: probabilities, or
    its outputs if `plain`.
    """
    waiting = np.empty(SCORING_ROWS, np.int64)
    count = 0
    for i in range(len(X) + 1):
        if i < len(X) and not member[i]:
            copy(gathered[count], X[i])
            waiting[count] = i
            count += 1
        if count == SCORING_ROWS or (i == len(X) and count):
            outputs = forward(theta, sizes, gathered, values, count, activation)
            for r in range(count):
                if plain:
                    copy(answers[waiting[r]], outputs[r])
                else:
                    _softmax(outputs[r], answers[waiting[r]])
            count = 0
