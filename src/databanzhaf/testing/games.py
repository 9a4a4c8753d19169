"""What every game promises: a utility depends on the coalition and its key alone."""

from __future__ import annotations

import copy
import re

import numpy as np

from databanzhaf import chance, designs, games
from databanzhaf.protocols import BoolArray, FloatArray, Game, KeyArray, TwoStepGame
from databanzhaf.testing.promises import has_members, is_count, named, promise, same

# Coalitions to try, if the game has too many players to list them all.
_MOST = 64
# How often they are tried with other keys, before a game is said to ignore them.
_REPEATS = 4
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}", re.IGNORECASE)


def check_game(game: Game, *, tolerance: float = 0.0, noisy: bool | None = None) -> None:
    """Check the promises of `protocols.Game`, and of `TwoStepGame` if it makes outcomes.

    `tolerance` is how far the score of a kept outcome may lie from the utility: 0, but for games
    whose outcomes are rounded. `noisy` says whether other keys must change some utility: by default
    those of a stochastic game must. Pass False for a game that may draw but need not; that is
    assumed of `games.Learner`, whose model may be deterministic.

    A fingerprint must be the same in every process. Addresses and the game's id are found in it;
    `hash()` of a text is not, since it changes only when Python is started again.
    """
    has_members(game, Game, "a game")
    is_count(game.n_players, "n_players")
    is_count(game.call_size, "call_size", optional=True)
    n, players = game.n_players, game.players
    promise(
        players is None or len(players) == n,
        f"{n} players have {n} names; got {0 if players is None else len(players)}",
    )
    _check_fingerprint(game)
    coalitions = _coalitions(game.n_players)
    utilities = _check_rows(game, coalitions)
    _check_keys(game, coalitions, utilities, noisy)
    if isinstance(game, TwoStepGame):
        outcomes = game.outcomes(coalitions, _keys(coalitions))
        gap = np.abs(np.array([game.score(outcome) for outcome in outcomes]) - utilities)
        worst = named(coalitions[gap.argmax()])
        promise(
            gap.max() <= tolerance,
            f"a kept outcome scores to the utility; that of {worst} is {gap.max()} off",
        )


def _keys(coalitions: BoolArray, repeat: int = 0) -> KeyArray:
    return chance.keys(1, chance.TRAINING, np.arange(len(coalitions)), repeat)


def _coalitions(n: int) -> BoolArray:
    if 2**n <= _MOST:
        return designs.Exhaustive(n).coalitions(np.arange(2**n))
    some = designs.Coin(n, 0).coalitions(np.arange(_MOST - 2))
    return np.concatenate([some, np.zeros((1, n), np.bool_), np.ones((1, n), np.bool_)])


def _check_fingerprint(game: Game) -> None:
    found = game.fingerprint()
    texts = all(isinstance(part, str) for pair in found.items() for part in pair)
    promise(texts, f"a fingerprint maps texts to texts; got {found}")
    promise(
        not _ADDRESS.search(str(found)),
        f"a fingerprint holds no address: it is the same in every process; got {found}",
    )
    own = {str(id(game)), f"{id(game):x}"}
    promise(
        not any(number in str(found).lower() for number in own),
        f"a fingerprint does not hold the id of the game, which differs in every process; "
        f"got {found}",
    )
    again, copied = game.fingerprint(), copy.copy(game).fingerprint()
    promise(again == found, f"a fingerprint is the same each time; got {found}, then {again}")
    promise(
        copied == found, f"a copy of the game has the same fingerprint; got {copied}, not {found}"
    )


def _check_rows(game: Game, coalitions: BoolArray) -> FloatArray:
    m, keys = len(coalitions), _keys(coalitions)
    whole = game.utility(coalitions, keys)
    shape, dtype = np.shape(whole), getattr(whole, "dtype", type(whole).__name__)
    promise(shape == (m,), f"m coalitions have m utilities; got shape {shape} for {m}")
    promise(dtype == np.float64, f"utilities are float64; got {dtype}")
    strange = np.flatnonzero(~np.isfinite(whole))
    promise(
        not len(strange),
        "utilities are finite, also of the empty and the full coalition; "
        + " ".join(f"{named(coalitions[i])} has {whole[i]}" for i in strange[:1]),
    )

    def where(row: int) -> str:
        return named(coalitions[row])

    again = game.utility(coalitions, keys)
    same(
        again,
        whole,
        "the same call gives the same utilities, as all chance comes from the key alone",
        where,
    )
    order, shuffled = np.random.default_rng(0).permutation(m), np.empty(m)
    shuffled[order] = game.utility(coalitions[order], keys[order])
    same(shuffled, whole, "a utility does not depend on the place in a call", where)
    alone = [game.utility(coalitions[i : i + 1], keys[i : i + 1])[0] for i in range(m)]
    same(alone, whole, "a utility does not depend on the other coalitions of a call", where)
    return whole


def _check_keys(
    game: Game, coalitions: BoolArray, utilities: FloatArray, noisy: bool | None
) -> None:
    repeats = (game.utility(coalitions, _keys(coalitions, repeat)) for repeat in range(1, _REPEATS))
    if not game.stochastic:
        same(
            next(repeats),
            utilities,
            "a game whose `stochastic` is False gives the same utilities for every key",
            lambda row: named(coalitions[row]),
        )
    elif noisy or (noisy is None and not isinstance(game, games.Learner)):
        promise(
            any((other != utilities).any() for other in repeats),
            f"other keys give other utilities where `stochastic` is True; {len(coalitions)} "
            f"coalitions had the same with {_REPEATS} keys each (if that may be, pass noisy=False)",
        )
