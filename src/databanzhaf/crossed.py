"""A game of rows that judge each other, as one whose jury is always the same."""

from __future__ import annotations

import numpy as np

from databanzhaf import chance
from databanzhaf.protocols import BoolArray, FloatArray, Game, JudgedGame, KeyArray, Labels


class Crossed:
    r"""U(S) is the mean score over all judging rows, each judged by a model that has not seen it.

    The jury is cut into folds, and each fold judges a model of the rows of S outside it:
    :math:`U(S) = \sum_j w_j\, s_j(S \setminus F_{f(j)})`. So coalitions of every size have the same
    jury and can be compared, at the cost of one training for each fold.
    """

    def __init__(self, game: JudgedGame) -> None:
        self.game = game

    @property
    def n_players(self) -> int:
        return self.game.n_players

    @property
    def players(self) -> Labels | None:
        return self.game.players

    @property
    def stochastic(self) -> bool:
        return self.game.stochastic

    @property
    def call_size(self) -> int | None:
        return self.game.call_size

    def fingerprint(self) -> dict[str, str]:
        return {**self.game.fingerprint(), "judged": "across, in folds"}

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        seating, jury = self.game.seating, self.game.jury
        assert seating is not None
        assert jury is not None
        total = np.zeros(len(coalitions))
        for fold in range(seating.count):
            if seating.within:
                train = coalitions[:, seating.row_players] & (seating.row_folds != fold)
            else:
                train = coalitions & (seating.player_folds != fold)
            own = chance.fold(keys, np.full(len(keys), fold, dtype=np.uint64))
            said = self.game.verdicts(self.game.outcomes(train, own))
            judges = seating.judge_folds == fold
            total += (said[:, judges] * jury.weights[judges]).sum(axis=1)
        return total


def fixed_jury(game: Game) -> Game:
    """The game itself, or, where rows judge each other, with a jury that is always the same."""
    if isinstance(game, JudgedGame) and game.seating is not None:
        return Crossed(game)
    return game
