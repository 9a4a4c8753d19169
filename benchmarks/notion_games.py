"""Games whose values are known for every semivalue: five by a formula, nearest neighbours by their
closed form, and networks by a long run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from estimator_games import (
    CHUNK,
    METRICS,
    PLAYERS,
    REFERENCE_SEED,
    Floats,
    additive,
    networks_of,
    pair_weights,
    trained,
    votes_and_quota,
)
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import protocol
from databanzhaf.experiments.setting import Setting
from databanzhaf.notions import SizeWeighted, log_binomial
from databanzhaf.protocols import Notion


@dataclass(frozen=True, eq=False)
class NotionGame:
    """`truth` gives the values of a notion; the other members are those of `Game`."""

    name: str
    truth: Callable[[SizeWeighted], Floats]
    utility: Callable[[NDArray[np.bool_], NDArray[np.uint64]], Floats]
    stochastic: bool = False
    reference_error: Callable[[SizeWeighted], float] = lambda notion: 0.0


def with_formulas(n: int = PLAYERS) -> Iterator[NotionGame]:
    """Every semivalue of a sum is the weight of the player."""
    game = additive(n)
    yield NotionGame(game.name, lambda notion: game.truth, game.utility)
    yield pairwise(n)
    yield voting(n)
    yield diminishing(n)
    yield airport(n)


def pairwise(n: int) -> NotionGame:
    """A pair counts for a player if its partner is in: by the mean size of the law."""
    weights, pairs = pair_weights(n)

    def utility(coalitions, keys):
        x = coalitions.astype(np.float64)
        return x @ weights + ((x @ pairs) * x).sum(axis=1)

    def truth(notion):
        others = float(notion.weights(n) @ np.arange(n))
        return weights + (pairs + pairs.T).sum(axis=1) * others / (n - 1)

    return NotionGame("pairs", truth, utility)


def voting(n: int) -> NotionGame:
    """Swings by the number and the votes of the others, for each number of votes a player has."""
    votes, quota = votes_and_quota(n)

    def truth(notion):
        log_weight = notion.log_size_law(n) - log_binomial(n - 1, np.arange(n))
        values = np.zeros(n)
        for own in np.unique(votes):
            ways = np.zeros((n, votes.sum() + 1))
            ways[0, 0] = 1
            for other in np.delete(votes, np.flatnonzero(votes == own)[0]):
                ways[1:, other:] += ways[:-1, :-other].copy()
            swings = ways[:, quota - own : quota].sum(axis=1)
            with np.errstate(divide="ignore"):
                values[votes == own] = np.exp(log_weight + np.log(swings)).sum()
        return values

    return NotionGame("voting", truth, lambda coalitions, keys: (coalitions @ votes >= quota) * 1.0)


def diminishing(n: int) -> NotionGame:
    """U is 1 less the product of what each member leaves: the mean product over the subsets of
    each size, by adding one player at a time.
    """
    left = np.exp(-np.random.default_rng(4).gamma(1.0, size=n) / 20)

    def truth(notion):
        law, values = notion.weights(n), np.zeros(n)
        for player in range(n):
            mean = np.zeros(n)
            mean[0] = 1.0
            for count, factor in enumerate(np.delete(left, player), start=1):
                share = np.arange(1, count + 1) / count
                mean[1 : count + 1] = (1 - share) * mean[1 : count + 1] + share * (
                    factor * mean[:count]
                )
            values[player] = (1 - left[player]) * (law @ mean)
        return values

    logs = np.log(left)
    return NotionGame("diminishing", truth, lambda coalitions, keys: 1 - np.exp(coalitions @ logs))


def airport(n: int) -> NotionGame:
    """U is the largest cost among the members: a player pays for each piece of the runway that it
    needs and no other member does.
    """
    cost = np.sort(np.random.default_rng(5).gamma(2.0, size=n))

    def truth(notion):
        law, size = notion.weights(n), np.arange(n)
        alone = np.zeros(n)
        for piece in range(n):
            with np.errstate(invalid="ignore"):
                ways = log_binomial(piece, np.minimum(size, piece)) - log_binomial(n - 1, size)
            alone[piece] = law @ np.where(size <= piece, np.exp(ways), 0.0)
        return np.cumsum(np.diff(np.append(0.0, cost)) * alone)

    def utility(coalitions, keys):
        return np.where(coalitions, cost, 0.0).max(axis=1)

    return NotionGame("airport", truth, utility)


def neighbours(name: str) -> NotionGame:
    """Five nearest neighbours on the rows of a network game, whose values have a closed form."""
    data = protocol.draw(name, 0, Setting(device="cpu")).judged_by_validation()
    game = db.games.Neighbors(data, 5)
    return NotionGame(
        f"{name}, neighbours", lambda notion: db.value(game, notion).values, game.utility
    )


def network(name: str, trainings: int, notions: list[Notion]) -> NotionGame:
    """The network of `estimator_games`, probability; its values are those of one run for all the
    notions with a seed of its own.
    """
    model = networks_of(name)

    def utility(coalitions, keys):
        blocks = range(0, len(keys), CHUNK)
        return np.concatenate(
            [
                trained(model, name, coalitions[low : low + CHUNK], keys[low : low + CHUNK])[:, 0]
                for low in blocks
            ]
        )

    estimator = db.estimators.SizeRegression()
    design = db.designs.Sized(
        PLAYERS, REFERENCE_SEED, db.estimators.size_laws.shares(notions, PLAYERS)
    )
    indices = np.arange(trainings)
    keys = db.chance.keys(REFERENCE_SEED, db.chance.TRAINING, indices)
    evaluations = db.Evaluations(
        design, indices, utility(design.coalitions(indices), keys)[:, None], True
    )
    found = {notion.name: estimator(evaluations, notion) for notion in notions}

    def off(notion):
        estimate = found[notion.name]
        return float(np.linalg.norm(estimate.std_errors) / np.linalg.norm(estimate.values))

    return NotionGame(
        f"{name}, {METRICS[0]}", lambda notion: found[notion.name].values, utility, True, off
    )
