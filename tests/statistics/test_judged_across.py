"""Rows that judge each other: the estimand by brute force, axioms, and both intervals."""

from dataclasses import replace

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import chance
from databanzhaf.verdicts import Verdicts
from tests.judged_toys import Toy, true_values

N = 6
LABELS = np.array([0, 0, 0, 0, 1, 1])


def arbitrary(n=N, seed=0):
    """Any score for any coalition: interactions of every order."""
    table = np.random.default_rng(seed).random((2**n, n))
    powers = 2 ** np.arange(n)
    return lambda coalitions: table[coalitions @ powers]


def rows(n=N, labels=None):
    return db.Dataset(np.arange(n, dtype=float)[:, None], LABELS if labels is None else labels)


def toy(score=None, data=None, **how):
    return Toy(rows() if data is None else data, score or arbitrary(), **how)


@pytest.mark.parametrize(
    ("metric", "estimator", "notion"),
    [
        ("probability", "regression", db.Banzhaf()),
        ("balanced_probability", "reuse", db.Banzhaf()),
        ("balanced_probability", "regression", db.Banzhaf()),
        ("balanced_probability", "regression:paired", db.Banzhaf()),
        ("balanced_probability", "reuse", db.WeightedBanzhaf(0.3)),
    ],
    ids=str,
)
def test_values_are_those_of_the_estimand(metric, estimator, notion):
    """Means over 200 runs lie within four standard errors, intervals cover. Balanced, the rows of
    the jury weigh differently: equal weights are the easier case, which one estimator shows.
    """
    game = toy(metric=metric)
    truth = true_values(game.said, N, game.jury.weights, getattr(notion, "p", 0.5))
    runs = [
        db.value(game, notion, estimator=estimator, budget=200, seed=seed) for seed in range(200)
    ]
    values = np.array([run.values for run in runs])
    error = values.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(values.mean(axis=0) - truth) < 4 * error).all()
    low, high = zip(*(run.interval(errors=run.run_errors) for run in runs), strict=True)
    covered = ((np.array(low) <= truth) & (truth <= np.array(high))).mean()
    assert 0.92 <= covered <= 0.99


def test_a_mean_over_the_outside_alone_would_be_biased():
    """The control: without subtracting each row's own mean, hard rows look valuable."""
    hard = np.array([0.1, 0.9, 0.9, 0.9, 0.9, 0.9])
    game = toy(lambda coalitions: np.tile(hard, (len(coalitions), 1)))
    assert np.allclose(db.value(game, estimator="reuse", budget=2000).values, 0, atol=1e-12)
    design = db.designs.Coin(N, 0)
    coalitions = design.coalitions(np.arange(2000))
    naive = game.utility(coalitions, chance.keys(0, chance.TRAINING, np.arange(2000)))
    plain = db.estimate(db.Evaluations(design, np.arange(2000), naive[:, None], False))
    assert plain.values[0] > 0.05


def test_the_utility_is_the_formula():
    """U_t against a loop over rows, with two repeats."""
    rng = np.random.default_rng(1)
    scores = rng.random((7, 2, 4)).astype(np.float32)
    scores[np.repeat((rng.random((7, 4)) < 0.5)[:, None], 2, axis=1)] = np.nan
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    found = Verdicts(scores, weights, 0.7, 4).utilities()
    for t in range(7):
        for repeat in range(2):
            expected = 0.0
            for j in range(4):
                others = np.delete(scores[:, :, j], t, axis=0)
                if np.isnan(scores[t, repeat, j]) or np.isnan(others).all():
                    continue
                expected += weights[j] * (scores[t, repeat, j] - np.nanmean(others)) / 0.7
            assert found[t, repeat] == pytest.approx(expected, abs=1e-6)


def test_a_dummy_is_worth_nothing_and_twins_are_worth_the_same():
    """Row 0 changes no model; rows 1 and 2 are the same row twice, and so judge alike."""
    table = np.random.default_rng(5).random((3, 2, 2, 2, N))

    def score(coalitions):
        twins = coalitions[:, 1].astype(int) + coalitions[:, 2]
        said = table[twins, *(coalitions[:, 3:].astype(int).T)]
        said[:, 2] = said[:, 1]
        return said

    values = np.array(
        [db.value(toy(score), estimator="regression", budget=400, seed=s).values for s in range(60)]
    )
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert abs(values.mean(axis=0)[0]) < 4 * error[0]
    apart = values[:, 1] - values[:, 2]
    assert abs(apart.mean()) < 4 * apart.std(ddof=1) / np.sqrt(len(apart))


# --- the interval of the population: over draws of the rows that judge ---


@pytest.mark.parametrize("kind", ["across", "validation"])
def test_population_intervals_cover_over_draws_of_the_jury(kind):
    """Row 0 stays; the rows that judge it are drawn again in each run."""
    feature, n, hits, run_hits = np.array([0.8, 0.3]), 24, [], []
    z = np.random.default_rng(9).normal(size=400_000)
    truth = 0.8 / n * np.tanh(feature[0] + z * feature[1]).mean()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        mine = np.vstack([feature, rng.normal(size=(n - 1, 2))])
        judges = mine if kind == "across" else rng.normal(size=(n, 2))
        effects = 0.8 / n * np.tanh(mine[:, :1] + mine[:, 1:] * judges[:, 0])
        noise = rng.normal(size=(n, n)) * 0.005 / n  # pairs of rows matter too

        def score(coalitions, effects=effects, noise=noise):
            signs = coalitions - 0.5
            pairs = ((signs @ noise) * signs).sum(axis=1, keepdims=True)
            return 0.5 + signs @ effects + pairs

        data = rows(n, np.arange(n) % 2)
        if kind == "validation":
            data = db.Dataset(data.X, data.y, data.X, data.y)
        run = db.value(toy(score, data, name=str(seed)), budget=400, seed=seed)
        for errors, into in ((run.errors, hits), (run.run_errors, run_hits)):
            low, high = run.interval(errors=errors)
            into.append(low[0] <= truth <= high[0])
    assert 0.92 <= np.mean(hits) <= 0.98
    assert np.mean(run_hits) < 0.9  # the run alone promises too much


def test_pure_noise_is_not_called_harmful():
    """Random labels: the run's errors alone flag rows, both together none."""
    rng = np.random.default_rng(0)
    data = db.Dataset(rng.normal(size=(150, 6)).astype(np.float32), rng.integers(0, 2, 150))
    run = db.value(db.games.Forest(data), budget=3000)
    assert run.below_zero().sum() == 0
    assert replace(run, population=None).below_zero().sum() > 3
