"""Regression-adjusted values: the formula by fits that leave each sample out, and what it promises
over many runs.
"""

import functools

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import databanzhaf as db
from databanzhaf import designs, estimators
from databanzhaf.estimators import regression, ridge
from databanzhaf.evaluations import Evaluations

N = 12
BANZHAF = db.Banzhaf()
ALL = ((np.arange(2**N)[:, None] >> np.arange(N)) & 1).astype(bool)


def sampled(design, m, utility):
    utility = np.asarray(utility, float)
    return Evaluations(design, np.arange(m), utility.reshape(m, -1))


def left_out(coalitions, u, p):
    """Adjusted samples and residuals, each by a fit of its own that never saw the sample."""
    m, n = coalitions.shape
    deviation = np.sqrt(p * (1 - p))
    s = (coalitions - p) / deviation
    adjusted, residual = np.empty((m, n)), np.empty(m)
    for t in range(m):
        part = np.arange(m) % 5 != t % 5
        v = u[part] - u[part].mean()
        products = (v @ s[part]) @ (v @ s[part]) - (v**2) @ (s[part] ** 2).sum(axis=1)
        share = np.clip(products / ((len(v) - 1) * (v @ v)), 0.001, 0.999)
        penalty = np.diag([0.0] + [n * (1 - share) / share] * n)
        others = np.arange(m) != t
        rows = np.column_stack([np.ones(m - 1), s[others]])
        fit = np.linalg.solve(rows.T @ rows + penalty, rows.T @ u[others])
        residual[t] = u[t] - fit[0] - s[t] @ fit[1:]
        adjusted[t] = fit[1:] / deviation + (s[t] / deviation) * residual[t]
    return adjusted, residual


@pytest.mark.parametrize(
    ("n", "m", "p"), [(7, 40, 0.5), (30, 21, 0.5), (9, 60, 0.2), (25, 18, 0.4)]
)
def test_each_sample_is_adjusted_by_the_fit_without_it(n, m, p, rng):
    design = designs.Coin(n, 3, p)
    coalitions = design.coalitions(np.arange(m))
    utilities = rng.normal(size=(m, 2)) + (coalitions @ rng.normal(size=n))[:, None]
    evaluations = sampled(design, m, utilities)
    fit = regression._Fit(evaluations, regression.Split.of(evaluations), p)
    adjusted, residual = left_out(coalitions, utilities.mean(axis=1), p)
    np.testing.assert_allclose(fit.values[0], adjusted.mean(axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        fit.variance(np.ones(n)).sum(axis=0), adjusted.var(axis=0, ddof=1) / m, rtol=1e-8
    )
    whole = (utilities.mean(axis=1) - utilities.mean()) * m / (m - 1)
    assert fit.explained == pytest.approx(1 - (residual @ residual) / (whole @ whole))

    # the mixture has the variance that its samples show, and never more than either alone
    notion = BANZHAF if p == 0.5 else db.WeightedBanzhaf(p)
    estimate = estimators.Regression()(evaluations, notion)
    mixture = fit.mixture()
    assert ((mixture >= 0) & (mixture <= 1)).all()
    least = np.minimum(*(fit.variance(share * np.ones(n)).sum(axis=0) for share in (0, 1)))
    assert (fit.variance(mixture).sum(axis=0) <= least * (1 + 1e-9)).all()
    reuse = estimators.Reuse()(evaluations, notion)
    np.testing.assert_allclose(
        estimate.values, reuse.values + mixture * (fit.values[0] - reuse.values), atol=1e-12
    )
    np.testing.assert_allclose(
        estimate.values_by_repeat.mean(axis=0), estimate.values, rtol=1e-9, atol=1e-9
    )


def test_the_fit_says_what_it_explains_and_what_is_noise(rng):
    design = designs.Coin(N, 5)
    m = 3000
    signal = (design.coalitions(np.arange(m)) @ np.ones(N))[:, None] * np.sqrt(4 / N)  # variance 1
    for repeats, noise in ((1, np.nan), (2, 1 / 3), (4, 1 / 5)):
        utilities = signal + rng.normal(size=(m, repeats))
        evaluations = Evaluations(design, np.arange(m), utilities, stochastic=True)
        fit = estimators.Regression()(evaluations, BANZHAF).fit
        assert fit.explained == pytest.approx(1 / (1 + 1 / repeats), abs=0.04)
        assert fit.noise == pytest.approx(noise, abs=0.03, nan_ok=True)
    assert str(fit).startswith(f"the fit explains {fit.explained:.0%} of the variance")
    assert str(fit).endswith(f"; {fit.noise:.0%} is training noise")
    alone = Evaluations(design, np.arange(m), signal, stochastic=True)
    said = repr(estimators.Regression()(alone, BANZHAF))
    assert "the fit explains 100% of the variance of the utilities" in said
    assert "noise" not in said


def test_a_large_penalty_is_sample_reuse(rng):
    """With a share of 0.001, what is left of the fit is next to nothing."""
    design = designs.Coin(N, 5)
    evaluations = sampled(design, 4000, rng.normal(size=4000))
    values = estimators.Regression()(evaluations, BANZHAF).values
    reuse = estimators.Reuse()(evaluations, BANZHAF)
    assert np.abs(values - reuse.values).max() < 0.1 * reuse.std_errors.min()


def test_pairs_of_complements_are_fitted_by_half_their_difference(rng):
    design = designs.Complementary(N, 2)
    m = 80
    coalitions = design.coalitions(np.arange(m))
    assert (coalitions[::2] ^ coalitions[1::2]).all()
    even = (2.0 * coalitions - 1) @ rng.normal(size=N)
    utility = coalitions @ np.arange(N) + even**2
    estimate = estimators.Regression(paired=True)(sampled(design, m, utility), BANZHAF)
    np.testing.assert_allclose(estimate.values, np.arange(N), atol=0.3)
    # the square is the same for both of a pair, and leaves no trace
    plain = estimators.Regression(paired=True)(
        sampled(design, m, coalitions @ np.arange(N)), BANZHAF
    )
    np.testing.assert_allclose(estimate.values, plain.values, atol=1e-9)
    game = db.games.Function(N, lambda c: c.sum(axis=1), name="sum")
    by_name = db.value(game, estimator="regression:paired", budget=200)
    assert by_name.estimator == estimators.Regression(paired=True)
    np.testing.assert_allclose(by_name.values, 1, atol=1e-2)


# --- over many runs ---


def _network():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N + 40, 4))
    y = (X @ rng.normal(size=4) + 0.7 * rng.normal(size=N + 40) > 0).astype(int)
    data = db.Dataset(X[:N], y[:N], X[N:], y[N:])
    game = db.games.Network(data, epochs=20, learning_rate=0.05)
    return game.utility(ALL, np.zeros(2**N, np.uint64))


