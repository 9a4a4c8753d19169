"""Array aliases, the frozen values that rooms exchange, and the protocols they meet by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from databanzhaf.errors import InvalidInput, short

if TYPE_CHECKING:
    import pandas as pd

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Float32Array: TypeAlias = NDArray[np.float32]
Int32Array: TypeAlias = NDArray[np.int32]
KeyArray: TypeAlias = NDArray[np.uint64]
Labels: TypeAlias = Sequence[Any]

# Cells of a block of coalitions: 4 million bools are 32 MiB once they are float64.
BLOCK_CELLS = 1 << 22


@runtime_checkable
class Game(Protocol):
    """Turns coalitions into utility.

    `call_size` is the number of coalitions one call carries, None for as many as there are. Calls are cut at multiples of
    it, so that a game whose rounding depends on the batch gives the same bits for every worker count and after a kill. (Where
    a budget or a checkpoint ends between two multiples, the call there is shorter.)
    `players` are the user's own names of the players, None for 0..n-1.
    """

    @property
    def n_players(self) -> int: ...
    @property
    def stochastic(self) -> bool: ...
    @property
    def call_size(self) -> int | None: ...
    @property
    def players(self) -> Labels | None: ...

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        """U(S) for each row of `coalitions`; row j may use no randomness but that of `keys[j]`."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """What decides the utilities: data, model, hyper-parameters, and under "metric" the metric."""
        ...


@runtime_checkable
class TwoStepGame(Game, Protocol):
    """A game whose utility is a metric of an outcome that can be kept."""

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        """The outcome of each coalition, packed."""
        ...

    def score(self, outcome: bytes) -> float:
        """The utility of one packed outcome."""
        ...


@dataclass(frozen=True)
class Failure:
    """Which position of a batch failed first, and why."""

    position: int
    reason: str
    cause: BaseException | None = None


@dataclass(frozen=True, eq=False)
class Batch:
    """Utilities (m,), NaN where nothing was evaluated; seconds (m,); packed outcomes if they are kept."""

    utilities: FloatArray
    seconds: FloatArray
    outcomes: list[bytes | None] | None = None
    failure: Failure | None = None


# (coalitions, keys, the positions at which calls of the game begin) → Batch
EvaluateBatch: TypeAlias = Callable[[BoolArray, KeyArray, IntArray], Batch]


@runtime_checkable
class Evaluator(Protocol):
    """Where games run. `session` opens what it needs once and yields a function from a batch to its utilities."""

    @property
    def workers(self) -> int: ...

    def session(self, game: Game, keep_outcomes: bool = False) -> AbstractContextManager[EvaluateBatch]: ...


@runtime_checkable
class Design(Protocol):
    """A rule: index → coalition. A frozen dataclass whose fields are all it needs.

    `size` is the number of indices there are, None without end; `unit` is how many belong together.
    """

    @property
    def n_players(self) -> int: ...
    @property
    def size(self) -> int | None: ...
    @property
    def unit(self) -> int: ...

    def coalitions(self, indices: IntArray) -> BoolArray:
        """One coalition for each index, bool (m, n)."""
        ...


@dataclass(frozen=True, eq=False)
class Evaluations:
    """Utilities of a design's coalitions. Coalitions are not stored: the design makes them again.

    Attributes
    ----------
    design : Design
        Which coalition an index stands for.
    indices : int64 array (m,)
        Increasing.
    utilities : float64 array (m, k)
        One column per repeat.
    stochastic : bool
        Whether the game's utilities carry training noise.
    players : sequence or None
        The user's own names of the players.
    """

    design: Design
    indices: IntArray
    utilities: FloatArray
    stochastic: bool = True
    players: Labels | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", np.asarray(self.indices, dtype=np.int64))
        object.__setattr__(self, "utilities", np.asarray(self.utilities, dtype=np.float64))
        if self.utilities.ndim != 2 or self.indices.shape != self.utilities.shape[:1]:
            raise InvalidInput(
                "`indices` must have shape (m,) and `utilities` (m, repeats); "
                f"got {self.indices.shape} and {self.utilities.shape}. Reshape one repeat with utilities[:, None]."
            )
        if not np.isfinite(self.utilities).all():
            raise InvalidInput("`utilities` must be finite; got NaN or infinity. Leave those evaluations out.")
        if (np.diff(self.indices) <= 0).any():
            raise InvalidInput("`indices` must increase; got repeated or unsorted ones. Sort them with np.unique.")
        end = self.design.size
        if len(self.indices) and (self.indices[0] < 0 or (end is not None and self.indices[-1] >= end)):
            raise InvalidInput(
                f"`indices` must lie from 0 to {end or 'any number'}; got {self.indices[0]}..{self.indices[-1]}. Check the design."
            )

    @property
    def n_players(self) -> int:
        return self.design.n_players

    @property
    def n_repeats(self) -> int:
        return int(self.utilities.shape[1])

    @property
    def n_evaluations(self) -> int:
        """Trainings: coalitions times repeats."""
        return self.utilities.size

    @property
    def utility(self) -> FloatArray:
        """U(S) averaged over the repeats, float64 (m,)."""
        mean: FloatArray = self.utilities.mean(axis=1)
        return mean

    def scale(self) -> float:
        """How far the utilities lie apart."""
        return float(np.ptp(self.utility)) if len(self.indices) else 0.0

    def noise_variance(self) -> FloatArray:
        """Variance of each averaged utility due to training noise, (m,): zeros for a game without noise, NaN if unknown."""
        if not self.stochastic:
            return np.zeros(len(self.indices))
        if self.n_repeats < 2:
            return np.full(len(self.indices), np.nan)
        spread: FloatArray = self.utilities.var(axis=1, ddof=1)
        return spread / self.n_repeats

    def blocks(self) -> Iterator[tuple[slice, BoolArray]]:
        """Slices of the evaluations with their coalitions, never more than a few MiB at a time."""
        step = max(1, BLOCK_CELLS // self.n_players)
        for low in range(0, len(self.indices), step):
            rows = slice(low, low + step)
            yield rows, self.design.coalitions(self.indices[rows])

    def before(self, index: int) -> Evaluations:
        """The evaluations whose index is below `index`."""
        return self.only(self.indices < index)

    def only(self, which: BoolArray) -> Evaluations:
        """Some of the evaluations, bool (m,)."""
        return Evaluations(self.design, self.indices[which], self.utilities[which], self.stochastic, self.players)


@dataclass(frozen=True, repr=False, eq=False)
class Estimate:
    """Values with standard errors.

    A standard error is 0 where the value is exact, infinite where the evaluations say nothing about the
    player, and NaN where it is unknown (training noise that `repeats=2` or more would measure).

    Attributes
    ----------
    values, std_errors : float64 array (n,)
    degrees_of_freedom : float64 array (n,)
        Of each standard error, for Student's t.
    values_by_repeat : float64 array (k, n)
        The values that each repeat alone gives; their mean is `values` where the estimator is linear.
    n_evaluations : int
        Trainings used: coalitions times repeats.
    notion, estimator : str
        Names.
    players : sequence or None
        The user's own names of the players.
    """

    values: FloatArray
    std_errors: FloatArray
    degrees_of_freedom: FloatArray
    values_by_repeat: FloatArray
    n_evaluations: int
    notion: str
    estimator: str
    players: Labels | None = field(default=None)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Confidence interval of each value: (low, high), by Student's t."""
        from scipy.stats import t

        if not 0 < level < 1:
            raise InvalidInput(f"`level` must lie strictly between 0 and 1; got {short(level)}. Try 0.95.")
        half = np.zeros_like(self.values)
        spread = self.std_errors != 0
        half[spread] = t.ppf(0.5 + level / 2, self.degrees_of_freedom[spread]) * self.std_errors[spread]
        return self.values - half, self.values + half

    def ranking(self) -> IntArray:
        """Player numbers, lowest value first; equal values in the players' order."""
        return np.argsort(self.values, kind="stable").astype(np.int64)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per player: player, value, std_error, ci_low, ci_high, rank (1 is the lowest value).

        `player` counts from 0; the frame's index is the user's own (the rows' pandas index, or the groups).
        """
        import pandas as pd

        low, high = self.interval(level)
        rank = np.empty(len(self.values), dtype=np.int64)
        rank[self.ranking()] = np.arange(1, len(rank) + 1)
        columns = {
            "player": np.arange(len(rank)),
            "value": self.values,
            "std_error": self.std_errors,
            "ci_low": low,
            "ci_high": high,
            "rank": rank,
        }
        index = self.players if self.players is None or isinstance(self.players, pd.Index) else pd.Index(self.players)
        return pd.DataFrame(columns, index=index)

    def plot_values(self, ax: Any = None) -> Any:
        """All values, lowest first, with a 95% band, by matplotlib; returns the axes."""
        from databanzhaf.plots import plot_values

        return plot_values(self, ax)

    def plot_intervals(self, count: int = 20, ax: Any = None) -> Any:
        """The `count` lowest values with their 95% intervals, by matplotlib; returns the axes."""
        from databanzhaf.plots import plot_intervals

        return plot_intervals(self, count, ax)

    def plot_convergence(self, ledger: Any, ax: Any = None) -> Any:
        """Rank stability and standard error over the run in `ledger` (a path, a Ledger or Evaluations); returns the axes."""
        from databanzhaf.plots import plot_convergence
        from databanzhaf.run import history

        return plot_convergence(history(ledger, self.notion), ax)

    def _repr_html_(self) -> str:
        from databanzhaf.plots import small_html

        return small_html(self)

    def digits(self) -> int:
        """Decimals that show two digits of a typical standard error, or six of a typical value."""
        known = self.std_errors[np.isfinite(self.std_errors) & (self.std_errors > 0)]
        scale, wanted = (np.median(known), 2) if known.size else (np.abs(self.values).max(), 6)
        return int(np.clip(wanted - 1 - np.floor(np.log10(scale)), 0, 12)) if scale > 0 else 1

    def __repr__(self) -> str:
        order = self.ranking()
        shown = order.tolist() if len(order) <= 7 else [*order[:3].tolist(), None, *order[-3:].tolist()]
        names = range(len(order)) if self.players is None else self.players
        digits = self.digits()
        rows = [
            f"  {names[i]!s:>12}  {self.values[i]:+.{digits}f} ± {self.std_errors[i]:.{digits}f}" if i is not None else "           ..."
            for i in shown
        ]
        if np.isnan(self.std_errors).any() and self.notion != "least_core":
            rows.append("± nan: training noise was not measured; repeats=2 or more measures it")
        if np.isinf(self.std_errors).any():
            rows.append("± inf: too few evaluations say something about these players; raise the budget")
        head = (
            f"Estimate: {self.notion} values of {len(self.values)} players by {self.estimator}, "
            f"{self.n_evaluations} evaluations; lowest first, ± standard error"
        )
        return "\n".join([head, *rows])


@dataclass(frozen=True)
class Checkpoint:
    """How a run stands: its estimate, and its rank stability, the rank correlation that another run of this size would have with it.

    The stability comes from two halves of the run; NaN where it cannot be told.
    """

    estimate: Estimate
    stability: float
