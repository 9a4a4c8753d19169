"""What a player does to each judging row: by loops over models, by brute force, and its noise."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.attribution import attribution_of
from databanzhaf.population import effects
from databanzhaf.run import finish
from tests.judged_toys import Toy

N = 6
LABELS = np.array([0, 0, 0, 0, 1, 1])
EVERYONE = np.arange(N)


def arbitrary(seed=0):
    """Any score for any coalition: interactions of every order."""
    table = np.random.default_rng(seed).random((2**N, N))
    powers = 2 ** np.arange(N)
    return lambda coalitions: table[coalitions @ powers]


def game(*, validation=False, metric="probability"):
    X = np.arange(N, dtype=float)[:, None]
    data = db.Dataset(X, LABELS, X, LABELS) if validation else db.Dataset(X, LABELS)
    return Toy(data, arbitrary(), metric=metric)


def of(finished, players=EVERYONE, own=None):
    return effects(finished.evaluations, finished.estimate, players, own)


@pytest.mark.parametrize("estimator", ["reuse", "regression", "regression:paired"])
@pytest.mark.parametrize("metric", ["probability", "balanced_probability"])
@pytest.mark.parametrize("validation", [False, True])
def test_the_weighted_sum_of_the_effects_is_the_value(estimator, metric, validation):
    played = game(validation=validation, metric=metric)
    run = finish(played, estimator=estimator, budget=200)
    found = of(run, own=None if validation else EVERYONE)
    sums = np.nansum(found.weights * found.effects, axis=1)
    np.testing.assert_allclose(sums, run.estimate.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.weights, played.jury.weights)
    assert np.array_equal(np.isnan(found.effects), np.eye(N, dtype=bool) & (not validation))


@pytest.mark.parametrize("validation", [False, True])
def test_an_effect_is_the_difference_of_mean_scores_with_and_without_the_row(validation):
    """Against a loop over models. `reuse` leaves nothing to adjust where all rows judge; where
    rows judge each other, what a row adds by leaving the jury, which is noise, is shared out.
    """
    played = game(validation=validation)
    run = finish(played, estimator="reuse", budget=300)
    evaluations = run.evaluations
    coalitions = evaluations.design.coalitions(evaluations.indices)
    said = played.said(coalitions).astype(np.float32).astype(float)
    if not validation:
        outside = ~coalitions
        others = outside.sum(axis=0) - outside
        mean = ((said * outside).sum(axis=0) - said * outside) / others
        said = np.where(outside, said - mean, 0.0) / 0.5
    plain, errors = np.empty((N, N)), np.empty((N, N))
    for i, j in itertools.product(range(N), repeat=2):
        inside = coalitions[:, i]
        plain[i, j] = said[inside, j].mean() - said[~inside, j].mean()
        parts = 1 / inside.sum() + 1 / (~inside).sum()
        errors[i, j] = np.sqrt(said[:, j].var(ddof=1) * parts)
    found = of(run, own=None if validation else EVERYONE)
    if not validation:
        np.fill_diagonal(plain, np.nan)
        rest = run.estimate.values - np.nansum(plain / N, axis=1)
        plain += rest[:, None] * N / (N - 1)
        np.fill_diagonal(errors, np.nan)
    np.testing.assert_allclose(found.effects, plain, rtol=0, atol=1e-7)  # scores are float32
    np.testing.assert_allclose(found.std_errors, errors, rtol=1e-6)


@pytest.mark.parametrize("estimator", ["reuse", "regression"])
def test_effects_are_those_of_the_estimand_and_their_errors_are_honest(estimator):
    """Over 200 runs: means within four standard errors of brute force, errors of the right size."""
    played = game()
    coalitions = np.array(list(itertools.product([False, True], repeat=N)))
    scores, truth = played.said(coalitions), np.full((N, N), np.nan)
    for i, j in itertools.permutations(range(N), 2):
        out, inside = ~coalitions[:, j], coalitions[:, i]
        truth[i, j] = scores[out & inside, j].mean() - scores[out & ~inside, j].mean()
    runs = [
        of(finish(played, estimator=estimator, budget=200, seed=seed), own=EVERYONE)
        for seed in range(200)
    ]
    many = np.array([each.effects for each in runs])
    off = ~np.eye(N, dtype=bool)
    spread = many.std(axis=0, ddof=1)[off]
    error = spread / np.sqrt(len(runs))
    assert (np.abs(many.mean(axis=0) - truth)[off] < 4 * error).all()
    stated = np.sqrt(np.mean([each.std_errors**2 for each in runs], axis=0))[off]
    assert 0.7 < (spread / stated).min() < (spread / stated).max() < 1.2


def test_only_large_effects_are_beyond_noise():
    """Row 1 hurts row 0 alone. Everything else is noise, and 5% of juries may say otherwise."""

    def score(coalitions):
        luck = np.random.default_rng(coalitions.sum()).random(coalitions.shape)
        luck[:, 0] -= 0.4 * coalitions[:, 1]
        return np.clip(0.5 + 0.3 * (luck - 0.5), 0, 1)

    played = Toy(db.Dataset(np.zeros((N, 1)), LABELS), score)
    clear = [
        of(finish(played, estimator="reuse", budget=400, seed=seed), own=EVERYONE).beyond_noise()
        for seed in range(100)
    ]
    assert all(each[1, 0] for each in clear)
    elsewhere = np.array(clear)[:, 2:].any(axis=2).mean()
    assert elsewhere < 0.1
    assert not np.array(clear)[:, EVERYONE, EVERYONE].any()


def test_of_some_players_only():
    run = finish(game(), estimator="regression", budget=150)
    some = np.array([4, 1])
    whole = of(run, own=EVERYONE)
    part = of(run, some, some)
    np.testing.assert_allclose(part.effects, whole.effects[some], atol=1e-12)
    np.testing.assert_allclose(part.std_errors, whole.std_errors[some])


@pytest.mark.parametrize(
    "how", [{"notion": db.Shapley()}, {"notion": db.LeaveOneOut()}, {"estimator": "exact"}]
)
def test_other_designs_take_the_estimator_itself(how):
    run = finish(game(validation=True), budget=2**N * 4, **how)
    found = of(run)
    sums = found.effects @ found.weights
    np.testing.assert_allclose(sums, run.estimate.values, rtol=0, atol=1e-7)
    assert found.std_errors.shape == found.effects.shape


def test_exact_effects_of_a_game_without_noise_have_no_error():
    run = finish(game(validation=True), estimator="exact", budget=2**N)
    found = of(run)
    coalitions = np.array(list(itertools.product([False, True], repeat=N)))
    said = game(validation=True).said(coalitions)
    for i in range(N):
        inside = coalitions[:, i]
        truth = said[inside].mean(axis=0) - said[~inside].mean(axis=0)
        np.testing.assert_allclose(found.effects[i], truth, atol=1e-6)
    assert not found.std_errors.any()
    assert found.beyond_noise().all()


def test_unknown_where_nobody_can_tell():
    run = finish(game(), budget=100)
    assert effects(replace(run.evaluations, verdicts=None), run.estimate, EVERYONE) is None
    assert of(finish(game(), db.Shapley(), budget=2000)) is None  # a jury in folds
    assert of(finish(game(validation=True), db.LeastCore(), budget=64)) is None


def test_a_player_that_is_in_no_coalition_has_no_effect_and_no_sure_one():
    run = finish(game(validation=True), estimator="reuse", budget=400)
    inside = run.evaluations.design.coalitions(run.evaluations.indices)[:, 2]
    without = run.evaluations.only(~inside)
    found = effects(without, run.estimate, np.array([2]))
    assert np.isinf(found.std_errors).all()
    assert not found.beyond_noise().any()


@pytest.mark.parametrize("score", [1.0, 0.3])
@pytest.mark.parametrize("validation", [False, True])
def test_rows_on_which_all_models_score_the_same_have_no_effects(validation, score):
    """An adjusted value must not leak into them, where the least effect would be beyond noise."""
    said, same = arbitrary(), np.arange(N) % 2 == 0
    X = np.arange(N, dtype=float)[:, None]
    data = db.Dataset(X, LABELS, X, LABELS) if validation else db.Dataset(X, LABELS)
    played = Toy(data, lambda coalitions: np.where(same, score, said(coalitions)))
    run = finish(played, estimator="regression", budget=200)
    found = of(run, own=None if validation else EVERYONE)
    own = np.isnan(found.effects)
    np.testing.assert_allclose(found.effects[:, same][~own[:, same]], 0, atol=1e-9)
    assert not found.beyond_noise()[:, same].any()
    assert (np.abs(found.effects[:, ~same][~own[:, ~same]]) > 1e-6).all()
    sums = np.nansum(found.weights * found.effects, axis=1)
    np.testing.assert_allclose(sums, run.estimate.values, rtol=0, atol=1e-12)
    effects_of_rows = attribution_of(run.evaluations, run.estimate, played).matrix()
    np.testing.assert_allclose(effects_of_rows, found.effects, atol=1e-12)
