"""Convolutions of many models at once as Triton kernels (`convolution_triton`), ready for
`vmap(grad)` and torch.compile.

Patches are read where they lie and never written, and neither is what ReLU and a 2 x 2 maximum
throw away again. The twin in plain torch is `UnfoldedConv2d`.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from databanzhaf.kernels.torch_layers import UnfoldedConv2d

# Wider layers leave too few registers for a tile, and the library's products are good there.
_WIDEST = 128
_LARGEST = 2**31  # numbers of one model, which kernels count in 32 bits


def available(device: str) -> bool:
    """Whether a device runs Triton kernels."""
    return device == "cuda" and find_spec("triton") is not None


def fits(plain: nn.Conv2d) -> bool:
    """Whether the kernels are made for a layer of this size."""
    return max(plain.in_channels, plain.out_channels) <= _WIDEST


class StackedConv2d(UnfoldedConv2d):
    """A convolution by Triton; with `pool`, ReLU and a 2 x 2 maximum follow in the same kernel."""

    def __init__(self, plain: nn.Conv2d, *, pool: bool = False) -> None:
        super().__init__(plain)
        self.pool = pool
        torch.compiler.allow_in_graph(convolve)

    def forward(self, input: Tensor) -> Tensor:
        x, window = input, [*self.window, int(self.pool)]
        if not _runs(x, len(self.weight), window):
            return self.twin(x)
        # Channels last, as the kernels read them; three become four, which are read at once.
        x = x.permute(0, 2, 3, 1)
        x = nn.functional.pad(x, (0, 1)) if x.shape[3] % 4 == 3 else x.contiguous()
        bias = None if self.bias is None else self.bias[None]
        return convolve(x[None], self.weight[None], bias, window)[0].permute(0, 3, 1, 2)

    def twin(self, x: Tensor) -> Tensor:
        """The same in plain torch."""
        out = super().forward(x)
        return nn.functional.max_pool2d(torch.relu(out), 2) if self.pool else out

    def patch_cells(self, out: Tensor) -> int:
        """No patches are written; the places of maxima take a quarter of the outputs' bytes."""
        return out.numel() // 4 if self.pool else 0


def _runs(x: Tensor, outputs: int, window: list[int]) -> bool:
    """Whether kernels run on rows x of one model: float32 on CUDA, or anywhere in Triton's
    interpreter.
    """
    where = x.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"
    height, width = output_size(x.shape[2], x.shape[3], [*window[:6], 0])
    most = max(x.numel(), len(x) * height * width * outputs)
    large_enough = min(height, width) > window[6]
    return where and x.dtype == torch.float32 and large_enough and most < _LARGEST


def convolve(x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]) -> Tensor:
    """Outputs (models, rows, height, width, outputs) of x (models or 1, rows, height, width,
    channels), weights (models, outputs, channels, height, width) and biases (models, outputs).

    `window` is the kernel's size, stride and padding, and 1 if ReLU and a 2 x 2 maximum follow.
    Channels of x beyond those of the weights count for nothing.
    """
    out: Tensor = _Convolve.apply(x, weight, bias, window)[0]
    return out


