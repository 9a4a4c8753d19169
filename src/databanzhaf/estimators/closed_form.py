"""Values of a game that knows them in closed form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from databanzhaf.errors import DesignMismatch, InvalidInput
from databanzhaf.estimate import Errors, Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import ClosedGame, Design, Game, Notion


@dataclass(frozen=True)
class ClosedForm:
    """Exact semivalues of `games.Neighbors`, without an evaluation. "auto" takes it where it can.

    Standard errors are 0; those of `population` count which rows judged.
    """

    name = "closed_form"
    reads = ()

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, SizeWeighted)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Design:
        raise DesignMismatch(
            "a closed form evaluates nothing",
            remedy="Use it with games.Neighbors and a semivalue, or choose another estimator.",
        )

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        raise DesignMismatch(
            "a closed form reads no evaluations", remedy='Use estimator="auto" for a ledger.'
        )

    def values(self, game: Game, notion: Notion) -> Estimate:
        """The values of every player."""
        if not isinstance(game, ClosedGame) or not isinstance(notion, SizeWeighted):
            raise InvalidInput(
                "`closed_form` gives the semivalues of games.Neighbors",
                got=f"{game!r} and {notion.name}",
                remedy='Use estimator="auto".',
            )
        found = game.closed_form(notion)
        n = len(found.values)
        return Estimate(
            found.values,
            np.zeros(n),
            np.full(n, np.inf),
            found.values[None],
            0,
            notion,
            self,
            game.players,
            population=Errors(np.sqrt(found.variance), np.full(n, found.judges - 1.0)),
        )
