"""torch modules made ready for stacking: known initial laws, keyed dropout, convolutions as
products.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from databanzhaf.errors import InvalidInput
from databanzhaf.kernels.recipe import Recipe
from databanzhaf.kernels.sequences import pooled_convolutions
from databanzhaf.kernels.torch_layers import (
    KeyedDropout,
    Program,
    UnfoldedConv2d,
    passed,
    untouched,
)
from databanzhaf.protocols import IntArray

_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm, nn.SyncBatchNorm)
_UNIFORM = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_CONSTANT = (nn.GroupNorm, nn.LayerNorm, nn.PReLU, nn.modules.instancenorm._InstanceNorm)
_DROPOUTS = (
    nn.Dropout,
    nn.Dropout1d,
    nn.Dropout2d,
    nn.Dropout3d,
    nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)


def program_of(
    make_module: Callable[[], nn.Module],
    *,
    unfold: bool,
    triton: bool = False,
    example: Tensor | None = None,
) -> Program:
    """Check a user's module and make it ready: see `games.Module`. With `triton`, convolutions run
    as its kernels where they fit. They stay as they are where the module then says something else
    of the `example` rows.
    """
    module = make_module()
    if not isinstance(module, nn.Module):
        raise InvalidInput(
            "`make_module` must return a torch nn.Module",
            got=f"{type(module).__name__}",
            remedy="Return the module itself.",
        )
    for name, layer in module.named_modules():
        if isinstance(layer, _BATCH_NORMS):
            raise InvalidInput(
                f"layer `{name}` is a {type(layer).__name__}, which mixes rows and keeps "
                "statistics that stacked models cannot share",
                remedy="Use nn.GroupNorm instead.",
            )
        if isinstance(layer, nn.RNNBase):
            raise InvalidInput(
                f"layer `{name}` is a {type(layer).__name__}, which torch cannot stack",
                remedy="Use games.Learner with skorch.",
            )
    own_parameters = [
        layer for layer in module.modules() if any(True for _ in layer.parameters(recurse=False))
    ]
    half_widths = _half_widths(module)
    known = all(
        isinstance(layer, (*_UNIFORM, *_CONSTANT)) for layer in own_parameters
    ) and _follows_torchs_law(module, half_widths)
    plain = _copied(module) if unfold else None
    if unfold and triton:
        _use_triton(module)
    dropouts = _key_dropouts(module)
    if unfold:
        _replace(module, _is_plain_convolution, UnfoldedConv2d)
    if plain is not None and example is not None and not _agree(module, plain, example):
        return program_of(make_module, unfold=False)
    return Program(module, half_widths, None if known else make_module, dropouts)


def fully_connected(
    recipe: Recipe, numbers: IntArray | None = None, full: Recipe | None = None
) -> Program:
    """The network of `games.Network` as a module; `numbers` are its parameters' places in the
    `full` network (see `narrowed`).
    """
    activation = {"relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh}[recipe.activation]
    layers: list[nn.Module] = []
    for inputs, outputs in recipe.layers:
        layers += [nn.Linear(inputs, outputs), activation()]
    program = program_of(lambda: nn.Sequential(*layers[:-1]), unfold=False)
    if numbers is None or full is None:
        return program
    bounds = full.bounds()[numbers]
    starts = np.cumsum([0, *(p.numel() for p in program.module.parameters())])
    half_widths: dict[str, float | None] = {
        name: float(bounds[start])
        for (name, _), start in zip(program.module.named_parameters(), starts, strict=False)
    }
    return replace(program, half_widths=half_widths, numbers=numbers)


def _half_widths(module: nn.Module) -> dict[str, float | None]:
    """torch's own laws: uniform within 1 / sqrt(fan-in) for linear layers and convolutions,
    constants for norms.
    """
    half_widths: dict[str, float | None] = {}
    for prefix, layer in module.named_modules():
        fan_in = layer.weight[0].numel() if isinstance(layer, _UNIFORM) else None
        for name, _ in layer.named_parameters(recurse=False):
            half_widths[f"{prefix}.{name}" if prefix else name] = (
                None if fan_in is None else 1 / math.sqrt(fan_in)
            )
    return half_widths


def _key_dropouts(module: nn.Module) -> tuple[str, ...]:
    for name, layer in module.named_modules():
        if isinstance(layer, _DROPOUTS) and not isinstance(layer, nn.Dropout):
            raise InvalidInput(
                f"layer `{name}` is a {type(layer).__name__}; only nn.Dropout can be keyed per "
                "model",
                remedy="Use nn.Dropout instead.",
            )
    numbers = iter(range(10**6))
    _replace(
        module,
        lambda layer: isinstance(layer, nn.Dropout),
        lambda layer: KeyedDropout(layer.p, next(numbers)),
    )
    return tuple(name for name, layer in module.named_modules() if isinstance(layer, KeyedDropout))


def _is_plain_convolution(layer: nn.Module) -> bool:
    return (
        isinstance(layer, nn.Conv2d)
        and untouched(layer, nn.Conv2d)
        and layer.groups == 1
        and layer.dilation == (1, 1)
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
    )


def _copied(module: nn.Module) -> nn.Module | None:
    """A copy; None for a module that cannot be copied."""
    try:
        return copy.deepcopy(module)
    except Exception:  # what a user's module raises
        return None


def _agree(module: nn.Module, plain: nn.Module, example: Tensor) -> bool:
    """Whether two modules say the same of some rows, but for rounding."""
    with torch.no_grad():
        try:
            expected = plain.eval()(example)
        except Exception:  # the probe of the trainer says what fails
            return True
        try:
            found = module.eval()(example)
        except Exception:
            return False
        finally:
            module.train()
    return (
        isinstance(found, Tensor)
        and found.shape == expected.shape
        and torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))
    )


def _use_triton(module: nn.Module) -> None:
    """Convolutions that fit become kernels, with the ReLU and the maximum that follow them."""
    from databanzhaf.kernels.convolution import StackedConv2d, fits

    def applies(layer: nn.Module) -> bool:
        return isinstance(layer, nn.Conv2d) and _is_plain_convolution(layer) and fits(layer)

    followed, followers = pooled_convolutions(module, applies)
    _replace(module, lambda layer: layer in followers, passed)
    _replace(module, applies, lambda layer: StackedConv2d(layer, pool=layer in followed))


def _replace(
    module: nn.Module, applies: Callable[[nn.Module], bool], make: Callable[[Any], nn.Module]
) -> None:
    for name, child in list(
        module._modules.items()
    ):  # named_children would pass over a layer that stands in two places
        if child is not None and applies(child):
            setattr(module, name, make(child))
        elif child is not None:
            _replace(child, applies, make)


def _follows_torchs_law(module: nn.Module, half_widths: dict[str, float | None]) -> bool:
    """Whether the parameters that a user's module starts with look like torch's own
    uniform draws.
    """
    for name, p in module.named_parameters():
        half = half_widths[name]
        if half is None or p.numel() < 2:
            continue
        deviation = float(p.detach().std()) * math.sqrt(3) / half
        slack = 5 / math.sqrt(p.numel()) + 0.02
        if (
            float(p.detach().abs().max()) > half * (1 + 1e-5)
            or deviation == 0
            or (p.numel() >= 64 and abs(deviation - 1) > slack)
        ):
            return False
    return True