@functools.cache
def table(name):
    """The utilities of all coalitions."""
    rng = np.random.default_rng(7)
    a, b, w = rng.normal(size=N), np.triu(rng.normal(size=(N, N)), 1), np.abs(rng.normal(size=N))
    s = 2.0 * ALL - 1
    pairs = np.einsum("mi,ij,mj->m", s, b, s)
    return {
        "linear": lambda: s @ a,
        "near linear": lambda: s @ a + 0.15 * pairs,
        "strongly interacting": lambda: 0.3 * (s @ a) + pairs,
        "threshold": lambda: (ALL @ w > 0.55 * w.sum()).astype(float),
        "logistic": lambda: 1 / (1 + np.exp(-1.5 * (s @ a))),
        "network": _network,
        # skewed, for rare players
        "square": lambda: (ALL @ (w + 0.2)) ** 2,
        "pairs": lambda: (ALL[:, ::2] & ALL[:, 1::2]) @ (w[: N // 2] + 0.2),
        "largest": lambda: (ALL * (w + 0.2)).max(axis=1),
        "three together": lambda: (ALL.sum(axis=1) >= 3).astype(float),
    }[name]()


def truth(name, p):
    utility = table(name)
    chance = np.where(ALL, p, 1 - p).prod(axis=1)
    return np.array(
        [(chance * utility * (ALL[:, i] / p - ~ALL[:, i] / (1 - p))).sum() for i in range(N)]
    )


def many_runs(name, m, p=0.5, runs=400):
    """Values and intervals of regression and reuse over `runs` seeds, (runs, n) each."""
    notion = BANZHAF if p == 0.5 else db.WeightedBanzhaf(p)
    values, hits = {"regression": [], "reuse": []}, {"regression": [], "reuse": []}
    code = 1 << np.arange(N)
    for seed in range(runs):
        design = designs.Coin(N, seed, p)
        utility = table(name)[design.coalitions(np.arange(m)) @ code]
        for how in (estimators.Regression(), estimators.Reuse()):
            estimate = how(sampled(design, m, utility), notion)
            low, high = estimate.interval()
            values[how.name].append(estimate.values)
            hits[how.name].append((low <= truth(name, p)) & (truth(name, p) <= high))
    return values, hits


@pytest.mark.parametrize("m", [N // 2, N, 2 * N, 5 * N, 50 * N])
@pytest.mark.parametrize(
    "name",
    ["linear", "near linear", "strongly interacting", "threshold", "logistic", "network"],
)
def test_unbiased_honest_and_never_worse_than_reuse(name, m):
    values, hits = many_runs(name, m)
    right = truth(name, 0.5)
    runs = np.array(values["regression"])
    drift = (runs.mean(axis=0) - right) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))
    assert np.abs(drift).max() < 4
    error, of_reuse = (
        np.sqrt(((np.array(values[how]) - right) ** 2).sum(axis=1).mean())
        for how in ("regression", "reuse")
    )
    assert error <= 1.02 * of_reuse
    if m >= 5 * N and name != "strongly interacting":
        assert error <= 0.76 * of_reuse
    # with few coalitions intervals are wider than they need be
    assert 0.92 <= np.mean(hits["regression"]) <= (0.98 if m > 2 * N else 1)


@pytest.mark.parametrize(("p", "m"), [(0.05, 400), (0.05, 1200), (0.2, 200), (0.2, 1200)])
@pytest.mark.parametrize("name", ["square", "pairs", "largest", "three together"])
def test_intervals_of_rare_players_are_honest(name, p, m):
    """By the spread of a player's own samples alone `reuse` covers 0.69 to 0.95 here."""
    values, hits = many_runs(name, m, p, runs=200)
    for how in ("regression", "reuse"):
        assert np.mean(hits[how]) >= 0.92
    right = truth(name, p)
    error, of_reuse = (
        np.sqrt(((np.array(values[how]) - right) ** 2).sum(axis=1).mean())
        for how in ("regression", "reuse")
    )
    assert error <= 1.02 * of_reuse


# --- at the border ---


def test_what_regression_cannot_read_is_said():
    permutations = designs.Permutation(5, 0)
    with pytest.raises(db.DesignMismatch, match=r"coin of bias 0\.5"):
        estimators.Regression()(sampled(permutations, 12, np.arange(12)), BANZHAF)
    with pytest.raises(db.DesignMismatch, match=r"coin of bias 0\.3"):
        estimators.Regression()(
            sampled(designs.Coin(5, 0), 12, np.arange(12)), db.WeightedBanzhaf(0.3)
        )
    with pytest.raises(db.DesignMismatch, match="Banzhaf values only"):
        estimators.Regression().design(db.Shapley(), 5, 0)
    with pytest.raises(db.DesignMismatch, match="at least 4 coalitions; got 3"):
        estimators.Regression()(sampled(designs.Coin(5, 0), 3, np.arange(3)), BANZHAF)
    with pytest.raises(db.DesignMismatch, match="at least 4 pairs"):
        estimators.Regression(paired=True)(
            sampled(designs.Complementary(5, 0), 6, np.arange(6)), BANZHAF
        )
    with pytest.raises(db.DesignMismatch, match="bias 1 - p"):
        estimators.Regression(paired=True).design(db.WeightedBanzhaf(0.3), 5, 0)


def test_auto_falls_back_to_reuse_where_the_fit_needs_too_much_memory():
    regressed, reused = estimators.Regression(), estimators.Reuse()
    for n, budget, fits in [
        (20_000, 10**6, True),
        (20_001, 20_001, False),
        (10**6, 2000, True),
        (10**6, 2001, False),
        (50, 3, False),
    ]:
        assert (regressed.suits(BANZHAF, n, budget) > reused.suits(BANZHAF, n, budget)) == fits
    large = sampled(designs.Coin(ridge.LARGEST + 1, 0), 4, np.arange(4))
    object.__setattr__(large, "indices", np.arange(ridge.LARGEST + 1))
    with pytest.raises(db.DesignMismatch, match=r'too much memory.*estimator="reuse"'):
        estimators.Regression()(large, BANZHAF)


@pytest.mark.parametrize("m", [5, 40])
def test_players_without_contrast_and_equal_utilities_claim_nothing(m):
    evaluations = sampled(designs.Coin(60, 1), m, np.ones(m))
    estimate = estimators.Regression()(evaluations, BANZHAF)
    assert np.isinf(estimate.std_errors).all()
    assert (estimate.values == 0).all()
    coalitions = evaluations.design.coalitions(np.arange(m))
    estimate = estimators.Regression()(sampled(evaluations.design, m, np.arange(m)), BANZHAF)
    without = np.isin(coalitions.sum(axis=0), [0, m])
    assert without.any() == (m == 5)
    assert np.isinf(estimate.std_errors[without]).all()
    assert (estimate.values[without] == 0).all()
    assert np.isfinite(estimate.std_errors[~without]).any()


@pytest.mark.parametrize("m", [N // 2, 3 * N, 40 * N])
@pytest.mark.parametrize(("p", "paired"), [(0.5, False), (0.5, True), (0.3, False)])
def test_axioms(m, p, paired, rng):
    """Scale and shift move values and errors as they must, exactly; a player that does nothing and
    two that do the same are so within their errors.
    """
    notion = BANZHAF if p == 0.5 else db.WeightedBanzhaf(p)
    estimator = estimators.Regression(paired=paired)
    design = estimator.design(notion, N, 4)
    m *= 2 if paired else 1
    coalitions = design.coalitions(np.arange(m)).astype(float)
    alike = coalitions[:, 1] + coalitions[:, 2]  # player 0 does nothing, 1 and 2 the same
    utility = np.sqrt(1 + 2 * alike + coalitions[:, 3:] @ rng.random(N - 3)) + coalitions[:, 3]
    first = estimator(sampled(design, m, utility), notion)
    other = estimator(sampled(design, m, 1e9 - 1e3 * utility), notion)
    np.testing.assert_allclose(other.values, -1e3 * first.values, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(other.std_errors, 1e3 * first.std_errors, rtol=1e-4)
    known = np.isfinite(first.std_errors)
    low, high = first.interval(0.9999)
    assert not known[0] or low[0] <= 0 <= high[0]
    apart = np.hypot(first.std_errors[1], first.std_errors[2])
    assert not known[1:3].all() or abs(first.values[1] - first.values[2]) < 6 * apart


def test_rare_pairs_that_never_met_leave_room_in_the_interval():
    """Two players of which one at a time adds 10, at p = 0.05; the rest is additive."""
    n, p, m = 20, 0.05, 200
    weights, hits = np.linspace(1, 2, n), []
    for seed in range(100):
        design = designs.Coin(n, seed, p)
        x = design.coalitions(np.arange(m))
        estimate = estimators.Regression()(
            sampled(design, m, 10.0 * (x[:, 0] ^ x[:, 1]) + x @ weights), db.WeightedBanzhaf(p)
        )
        low, high = estimate.interval()
        right = 10 * (1 - 2 * p) + weights[:2]
        hits.append((low[:2] <= right) & (right <= high[:2]))
    assert np.mean(hits) > 0.92
    # too few coalitions hold a player: "auto" takes `reuse`
    assert estimators.Regression().suits(db.WeightedBanzhaf(p), n, m) == 0
    assert estimators.Regression().suits(db.WeightedBanzhaf(p), n, 1000) > 10


def test_a_half_that_is_too_short_has_no_ranking(rng):
    for design, indices in (
        (designs.Coin(N, 0), [0, 1, 2, 3, 4, 6, 8, 10]),
        (designs.Complementary(N, 0), np.arange(15)),
    ):
        evaluations = Evaluations(design, np.array(indices), rng.normal(size=(len(indices), 1)))
        estimate = db.estimate(evaluations)
        assert np.isnan(db.diagnostics.split_half(evaluations, BANZHAF, estimate.estimator))


@pytest.mark.parametrize("indices", [np.arange(0, 500, 5), np.arange(4)])
def test_one_part_alone_chooses_its_own_penalty(indices, rng):
    evaluations = Evaluations(designs.Coin(N, 0), indices, rng.normal(size=(len(indices), 1)))
    assert np.isfinite(estimators.Regression()(evaluations, BANZHAF).values).all()


def test_pairs_are_known_by_their_design():
    design = designs.Complementary(3, 5)
    evaluations = sampled(design, 8, -design.coalitions(np.arange(8)).sum(axis=1))
    estimate = db.estimate(evaluations)
    assert estimate.estimator == estimators.Regression(paired=True)
    assert estimate.p_values().min() >= 2**-4  # four throws decided who is in
    assert "differences of complements" in str(estimate.fit)
    with pytest.raises(db.DesignMismatch, match="complementary pairs"):
        db.estimate(sampled(designs.Coin(3, 5), 8, np.arange(8)), estimator="regression:paired")


@pytest.mark.parametrize("estimator", [estimators.Regression(), estimators.Reuse()])
def test_bits_do_not_depend_on_the_number_of_blas_threads(estimator, rng):
    design, m = designs.Coin(300, 0), 2000
    evaluations = sampled(design, m, rng.normal(size=m))
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            found.append(estimator(evaluations, BANZHAF))
    assert np.array_equal(found[0].values, found[1].values)
    assert np.array_equal(found[0].std_errors, found[1].std_errors)
