from math import comb, exp, lgamma

import numpy as np
import pytest

import databanzhaf as db

SEMIVALUES = [
    db.Banzhaf(),
    db.WeightedBanzhaf(0.2),
    db.Shapley(),
    db.Beta(16, 1),
    db.Beta(4, 1),
    db.Beta(1, 4),
    db.Beta(1, 16),
    db.LeaveOneOut(),
    db.Semivalue(lambda n: -np.arange(n) / n),
]


@pytest.mark.parametrize("notion", SEMIVALUES, ids=lambda notion: notion.name)
@pytest.mark.parametrize("n", [1, 2, 10, 1000, 100_000])
def test_weights_sum_to_one_and_are_finite(notion, n):
    weights = notion.weights(n)
    assert weights.shape == (n,)
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-9)


def beta_function(a, b):
    return exp(lgamma(a) + lgamma(b) - lgamma(a + b))


@pytest.mark.parametrize("n", [1, 2, 5, 10, 50])
def test_log_weights_equal_the_definitions(n):
    k = np.arange(1, n + 1)
    definitions = {
        db.Banzhaf(): [n / 2 ** (n - 1)] * n,
        db.WeightedBanzhaf(0.3): [n * 0.3 ** (j - 1) * 0.7 ** (n - j) for j in k],
        db.Shapley(): [1 / comb(n - 1, j - 1) for j in k],
        db.Beta(16, 1): [n * beta_function(j, n - j + 16) / beta_function(16, 1) for j in k],
        db.Beta(2.5, 0.5): [
            n * beta_function(j - 0.5, n - j + 2.5) / beta_function(2.5, 0.5) for j in k
        ],
        db.LeaveOneOut(): [0.0] * (n - 1) + [n],
    }
    for notion, expected in definitions.items():
        np.testing.assert_allclose(np.exp(notion.log_weights(n)), expected, rtol=1e-9)
        # The definition's own constraint: sum C(n-1, k-1) w(k) = n.
        assert sum(
            comb(n - 1, j - 1) * w for j, w in zip(k, expected, strict=True)
        ) == pytest.approx(n)
        np.testing.assert_allclose(
            notion.weights(n),
            [comb(n - 1, j - 1) * w / n for j, w in zip(k, expected, strict=True)],
            rtol=1e-9,
        )


@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_size_laws_are_the_known_distributions(n):
    from scipy import stats

    sizes = np.arange(n)
    np.testing.assert_allclose(
        db.Banzhaf().weights(n), stats.binom.pmf(sizes, n - 1, 0.5), rtol=1e-7, atol=1e-300
    )
    np.testing.assert_allclose(
        db.WeightedBanzhaf(0.1).weights(n),
        stats.binom.pmf(sizes, n - 1, 0.1),
        rtol=1e-7,
        atol=1e-300,
    )
    np.testing.assert_allclose(db.Shapley().weights(n), np.full(n, 1 / n), rtol=1e-9)
    # Beta(alpha, beta) mixes coins of bias Beta(beta, alpha).
    np.testing.assert_allclose(
        db.Beta(16, 1).weights(n), stats.betabinom.pmf(sizes, n - 1, 1, 16), rtol=1e-6, atol=1e-300
    )


def test_beta_16_1_leans_on_small_coalitions():
    weights = db.Beta(16, 1).weights(1000)
    assert weights[:100].sum() > 0.8
    np.testing.assert_allclose(weights, db.Beta(1, 16).weights(1000)[::-1], rtol=1e-9)
    # In closed form for beta = 1: g(1) = alpha / (n - 1 + alpha).
    assert weights[0] == pytest.approx(16 / (999 + 16), rel=1e-10)


def test_beta_1_1_is_shapley():
    np.testing.assert_allclose(db.Beta(1, 1).weights(500), db.Shapley().weights(500), rtol=1e-9)


def test_your_own_weights_need_no_normalisation():
    np.testing.assert_allclose(
        db.Semivalue(lambda n: np.full(n, 123.0)).weights(50), db.Banzhaf().weights(50), rtol=1e-9
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: db.WeightedBanzhaf(0),
        lambda: db.WeightedBanzhaf(1),
        lambda: db.WeightedBanzhaf(-0.5),
        lambda: db.WeightedBanzhaf(float("nan")),
        lambda: db.Beta(0, 1),
        lambda: db.Beta(1, -1),
        lambda: db.Beta(1, float("inf")),
        lambda: db.Banzhaf().weights(0),
        lambda: db.Banzhaf().weights(2.5),
        lambda: db.Semivalue(lambda n: np.zeros(n + 1)).weights(3),
        lambda: db.Semivalue(lambda n: np.full(n, np.nan)).weights(3),
        lambda: db.Semivalue(lambda n: np.full(n, -np.inf)).weights(3),
    ],
)
def test_bad_weights_are_refused(make):
    with pytest.raises(db.InvalidInput, match="must"):
        make()
