"""Training kernels in torch: the parameters of many models stacked, one program over all of them, on CPU or CUDA.

`torch.func.vmap(grad)` over a module's `functional_call`; mini-batches are rows gathered by index with a mask. Models that have
no rows left in an epoch are not touched. Randomness is that of the other kernels, bit for bit (see `chance`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from databanzhaf.errors import InvalidInput
from databanzhaf.kernels.recipe import DROPOUT, INITIAL, LOG_FLOOR, ORDER, ROW_BITS, SMOOTHING, Recipe, Rows, Trained
from databanzhaf.kernels.torch_chance import GOLDEN, fold, gaussian, mix, shift, unit
from databanzhaf.kernels.torch_layers import Program, written_bytes
from databanzhaf.types import BoolArray, KeyArray

Stack = dict[str, Tensor]
LossFunction = Callable[[Tensor, Tensor], Tensor]

# Bytes that layers write in a part of a chunk (forwards) from which on compiling takes less time than eager steps: about 50 s on an H200.
_LONG = 10**12
_LAST = 2**63 - 1
_LOW = (1 << ROW_BITS) - 1


@dataclass
class _Functions:
    """What a chunk is trained by, as written or compiled."""

    initial: Callable[[Tensor], Stack]
    order: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    step: Callable[..., None]
    score: Callable[[Stack, Tensor, Tensor, bool], tuple[Tensor, Tensor]]

    def compiled(self, *, initial: bool) -> _Functions:
        """For fixed sizes. Each trainer is a variant of its own, and torch's limit of 8 is too few."""
        import torch._dynamo

        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 256)
        wrap: Any = torch.compile(dynamic=False)
        return _Functions(wrap(self.initial) if initial else self.initial, wrap(self.order), wrap(self.step), wrap(self.score))


