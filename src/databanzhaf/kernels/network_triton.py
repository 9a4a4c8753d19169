"""Networks of one hidden layer, each trained from its first step to its last by one Triton program.

Parameters and moments of a model stay in registers; memory is read for rows and written for scores
and predictions. Sizes are padded to powers of two, and what is padded stays zero. Twin:
`reference.train`, to float32.

Products are TF32 where torch allows it for its own; else three TF32 products make one that is as
good as float32. Tiles and warps were chosen by measurement on an H200 (`docs/architecture.md`).
"""

from __future__ import annotations

import triton
import triton.language as tl

from databanzhaf.kernels.recipe import LOG_FLOOR, ROW_BITS, SLOPE

GOLDEN = tl.constexpr(0x9E3779B97F4A7C15)
FIRST = tl.constexpr(0xBF58476D1CE4E5B9)
SECOND = tl.constexpr(0x94D049BB133111EB)
LAST = tl.constexpr(2**63 - 1)
LOW = tl.constexpr((1 << ROW_BITS) - 1)
STEEP = tl.constexpr(SLOPE)
FLOOR = tl.constexpr(LOG_FLOOR)
# Outputs, one of which may be padded. They are sums over hidden units: a matrix product would pad
# them to 16, which takes registers.
TWO = tl.constexpr(2)


@triton.jit
def _mix(x):
    """`chance.mix` on uint64."""
    x = (x ^ (x >> 30)) * FIRST
    x = (x ^ (x >> 27)) * SECOND
    return x ^ (x >> 31)


@triton.jit
def _initial(key, hashes, at, inside, half):
    """Parameters by the top 24 bits of a word each, uniform within `half`."""
    words = _mix(key ^ tl.load(hashes + at, mask=inside, other=0).to(tl.uint64, bitcast=True))
    unit = (words >> 40).to(tl.float32) * (1.0 / (1 << 24))
    return tl.where(inside, (2 * unit - 1) * half, 0.0)


@triton.jit
def _activated(z, ACTIVATION: tl.constexpr):
    if ACTIVATION == "tanh":
        h = 2 / (1 + tl.exp(-2 * z)) - 1
    elif ACTIVATION == "relu":
        h = tl.where(z < 0, 0.0, z)
    else:
        h = tl.where(z < 0, STEEP * z, z)
    return h


@triton.jit
def _slope(h, ACTIVATION: tl.constexpr):
    """The activation's derivative, from its value."""
    if ACTIVATION == "tanh":
        slope = 1 - h * h
    elif ACTIVATION == "relu":
        slope = tl.where(h > 0, 1.0, 0.0)
    else:
        slope = tl.where(h > 0, 1.0, STEEP)
    return slope


@triton.jit
def _softmax(z):
    e = tl.exp(z - tl.max(z, axis=1)[:, None])
    return e / tl.sum(e, axis=1)[:, None]


@triton.jit
def _line(matrix, k, AXIS: tl.constexpr):
    """Line, or column, k of two."""
    chosen = tl.arange(0, TWO) == k
    chosen = chosen[:, None] if AXIS == 0 else chosen[None, :]
    return tl.sum(tl.where(chosen, matrix, 0.0), axis=AXIS)


@triton.jit
def _both(a, b, c, d):
    return a + c, b + d


