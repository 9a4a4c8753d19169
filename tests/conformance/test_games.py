"""What every game promises: the utility of a coalition depends on the coalition and its key alone."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import databanzhaf as db
from databanzhaf.types import Game, TwoStepGame
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
    db.games.Network(data(), hidden=(), epochs=2, score="roc_auc", device="cpu"),
]
each_game = pytest.mark.parametrize("game", GAMES, ids=repr)
EVERY = db.designs.Exhaustive(6).coalitions(np.arange(64))


@each_game
def test_it_is_a_game(game):
    assert isinstance(game, Game)
    assert game.n_players == 6
    assert all(isinstance(part, str) for pair in game.fingerprint().items() for part in pair)
    assert "0x" not in str(game.fingerprint())


@each_game
def test_rows_do_not_influence_each_other(game, rng):
    keys = db.chance.keys(1, 2, np.arange(64))
    whole = game.utility(EVERY, keys)
    assert whole.shape == (64,)
    assert whole.dtype == np.float64
    assert np.isfinite(whole).all()
    order = rng.permutation(64)
    assert np.array_equal(game.utility(EVERY[order], keys[order]), whole[order])
    assert np.array_equal(np.concatenate([game.utility(EVERY[i : i + 1], keys[i : i + 1]) for i in range(64)]), whole)


@each_game
def test_a_game_without_noise_ignores_its_keys(game):
    one, two = (game.utility(EVERY, db.chance.keys(1, 2, np.arange(64), repeat)) for repeat in (0, 1))
    if game.stochastic and not isinstance(getattr(game, "estimator", None), LogisticRegression):
        assert not np.array_equal(one, two)
    else:
        assert np.array_equal(one, two)


@each_game
def test_outcomes_score_to_the_utility(game):
    if isinstance(game, TwoStepGame):
        keys = db.chance.keys(1, 2, np.arange(64))
        scores = [game.score(outcome) for outcome in game.outcomes(EVERY, keys)]
        # A network's kernel scores its own logits; its outcomes are float32 probabilities.
        tolerance = 1e-6 if isinstance(game, db.games.Network) else 0
        np.testing.assert_allclose(scores, game.utility(EVERY, keys), atol=tolerance, rtol=0)
    else:
        assert isinstance(game, (db.games.Table, db.games.Function))