class Trainer:
    """Trains stacks of one program on one device; compiled functions live as long as it does."""

    def __init__(
        self,
        program: Program,
        recipe: Recipe,
        rows: Rows,
        *,
        device: str,
        compiles: bool,
        tf32: bool,
        chunk: int | None,
        loss: LossFunction | None = None,
    ) -> None:
        self.program, self.recipe, self.device, self.tf32 = program, recipe, torch.device(device), tf32
        self.module = program.module.to(self.device)
        self.X, self.X_val, self.weights = (torch.from_numpy(a).to(self.device) for a in (rows.X, rows.X_val, rows.weights))
        kind = torch.int64 if recipe.classifies else torch.float32
        self.y, self.y_val = (torch.from_numpy(a).to(self.device, kind) for a in (rows.y, rows.y_val))
        # Hashed here, not in compiled code, where torch 2.11 takes a sum of `arange` and a 64-bit constant for 32 bits.
        n_parameters = sum(p.numel() for p in self.module.parameters())
        numbers = torch.arange(n_parameters) if program.numbers is None else torch.from_numpy(program.numbers)
        self.parameter_hashes = mix(numbers.to(self.device) + GOLDEN)
        self.row_hashes, self.place_hashes = (
            mix(torch.arange(count, device=self.device) + GOLDEN) for count in (len(rows.X), 2 * len(rows.X))
        )
        self.loss = loss
        self.chunk = chunk
        # Adam's corrections by step: in a table, since a compiled update would compute the powers anew for each parameter.
        batch = min(recipe.batch_size or len(rows.X), len(rows.X))
        steps = torch.arange(2 + (recipe.epochs + 1) * -(-len(rows.X) // batch), dtype=torch.float64, device=self.device)
        self.pace = (recipe.learning_rate / (1 - torch.pow(recipe.betas[0], steps))).to(torch.float32)
        self.root = (1 / torch.sqrt(1 - torch.pow(recipe.betas[1], steps))).to(torch.float32)
        self.eager = _Functions(self._initial if program.make is None else self._made, self._order, self._step, self._score)
        # Compiling takes tens of seconds for each size, more than training a part of a chunk: only whole chunks are compiled for.
        self.compiles, self.warm = compiles, False
        self.compiled = self.eager.compiled(initial=program.make is None) if compiles else self.eager

    # ------------------------------------------------------------------ the loop over chunks

    def train(self, members: BoolArray, keys: KeyArray, *, predictions: bool = False, confidence: bool = False) -> Trained:
        """As `reference.train`, to float32. Models are sorted by size, so that those trained together finish together."""
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.tf32
        try:
            compiling = self.compiles and not self.warm
            with warnings.catch_warnings() if compiling else nullcontext():
                if compiling:  # its advice (switch TF32 on, report a slow softmax) is for authors of compiled code
                    warnings.filterwarnings("ignore", module=r"torch\._inductor")
                return self._train(members, keys, predictions, confidence)
        finally:
            torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before

    def _train(self, members: BoolArray, keys: KeyArray, predictions: bool, confidence: bool) -> Trained:
        members = members & (self.weights > 0).cpu().numpy()
        m, n = members.shape
        all_members = torch.from_numpy(members).to(self.device)
        all_keys = torch.from_numpy(keys.view(np.int64)).to(self.device)
        counts = (all_members & (self.weights > 0)).sum(dim=1)
        order = torch.argsort(counts, stable=True)
        scores = torch.empty(m, dtype=torch.float64, device=self.device)
        kept = np.empty((m, len(self.X_val), self._outputs()), np.float32) if predictions else None
        total = torch.zeros(n, dtype=torch.float64, device=self.device)
        low = 0
        while low < m:
            size = min(self.chunk_size(), m - low)
            which = order[low : low + size]
            try:
                chunk_scores, chunk_predictions, parameters = self._train_chunk(all_members[which], all_keys[which], predictions)
                if confidence:
                    total += self._confidence(parameters, all_members[which])
            except torch.cuda.OutOfMemoryError:
                if size == 1:
                    raise
                self.chunk = max(1, size // 2)
                torch.cuda.empty_cache()
                continue
            scores[which] = chunk_scores
            if kept is not None and chunk_predictions is not None:
                kept[which.cpu().numpy()] = chunk_predictions.cpu().numpy()
            low += size
        return Trained(
            scores.cpu().numpy(),
            kept,
            total.cpu().numpy() if confidence else None,
            (~members).sum(axis=0) if confidence else None,
        )

    def probe(self) -> tuple[int, ...]:
        """The shape of the module's outputs for two rows."""
        rows = self.X[:1].expand(2, *self.X.shape[1:])
        try:
            with torch.no_grad():
                outputs = self.module.eval()(rows)
            if not isinstance(outputs, Tensor):
                raise TypeError(f"its output is a {type(outputs).__name__}, not a tensor")
            return tuple(outputs.shape)
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError) as error:
            raise InvalidInput(
                f"the module fails on rows of shape {tuple(self.X.shape[1:])}: {error}. Check its first and last layer."
            ) from error

    def probe_loss(self) -> tuple[int, ...]:
        """The shape of the loss of two rows; fails clearly if the module cannot be stacked."""
        keys = torch.zeros(1, dtype=torch.int64, device=self.device)
        index = torch.zeros((1, 2), dtype=torch.int64, device=self.device)
        share = torch.ones((1, 2), device=self.device)
        try:
            shape = tuple(self._losses(self.module.eval()(self.X[index[0]]), self.y[index[0]]).shape)
            parameters = self.eager.initial(keys)
            if shape == (2,):
                self._slopes(parameters, keys, self.X[index], self.y[index], share, torch.ones_like(keys))
            return shape
        except (RuntimeError, TypeError, ValueError, KeyError, IndexError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput(
                f"the module cannot be trained in a stack: {reason}. Layers must treat rows independently, draw no random numbers "
                "but through nn.Dropout, and change nothing in place."
            ) from error

    def chunk_size(self) -> int:
        """Models at a time: as asked, or as many as should fit in 60% of the free memory."""
        if self.chunk is None:
            if self.device.type == "cuda":
                torch.cuda.empty_cache()  # what earlier trainers left in torch's store is free too
            free = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else 2**30
            self.chunk = int(min(max(0.6 * free / self._bytes_per_model(), 1), 16384 if self.device.type == "cuda" else 256))
        return self.chunk

    def _bytes_per_model(self) -> float:
        """Parameters, gradients, moments and copies; what a training step keeps, and what scoring a slice writes."""
        held = sum(p.numel() for p in self.module.parameters()) * 4 * 8
        return held + 3 * self._step_bytes + 2 * written_bytes(self.module, next(self._slices(self.X_val, self.y_val))[0])

    def _outputs(self) -> int:
        return self.recipe.sizes[-1]

    # ------------------------------------------------------------------ one chunk

    def _train_chunk(self, members: Tensor, keys: Tensor, predictions: bool) -> tuple[Tensor, Tensor | None, Stack]:
        recipe, size = self.recipe, len(keys)
        functions = self.eager
        longest = int((members & (self.weights > 0)).sum(dim=1).max())
        fill = self._fill(size, longest)
        if fill is not None:
            functions = self.compiled
            members, keys = (torch.cat([t, t[:1].expand(fill - size, *t.shape[1:])]) for t in (members, keys))
        present = members & (self.weights > 0)
        counts = present.sum(dim=1)
        parameters = functions.initial(keys)
        first = {name: torch.zeros_like(p) for name, p in parameters.items()}
        second = {name: torch.zeros_like(p) for name, p in parameters.items()} if recipe.optimizer == "adam" else {}
        batch = min(recipe.batch_size or len(self.X), len(self.X))
        limit = recipe.batches_per_epoch or -(-len(self.X) // batch)
        steps = ((counts + batch - 1) // batch).clamp(max=limit)
        best = torch.full((len(keys),), -torch.inf, dtype=torch.float64, device=self.device)
        kept: Tensor | None = None
        for epoch in range(recipe.epochs):
            order = functions.order(keys, present, counts, torch.tensor(epoch, device=self.device))
            for number in range(min(limit, -(-longest // batch))):
                rows = order[:, number * batch : (number + 1) * batch]
                step = epoch * steps + number + 1
                functions.step(parameters, first, second, keys, rows, step, number < steps)
            if recipe.best_epoch or epoch == recipe.epochs - 1:
                now, predicted = self._evaluate(functions, parameters, predictions)
                better = ~(now <= best)
                best = torch.where(better, now, best)
                if predicted is not None:
                    kept = predicted if kept is None else torch.where(better[:, None, None], predicted, kept)
        return best[:size], None if kept is None else kept[:size], {name: p[:size] for name, p in parameters.items()}

    def _fill(self, size: int, longest: int) -> int | None:
        """The number of models to run compiled code for, with copies of the first model to fill it up; None for eager steps.

        Whole chunks are compiled for. A part of a chunk runs as a whole one if that code is there and the copies cost less than eager
        steps: for half a chunk, and for models so small that a step over all of them takes less time than starting its operations one
        by one. A part whose eager steps would take longer than compiling is compiled for, at its own size if it is less than half.
        """
        chunk = self.chunk_size()
        if not self.compiles:
            return None
        batch = min(self.recipe.batch_size or len(self.X), len(self.X))
        steps = self.recipe.epochs * min(self.recipe.batches_per_epoch or longest, -(-longest // batch))
        long = size * steps * self._step_bytes > _LONG
        worth_filling = 2 * size >= chunk or chunk * len(self.parameter_hashes) <= 10**8
        if size == chunk or (worth_filling and (self.warm or long)):
            self.warm = True
            return chunk
        return size if long else None

    @cached_property
    def _step_bytes(self) -> int:
        """Bytes that the layers write for one batch of one model."""
        return written_bytes(self.module, self.X[: min(self.recipe.batch_size or len(self.X), len(self.X))])

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
                stacks.append({name: p.detach() for name, p in self.program.make().named_parameters() if p.requires_grad})
        return {name: torch.stack([stack[name] for stack in stacks]).to(self.device) for name in stacks[0]}

    def _order(self, keys: Tensor, present: Tensor, counts: Tensor, epoch: Tensor) -> Tensor:
        """Rows of one epoch in their order, int64 (models, whole batches for all rows), -1 after the last."""
        key = fold(fold(keys, ORDER), epoch)
        batch = min(self.recipe.batch_size or len(self.X), len(self.X))
        width = -(-len(self.X) // batch) * batch
        place = torch.arange(width, device=keys.device)
        if self.recipe.weighted_sampling:
            edges = torch.cumsum(torch.where(present, self.weights, 0.0).to(torch.float64), dim=1)
            drawn = shift(mix(key[:, None] ^ self.place_hashes[:width]), 11).to(torch.float64) * 2.0**-53 * edges[:, -1:]
            rows = torch.searchsorted(edges, drawn, right=True).clamp(max=len(self.X) - 1)
        else:
            words = shift(mix(key[:, None] ^ self.row_hashes), 1)
            numbers = torch.arange(len(self.X), device=keys.device)
            sort_keys = torch.where(present, words & ~_LOW | numbers, _LAST)
            rows = torch.sort(sort_keys, dim=1)[0] & _LOW
            rows = nn.functional.pad(rows, (0, width - rows.shape[1]))
        return torch.where(place < counts[:, None], rows, -1)

    def _step(self, parameters: Stack, first: Stack, second: Stack, keys: Tensor, rows: Tensor, step: Tensor, active: Tensor) -> None:
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
                change = pace.view(shape) * moved / (torch.sqrt(square) * root.view(shape) + recipe.eps)
                p.copy_(torch.where(on, p - change, p))
                second[name].copy_(torch.where(on, square, second[name]))
            first[name].copy_(torch.where(on, moved, first[name]))

    def _slopes(self, parameters: Stack, keys: Tensor, X: Tensor, y: Tensor, share: Tensor, step: Tensor) -> Stack:
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
                total[name] = total.get(name, torch.zeros_like(slope)) + slope / self.recipe.smoothing_draws
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

    def _evaluate(self, functions: _Functions, parameters: Stack, predictions: bool) -> tuple[Tensor, Tensor | None]:
        self.module.eval()
        sums: Tensor | None = None
        parts = []
        for X, y in self._slices(self.X_val, self.y_val):
            part, predicted = functions.score(parameters, X, y, predictions)
            sums = part if sums is None else sums + part
            parts.append(predicted)
        assert sums is not None
        mean = sums / len(self.y_val)
        if self.recipe.score == "r2":
            mean = 1 + mean / self.y_val.to(torch.float64).var(correction=0)
        return mean, torch.cat(parts, dim=1) if predictions else None

    def _slices(self, X: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        step = 128 if self.X.dim() > 2 else 1024
        for low in range(0, len(X), step):
            yield X[low : low + step], y[low : low + step]

    def _score(self, parameters: Stack, X: Tensor, y: Tensor, predictions: bool) -> tuple[Tensor, Tensor]:
        """Each model's summed score over rows X, float64, NaN where an output is not finite; and its predictions."""
        with torch.no_grad():
            outputs = vmap(lambda p: functional_call(self.module, p, (X,)))(parameters)
            if not self.recipe.classifies:
                outputs = outputs.reshape(len(outputs), len(X), 1)
                each = -((outputs[..., 0].to(torch.float64) - y) ** 2)
            elif self.recipe.score == "accuracy":
                each = (outputs.argmax(dim=-1) == y).to(torch.float64)
            else:
                own = torch.log_softmax(outputs.to(torch.float64), dim=-1)[:, torch.arange(len(y), device=y.device), y]
                each = own.exp() if self.recipe.score == "probability" else own.clamp(min=LOG_FLOOR)
            finite = torch.isfinite(outputs).flatten(1).all(dim=1)
            total = torch.where(finite, each.sum(dim=1), torch.nan)
            shown = torch.softmax(outputs, dim=-1) if self.recipe.classifies else outputs
            return total, shown if predictions else outputs.new_empty(0)

    def _confidence(self, parameters: Stack, members: Tensor) -> Tensor:
        self.module.eval()
        parts = []
        with torch.no_grad():
            for X, y in self._slices(self.X, self.y):
                outputs = vmap(lambda p, X=X: functional_call(self.module, p, (X,)))(parameters)
                parts.append(torch.softmax(outputs, dim=-1)[:, torch.arange(len(y), device=y.device), y])
        own = torch.cat(parts, dim=1).to(torch.float64)
        return torch.where(members, 0.0, own).sum(dim=0)
