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


def across(**how):
    """Six rows that judge each other."""
    X = np.random.default_rng(1).normal(size=(6, 3))
    return db.Dataset(X, [0, 1, 0, 1, 1, 0], **how)


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
    db.games.Forest(data(), trees=3),
    db.games.Boosting(data(), trees=3, min_samples_leaf=1),
    db.games.Forest(data(), trees=3, splits="best", metric="accuracy"),
    db.games.Learner(LogisticRegression(), across()),
    db.games.Network(across(), hidden=(4,), epochs=2, device="cpu"),
    db.games.Network(across(), loss="squared", epochs=2, metric="mse", device="cpu"),
    db.games.Forest(across(), trees=3, metric="balanced_probability"),
    db.games.Boosting(across(), trees=3, min_samples_leaf=1, metric="log_loss"),
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


class Broken:
    """A right game of three players, but for what is overwritten."""

    n_players, stochastic, call_size, players = 3, False, None, None

    def __init__(self, utility=None, fingerprint=None, **members):
        self._utility, self._fingerprint = utility, fingerprint or {"game": "broken"}
        vars(self).update(members)

    def utility(self, coalitions, keys):
        size = coalitions.sum(axis=1).astype(float)
        return size if self._utility is None else self._utility(coalitions, keys)

    def fingerprint(self):
        made = self._fingerprint
        return made(self) if callable(made) else made


class Partial:
    n_players, stochastic = 3, False


def at_random(coalitions, keys):
    return np.random.default_rng().random(len(coalitions))


BROKEN = {
    "place in a call; coalition": Broken(lambda c, k: c.sum(axis=1) + np.arange(float(len(c)))),
    r"other coalitions of a call; coalition \{\}: got 1.0, not 8.0": Broken(
        lambda c, k: c.sum(axis=1) + float(len(c))
    ),
    r"comes from the key alone.* coalition \{\}: got 0\.\d+, not 0\.\d+": Broken(at_random),
    r"every key; coalition \{0\}: got 3.0, not 2.0": Broken(
        lambda c, k: (k % np.uint64(7)).astype(float)
    ),
    "m utilities": Broken(lambda c, k: np.zeros(3)),
    "float64": Broken(lambda c, k: c.sum(axis=1)),
    r"finite.* coalition \{\} has nan": Broken(lambda c, k: np.where(c.any(axis=1), 1.0, np.nan)),
    "keys.* `stochastic` is True": Broken(stochastic=True),
    "texts": Broken(None, {"game": 1}),
    "address.* '<object at 0x7f3a5c001d90>'": Broken(None, {"game": "<object at 0x7f3a5c001d90>"}),
    "id of the game": Broken(None, lambda game: {"game": str(id(game))}),
    "id of the game, ": Broken(None, lambda game: {"game": f"{id(game):x}"}),
    "a copy of the game": Broken(None, lambda game: {"game": str(id(game) % 99991)}),
    "3 players have 3 names; got 2": Broken(players=["a", "b"]),
    "`call_size` is None or a whole number, 1 or more; got 0": Broken(call_size=0),
    "`call_size` .* got -4": Broken(call_size=-4),
    "`n_players` is a whole number, 1 or more; got 0": Broken(n_players=0),
    "without call_size, fingerprint, players, utility": Partial(),
    r"an object; got the class Partial": Partial,
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_games_that_break_a_promise_are_found(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_game(BROKEN[sentence])


def test_games_that_only_look_broken_pass():
    check_game(Broken())
    check_game(Broken(None, {"game": "a 10x10 grid, 0x2a"}))
    check_game(Broken(stochastic=True), noisy=False)
    check_game(Broken(lambda c, k: k / 2.0**64, stochastic=True, call_size=2, players="abc"))