def output_size(height: int, width: int, window: list[int]) -> tuple[int, int]:
    kh, kw, sh, sw, ph, pw, pool = window
    step = 1 + pool
    return ((height + 2 * ph - kh) // sh + 1) // step, ((width + 2 * pw - kw) // sw + 1) // step


def places(outputs: int) -> int:
    """Bytes for the places of one cell's maxima: four at a time, since fewer are not fetched ahead
    of their use.
    """
    return (outputs + 3) // 4 * 4


class _Convolve(torch.autograd.Function):
    """`place` says which of four numbers each maximum is; 4 if ReLU has cut it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]) -> Any:
        return torch.ops.databanzhaf.convolve(x, weight, bias, window)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, _, ctx.window = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(x, weight, output[1])

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> Any:
        x, weight, place = ctx.saved_tensors
        window, g, ops = ctx.window, g.contiguous(), torch.ops.databanzhaf
        plain = [*window[:-1], 0]
        spread = g
        spreads = bool(window[-1]) and _spreads(x, weight)
        if window[-1] and (ctx.needs_input_grad[0] or spreads):
            spread = _spread(g, place, output_size(x.shape[2], x.shape[3], plain))
        by_x = by_weight = by_bias = None
        if ctx.needs_input_grad[0]:
            by_x = ops.convolve_inputs(weight, spread, list(x.shape[2:]), plain)
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            g, window = (spread, plain) if spreads else (g, window)
            by_weight, by_bias = ops.convolve_weights(x, g, place, weight.shape[2], window)
        needed = ctx.needs_input_grad
        return by_x, by_weight if needed[1] else None, by_bias if needed[2] else None, None


def _spreads(x: Tensor, weight: Tensor) -> bool:
    """Whether slopes of weights come from spread slopes: four products on one patch need too many
    registers, or too many terms, where there are many channels.
    """
    return x.shape[4] > 8 or weight.shape[1] > 32


def _spread(g: Tensor, place: Tensor, size: tuple[int, int]) -> Tensor:
    """Slopes of maxima, each at its place among the four numbers, and 0 at the others."""
    models, rows, height, width, outputs = g.shape
    corner = torch.arange(4, device=g.device).view(2, 1, 2, 1)
    place = place[..., :outputs]
    wide = torch.where(
        place[:, :, :, None, :, None] == corner, g[:, :, :, None, :, None], g.new_zeros(())
    ).reshape(models, rows, 2 * height, 2 * width, outputs)
    return nn.functional.pad(wide, (0, 0, 0, size[1] - 2 * width, 0, size[0] - 2 * height))


def _kernels() -> Any:
    from databanzhaf.kernels import convolution_triton

    return convolution_triton


def _convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]
) -> tuple[Tensor, Tensor]:
    out: tuple[Tensor, Tensor] = _kernels().forward(x.contiguous(), weight, bias, window)
    return out


def _convolve_weights(
    x: Tensor, g: Tensor, place: Tensor, channels: int, window: list[int]
) -> tuple[Tensor, Tensor]:
    out: tuple[Tensor, Tensor] = _kernels().weight_slopes(
        x.contiguous(), g.contiguous(), place.contiguous(), channels, window
    )
    return out


def _convolve_inputs(weight: Tensor, g: Tensor, size: list[int], window: list[int]) -> Tensor:
    out: Tensor = _kernels().input_slopes(weight, g.contiguous(), size, window)
    return out


def _like_convolve(
    x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]
) -> tuple[Tensor, Tensor]:
    size = output_size(x.shape[2], x.shape[3], window)
    out = x.new_empty(len(weight), x.shape[1], *size, weight.shape[1])
    shape = (*out.shape[:4], places(weight.shape[1])) if window[-1] else (0,)
    return out, x.new_empty(shape, dtype=torch.uint8)


def _like_weights(
    x: Tensor, g: Tensor, place: Tensor, channels: int, window: list[int]
) -> tuple[Tensor, Tensor]:
    outputs = g.shape[4]
    return g.new_empty(len(g), outputs, channels, *window[:2]), g.new_empty(len(g), outputs)


def _like_inputs(weight: Tensor, g: Tensor, size: list[int], window: list[int]) -> Tensor:
    return g.new_empty(len(g), g.shape[1], *size)


def _merged(t: Tensor, dim: int | None, models: int) -> Tensor:
    """The batch of vmap and the models of a kernel, which are one, in one dimension."""
    return t.expand(models, *t.shape[1:]) if dim is None else t.movedim(dim, 0).flatten(0, 1)


def _shared(x: Tensor, dim: int | None) -> Tensor:
    """Rows that all models share stay so."""
    return x if dim is None else _merged(x, dim, 0)


def _vmap_convolve(
    info: Any, dims: Any, x: Tensor, weight: Tensor, bias: Tensor | None, window: list[int]
) -> Any:
    models = info.batch_size
    out, place = torch.ops.databanzhaf.convolve(
        _shared(x, dims[0]),
        _merged(weight, dims[1], models),
        None if bias is None else _merged(bias, dims[2], models),
        window,
    )
    out = out.unflatten(0, (models, -1))
    if not window[-1]:
        return (out, place), (0, None)
    return (out, place.unflatten(0, (models, -1))), (0, 0)


def _vmap_weights(
    info: Any, dims: Any, x: Tensor, g: Tensor, place: Tensor, channels: int, window: list[int]
) -> Any:
    models = info.batch_size
    slopes = torch.ops.databanzhaf.convolve_weights(
        _shared(x, dims[0]),
        _merged(g, dims[1], models),
        _merged(place, dims[2], models) if window[-1] else place,
        channels,
        window,
    )
    return tuple(slope.unflatten(0, (models, -1)) for slope in slopes), (0, 0)


def _vmap_inputs(
    info: Any, dims: Any, weight: Tensor, g: Tensor, size: list[int], window: list[int]
) -> Any:
    models = info.batch_size
    out = torch.ops.databanzhaf.convolve_inputs(
        _merged(weight, dims[0], models), _merged(g, dims[1], models), size, window
    )
    return out.unflatten(0, (models, -1)), 0


_OPERATORS = (
    (
        "convolve(Tensor x, Tensor weight, Tensor? bias, int[] window) -> (Tensor, Tensor)",
        _convolve,
        _like_convolve,
        _vmap_convolve,
    ),
    (
        "convolve_weights(Tensor x, Tensor g, Tensor place, int channels, int[] window)"
        " -> (Tensor, Tensor)",
        _convolve_weights,
        _like_weights,
        _vmap_weights,
    ),
    (
        "convolve_inputs(Tensor weight, Tensor g, int[] size, int[] window) -> Tensor",
        _convolve_inputs,
        _like_inputs,
        _vmap_inputs,
    ),
)

# Operators of the low level: `torch.library.custom_op` adds a rule for autograd that torch.func
# refuses (torch 2.13). They are known to the whole process, so a module that is imported again
# finds them.
if not hasattr(torch.ops.databanzhaf, "convolve"):
    _LIBRARY = torch.library.Library("databanzhaf", "FRAGMENT")
    for _signature, _run, _like, _vmap in _OPERATORS:
        _LIBRARY.define(_signature)
        _name = _signature.split("(")[0]
        _LIBRARY.impl(_name, _run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"databanzhaf::{_name}", _like, lib=_LIBRARY)
        torch.library.register_vmap(f"databanzhaf::{_name}", _vmap, lib=_LIBRARY)
