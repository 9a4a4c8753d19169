"""A game that trains any torch module on each coalition's rows, many at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from databanzhaf.data import Dataset
from databanzhaf.errors import BackendUnavailable, InvalidInput, short
from databanzhaf.fingerprint import captured, describe
from databanzhaf.games.descent_game import DescentGame
from databanzhaf.games.inputs import resolve_device
from databanzhaf.kernels.recipe import Trained
from databanzhaf.protocols import BoolArray, KeyArray


class Module(DescentGame):
    """U(S) is the validation score of a torch module trained on the rows of S.

    Parameters
    ----------
    make_module : function without arguments
        Returns a fresh ``nn.Module`` that maps rows to logits (one column per class) or to
        predicted targets. Modules are stacked (`torch.func.functional_call` and `vmap`): their
        layers must treat rows independently, so batch norm is refused.
    dataset : Dataset
        Rows of any shape, for example images (rows, channels, height, width).
    loss : "cross_entropy", "squared", "double_softmax", or function
        A function takes (outputs, labels) of one batch and returns one loss per row.
    optimizer, epochs, batch_size, batches_per_epoch, learning_rate, momentum, betas, eps
        As for `Network`.
    metric, metric_at, sample_weight, weighting, smoothing
        As for `Network`.
    device : "auto", "cpu" or "cuda"
    tf32, compiles, chunk
        Allow TF32 products on CUDA (on); use torch.compile on CUDA (on); models at a time (from
        free memory, halved when it runs out).
    unfold : bool, optional
        Compute convolutions as products over patches instead of grouped convolutions; by default
        on CUDA, where it is faster. With Triton, which torch brings along on CUDA, patches are not
        written, and a ReLU and a 2 x 2 maximum behind a convolution are part of it.

    Initial weights follow torch's laws for linear layers, convolutions and norms, drawn from the
    model's key; a module with other parameters, or with initial values of its own, is built again
    for each model, with its key as torch's seed. Parameters that need no gradient stay as they are
    made. Dropout is keyed by model, step and layer; a forward pass must draw no other random
    numbers.
    """

    def __init__(
        self,
        make_module: Callable[[], Any],
        dataset: Dataset,
        *,
        loss: str | Callable[[Any, Any], Any] = "cross_entropy",
        optimizer: str = "adam",
        epochs: int = 15,
        batch_size: int | None = 32,
        batches_per_epoch: int | None = None,
        learning_rate: float = 1e-3,
        momentum: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        metric: str | None = None,
        metric_at: str = "last",
        sample_weight: Any = None,
        weighting: str = "loss",
        smoothing: tuple[int, float] | None = None,
        device: str = "auto",
        tf32: bool = True,
        compiles: bool | None = None,
        chunk: int | None = None,
        unfold: bool | None = None,
    ) -> None:
        if not callable(make_module) or (
            hasattr(make_module, "named_parameters") and not isinstance(make_module, type)
        ):
            raise InvalidInput(
                "`make_module` must be a function that returns a module",
                got=short(make_module),
                remedy="Pass lambda: Net().",
            )
        self.make_module, self.dataset, self.loss, self.sample_weight = (
            make_module,
            dataset,
            loss,
            sample_weight,
        )
        self.recipe = self._configure(
            (),
            activation="relu",  # the module has its own
            optimizer=optimizer,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            momentum=momentum,
            betas=betas,
            eps=eps,
            metric=metric,
            metric_at=metric_at,
            weighting=weighting,
            smoothing=smoothing,
            chunk=chunk,
            batches_per_epoch=batches_per_epoch,
        )
        self.device = resolve_device(device)
        self.tf32, self.chunk = tf32, chunk
        self.compiles = self.device != "cpu" if compiles is None else compiles
        self.unfold = self.device != "cpu" if unfold is None else unfold
        self._check_module()

    def _check_module(self) -> None:
        """Refuse now what would fail in the first training."""
        outputs = self._trainer.probe()
        right = ((2, len(self.classes)),) if self.classifies else ((2,), (2, 1))
        if outputs not in right:
            each = (
                f"one logit for each of the {len(self.classes)} classes"
                if self.classifies
                else "one number"
            )
            raise InvalidInput(
                f"the module must give {each} per row",
                got=f"shape {outputs} for two rows",
                remedy="Change its last layer.",
            )
        losses = self._trainer.probe_loss()
        if losses != (2,):
            raise InvalidInput(
                "`loss` must give one number per row",
                got=f"shape {losses} for two rows",
                remedy='Use reduction="none".',
            )

    @cached_property
    def _trainer(self) -> Any:
        try:
            import torch

            from databanzhaf.kernels.convolution import available
            from databanzhaf.kernels.programs import program_of
            from databanzhaf.kernels.stacked import Trainer
        except ImportError as error:
            raise BackendUnavailable.missing("games.Module needs", "torch", "torch") from error
        return Trainer(
            program_of(
                self.make_module,
                unfold=self.unfold,
                triton=available(self.device),
                example=torch.from_numpy(self.rows.X[:2]),
            ),
            self.recipe,
            self.rows,
            device=self.device,
            compiles=self.compiles,
            tf32=self.tf32,
            chunk=self.chunk,
            loss=self.loss if callable(self.loss) else None,
        )

    @property
    def call_size(self) -> int:
        """Coalitions per call: as many as are trained together."""
        return int(self._trainer.chunk_size())

    def _train(
        self, members: BoolArray, keys: KeyArray, predictions: bool, unseen: bool
    ) -> Trained:
        trained: Trained = self._trainer.train(
            members, keys, predictions=predictions, unseen=unseen
        )
        return self._in_units_of_the_target(trained)

    @property
    def captured(self) -> tuple[str, ...]:
        """Names of the variables that `make_module` and the loss capture and that the fingerprint
        cannot see.
        """
        return (*captured(self.make_module), *(captured(self.loss) if callable(self.loss) else ()))

    def fingerprint(self) -> dict[str, str]:
        from dataclasses import asdict

        recipe = {
            f"module.{name}": str(value)
            for name, value in asdict(self.recipe).items()
            if name not in ("metric", "activation", "sizes")
        }
        plain = self.make_module()
        layers = sorted({describe(type(layer)) for layer in plain.modules()})
        return {
            "game": "module",
            "data": self.dataset.fingerprint(),
            "module": describe(self.make_module),
            "module.layers": f"{plain} {layers}",
            **recipe,
            "module.loss": describe(self.loss),
            "sample_weight": "none" if self.sample_weight is None else describe(self.rows.weights),
            "epoch": self._chosen_epoch(),
            **self._judged(),
            "metric": self.metric,
        }

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_trainer"}

    def __repr__(self) -> str:
        return f"Module({self.dataset!r}, metric={self.metric!r}, device={self.device!r})"