@triton.jit
def _answers(
    w1, c1, w2, c2, X, row, inside, ACTIVATION: tl.constexpr, PRECISION: tl.constexpr,
    IN: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """Hidden values and outputs of a tile of rows."""
    column = tl.arange(0, BI)[None, :]
    at = row.to(tl.int64)[:, None] * IN + column
    x = tl.load(X + at, mask=inside[:, None] & (column < IN), other=0.0)
    h = _activated(tl.dot(x, w1, input_precision=PRECISION) + c1[None, :], ACTIVATION)
    each = h * _line(w2, 0, 0)[None, :], h * _line(w2, 1, 0)[None, :]
    first, second = tl.reduce(each, 1, _both)
    z = tl.where(tl.arange(0, TWO)[None, :] == 0, first[:, None], second[:, None])
    return h, z + c2[None, :]


@triton.jit
def _loss_slopes(z, label, LOSS: tl.constexpr, OUT: tl.constexpr):
    """d loss / d outputs of each row, but for outputs that are padded."""
    out = tl.arange(0, TWO)[None, :]
    if LOSS == "squared":
        delta = 2 * (z - label[:, None])
    else:
        own = (label[:, None] == out).to(tl.float32)
        p = _softmax(tl.where(out < OUT, z, float("-inf")))
        delta = p - own
        if LOSS == "double_softmax":
            inner = _softmax(tl.where(out < OUT, p, float("-inf"))) - own
            delta = p * (inner - tl.sum(inner * p, axis=1)[:, None])
    return delta


@triton.jit
def _updated(
    p, first, second, g, pace, root, b1, b2, b1_left, b2_left, eps, ADAM: tl.constexpr
):  # fmt: skip
    """A step of Adam; or of gradient descent by `pace`, with momentum `b1`."""
    if ADAM:
        first = b1 * first + b1_left * g
        second = b2 * second + b2_left * g * g
        p -= pace * first / (tl.sqrt(second) * root + eps)
    else:
        first = b1 * first + g
        p -= pace * first
    return p, first, second


@triton.jit
def _scored(
    w1, c1, w2, c2, X, y, count, METRIC: tl.constexpr,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr,
    IN: tl.constexpr, OUT: tl.constexpr, BI: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The mean score over some rows, NaN where an output is not finite."""
    out = tl.arange(0, TWO)[None, :]
    total = tl.zeros((TILE,), tl.float64)
    strange = tl.zeros((TILE,), tl.int32)
    for low in range(0, count, TILE):
        row = low + tl.arange(0, TILE)
        inside = row < count
        _, z = _answers(w1, c1, w2, c2, X, row, inside, ACTIVATION, PRECISION, IN, BI)
        label = tl.load(y + row, mask=inside, other=0)
        infinite = (out < OUT) & inside[:, None] & ~(tl.abs(z) < float("inf"))
        strange += tl.sum(infinite.to(tl.int32), axis=1)
        if METRIC == "squared":
            error = tl.sum(tl.where(out == 0, z, 0.0), axis=1).to(tl.float64) - label
            each = -error * error
        elif METRIC == "accuracy":
            each = (tl.argmax(tl.where(out < OUT, z, float("-inf")), axis=1) == label).to(
                tl.float64
            )
        else:
            wide = tl.where(out < OUT, z, float("-inf")).to(tl.float64)
            wide -= tl.max(wide, axis=1)[:, None]
            own = tl.sum(tl.where(out == label[:, None], wide, 0.0), axis=1)
            own -= tl.log(tl.sum(tl.exp(wide), axis=1))
            each = tl.exp(own) if METRIC == "probability" else tl.maximum(own, FLOOR)
        total += tl.where(inside, each, 0.0)
    score = tl.sum(total, axis=0) / count
    return tl.where(tl.sum(strange, axis=0) > 0, float("nan"), score)


@triton.jit
def _predict(
    w1, c1, w2, c2, X, count, to, CLASSIFIES: tl.constexpr,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr,
    IN: tl.constexpr, OUT: tl.constexpr, BI: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write what the model says of some rows: probabilities of the classes, or targets."""
    out = tl.arange(0, TWO)[None, :]
    for low in range(0, count, TILE):
        row = low + tl.arange(0, TILE)
        inside = row < count
        _, z = _answers(w1, c1, w2, c2, X, row, inside, ACTIVATION, PRECISION, IN, BI)
        if CLASSIFIES:
            z = _softmax(tl.where(out < OUT, z, float("-inf")))
        tl.store(to + row.to(tl.int64)[:, None] * OUT + out, z, mask=inside[:, None] & (out < OUT))


@triton.jit
def network_kernel(
    X, y, weights, X_val, y_val, members, initial_keys, order_keys, hashes, order,
    scores, predicted, unseen, pace_of, root_of, n, n_val, epochs, batch, limit,
    half1, half2, b1, b2, b1_left, b2_left, eps,
    IN: tl.constexpr, HIDDEN: tl.constexpr, OUT: tl.constexpr,
    BI: tl.constexpr, BH: tl.constexpr, BN: tl.constexpr, TILE: tl.constexpr,
    ADAM: tl.constexpr, LOSS: tl.constexpr, ACTIVATION: tl.constexpr, METRIC: tl.constexpr,
    BEST: tl.constexpr, PREDICTED: tl.constexpr, UNSEEN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One model. Weights are (inputs, hidden) and (outputs, hidden); `order` is a place to put the
    rows of an epoch in order, (models, BN).
    """
    model = tl.program_id(0).to(tl.int64)
    i, j, k = tl.arange(0, BI), tl.arange(0, BH), tl.arange(0, TWO)
    key = tl.load(initial_keys + model).to(tl.uint64, bitcast=True)
    inside = (i < IN)[:, None] & (j < HIDDEN)[None, :]
    w1 = _initial(key, hashes, j[None, :] * IN + i[:, None], inside, half1)
    c1 = _initial(key, hashes, HIDDEN * IN + j, j < HIDDEN, half1)
    inside = (k < OUT)[:, None] & (j < HIDDEN)[None, :]
    w2 = _initial(
        key, hashes, HIDDEN * IN + HIDDEN + k[:, None] * HIDDEN + j[None, :], inside, half2
    )
    c2 = _initial(key, hashes, HIDDEN * IN + HIDDEN + OUT * HIDDEN + k, k < OUT, half2)
    first1, second1 = tl.zeros((BI, BH), tl.float32), tl.zeros((BI, BH), tl.float32)
    first2, second2 = tl.zeros((TWO, BH), tl.float32), tl.zeros((TWO, BH), tl.float32)
    first3, second3 = tl.zeros((BH,), tl.float32), tl.zeros((BH,), tl.float32)
    first4, second4 = tl.zeros((TWO,), tl.float32), tl.zeros((TWO,), tl.float32)

    number = tl.arange(0, BN)
    present = tl.load(members + model * n + number, mask=number < n, other=0) != 0
    count = tl.sum(present.to(tl.int32), axis=0)
    steps = tl.minimum((count + batch - 1) // batch, limit)
    order += model * BN
    predicted += model * n_val * OUT
    row_hashes = _mix(number.to(tl.uint64) + GOLDEN)
    order_key = tl.load(order_keys + model).to(tl.uint64, bitcast=True)
    turn = tl.full((), GOLDEN, tl.uint64)
    best = tl.full((), float("-inf"), tl.float64)
    step = 0
    for epoch in range(epochs):
        words = (_mix(_mix(order_key ^ _mix(turn)) ^ row_hashes) >> 1).to(tl.int64)
        turn += 1
        by_word = tl.sort(tl.where(present, words & ~LOW | number, LAST))
        tl.debug_barrier()  # all threads have read the last epoch's order
        tl.store(order + number, (by_word & LOW).to(tl.int32))
        tl.debug_barrier()
        for part in range(steps):
            step += 1
            start = part * batch
            stop = tl.minimum(start + batch, count)
            share = 1.0 / (stop - start)
            g1, g2 = tl.zeros((BI, BH), tl.float32), tl.zeros((TWO, BH), tl.float32)
            g3, g4 = tl.zeros((BH,), tl.float32), tl.zeros((TWO,), tl.float32)
            for low in range(start, stop, TILE):
                place = low + tl.arange(0, TILE)
                there = place < stop
                row = tl.load(order + place, mask=there, other=0)
                h, z = _answers(w1, c1, w2, c2, X, row, there, ACTIVATION, PRECISION, IN, BI)
                delta = _loss_slopes(z, tl.load(y + row, mask=there, other=0), LOSS, OUT)
                weight = tl.load(weights + row, mask=there, other=0.0) * share
                delta = tl.where((k < OUT)[None, :], delta * weight[:, None], 0.0)
                d0, d1 = _line(delta, 0, 1)[:, None], _line(delta, 1, 1)[:, None]
                dh = d0 * _line(w2, 0, 0)[None, :] + d1 * _line(w2, 1, 0)[None, :]
                s0, s1 = tl.reduce((d0 * h, d1 * h), 0, _both)
                g2 += tl.where((k == 0)[:, None], s0[None, :], s1[None, :])
                dh *= _slope(h, ACTIVATION)
                # Read again, from the cache: x would take registers until here.
                at = X + row.to(tl.int64)[None, :] * IN + i[:, None]
                x = tl.load(at, mask=there[None, :] & (i < IN)[:, None], other=0.0)
                g1 = tl.dot(x, dh, g1, input_precision=PRECISION)
                g3 += tl.sum(dh, axis=0)
                g4 += tl.sum(delta, axis=0)
            pace, root = tl.load(pace_of + step), tl.load(root_of + step)
            w1, first1, second1 = _updated(
                w1, first1, second1, g1, pace, root, b1, b2, b1_left, b2_left, eps, ADAM
            )
            w2, first2, second2 = _updated(
                w2, first2, second2, g2, pace, root, b1, b2, b1_left, b2_left, eps, ADAM
            )
            c1, first3, second3 = _updated(
                c1, first3, second3, g3, pace, root, b1, b2, b1_left, b2_left, eps, ADAM
            )
            c2, first4, second4 = _updated(
                c2, first4, second4, g4, pace, root, b1, b2, b1_left, b2_left, eps, ADAM
            )
        if BEST or epoch == epochs - 1:
            now = _scored(
                w1, c1, w2, c2, X_val, y_val, n_val, METRIC, ACTIVATION, PRECISION, IN, OUT, BI,
                TILE,
            )  # fmt: skip
            if not (now <= best):
                best = now
                if PREDICTED:
                    _predict(
                        w1, c1, w2, c2, X_val, n_val, predicted, METRIC != "squared",
                        ACTIVATION, PRECISION, IN, OUT, BI, TILE,
                    )  # fmt: skip
    tl.store(scores + model, best)
    if UNSEEN:
        _predict(
            w1, c1, w2, c2, X, n, unseen + model * n * OUT, METRIC != "squared",
            ACTIVATION, PRECISION, IN, OUT, BI, TILE,
        )  # fmt: skip
