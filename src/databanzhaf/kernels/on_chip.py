"""Small networks on CUDA, each trained in the registers of one program (`network_triton`)."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from databanzhaf.kernels.convolution import available
from databanzhaf.kernels.recipe import INITIAL, ORDER, Recipe, Rows, Trained
from databanzhaf.kernels.steps import Steps
from databanzhaf.kernels.torch_chance import fold
from databanzhaf.kernels.torch_layers import Program
from databanzhaf.protocols import BoolArray, KeyArray

# Numbers in the padded weights of the hidden layer, and rows that are sorted at once: more do not
# fit into registers. With more outputs stacked models are faster: 99,647 a second with ten classes,
# where a kernel with a product for the outputs did 73,308 (H200).
_LARGEST, _MOST_ROWS, _MOST_OUTPUTS = 4096, 2048, 2
# Tiles of 64 would get the newer matrix instructions: see `convolution_triton` for what they made
# of sums. So no product has more lines than these.
_MOST_INPUTS, _TILE = 32, 16


def fits(recipe: Recipe, n_rows: int, device: str) -> bool:
    """Whether the kernel is made for a network and its training; `recipe` is the narrowed one."""
    if len(recipe.layers) != 2 or not _available(device):
        return False
    (inputs, hidden), (_, outputs) = recipe.layers
    return (
        _padded(inputs) * _padded(hidden) <= _LARGEST
        and inputs <= _MOST_INPUTS
        and outputs <= _MOST_OUTPUTS
        and n_rows <= _MOST_ROWS
        and not recipe.smoothing_draws
        and not recipe.weighted_sampling
        # Roots are approximate below 1e-38: a smaller eps would make steps of them.
        and recipe.eps >= 1e-15
    )


def _available(device: str) -> bool:
    """Whether a device has TF32 products, of which the kernel is made, and this machine a C
    compiler, which Triton needs to launch it.
    """
    if not available(device) or torch.version.cuda is None:
        return False
    compilers = (os.environ.get("CC"), "cc", "gcc", "clang")
    found = any(name and shutil.which(name) for name in compilers)
    return found and torch.cuda.get_device_capability()[0] >= 8


class OnChip(Steps):
    """Trains as `stacked.Trainer` does; models need no chunks, since their parameters are nowhere
    but in registers.
    """

    def __init__(
        self,
        program: Program,
        recipe: Recipe,
        rows: Rows,
        *,
        device: str,
        tf32: bool,
        chunk: int | None,
    ) -> None:
        super().__init__(program, recipe, rows, device=device, loss=None)
        self.tf32, self.chunk = tf32, chunk
        if recipe.optimizer == "sgd":
            self.pace = torch.full_like(self.pace, recipe.learning_rate)

    def train(
        self,
        members: BoolArray,
        keys: KeyArray,
        *,
        predictions: bool = False,
        unseen: bool = False,
    ) -> Trained:
        """As `reference.train`, to float32."""
        m, n, outputs = len(members), len(self.X), self.recipe.sizes[-1]
        everyone = torch.from_numpy(members).to(self.device) & (self.weights > 0)
        every_key = torch.from_numpy(keys.view(np.int64)).to(self.device)
        found = Trained(
            np.empty(m),
            np.empty((m, len(self.X_val), outputs), np.float32) if predictions else None,
            np.empty((m, n, outputs), np.float32) if unseen else None,
        )
        size = self._at_a_time(m, predictions, unseen)
        for low in range(0, m, size):
            part = slice(low, low + size)
            scores, predicted, outside = self._launch(
                everyone[part], every_key[part], predictions, unseen
            )
            found.scores[part] = scores.cpu().numpy()
            if found.predictions is not None:
                found.predictions[part] = predicted.cpu().numpy()
            if found.unseen is not None:
                outside.masked_fill_(everyone[part][:, :, None], torch.nan)
                found.unseen[part] = outside.cpu().numpy()
        if self.recipe.metric == "r2":
            spread = self.y_val.to(torch.float64).var(correction=0).item()
            found = replace(found, scores=1 + found.scores / spread)
        return found

    def _at_a_time(self, m: int, predictions: bool, unseen: bool) -> int:
        """Models at a time: as asked, or as many as have their order and answers in half of the
        free memory.
        """
        if self.chunk is not None:
            return self.chunk
        answers = predictions * len(self.X_val) + unseen * len(self.X)
        each = 4 * _padded(len(self.X)) + 4 * answers * self.recipe.sizes[-1]
        return max(1, min(m, torch.cuda.mem_get_info(self.device)[0] // (2 * each)))

    def _launch(
        self, members: Tensor, keys: Tensor, predictions: bool, unseen: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        from databanzhaf.kernels.network_triton import network_kernel

        recipe, (m, n), n_val = self.recipe, members.shape, len(self.X_val)
        (inputs, hidden), (_, outputs) = recipe.layers
        halves = (self.program.half_widths[f"{layer}.weight"] for layer in (0, 2))
        half1, half2 = (float(np.float32(half)) for half in halves)
        scores = members.new_empty(m, dtype=torch.float64)
        predicted = self.X.new_empty((m, n_val, outputs) if predictions else 0)
        outside = self.X.new_empty((m, n, outputs) if unseen else 0)
        order = members.new_empty((m, _padded(n)), dtype=torch.int32)
        adam = recipe.optimizer == "adam"
        b1, b2 = recipe.betas if adam else (recipe.momentum, 0.0)
        launched: Any = network_kernel[(m,)]
        launched(
            self.X, self.y, self.weights, self.X_val, self.y_val, members,
            fold(keys, INITIAL), fold(keys, ORDER), self.parameter_hashes, order,
            scores, predicted, outside, self.pace, self.root,
            n, n_val, recipe.epochs, min(recipe.batch_size or n, n), recipe.batches_per_epoch or n,
            half1, half2, b1, b2, 1 - b1, 1 - b2, recipe.eps,
            inputs, hidden, outputs, _padded(inputs), _padded(hidden), _padded(n), _TILE,
            adam, recipe.loss, recipe.activation, recipe.metric if recipe.classifies else "squared",
            recipe.best_epoch, predictions, unseen, "tf32" if self.tf32 else "tf32x3",
            # Two programs for each multiprocessor, though some registers are spilled, are faster
            # than one.
            num_warps=8, num_stages=1, maxnreg=128,
        )  # fmt: skip
        return scores, predicted, outside


def _padded(size: int) -> int:
    """The next power of two, 16 at least."""
    return max(16, 1 << (size - 1).bit_length())
