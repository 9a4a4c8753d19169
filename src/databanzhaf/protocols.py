"""Array aliases, and the protocols by which rooms meet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from databanzhaf.estimate import Estimate
    from databanzhaf.evaluations import Batch, Evaluations, Piece
    from databanzhaf.verdicts import Jury, Seating

BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Float32Array: TypeAlias = NDArray[np.float32]
UInt16Array: TypeAlias = NDArray[np.uint16]
Int32Array: TypeAlias = NDArray[np.int32]
KeyArray: TypeAlias = NDArray[np.uint64]
Labels: TypeAlias = Sequence[Any]

# (indices, repeats) → their coalitions and keys
Draws: TypeAlias = "Callable[[IntArray, IntArray], tuple[BoolArray, KeyArray]]"
# Pieces of work, asked for as there is room → those that are done, in any order, some at a time
EvaluatePieces: TypeAlias = (
    "Callable[[Draws, Iterable[Piece]], Iterator[Sequence[tuple[Piece, Batch]]]]"
)


@runtime_checkable
class Game(Protocol):
    """Turns coalitions into utility.

    `call_size` is the number of coalitions one call carries, None for as many as there are. Calls
    are cut at multiples of it, so that a game whose rounding depends on the batch gives the same
    bits for every worker count and after a kill. (Where a budget or a checkpoint ends between two
    multiples, the call there is shorter.) `players` are the user's own names of the players, None
    for 0..n-1.
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
        """What decides the utilities: data, model, hyper-parameters, and under "metric"
        the metric.
        """
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


@runtime_checkable
class JudgedGame(TwoStepGame, Protocol):
    """A game whose models are judged by rows. `jury` is None where the metric is not a mean over
    them; `seating` is how it is cut into folds, None with validation rows; `outcome_bytes` is about
    what one packed outcome takes.
    """

    @property
    def jury(self) -> Jury | None: ...
    @property
    def seating(self) -> Seating | None: ...
    @property
    def outcome_bytes(self) -> int: ...

    def verdicts(self, outcomes: Sequence[bytes]) -> FloatArray:
        """What each judging row says of each outcome, (outcomes, judges); NaN where it does not
        judge.
        """
        ...

    def scores(self, outcomes: Sequence[bytes]) -> FloatArray:
        """`score` for many outcomes."""
        ...

    def guesses(self) -> FloatArray:
        """What each judging row says of a guess that knows the labels' shares, or their mean,
        alone.
        """
        ...


@runtime_checkable
class ClosedGame(Game, Protocol):
    """A game that knows its semivalues in closed form: `values`, their `variance` over juries like
    this one, and of how many `judges`.
    """

    def closed_form(self, notion: Any) -> Any: ...


@runtime_checkable
class Evaluator(Protocol):
    """Where games run. `session` opens what it needs once and yields a function from pieces of work
    to their utilities. Coalitions and keys are functions of the index, so that an index is all that
    travels. A piece that fails comes last, after all that had been begun.
    """

    def session(
        self, game: Game, keep_outcomes: bool = False
    ) -> AbstractContextManager[EvaluatePieces]: ...


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


@runtime_checkable
class Notion(Protocol):
    """What a player's value means."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Estimator(Protocol):
    """Evaluations → Estimate. A frozen dataclass that is called with evaluations and a notion.

    `reads` are the kinds of designs whose evaluations it can read.
    """

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> tuple[type[Any], ...]: ...

    def gives(self, notion: Notion) -> bool:
        """Whether it estimates this notion."""
        ...

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        """How well it suits a new run: "auto" takes the largest; 0 is never taken."""
        ...

    def design(self, notion: Notion, n_players: int, seed: int) -> Design:
        """The design whose evaluations identify the notion."""
        ...

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate: ...
