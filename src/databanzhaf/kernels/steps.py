"""One step, one epoch's order and one score of many stacked models: what `stacked` runs, as written
or compiled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from databanzhaf.kernels.recipe import (
    DROPOUT,
    INITIAL,
    LOG_FLOOR,
    ORDER,
    ROW_BITS,
    SMOOTHING,
    Recipe,
    Rows,
)
from databanzhaf.kernels.torch_chance import GOLDEN, fold, gaussian, mix, shift, unit
from databanzhaf.kernels.torch_layers import Program

Stack = dict[str, Tensor]
LossFunction = Callable[[Tensor, Tensor], Tensor]

_LAST = 2**63 - 1
_LOW = (1 << ROW_BITS) - 1


class Steps:
    """The functions of one program on one device."""

    def __init__(
        self,
        program: Program,
        recipe: Recipe,
        rows: Rows,
        *,
        device: str,
        loss: LossFunction | None,
    ) -> None:
        self.program, self.recipe, self.device = program, recipe, torch.device(device)
        self.module = program.module.to(self.device)
        self.X, self.X_val, self.weights = (
            torch.from_numpy(a).to(self.device) for a in (rows.X, rows.X_val, rows.weights)
        )
        kind = torch.int64 if recipe.classifies else torch.float32
        self.y, self.y_val = (
            torch.from_numpy(a).to(self.device, kind) for a in (rows.y, rows.y_val)
        )
        # Hashed here, not in compiled code, where torch 2.11 takes a sum of `arange` and a 64-bit
        # constant for 32 bits.
        n_parameters = sum(p.numel() for p in self.module.parameters())
        numbers = (
            torch.arange(n_parameters)
            if program.numbers is None
            else torch.from_numpy(program.numbers)
        )
        self.parameter_hashes = mix(numbers.to(self.device) + GOLDEN)
        self.row_hashes, self.place_hashes = (
            mix(torch.arange(count, device=self.device) + GOLDEN)
            for count in (len(rows.X), 2 * len(rows.X))
        )
        self.loss = loss
        # Adam's corrections by step: in a table, since a compiled update would compute the powers
        # again for each parameter.
        batch = min(recipe.batch_size or len(rows.X), len(rows.X))
        steps = torch.arange(
            2 + (recipe.epochs + 1) * -(-len(rows.X) // batch),
            dtype=torch.float64,
            device=self.device,
        )
        self.pace = (recipe.learning_rate / (1 - torch.pow(recipe.betas[0], steps))).to(
            torch.float32
        )
        self.root = (1 / torch.sqrt(1 - torch.pow(recipe.betas[1], steps))).to(torch.float32)

    def _initial(self, keys: Tensor) -> Stack:
        template = dict(self.module.named_parameters())
        start = fold(keys, INITIAL)
        stack, offset = {}, 0
        for name, p in template.items():
            half = self.program.half_widths[name]
            if not p.requires_grad:
                offset += p.numel()
                continue
            if half is None:
                stack[name] = p.detach().expand(len(keys), *p.shape).clone()
            else:
                hashes = self.parameter_hashes[offset : offset + p.numel()]
                numbers = (2 * unit(mix(start[:, None] ^ hashes)) - 1) * float(np.float32(half))
                stack[name] = numbers.reshape(len(keys), *p.shape)
            offset += p.numel()
        return stack

    def _made(self, keys: Tensor) -> Stack:
        """Where a layer's law is its own: build each model under its key as torch's seed."""
        assert self.program.make is not None
        stacks: list[Stack] = []
        for key in fold(keys, INITIAL).tolist():
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(key & (2**63 - 1))
                stacks.append(
                    {
                        name: p.detach()
                        for name, p in self.program.make().named_parameters()
                        if p.requires_grad
                    }
                )
        return {
            name: torch.stack([stack[name] for stack in stacks]).to(self.device)
            for name in stacks[0]
        }

    def _order(self, keys: Tensor, present: Tensor, counts: Tensor, epoch: Tensor) -> Tensor:
        """Rows of one epoch in their order, int64 (models, whole batches for all rows), -1 after
        the last.
        """
        key = fold(fold(keys, ORDER), epoch)
        batch = min(self.recipe.batch_size or len(self.X), len(self.X))
        width = -(-len(self.X) // batch) * batch
        place = torch.arange(width, device=keys.device)
        if self.recipe.weighted_sampling:
            edges = torch.cumsum(torch.where(present, self.weights, 0.0).to(torch.float64), dim=1)
            drawn = (
                shift(mix(key[:, None] ^ self.place_hashes[:width]), 11).to(torch.float64)
                * 2.0**-53
                * edges[:, -1:]
            )
            rows = torch.searchsorted(edges, drawn, right=True).clamp(max=len(self.X) - 1)
        else:
            words = shift(mix(key[:, None] ^ self.row_hashes), 1)
            numbers = torch.arange(len(self.X), device=keys.device)
            sort_keys = torch.where(present, words & ~_LOW | numbers, _LAST)
            rows = torch.sort(sort_keys, dim=1)[0] & _LOW
            rows = nn.functional.pad(rows, (0, width - rows.shape[1]))
        return torch.where(place < counts[:, None], rows, -1)

    def _step(
        self,
        parameters: Stack,
        first: Stack,
        second: Stack,
        keys: Tensor,
        rows: Tensor,
        step: Tensor,
        active: Tensor,
    ) -> None:
        """One mini-batch of every model, in place; models that are not active stay as they are."""
        recipe = self.recipe
        valid = rows >= 0
        index = rows.clamp(min=0)
        share = valid / valid.sum(dim=1, keepdim=True).clamp(min=1)
        if not recipe.weighted_sampling:
            share = share * self.weights[index]
        slopes = self._slopes(parameters, keys, self.X[index], self.y[index], share, step)
        b1, b2 = recipe.betas
        pace, root = self.pace[step], self.root[step]
        for name, p in parameters.items():
            shape = (-1, *[1] * (p.dim() - 1))
            on, g = active.view(shape), slopes[name]
            if recipe.optimizer == "sgd":
                moved = recipe.momentum * first[name] + g
                p.copy_(torch.where(on, p - recipe.learning_rate * moved, p))
            else:
                moved = b1 * first[name] + (1 - b1) * g
                square = b2 * second[name] + (1 - b2) * g * g
                change = (
                    pace.view(shape) * moved / (torch.sqrt(square) * root.view(shape) + recipe.eps)
                )
                p.copy_(torch.where(on, p - change, p))
                second[name].copy_(torch.where(on, square, second[name]))
            first[name].copy_(torch.where(on, moved, first[name]))

    def _slopes(
        self, parameters: Stack, keys: Tensor, X: Tensor, y: Tensor, share: Tensor, step: Tensor
    ) -> Stack:
        self.module.train()
        drop = fold(fold(keys, DROPOUT), step)
        slopes = vmap(grad(self._loss), in_dims=(0, 0, 0, 0, 0))
        if not self.recipe.smoothing_draws:
            return dict(slopes(parameters, X, y, share, drop))
        total: Stack = {}
        for draw in range(self.recipe.smoothing_draws):
            key = fold(fold(fold(keys, SMOOTHING), step), draw)
            offset, moved = 0, {}
            for name, p in parameters.items():
                hashes = self.parameter_hashes[offset : offset + p[0].numel()]
                noise = gaussian(mix(key[:, None] ^ hashes)).reshape(p.shape)
                moved[name] = p + (self.recipe.smoothing_radius * noise).to(torch.float32)
                offset += p[0].numel()
            for name, slope in slopes(moved, X, y, share, drop).items():
                total[name] = (
                    total.get(name, torch.zeros_like(slope)) + slope / self.recipe.smoothing_draws
                )
        return total

    def _loss(self, parameters: Stack, X: Tensor, y: Tensor, share: Tensor, drop: Tensor) -> Tensor:
        buffers = {f"{name}.key": drop for name in self.program.dropouts}
        outputs = functional_call(self.module, (parameters, buffers), (X,))
        return (self._losses(outputs, y) * share).sum()

    def _losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        if self.loss is not None:
            return self.loss(outputs, y)
        if self.recipe.loss == "squared":
            return (outputs.reshape(y.shape) - y) ** 2
        if self.recipe.loss == "double_softmax":
            outputs = torch.softmax(outputs, dim=-1)
        return nn.functional.cross_entropy(outputs, y, reduction="none")

    # ------------------------------------------------------------------ scores

    def _score(
        self, parameters: Stack, X: Tensor, y: Tensor, predictions: bool
    ) -> tuple[Tensor, Tensor]:
        """Each model's summed score over rows X, float64, NaN where an output is not finite; and
        its predictions.
        """
        with torch.no_grad():
            outputs = vmap(lambda p: functional_call(self.module, p, (X,)))(parameters)
            if not self.recipe.classifies:
                outputs = outputs.reshape(len(outputs), len(X), 1)
                each = -((outputs[..., 0].to(torch.float64) - y) ** 2)
            elif self.recipe.metric == "accuracy":
                each = (outputs.argmax(dim=-1) == y).to(torch.float64)
            else:
                own = torch.log_softmax(outputs.to(torch.float64), dim=-1)[
                    :, torch.arange(len(y), device=y.device), y
                ]
                each = (
                    own.exp() if self.recipe.metric == "probability" else own.clamp(min=LOG_FLOOR)
                )
            finite = torch.isfinite(outputs).flatten(1).all(dim=1)
            total = torch.where(finite, each.sum(dim=1), torch.nan)
            shown = torch.softmax(outputs, dim=-1) if self.recipe.classifies else outputs
            return total, shown if predictions else outputs.new_empty(0)
