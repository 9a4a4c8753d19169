"""Games for `estimators.py`: three with known Banzhaf values, and networks on three datasets, whose
values are known from a long run.

Every training is kept under runs/estimators, named by a digest of the game, the coalitions and the
keys, so that a rerun trains nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import protocol
from databanzhaf.experiments.setting import Setting

Floats = NDArray[np.float64]
CACHE = Path(__file__).parents[1] / "runs" / "estimators"
PLAYERS = 200
METRICS = "probability", "accuracy"
REFERENCE_SEED = 10**6
CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class Game:
    """`utility` takes coalitions (m, n) and keys (m,). `reference_error` is that of `truth`, in the
    same units as the errors of the estimators.
    """

    name: str
    truth: Floats
    utility: Callable[[NDArray[np.bool_], NDArray[np.uint64]], Floats]
    stochastic: bool = False
    reference_error: float = 0.0


def additive(n: int = PLAYERS) -> Game:
    """U is a sum over the members."""
    weights = np.random.default_rng(1).normal(size=n)
    return Game("additive", weights, lambda coalitions, keys: coalitions @ weights)


def pairwise(n: int = PLAYERS) -> Game:
    """U is a sum over the members and over pairs of members; about half of its variance comes from
    the pairs. A player's value is its own weight plus half of the weights of its pairs.
    """
    weights, pairs = pair_weights(n)

    def utility(coalitions, keys):
        x = coalitions.astype(np.float64)
        return x @ weights + ((x @ pairs) * x).sum(axis=1)

    return Game("pairs", weights + (pairs + pairs.T).sum(axis=1) / 2, utility)


def pair_weights(n: int) -> tuple[Floats, Floats]:
    """Of the members (n,), and of pairs of them, upper triangle (n, n)."""
    rng = np.random.default_rng(2)
    weights, pairs = rng.normal(size=n), np.triu(rng.normal(size=(n, n)), 1)
    both = pairs + pairs.T
    # In signs of ±1 a pair has a quarter of its weight, and adds the rest to its two members.
    linear, interaction = ((weights + both.sum(axis=1) / 2) ** 2).sum() / 4, (pairs**2).sum() / 16
    weights = weights * np.sqrt(interaction / linear)
    weights -= both.sum(axis=1) / 2 * (1 - np.sqrt(interaction / linear))
    return weights, pairs


def voting(n: int = PLAYERS) -> Game:
    """U is 1 if the members have more than half of all votes, else 0; the values by dynamic
    programming over the votes of the others.
    """
    votes, quota = votes_and_quota(n)
    truth = np.empty(n)
    for player in range(n):
        law = np.zeros(votes.sum() + 1)
        law[0] = 1.0
        for vote in np.delete(votes, player):
            law[vote:] += law[:-vote]  # NumPy reads the old numbers before it writes
            law /= 2
        truth[player] = law[quota - votes[player] : quota].sum()
    return Game("voting", truth, lambda coalitions, keys: (coalitions @ votes >= quota) * 1.0)


def votes_and_quota(n: int) -> tuple[NDArray[np.int64], int]:
    votes = np.random.default_rng(3).integers(1, 21, n)
    return votes, int(votes.sum()) // 2 + 1


def closed_forms() -> Iterator[Game]:
    yield additive()
    yield pairwise()
    yield voting()


def networks(name: str, trainings: int) -> Iterator[Game]:
    """The network of `databanzhaf reproduce` with the library's own loss and score: MLP with 100
    hidden units, 15 epochs, draw 0 of the dataset with 10% of the labels flipped. One game for each
    metric, from the same trainings.
    """
    network = networks_of(name)
    for column, metric in enumerate(METRICS):

        def utility(coalitions, keys, column=column):
            return np.concatenate(
                [
                    trained(network, name, coalitions[low : low + CHUNK], keys[low : low + CHUNK])
                    for low in range(0, len(keys), CHUNK)
                ]
            )[:, column]

        found = reference(utility, trainings)
        error = float(np.linalg.norm(found.std_errors) / np.linalg.norm(found.values))
        yield Game(f"{name}, {metric}", found.values, utility, True, error)


def networks_of(name: str):
    """The game that trains them."""
    setting = Setting(device="cpu")
    data = protocol.draw(name, 0, setting)
    how = {"loss": "cross_entropy", "metric": METRICS[0], "metric_at": "last", "threads": 1}
    return protocol.network(data.judged_by_validation(), name, setting, **how)


def reference(utility: Callable[..., Floats], trainings: int) -> db.Estimate:
    """Values by regression from a run with a seed of its own."""
    estimator, notion = db.estimators.Regression(), db.Banzhaf()
    design = estimator.design(notion, PLAYERS, REFERENCE_SEED)
    indices = np.arange(trainings)
    keys = db.chance.keys(REFERENCE_SEED, db.chance.TRAINING, indices)
    utilities = utility(design.coalitions(indices), keys)
    return estimator(db.Evaluations(design, indices, utilities[:, None]), notion)


def trained(network, name: str, coalitions, keys) -> Floats:
    """Both metrics of one training for each coalition, (m, 2)."""
    facts = json.dumps(network.fingerprint(), sort_keys=True).encode()
    digest = hashlib.sha256(facts + np.packbits(coalitions).tobytes() + keys.tobytes())
    path = CACHE / f"{name}-{digest.hexdigest()[:24]}.npy"
    if path.exists():
        return np.load(path)
    found = network.train(coalitions, keys, predictions=True)
    accuracy = (found.predictions.argmax(axis=2) == network.dataset.y_val).mean(axis=1)
    both = np.column_stack([found.scores, accuracy]).astype(np.float64)
    CACHE.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp.npy")
    np.save(temporary, both)
    temporary.replace(path)
    return both
