"""Stacked convolutions in Triton: patches are read where they lie, and never written.

Shapes: inputs (models, rows, H, W, C), or (1, rows, H, W, C) where models share them; outputs
(models, rows, OH, OW, F). A `window` is seven numbers: the kernel's height and width, strides,
paddings, and 1 where ReLU and a 2 x 2 maximum follow. The four numbers of such a maximum share one
patch: behind a 5 x 5 kernel an input is read 36 times for them, not 100 times.

Products are TF32 where torch allows it for its own, else float32; sums, biases and maxima are
float32. Tiles were chosen by measurement on an H200, for LeNet and a small CNN on 32 x 32 images.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from databanzhaf.kernels.convolution import output_size, places

CUT = tl.constexpr(4)  # the place of a maximum that was not positive
# Tile of a forward product by its columns: outputs, terms, warps, stages.
_FORWARD = {
    16: (128, 32, 4, 3),
    32: (256, 16, 8, 3),
    64: (128, 32, 4, 2),
    128: (128, 64, 4, 2),
    256: (128, 32, 8, 3),
    512: (64, 32, 8, 2),
}
# Tile of the weights' slopes by whether a maximum follows, and F: cells, terms, warps. At most two
# warps, which get the older matrix instructions: with the newer ones, for four warps, sums of some
# tiles came out wrong by up to 1.4%, not the same from run to run (Triton 3.6, H200).
_WEIGHTS = {
    (False, 8): (32, 128, 2),
    (False, 16): (32, 128, 2),
    (False, 32): (32, 128, 2),
    (False, 64): (32, 128, 2),
    (False, 128): (16, 64, 2),
    (True, 8): (16, 64, 1),
    (True, 16): (16, 128, 2),
    (True, 32): (16, 64, 2),
}


@triton.jit
def _cells(k, WIDE: tl.constexpr, C: tl.constexpr):
    """k = (dy, dx, c) of a patch that is `WIDE` cells wide."""
    return k // (C * WIDE), k // C % WIDE, k % C


@triton.jit
def _patches(
    x, row, y, left, dy, dx, c, inside,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    at = ((row * H + y) * W + left) * C + ((dy * W + dx) * C + c)
    if PADDED:
        inside = inside & (y + dy >= 0) & (y + dy < H) & (left + dx >= 0) & (left + dx < W)
    return tl.load(x + at, mask=inside, other=0.0)


@triton.jit
def _weights(
    w, ky, kx, c, f, inside, BY_CELL, BY_OUTPUT,
    KH: tl.constexpr, KW: tl.constexpr, C: tl.constexpr, F: tl.constexpr,
):  # fmt: skip
    inside = inside & (ky >= 0) & (ky < KH) & (kx >= 0) & (kx < KW) & (f < F)
    return tl.load(w + ((ky * KW + kx) * C + c) * BY_CELL + f * BY_OUTPUT, mask=inside, other=0.0)


@triton.jit
def _larger(one, place, other, elsewhere):
    """As torch takes a maximum: the first of equal numbers, and NaN above all."""
    first = (one > other) | (one != one) | ((one == other) & (place < elsewhere))
    return tl.where(first, one, other), tl.where(first, place, elsewhere)


@triton.jit
def forward_kernel(
    x, w, out, place, x_model, rows, tiles,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
    OH: tl.constexpr, OW: tl.constexpr, F: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PH: tl.constexpr, PW: tl.constexpr, POOL: tl.constexpr, PRECISION: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """A tile of outputs. With POOL, columns are (corner, f), or (f, corner) where F is large, which
    takes less exchange between threads.
    """
    STEP: tl.constexpr = 1 + POOL
    TALL: tl.constexpr = KH + POOL * SH
    WIDE: tl.constexpr = KW + POOL * SW
    LINE: tl.constexpr = (KH * KW * C + 4) // 4 * 4
    COLUMNS: tl.constexpr = BF * STEP * STEP
    CORNER_FIRST: tl.constexpr = BF <= 32
    FP: tl.constexpr = (F + 3) // 4 * 4
    model = (tl.program_id(0) // tiles).to(tl.int64)
    p = tl.program_id(0) % tiles * BP + tl.arange(0, BP)
    count = rows * OH * OW
    at = tl.minimum(p, count - 1)[:, None]
    row = at // (OH * OW)
    y, left = at // OW % OH * (STEP * SH) - PH, at % OW * (STEP * SW) - PW
    n = tl.arange(0, COLUMNS)[None, :]
    if CORNER_FIRST:
        corner, f = n // BF, n % BF
    else:
        corner, f = n % (STEP * STEP), n // (STEP * STEP)
    x += model * x_model
    w += model * (F * LINE)
    number = tl.zeros((BP, COLUMNS), tl.float32)
    for start in range(0, TALL * WIDE * C, BK):
        dy, dx, c = _cells(start + tl.arange(0, BK), WIDE, C)
        inside = (dy < TALL)[None, :]
        a = _patches(
            x, row, y, left, dy[None, :], dx[None, :], c[None, :], inside, H, W, C, PH + PW > 0
        )
        ky, kx = dy[:, None] - corner // 2 * SH, dx[:, None] - corner % 2 * SW
        b = _weights(w, ky, kx, c[:, None], f, (dy < TALL)[:, None], 1, LINE, KH, KW, C, F)
        number = tl.dot(a, b, number, input_precision=PRECISION)
    number += tl.load(w + KH * KW * C + f * LINE, mask=f < F, other=0.0)
    f = tl.arange(0, BF)[None, :]
    kept = (p < count)[:, None] & (f < F)
    to = (model * count + p)[:, None] * F + f
    if POOL:
        corner = tl.broadcast_to(corner, (BP, COLUMNS))
        if CORNER_FIRST:
            four = tl.reshape(number, (BP, 4, BF)), tl.reshape(corner, (BP, 4, BF))
            number, which = tl.reduce(four, 1, _larger)
        else:
            four = tl.reshape(number, (BP, BF, 4)), tl.reshape(corner, (BP, BF, 4))
            number, which = tl.reduce(four, 2, _larger)
        which = tl.where(number <= 0, CUT, which)
        number = tl.where(number <= 0, 0.0, number)
        to_place = (model * count + p)[:, None] * FP + f
        tl.store(place + to_place, which.to(tl.uint8), mask=(p < count)[:, None] & (f < FP))
    tl.store(out + to, number, mask=kept)


@triton.jit
def weight_kernel(
    x, g, place, out, bias, x_model, rows,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
    OH: tl.constexpr, OW: tl.constexpr, F: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PH: tl.constexpr, PW: tl.constexpr, POOL: tl.constexpr, PRECISION: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """Slopes of a block of terms. With POOL, one sum for each corner, which the caller moves to
    their places in the kernel and adds.
    """
    STEP: tl.constexpr = 1 + POOL
    TALL: tl.constexpr = KH + POOL * SH
    WIDE: tl.constexpr = KW + POOL * SW
    TERMS: tl.constexpr = TALL * WIDE * C
    BLOCKS: tl.constexpr = (TERMS + BK - 1) // BK
    FP: tl.constexpr = (F + 3) // 4 * 4
    block = tl.program_id(0) % BLOCKS
    model = (tl.program_id(0) // BLOCKS).to(tl.int64)
    k = block * BK + tl.arange(0, BK)[:, None]
    dy, dx, c = _cells(k, WIDE, C)
    f = tl.arange(0, BF)[None, :]
    count = rows * OH * OW
    x += model * x_model
    g += model * count * F
    place += model * count * FP
    summed = tl.zeros((BP, BF), tl.float32)
    first = tl.zeros((BK, BF), tl.float32)
    if POOL:
        second = tl.zeros((BK, BF), tl.float32)
        third = tl.zeros((BK, BF), tl.float32)
        fourth = tl.zeros((BK, BF), tl.float32)
    for start in range(0, count, BP):
        p = start + tl.arange(0, BP)
        kept = (p < count)[:, None] & (f < F)
        slope = tl.load(g + p[:, None] * F + f, mask=kept, other=0.0)
        at = tl.minimum(p, count - 1)[None, :]
        row = at // (OH * OW)
        y, left = at // OW % OH * (STEP * SH) - PH, at % OW * (STEP * SW) - PW
        a = _patches(x, row, y, left, dy, dx, c, k < TERMS, H, W, C, PH + PW > 0)
        if POOL:
            kept = (p < count)[:, None] & (f < FP)
            which = tl.load(place + p[:, None] * FP + f, mask=kept, other=CUT)
            b = tl.where(which == 0, slope, 0.0)
            first = tl.dot(a, b, first, input_precision=PRECISION)
            b = tl.where(which == 1, slope, 0.0)
            second = tl.dot(a, b, second, input_precision=PRECISION)
            b = tl.where(which == 2, slope, 0.0)
            third = tl.dot(a, b, third, input_precision=PRECISION)
            b = tl.where(which == 3, slope, 0.0)
            fourth = tl.dot(a, b, fourth, input_precision=PRECISION)
            summed += tl.where(which == CUT, 0.0, slope)
        else:
            first = tl.dot(a, slope, first, input_precision=PRECISION)
            summed += slope
    kept = (k < TERMS) & (f < F)
    to = out + model * (STEP * STEP * TERMS * F) + k * F + f
    tl.store(to, first, mask=kept)
    if POOL:
        tl.store(to + TERMS * F, second, mask=kept)
        tl.store(to + 2 * TERMS * F, third, mask=kept)
        tl.store(to + 3 * TERMS * F, fourth, mask=kept)
    if block == 0:
        line = tl.arange(0, BF)
        tl.store(bias + model * F + line, tl.sum(summed, axis=0), mask=line < F)


@triton.jit
def input_kernel(
    w, g, out, rows, tiles,
    H: tl.constexpr, W: tl.constexpr, C: tl.constexpr,
    OH: tl.constexpr, OW: tl.constexpr, F: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PH: tl.constexpr, PW: tl.constexpr, SIDE: tl.constexpr, PRECISION: tl.constexpr,
    BP: tl.constexpr, BK: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """Slopes of a tile of inputs. Columns are (j, c): SIDE cells side by side share a patch of
    slopes, which fills the columns of a product where C is small.
    """
    ACROSS: tl.constexpr = (W + SIDE - 1) // SIDE
    WIDE: tl.constexpr = KW + SIDE - 1
    model = (tl.program_id(0) // tiles).to(tl.int64)
    p = tl.program_id(0) % tiles * BP + tl.arange(0, BP)
    count = rows * H * ACROSS
    at = tl.minimum(p, count - 1)[:, None]
    row, y = at // (H * ACROSS), at // ACROSS % H
    left = at % ACROSS * SIDE + PW - KW + 1
    n = tl.arange(0, BC)[None, :]
    j, c = n // C, n % C
    g += model * (rows * OH * OW * F)
    w += model * (KH * KW * C * F)
    total = tl.zeros((BP, BC), tl.float32)
    for start in range(0, KH * WIDE * F, BK):
        dy, t, f = _cells(start + tl.arange(0, BK), WIDE, F)
        oy, ox = y + PH - dy[None, :], left + t[None, :]
        inside = (dy < KH)[None, :] & (oy >= 0) & (ox >= 0)
        if SH > 1:
            inside = inside & (oy % SH == 0)
            oy = oy // SH
        if SW > 1:
            inside = inside & (ox % SW == 0)
            ox = ox // SW
        inside = inside & (oy < OH) & (ox < OW)
        a = tl.load(g + ((row * OH + oy) * OW + ox) * F + f[None, :], mask=inside, other=0.0)
        ky, kx = dy[:, None], j + (KW - 1) - t[:, None]
        b = _weights(w, ky, kx, c, f[:, None], j < SIDE, F, 1, KH, KW, C, F)
        total = tl.dot(a, b, total, input_precision=PRECISION)
    x = at % ACROSS * SIDE + j
    to = ((row * H + y) * W + x) * C + c
    kept = (p < count)[:, None] & (j < SIDE) & (x < W)
    tl.store(out + model * (rows * H * W * C) + to, total, mask=kept)


def forward(
    x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]
) -> tuple[Tensor, Tensor]:
    """Outputs, and with `window[6]` the place of each maximum among its four numbers."""
    (shared, rows, H, W, C), (models, F, channels, KH, KW) = x.shape, weight.shape
    pool = bool(window[6])
    OH, OW = output_size(H, W, window)
    cells = KH * KW * C
    # Each output's weights as patches are read, then its bias, up to a multiple of 16 bytes.
    w = x.new_zeros(models, F, (cells + 4) // 4 * 4)
    w[:, :, :cells].view(models, F, KH, KW, C)[..., :channels] = weight.permute(0, 1, 3, 4, 2)
    if bias is not None:
        w[:, :, cells] = bias
    out = x.new_empty((models, rows, OH, OW, F))
    place = x.new_empty((*out.shape[:4], places(F)) if pool else (0,), dtype=torch.uint8)
    BF = max(8 if pool else 16, triton.next_power_of_2(F))
    BP, BK, warps, stages = _FORWARD[4 * BF if pool else BF]
    tiles = triton.cdiv(rows * OH * OW, BP)
    forward_kernel[(models * tiles,)](
        x, w, out, place, 0 if shared == 1 else x.stride(0), rows, tiles,
        H, W, C, OH, OW, F, *window[:6], pool, _precision(), BP, BK, BF,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out, place


def weight_slopes(
    x: Tensor, g: Tensor, place: Tensor, channels: int, window: list[int]
) -> tuple[Tensor, Tensor]:
    """Slopes of weights (models, F, channels, height, width) and biases (models, F)."""
    (shared, rows, H, W, C), (models, _, OH, OW, F) = x.shape, g.shape
    KH, KW, SH, SW, _, _, pool = window
    tall, wide, corners = KH + pool * SH, KW + pool * SW, 1 + 3 * pool
    terms = tall * wide * C
    parts = x.new_empty((models, corners, tall, wide, C, F))
    bias = x.new_empty((models, F))
    BF = max(8, triton.next_power_of_2(F))
    BP, BK, warps = _WEIGHTS[bool(pool), BF]
    weight_kernel[(models * triton.cdiv(terms, BK),)](
        x, g, place, parts, bias, 0 if shared == 1 else x.stride(0), rows,
        H, W, C, OH, OW, F, *window[:6], bool(pool), _precision(), BP, BK, BF,
        num_warps=warps, num_stages=3,
    )  # fmt: skip
    slopes: Any = sum(
        parts[:, corner, a * SH : a * SH + KH, b * SW : b * SW + KW, :channels]
        for corner, (a, b) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))[:corners])
    )
    return slopes.permute(0, 4, 3, 1, 2).contiguous(), bias


def input_slopes(weight: Tensor, g: Tensor, size: list[int], window: list[int]) -> Tensor:
    """Slopes of inputs (models, rows, *size); `g` are those of the products, before a maximum."""
    (models, rows, OH, OW, F), (H, W, C) = g.shape, size
    w = weight.permute(0, 3, 4, 2, 1)
    w = torch.nn.functional.pad(w, (0, 0, 0, C - w.shape[3])).contiguous()
    out = g.new_empty((models, rows, H, W, C))
    side = max(1, min(W, (64 if C > 16 else 32) // C))
    BP, BK, BC = 128, 32, max(16, triton.next_power_of_2(side * C))
    tiles = triton.cdiv(rows * H * triton.cdiv(W, side), BP)
    input_kernel[(models * tiles,)](
        w, g, out, rows, tiles, H, W, C, OH, OW, F, *window[:6], side, _precision(), BP, BK, BC,
        num_warps=4, num_stages=2 if BC > 32 else 3,
    )  # fmt: skip
    return out


def _precision() -> str:
    return "tf32" if torch.backends.cuda.matmul.allow_tf32 else "ieee"
