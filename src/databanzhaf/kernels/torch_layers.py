"""Layers that replace torch's own where models are stacked, and what else a stack needs to know of
a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from databanzhaf.kernels.torch_chance import GOLDEN, fold, mix, unit
from databanzhaf.protocols import IntArray


class KeyedDropout(nn.Module):
    """Dropout whose mask is a function of the model's key, the step and the layer; inactive when
    scoring.
    """

    key: Tensor
    golden: Tensor

    def __init__(self, p: float, layer: int) -> None:
        super().__init__()
        self.p, self.layer = p, layer
        self.register_buffer("key", torch.zeros((), dtype=torch.int64))
        # A tensor, since compiled code takes a sum of `arange` and a 64-bit constant for 32 bits
        # (torch 2.11).
        self.register_buffer("golden", torch.tensor(GOLDEN))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0
        place = torch.arange(x.numel(), device=x.device).reshape(x.shape)
        keep = unit(mix(fold(self.key, self.layer) ^ mix(place + self.golden))) >= self.p
        return x * keep / (1 - self.p)


def untouched(layer: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a layer is torch's own and does no more: no subclass, no hook, no weight that is
    recomputed for each pass.
    """
    hooks = (
        layer._forward_hooks,
        layer._forward_pre_hooks,
        layer._backward_hooks,
        layer._backward_pre_hooks,
    )
    return type(layer) is kind and not any(hooks)


def passed(layer: nn.Module) -> nn.Module:
    """A layer of the same kind that changes nothing, for one whose work another one has done."""
    kind = type(layer)
    made = type(f"Passed{kind.__name__}", (kind,), {"forward": lambda self, input: input})
    found: nn.Module = nn.Module.__new__(made)
    found.__dict__.update(layer.__dict__)
    return found


class UnfoldedConv2d(nn.Conv2d):
    """A convolution as a matrix product over patches: stacked, it is one batched product, not a
    grouped convolution.

    Patches stand in columns, (channel and cell of the kernel) x (row and place): what lies side by
    side there does so in the input too, which makes copies quick, and products come out by channel,
    as the next layer reads them.
    """

    def __init__(self, plain: nn.Conv2d) -> None:
        nn.Module.__init__(self)
        self.__dict__.update(plain.__dict__)  # with its parameters
        self.window = (*plain.kernel_size, *plain.stride, *map(int, plain.padding))

    def forward(self, input: Tensor) -> Tensor:
        x, (kh, kw, sh, sw, ph, pw) = input, self.window
        height, width = (x.shape[2] + 2 * ph - kh) // sh + 1, (x.shape[3] + 2 * pw - kw) // sw + 1
        patches = nn.functional.unfold(x, (kh, kw), padding=(ph, pw), stride=(sh, sw))
        columns = patches.transpose(0, 1).reshape(patches.shape[1], -1)
        out = self.weight.flatten(1) @ columns
        if self.bias is not None:
            out = out + self.bias[:, None]
        return out.reshape(-1, len(x), height, width).transpose(0, 1)

    def patch_cells(self, out: Tensor) -> int:
        """Numbers in the unfolded patches behind an output."""
        return out.numel() // len(self.weight) * self.weight[0].numel()


def written_bytes(module: nn.Module, rows: Tensor) -> int:
    """Bytes that the layers write for some rows of one model."""
    written = 0

    def count(layer: nn.Module, _: Any, output: Any) -> None:
        nonlocal written
        patches = layer.patch_cells(output) if isinstance(layer, UnfoldedConv2d) else 0
        written += 4 * (output.numel() + patches) if isinstance(output, Tensor) else 0

    hooks = [layer.register_forward_hook(count) for layer in module.modules()]
    with torch.no_grad():
        module.eval()(rows)
    for hook in hooks:
        hook.remove()
    return written


@dataclass(frozen=True)
class Program:
    """A module that can be stacked: its parameters' initial laws, and whether it drops out.

    `half_widths` has one number for each parameter tensor, the half-width of its uniform law; None
    keeps the template's value; `make` is called under a seed for each model where some layer's law
    is not known. `numbers` are the counters of the parameters' words, by default 0, 1, 2, ...
    """

    module: nn.Module
    half_widths: dict[str, float | None]
    make: Callable[[], nn.Module] | None
    dropouts: tuple[str, ...]
    numbers: IntArray | None = None
