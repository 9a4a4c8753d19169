"""What every game promises: the utility of a coalition depends on the coalition and its
key alone.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import databanzhaf as db
from databanzhaf.testing import check_game
from tests.closed_forms import noisy_additive


def data(rng=np.random.default_rng(0)):  # noqa: B008
    X = rng.normal(size=(30, 3))
    return db.Dataset(X[:6], [0, 1, 0, 1, 1, 0], X[6:], (X[6:, 0] > 0).astype(int))


GAMES = [
    db.games.Table(np.arange(64.0)),
    db.games.Function(6, lambda c: c.sum(axis=1) ** 2),
    noisy_additive(6)[0],
    db.games.Learner(LogisticRegression(), data()),
    db.games.Learner(DecisionTreeClassifier(max_features=1), data(), "accuracy"),
    db.games.Network(data(), hidden=(4,), epochs=2, device="cpu"),
    db.games.Network(data(), hidden=(), epochs=2, metric="roc_auc", device="cpu"),
]
each_game = pytest.mark.parametrize("game", GAMES, ids=repr)
EVERY = db.designs.Exhaustive(6).coalitions(np.arange(64))


@each_game
def test_a_game_keeps_its_promises(game):
    # A network's kernel scores its own logits; its outcomes are float32 probabilities.
    check_game(game, tolerance=1e-6 if isinstance(game, db.games.Network) else 0.0)


def test_noise_is_in_the_key():
    for game in GAMES:
        one, two = (
            game.utility(EVERY, db.chance.keys(1, 2, np.arange(64), repeat)) for repeat in (0, 1)
        )
        convex = isinstance(getattr(game, "estimator", None), LogisticRegression)
        assert np.array_equal(one, two) == (convex or not game.stochastic)


def test_games_that_break_a_promise_are_found():
    class Broken:
        n_players, stochastic, call_size, players = 3, False, None, None

        def __init__(self, utility, fingerprint=None):
            self._utility, self._fingerprint = utility, fingerprint or {"game": "broken"}

        def utility(self, coalitions, keys):
            return self._utility(coalitions, keys)

        def fingerprint(self):
            return self._fingerprint

    def fine(coalitions, keys):
        return coalitions.sum(axis=1).astype(float)

    check_game(Broken(fine))
    broken = {
        "place in a call": Broken(lambda c, k: c.sum(axis=1) + np.arange(float(len(c)))),
        "other coalitions": Broken(lambda c, k: c.sum(axis=1) + float(len(c))),
        "every key": Broken(lambda c, k: (k % np.uint64(7)).astype(float)),
        "m utilities": Broken(lambda c, k: np.zeros(3)),
        "float64": Broken(lambda c, k: c.sum(axis=1)),
        "finite": Broken(lambda c, k: np.where(c.any(axis=1), 1.0, np.nan)),
        "texts": Broken(fine, {"game": 1}),
        "address": Broken(fine, {"game": "<object at 0x7f>"}),
    }
    for sentence, game in broken.items():
        with pytest.raises(AssertionError, match=sentence):
            check_game(game)
