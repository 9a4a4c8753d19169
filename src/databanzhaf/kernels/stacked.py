"""Training kernels in torch: the parameters of many models stacked, one program over all of them,
on CPU or CUDA.

`torch.func.vmap(grad)` over a module's `functional_call`; mini-batches are rows gathered by index
with a mask. Models that have no rows left in an epoch are not touched. Randomness is that of the
other kernels, bit for bit (see `chance`).
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
from torch import Tensor
from torch.func import functional_call, vmap

from databanzhaf.errors import InvalidInput
from databanzhaf.kernels.recipe import (
    Recipe,
    Rows,
    Trained,
)
from databanzhaf.kernels.steps import LossFunction, Stack, Steps
from databanzhaf.kernels.torch_layers import Program, written_bytes
from databanzhaf.protocols import BoolArray, KeyArray

# Bytes that layers write in a part of a chunk (forwards) from which on compiling takes less time
# than eager steps: about 50 s on an H200.
_LONG = 10**12
# Bytes that layers write in a step that fills an H200: more models at a time train no faster, and a
# call of many rarely has a whole chunk.
_FULL = 1.6 * 10**9


@dataclass
class _Functions:
    """What a chunk is trained by, as written or compiled."""

    initial: Callable[[Tensor], Stack]
    order: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
    step: Callable[..., None]
    score: Callable[[Stack, Tensor, Tensor, bool], tuple[Tensor, Tensor]]

    def compiled(self, *, initial: bool) -> _Functions:
        """For fixed sizes. Each trainer is a variant of its own, and torch's limit of 8
        is too few.
        """
        import torch._dynamo

        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 256)
        wrap: Any = torch.compile(dynamic=False)
        return _Functions(
            wrap(self.initial) if initial else self.initial,
            wrap(self.order),
            wrap(self.step),
            wrap(self.score),
        )


class Trainer(Steps):
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
        super().__init__(program, recipe, rows, device=device, loss=loss)
        self.tf32, self.chunk = tf32, chunk
        self.eager = _Functions(
            self._initial if program.make is None else self._made,
            self._order,
            self._step,
            self._score,
        )
        # Compiling takes tens of seconds for each size, more than training a part of a chunk: only
        # whole chunks are compiled for.
        self.compiles, self.warm, self.eager_bytes = compiles, False, 0
        self.compiled = (
            self.eager.compiled(initial=program.make is None) if compiles else self.eager
        )

    # ------------------------------------------------------------------ the loop over chunks

    def train(
        self,
        members: BoolArray,
        keys: KeyArray,
        *,
        predictions: bool = False,
        unseen: bool = False,
    ) -> Trained:
        """As `reference.train`, to float32. Models are sorted by size, so that those trained
        together finish together.
        """
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = self.tf32
        try:
            compiling = self.compiles and not self.warm
            with warnings.catch_warnings() if compiling else nullcontext():
                # its advice (switch TF32 on, report a slow softmax) is for authors of compiled code
                if compiling:
                    warnings.filterwarnings("ignore", module=r"torch\._inductor")
                return self._train(members, keys, predictions, unseen)
        finally:
            torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before

    def _train(
        self, members: BoolArray, keys: KeyArray, predictions: bool, unseen: bool
    ) -> Trained:
        members = members & (self.weights > 0).cpu().numpy()
        m, n = members.shape
        all_members = torch.from_numpy(members).to(self.device)
        all_keys = torch.from_numpy(keys.view(np.int64)).to(self.device)
        counts = (all_members & (self.weights > 0)).sum(dim=1)
        order = torch.argsort(counts, stable=True)
        scores = torch.empty(m, dtype=torch.float64, device=self.device)
        kept = np.empty((m, len(self.X_val), self._outputs()), np.float32) if predictions else None
        outside = np.empty((m, n, self._outputs()), np.float32) if unseen else None
        low = 0
        while low < m:
            size = min(self.chunk_size(), m - low)
            which = order[low : low + size]
            try:
                chunk_scores, chunk_predictions, parameters = self._train_chunk(
                    all_members[which], all_keys[which], predictions
                )
                if outside is not None:
                    answers = self._unseen(parameters, all_members[which])
                    outside[which.cpu().numpy()] = answers.cpu().numpy()
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
        return Trained(scores.cpu().numpy(), kept, outside)

    def probe(self) -> tuple[int, ...]:
        """The shape of the module's outputs for two rows."""
        rows = self.X[:1].expand(2, *self.X.shape[1:])
        try:
            with torch.no_grad():
                outputs = self.module.eval()(rows)
            if not isinstance(outputs, Tensor):
                raise TypeError(f"its output is a {type(outputs).__name__}, not a tensor")
            return tuple(outputs.shape)
        except (
            RuntimeError,
            TypeError,
            ValueError,
            LookupError,
            AttributeError,
            AssertionError,
        ) as error:
            raise InvalidInput(
                f"the module fails on rows of shape {tuple(self.X.shape[1:])}: {error}",
                remedy="Check its first and last layer.",
            ) from error

    def probe_loss(self) -> tuple[int, ...]:
        """The shape of the loss of two rows; fails clearly if the module cannot be stacked."""
        keys = torch.zeros(1, dtype=torch.int64, device=self.device)
        index = torch.zeros((1, 2), dtype=torch.int64, device=self.device)
        share = torch.ones((1, 2), device=self.device)
        try:
            shape = tuple(
                self._losses(self.module.eval()(self.X[index[0]]), self.y[index[0]]).shape
            )
            parameters = self.eager.initial(keys)
            if shape == (2,):
                self._slopes(
                    parameters, keys, self.X[index], self.y[index], share, torch.ones_like(keys)
                )
            return shape
        except (RuntimeError, TypeError, ValueError, KeyError, IndexError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidInput(
                f"the module cannot be trained in a stack: {reason}",
                remedy="Layers must treat rows independently, draw no random numbers "
                "but through nn.Dropout, and change nothing in place.",
            ) from error

    def chunk_size(self) -> int:
        """Models at a time: as asked, or as many as should fit in 60% of the free memory."""
        if self.chunk is None:
            if self.device.type == "cuda":
                torch.cuda.empty_cache()  # what earlier trainers left in torch's store is free too
            free = torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else 2**30
            most = (
                min(16384, _FULL / max(self._step_bytes, 1)) if self.device.type == "cuda" else 256
            )
            self.chunk = int(max(min(0.6 * free / self._bytes_per_model(), most), 1))
        return self.chunk

    def _bytes_per_model(self) -> float:
        """Parameters, gradients, moments and copies; what a training step keeps, and what scoring a
        slice writes.
        """
        held = sum(p.numel() for p in self.module.parameters()) * 4 * 8
        return (
            held
            + 3 * self._step_bytes
            + 2 * written_bytes(self.module, next(self._slices(self.X_val, self.y_val))[0])
        )

    def _outputs(self) -> int:
        return self.recipe.sizes[-1]

    # ------------------------------------------------------------------ one chunk

    def _train_chunk(
        self, members: Tensor, keys: Tensor, predictions: bool
    ) -> tuple[Tensor, Tensor | None, Stack]:
        recipe, size = self.recipe, len(keys)
        functions = self.eager
        longest = int((members & (self.weights > 0)).sum(dim=1).max())
        fill = self._fill(size, longest)
        if fill is not None:
            functions = self.compiled
            members, keys = (
                torch.cat([t, t[:1].expand(fill - size, *t.shape[1:])]) for t in (members, keys)
            )
        present = members & (self.weights > 0)
        counts = present.sum(dim=1)
        parameters = functions.initial(keys)
        first = {name: torch.zeros_like(p) for name, p in parameters.items()}
        second = (
            {name: torch.zeros_like(p) for name, p in parameters.items()}
            if recipe.optimizer == "adam"
            else {}
        )
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
                    kept = (
                        predicted
                        if kept is None
                        else torch.where(better[:, None, None], predicted, kept)
                    )
        return (
            best[:size],
            None if kept is None else kept[:size],
            {name: p[:size] for name, p in parameters.items()},
        )

    def _fill(self, size: int, longest: int) -> int | None:
        """The number of models to run compiled code for, with copies of the first model to fill it
        up; None for eager steps.

        Whole chunks are compiled for. A part of a chunk runs as a whole one if that code is there
        and the copies cost less than eager steps: for half a chunk, and for models so small that a
        step over all of them takes less time than starting its operations one by one. A part whose
        eager steps would take longer than compiling is compiled for, at its own size if it is less
        than half; so is a whole chunk once the parts that could have been filled took that long.
        """
        chunk = self.chunk_size()
        if not self.compiles:
            return None
        batch = min(self.recipe.batch_size or len(self.X), len(self.X))
        steps = self.recipe.epochs * min(
            self.recipe.batches_per_epoch or longest, -(-longest // batch)
        )
        written = size * steps * self._step_bytes
        long = written > _LONG
        worth_filling = 2 * size >= chunk or chunk * len(self.parameter_hashes) <= 10**8
        if size == chunk or (worth_filling and (self.warm or long or self.eager_bytes > _LONG)):
            self.warm = True
            return chunk
        if worth_filling:
            self.eager_bytes += written
        return size if long else None

    @cached_property
    def _step_bytes(self) -> int:
        """Bytes that the layers write for one batch of one model."""
        return written_bytes(
            self.module, self.X[: min(self.recipe.batch_size or len(self.X), len(self.X))]
        )

    def _evaluate(
        self, functions: _Functions, parameters: Stack, predictions: bool
    ) -> tuple[Tensor, Tensor | None]:
        self.module.eval()
        sums: Tensor | None = None
        parts = []
        for X, y in self._slices(self.X_val, self.y_val):
            part, predicted = functions.score(parameters, X, y, predictions)
            sums = part if sums is None else sums + part
            parts.append(predicted)
        assert sums is not None
        mean = sums / len(self.y_val)
        if self.recipe.metric == "r2":
            mean = 1 + mean / self.y_val.to(torch.float64).var(correction=0)
        return mean, torch.cat(parts, dim=1) if predictions else None

    def _slices(self, X: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        step = 128 if self.X.dim() > 2 else 1024
        for low in range(0, len(X), step):
            yield X[low : low + step], y[low : low + step]

    def _unseen(self, parameters: Stack, members: Tensor) -> Tensor:
        """Predictions for the training rows, NaN for those that a model saw."""
        self.module.eval()
        parts = []
        with torch.no_grad():
            for X, _ in self._slices(self.X, self.y):
                outputs = vmap(lambda p, X=X: functional_call(self.module, p, (X,)))(parameters)
                if self.recipe.classifies:
                    outputs = torch.softmax(outputs, dim=-1)
                parts.append(outputs.reshape(len(members), len(X), -1))
        return torch.where(members[:, :, None], torch.nan, torch.cat(parts, dim=1))
