"""What a model of all rows scores, and what a guess does."""

from __future__ import annotations

import warnings

import numpy as np

from databanzhaf import chance
from databanzhaf.errors import DatabanzhafWarning, EvaluationFailed
from databanzhaf.evaluators import play
from databanzhaf.games import Neighbors
from databanzhaf.pipeline.preparing import Job
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, JudgedGame


def scores(job: Job) -> dict[str, float] | None:
    """The score of models of (nearly) all players, that of a guess, and the standard error of the
    difference over the judging rows, where that is known; None if such a model fails, which takes
    nothing from the values.

    Where rows judge each other, the players are dealt into folds, and each fold is judged by a
    model of the others.
    """
    if isinstance(job.game, Neighbors):
        return _of_votes(job.game)
    try:
        judged = isinstance(job.game, JudgedGame) and job.game.jury is not None
        return _by_rows(job) if judged else _by_metric(job)
    except EvaluationFailed as error:
        warnings.warn(
            f"the model of all rows has no score: {error.reason}", DatabanzhafWarning, stacklevel=2
        )
        return None


def _of_votes(game: Neighbors) -> dict[str, float]:
    """Of nearest neighbours among all rows, which need no training."""
    votes = game.votes()
    return _compared(votes, game.guesses(), np.full(len(votes), 1 / len(votes)))


def _by_metric(job: Job) -> dict[str, float]:
    """Of a metric that is no mean over rows: one model of all players, one of none."""
    n = job.dataset.n_players

    def coalitions(positions: IntArray) -> BoolArray:
        return np.repeat(positions == 0, n).reshape(-1, n)

    repeats = np.zeros(2, np.int64)
    keys = chance.keys(job.settings.seed, chance.CURVE_TRAINING, repeats)
    batch = play(job.game, job.evaluator, coalitions, keys, np.arange(2), repeats)
    return dict(zip(("all", "none"), batch.utilities.tolist(), strict=True))


def _by_rows(job: Job) -> dict[str, float]:
    """Of a metric that is a mean over rows: what each of them says of a model that has not seen
    it, and of a guess.
    """
    game, data = job.game, job.dataset
    assert isinstance(game, JudgedGame)
    assert game.jury is not None
    seating = game.seating
    if seating is None:
        everyone = np.ones((1, data.n_players), dtype=np.bool_)
    elif seating.within:
        everyone = seating.row_folds != np.arange(seating.count)[:, None]
    else:
        everyone = seating.player_folds != np.arange(seating.count)[:, None]

    def coalitions(positions: IntArray) -> BoolArray:
        return everyone[positions]

    indices, repeats = np.arange(len(everyone)), np.zeros(len(everyone), np.int64)
    keys = chance.keys(job.settings.seed, chance.CURVE_TRAINING, indices)
    how = (game, job.evaluator, coalitions, keys, indices, repeats)
    outcomes = [each or b"" for each in play(*how, keep_outcomes=True).outcomes or []]
    said = np.nanmean(game.verdicts(outcomes), axis=0)  # each row judges one model
    return _compared(said, game.guesses(), game.jury.weights)


def _compared(said: FloatArray, guessed: FloatArray, weights: FloatArray) -> dict[str, float]:
    """The mean score of a model, that of a guess, and the standard error of the difference."""
    better = said - guessed
    spread = weights**2 @ (better - weights @ better) ** 2
    return {
        "all": float(weights @ said),
        "none": float(weights @ guessed),
        "error": float(np.sqrt(spread * len(said) / max(1, len(said) - 1))),
    }
