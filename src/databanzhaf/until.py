"""When a run has seen enough. Conditions combine with ``|`` and ``&``.

>>> enough = ranking_stable(0.9) & precise(0.01) | deadline(3600)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from databanzhaf.diagnostics import Checkpoint
from databanzhaf.errors import check_between, check_count


@dataclass(frozen=True)
class Progress:
    """How a run stands.

    `checkpoints` are those reached so far: after 100 coalitions and each time their number has
    grown by a quarter, so that they do not depend on batch size, budget or interruption.
    """

    checkpoints: Sequence[Checkpoint]
    seconds: float


@runtime_checkable
class Condition(Protocol):
    """Says whether a run may stop."""

    def __call__(self, progress: Progress) -> bool: ...

    def __or__(self, other: Condition) -> Condition:
        return _Either(self, other)

    def __and__(self, other: Condition) -> Condition:
        return _Both(self, other)


@dataclass(frozen=True, repr=False)
class _Either(Condition):
    first: Condition
    second: Condition

    def __repr__(self) -> str:
        return f"({self.first!r} | {self.second!r})"

    def __call__(self, progress: Progress) -> bool:
        return self.first(progress) or self.second(progress)


@dataclass(frozen=True, repr=False)
class _Both(Condition):
    first: Condition
    second: Condition

    def __repr__(self) -> str:
        return f"({self.first!r} & {self.second!r})"

    def __call__(self, progress: Progress) -> bool:
        return self.first(progress) and self.second(progress)


@dataclass(frozen=True)
class ranking_stable(Condition):
    """At the last `patience` checkpoints another run of that size would have agreed in its ranks at
    `spearman` or more.

    That agreement follows from the values and their standard errors
    (`ranking.expected_agreement`). The paper's relative Spearman index compares a run with its own
    continuation, and pure noise reaches 0.89.
    """

    spearman: float = 0.9
    patience: int = 2

    def __post_init__(self) -> None:
        check_between("spearman", self.spearman, 0, 1, "Try 0.9.")
        check_count("patience", self.patience)

    def __call__(self, progress: Progress) -> bool:
        last = progress.checkpoints[-self.patience :]
        return len(last) == self.patience and all(each.stability >= self.spearman for each in last)


@dataclass(frozen=True)
class precise(Condition):
    """Every player's standard error is at most `std_error`."""

    std_error: float

    def __post_init__(self) -> None:
        check_between("std_error", self.std_error, 0, np.inf, "It is in units of the utility.")

    def __call__(self, progress: Progress) -> bool:
        return bool(progress.checkpoints) and bool(
            np.all(progress.checkpoints[-1].estimate.std_errors <= self.std_error)
        )


@dataclass(frozen=True)
class deadline(Condition):
    """`seconds` have passed since the call began; looked at after each batch."""

    seconds: float

    def __post_init__(self) -> None:
        check_between("seconds", self.seconds, 0, np.inf, "An hour is 3600.")

    def __call__(self, progress: Progress) -> bool:
        return progress.seconds >= self.seconds
