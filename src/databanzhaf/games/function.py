"""A game that is a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from databanzhaf import fingerprint
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray, Labels


class Function:
    """Any cooperative game: `function(coalitions)` takes bool (m, n) and returns m numbers.

    With `stochastic=True` it is called as `function(coalitions, keys)`; row j may draw its
    randomness from the uint64 `keys[j]` alone (`np.random.default_rng(int(key))`, or
    `databanzhaf.chance`), so that it is the same on every machine.

    Rows must not influence each other. A call carries `call_size` coalitions, cut at multiples of
    it: raise it for a function that is fast on many at once, lower it for one that takes minutes.

    A ledger knows the function by `name`, or else by its qualified name, its code and that of your
    own functions that it calls by name. Values that it captures (a closure, a global, a bound
    object) are not seen: **when those change, give a new `name`**.

    >>> majority = Function(3, lambda coalitions: coalitions.sum(axis=1) >= 2, name="majority")
    >>> majority.utility(np.array([[True, True, False]]), np.zeros(1, np.uint64))
    array([1.])
    """

    def __init__(
        self,
        n_players: int,
        function: Callable[..., Any],
        *,
        stochastic: bool = False,
        name: str | None = None,
        players: Labels | None = None,
        call_size: int = 16,
    ) -> None:
        self.n_players = check_count("n_players", n_players)
        if not callable(function):
            raise InvalidInput(
                f"`function` must be callable on coalitions, bool (m, {n_players})",
                got=short(function),
                remedy="Pass a function.",
            )
        if players is not None and (not hasattr(players, "__len__") or len(players) != n_players):
            raise InvalidInput(
                f"`players` must name all {n_players} players",
                got=short(players),
                remedy="Leave it out for 0..n-1.",
            )
        self.function = function
        self.stochastic = stochastic
        self.name = name
        self.players = players
        self.call_size = check_count("call_size", call_size)

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        answer = self.function(coalitions, keys) if self.stochastic else self.function(coalitions)
        utility = np.asarray(answer)
        if utility.shape != (len(coalitions),) or utility.dtype.kind not in "biuf":
            raise InvalidInput(
                f"`function` must return one number per coalition, shape ({len(coalitions)},)",
                got=f"{utility.dtype} {utility.shape}",
                remedy="Vectorise over the rows of its argument.",
            )
        return utility.astype(np.float64)

    @property
    def captured(self) -> tuple[str, ...]:
        """Names of the captured variables that the fingerprint cannot see; none if the game has a
        `name`.
        """
        return () if self.name is not None else fingerprint.captured(self.function)

    def fingerprint(self) -> dict[str, str]:
        name = self.name if self.name is not None else fingerprint.describe(self.function)
        return {
            "game": "function",
            "players": str(self.n_players),
            "stochastic": str(self.stochastic),
            "name": name,
        }

    def __repr__(self) -> str:
        return f"Function({self.n_players} players, {self.fingerprint()['name']})"
