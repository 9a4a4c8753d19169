"""What every game promises: a utility depends on the coalition and its key alone."""

from __future__ import annotations

import numpy as np

from databanzhaf import chance, designs
from databanzhaf.protocols import BoolArray, Game, TwoStepGame
from databanzhaf.testing.promises import promise, same

# Coalitions to try, if the game has too many players to list them all.
_MOST = 64


def check_game(game: Game, *, tolerance: float = 0.0) -> None:
    """Check the promises of `protocols.Game`, and of `TwoStepGame` if it makes outcomes.

    `tolerance` is how far the score of a kept outcome may lie from the utility: 0, but for games
    whose outcomes are rounded.
    """
    promise(isinstance(game, Game), "a game has the members of protocols.Game")
    _check_fingerprint(game)
    coalitions = _coalitions(game.n_players)
    _check_rows(game, coalitions)
    keys = [
        chance.keys(1, chance.TRAINING, np.arange(len(coalitions)), repeat) for repeat in (0, 1)
    ]
    if not game.stochastic:
        one, two = (game.utility(coalitions, each) for each in keys)
        same(one, two, "a game without noise gives the same utilities for every key")
    if isinstance(game, TwoStepGame):
        scores = [game.score(outcome) for outcome in game.outcomes(coalitions, keys[0])]
        gap = np.abs(np.array(scores) - game.utility(coalitions, keys[0])).max()
        promise(gap <= tolerance, f"a kept outcome scores to the utility; it is {gap} off")


def _coalitions(n: int) -> BoolArray:
    if 2**n <= _MOST:
        return designs.Exhaustive(n).coalitions(np.arange(2**n))
    some = designs.Coin(n, 0).coalitions(np.arange(_MOST - 2))
    return np.concatenate([some, np.zeros((1, n), np.bool_), np.ones((1, n), np.bool_)])


def _check_fingerprint(game: Game) -> None:
    found = game.fingerprint()
    texts = all(isinstance(part, str) for pair in found.items() for part in pair)
    promise(texts, "a fingerprint maps texts to texts")
    promise(
        "0x" not in str(found), "a fingerprint holds no address: it is the same in every process"
    )
    promise(found == game.fingerprint(), "a fingerprint is the same each time")


def _check_rows(game: Game, coalitions: BoolArray) -> None:
    m = len(coalitions)
    keys = chance.keys(1, chance.TRAINING, np.arange(m))
    whole = game.utility(coalitions, keys)
    promise(whole.shape == (m,), f"m coalitions have m utilities; got shape {whole.shape} for {m}")
    promise(whole.dtype == np.float64, f"utilities are float64; got {whole.dtype}")
    promise(
        np.isfinite(whole).all(), "utilities are finite, also of the empty and the full coalition"
    )
    order = np.random.default_rng(0).permutation(m)
    shuffled = game.utility(coalitions[order], keys[order])
    same(shuffled, whole[order], "a utility does not depend on the place in a call")
    alone = [game.utility(coalitions[i : i + 1], keys[i : i + 1])[0] for i in range(m)]
    same(alone, whole, "a utility does not depend on the other coalitions of a call")
