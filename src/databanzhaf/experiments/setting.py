"""How an experiment is run: scale, device, data, where results go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import databanzhaf as db

# Draws of the data after the first, and columns that are not the paper's, take at most this share
# of the paper's coalitions.
FURTHER = 0.1


@dataclass(frozen=True)
class Setting:
    """The options of `databanzhaf reproduce`.

    `scale` cuts the number of coalitions; 1 is the paper's count; networks on images take at most
    `image_scale` of it. `draws` is how many times the data of the two tables are drawn; `jobs`
    of these draws are valued side by side, in processes of their own (-1: one for each core), and
    so are rounds of rank stability. No number depends on it.
    """

    scale: float = 1.0
    device: str = "auto"
    datasets: tuple[str, ...] | None = None
    out: Path = field(default_factory=lambda: Path("results"))
    draws: int | None = None
    seed: int = 0
    image_scale: float = 0.02
    jobs: int = 1
    progress: bool = False

    def __post_init__(self) -> None:
        for name, scale in (("scale", self.scale), ("image-scale", self.image_scale)):
            if not 0 < scale <= 1:
                raise db.InvalidInput(
                    f"`{name}` must lie above 0 and be at most 1, the paper's count",
                    got=repr(scale),
                    remedy="Try 0.02.",
                )
        if not 0 <= self.seed < 2**32:
            raise db.InvalidInput(
                "`seed` must be a whole number from 0 to 2**32 - 1",
                got=repr(self.seed),
                remedy="Try 0.",
            )
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", self.device):
            raise db.InvalidInput(
                "`device` must be auto, cpu or cuda", got=repr(self.device), remedy="Try auto."
            )
        if self.device.startswith("cuda") and int(self.device[5:] or 0) >= self._gpus():
            raise db.BackendUnavailable(
                "torch finds no CUDA device", got=f"device {self.device!r}", remedy="Try auto."
            )
        if self.draws is not None and self.draws < 1:
            raise db.InvalidInput(
                "`draws` must be 1 or more", got=repr(self.draws), remedy="Try 10."
            )
        if self.jobs < 1 and self.jobs != -1:
            raise db.InvalidInput(
                "`jobs` must be 1 or more, or -1 for one for each core",
                got=repr(self.jobs),
                remedy="Try 1.",
            )

    def count(self, paper: int, least: int = 1) -> int:
        """How many of the paper's samples to take."""
        return max(least, round(self.scale * paper))

    @property
    def n_draws(self) -> int:
        """As asked; else 10, or one where the scale is too small for more."""
        return self.draws or (10 if self.scale >= 0.1 else 1)

    @property
    def workers(self) -> int:
        """How many processes `jobs` means."""
        return db.evaluators.Processes(self.jobs).workers

    @property
    def small(self) -> bool:
        """Whether networks with convolutions are kept small: below the full scale, on a machine
        without a GPU, where they would take days.
        """
        return self.scale < 1 and not self.on_gpu

    @property
    def on_gpu(self) -> bool:
        return self.device != "cpu" and self._gpus() > 0

    def _gpus(self) -> int:
        try:
            import torch
        except (ImportError, OSError):  # an OSError where a library of CUDA is missing
            return 0
        return int(torch.cuda.device_count()) if torch.cuda.is_available() else 0

    def chosen(self, known: tuple[str, ...]) -> tuple[str, ...]:
        """The datasets of an experiment that were asked for, by default all of them."""
        if self.datasets is None:
            return known
        unknown = [name for name in self.datasets if name not in known]
        if unknown:
            raise db.InvalidInput(
                f"this experiment has the datasets {', '.join(known)}",
                got=f"{', '.join(unknown)}",
                remedy="Choose among them.",
            )
        return tuple(name for name in known if name in self.datasets)

    def ledger(self, *parts: object) -> Path:
        """A file for the evaluations of one run; the same parts and seed give the same file, so
        that an interrupted experiment can resume.
        """
        folder = self.out / "ledgers"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / ("-".join(str(part) for part in (*parts, self.seed)) + ".db")
