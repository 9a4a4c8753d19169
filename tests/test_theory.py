from itertools import permutations
from math import comb, log, sqrt

import numpy as np
import pytest
from scipy.stats import norm

import databanzhaf as db
from databanzhaf import theory

from .test_notions import SEMIVALUES


def weights(notion, n):
    """w(k), k = 1..n, from the size law."""
    return np.array([n * g / comb(n - 1, k) for k, g in enumerate(notion.weights(n))])


def coalitions(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def pair_vector(notion, n, i, j):
    """a with D_ij(U) = a . U, entry by entry from the proof of the lemma."""
    w, a = weights(notion, n), np.zeros(2**n)
    for position, member in enumerate(coalitions(n)):
        if member[i] != member[j]:
            size = member.sum() - 1
            a[position] = (1 if member[i] else -1) * (w[size] + w[size + 1])
    return a


@pytest.mark.parametrize("n", [2, 3, 10, 33])
def test_the_papers_three_margins(n):
    shapley = (n - 1) / sqrt(sum(1 / comb(n - 2, k) for k in range(n - 1)))
    assert theory.safety_margin(db.LeaveOneOut(), n, tau=0.5) == pytest.approx(0.5)
    assert theory.safety_margin(db.Shapley(), n, tau=0.5) == pytest.approx(0.5 * shapley)
    assert theory.safety_margin(db.Banzhaf(), n, tau=0.5) == pytest.approx(0.5 * 2 ** (n / 2 - 1))


@pytest.mark.parametrize("n", [1000, 100_000])
def test_margins_and_lipschitz_at_size(n):
    assert theory.safety_margin(db.Banzhaf(), n, log=True) == pytest.approx(
        (n / 2 - 1) * log(2), rel=1e-9
    )
    assert theory.lipschitz(db.Banzhaf(), n, log=True) == pytest.approx(
        (1 - n / 2) * log(2), rel=1e-9
    )
    # The Shapley sum's first terms: 1 + 1/(n-2) + 2/((n-2)(n-3)) and their mirror images.
    ends = 2 * (1 + 1 / (n - 2) + 2 / ((n - 2) * (n - 3)) + 6 / ((n - 2) * (n - 3) * (n - 4)))
    assert theory.safety_margin(db.Shapley(), n) == pytest.approx((n - 1) / sqrt(ends), rel=1e-8)
    assert theory.safety_margin(db.LeaveOneOut(), n) == pytest.approx(1)
    for notion in SEMIVALUES:
        assert np.isfinite(theory.safety_margin(notion, n, log=True))
        assert np.isfinite(theory.lipschitz(notion, n, log=True))


def test_beyond_float64_is_said_not_rounded():
    assert theory.safety_margin(db.Banzhaf(), 1000) == pytest.approx(2.0**499)
    with pytest.raises(db.InvalidInput, match="log=True"):
        theory.safety_margin(db.Banzhaf(), 100_000)
    with pytest.raises(db.InvalidInput, match="log=True"):
        theory.lipschitz(db.Banzhaf(), 100_000)


@pytest.mark.parametrize("notion", SEMIVALUES, ids=lambda notion: notion.name)
@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_margin_equals_a_search_over_all_distinguishable_utilities(notion, n):
    """min over U with Delta_k(U) >= tau of D(U) / |a| is a linear program over 2^n unknowns: solve
    it.
    """
    from scipy.optimize import linprog

    tau, table = 0.7, coalitions(n)
    pairs = [(0, 1)] if n > 5 else [(i, j) for i, j in permutations(range(n), 2) if i < j]
    for i, j in pairs:
        a = pair_vector(notion, n, i, j)
        apart = table[:, i].astype(int) - table[:, j]
        averages = np.array(
            [apart * (table.sum(axis=1) == k) / comb(n - 2, k - 1) for k in range(1, n)]
        )
        found = linprog(a, A_ub=-averages, b_ub=np.full(n - 1, -tau), bounds=(None, None))
        assert found.status == 0
        # The lemma's proof drops a factor 2 from |a|^2 (see the docstring), so the search finds
        # margin / sqrt(2).
        assert found.fun / np.linalg.norm(a) == pytest.approx(
            theory.safety_margin(notion, n, tau) / sqrt(2), rel=1e-7
        )


@pytest.mark.parametrize("notion", SEMIVALUES, ids=lambda notion: notion.name)
@pytest.mark.parametrize("n", [2, 3, 8])
def test_margin_equals_the_lemma_summed_term_by_term(notion, n):
    w = weights(notion, n)
    top = sum(comb(n - 2, k) * (w[k] + w[k + 1]) for k in range(n - 1))
    bottom = sum(comb(n - 2, k) * (w[k] + w[k + 1]) ** 2 for k in range(n - 1))
    assert theory.safety_margin(notion, n, 0.7) == pytest.approx(
        0.7 * top / sqrt(bottom), rel=1e-10
    )


def test_no_smaller_noise_flips_a_distinguishable_pair(rng):
    """The definition itself: random noise just below the margin never reverses the pair."""
    n, tau = 6, 1.0
    for notion in SEMIVALUES:
        utility, _ = theory.worst_perturbation(notion, n, tau)
        a, margin = pair_vector(notion, n, 0, 1), theory.safety_margin(notion, n, tau)
        noise = rng.normal(size=(2000, 2**n))
        noise[0] = -a
        noise *= 0.999 * margin / sqrt(2) / np.linalg.norm(noise, axis=1, keepdims=True)
        assert ((utility + noise) @ a > 0).all()


@pytest.mark.parametrize("notion", SEMIVALUES, ids=lambda notion: notion.name)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_worst_perturbation_flips_the_pair_at_the_margin(notion, n):
    tau = 0.3
    utility, perturbed = theory.worst_perturbation(notion, n, tau)
    table = coalitions(n)
    apart = table[:, 0].astype(int) - table[:, 1]
    for k in range(1, n):
        assert (utility * apart)[table.sum(axis=1) == k].sum() / comb(
            n - 2, k - 1
        ) == pytest.approx(tau)
    assert np.linalg.norm(perturbed - utility) == pytest.approx(
        theory.safety_margin(notion, n, tau), rel=1e-12
    )
    before = db.value(db.games.Table(utility), notion, estimator="exact").values
    after = db.value(db.games.Table(perturbed), notion, estimator="exact").values
    assert before[0] - before[1] > 1e-3
    assert after[1] > after[0]
    tied = utility + (perturbed - utility) / sqrt(2)
    values = db.value(db.games.Table(tied), notion, estimator="exact").values
    assert values[0] - values[1] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("notion", SEMIVALUES, ids=lambda notion: notion.name)
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_lipschitz_is_the_norm_of_the_semivalues_matrix(notion, n):
    unit_games = np.eye(2**n)
    from databanzhaf.estimators.exact import semivalues

    matrix = semivalues(unit_games, notion).T
    assert theory.lipschitz(notion, n) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-10)


@pytest.mark.parametrize("n", [3, 10, 40])
def test_banzhaf_beats_a_thousand_random_semivalues(n, rng):
    margin, constant = theory.safety_margin(db.Banzhaf(), n), theory.lipschitz(db.Banzhaf(), n)
    for scale in (0.1, 1.0, 5.0):
        for _ in range(334):
            noise = rng.normal(scale=scale, size=n)
            other = db.Semivalue(lambda n, noise=noise: noise)
            assert theory.safety_margin(other, n) <= margin * (1 + 1e-12)
            assert theory.lipschitz(other, n) >= constant * (1 - 1e-12)


def test_sample_counts_have_the_proofs_constants():
    n, epsilon, delta = 200, 0.05, 0.01
    m = theory.samples_needed(n, epsilon, delta)
    assert (
        5 * n * np.exp(-m * epsilon**2 / 32) <= delta < 5 * n * np.exp(-(m - 1) * epsilon**2 / 32)
    )
    m = theory.samples_needed(n, epsilon, delta, norm="l2")
    assert (
        5 * n * np.exp(-m * epsilon**2 / (32 * n))
        <= delta
        < 5 * n * np.exp(-(m - 1) * epsilon**2 / (32 * n))
    )
    m = theory.samples_needed(n, epsilon, delta, noisy=True)
    assert (
        10 * n * np.exp(-m * epsilon**2 / 128)
        <= delta
        < 10 * n * np.exp(-(m - 1) * epsilon**2 / 128)
    )
    m = theory.samples_needed(n, epsilon, delta, estimator="marginal")
    pairs = m // (2 * n)
    assert m == 2 * n * pairs
    assert (
        2 * n * np.exp(-pairs * epsilon**2 / 2)
        <= delta
        < 2 * n * np.exp(-(pairs - 1) * epsilon**2 / 2)
    )
    assert theory.lower_bound(0.02, 0.1) == pytest.approx(0.8 / 0.04)


def test_the_papers_constant_for_simple_monte_carlo_is_too_small():
    """Why ours differs: with 2 exp(-2 m eps^2) a fair +-1 contribution would break the promise."""
    from scipy.stats import binom

    epsilon, delta = 0.1, 0.05
    papers = int(np.ceil(log(2 / delta) / (2 * epsilon**2)))
    ours = theory.samples_needed(1, epsilon, delta, estimator="marginal") // 2

    def failure(m):  # |mean of m fair signs| >= epsilon
        return 2 * binom.cdf(np.floor(m * (1 - epsilon) / 2), m, 0.5)

    assert failure(papers) > 3 * delta
    assert failure(ours) < delta


@pytest.mark.parametrize("norm", ["inf", "l2"])
@pytest.mark.parametrize("estimator", ["reuse", "marginal"])
def test_error_bound_inverts_samples_needed(norm, estimator):
    m = theory.samples_needed(50, 0.1, 0.05, norm, estimator)
    assert theory.error_bound(50, m, 0.05, norm, estimator) == pytest.approx(0.1, rel=2e-2)
    assert theory.error_bound(50, m, 0.05, norm, estimator) <= 0.1 * (1 + 1e-12)
    if estimator == "reuse":
        for count in range(1, 200):
            assert (
                theory.samples_needed(50, theory.error_bound(50, count, 0.05, norm), 0.05, norm)
                == count
            )


def test_noise_floor():
    assert theory.noise_floor(10, 2.0) == pytest.approx(2 / 16)
    assert theory.noise_floor(10, 2.0, "l2") == pytest.approx(2 / 16 * sqrt(10))


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.safety_margin(db.Banzhaf(), 1),
        lambda: theory.safety_margin(db.Banzhaf(), 0),
        lambda: theory.safety_margin(db.Banzhaf(), 5, tau=0),
        lambda: theory.safety_margin(db.LeastCore(), 5),
        lambda: theory.lipschitz(db.LeastCore(), 5),
        lambda: theory.worst_perturbation(db.Banzhaf(), 40),
        lambda: theory.samples_needed(0, 0.1, 0.1),
        lambda: theory.samples_needed(5, 0, 0.1),
        lambda: theory.samples_needed(5, 0.1, 1),
        lambda: theory.samples_needed(5, 1e-200, 0.1),
        lambda: theory.samples_needed(5, 0.1, 0.1, norm="l1"),
        lambda: theory.samples_needed(5, 0.1, 0.1, estimator="permutation"),
        lambda: theory.error_bound(5, 0, 0.1),
        lambda: theory.error_bound(5, 9, 0.1, estimator="marginal"),
        lambda: theory.lower_bound(0.1, 0.6),
        lambda: theory.lower_bound(2, 0.1),
        lambda: theory.noise_floor(3, -1),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(db.InvalidInput):
        call()


@pytest.mark.parametrize("n", [2, 5, 14])
def test_a_margin_in_units_of_noise_that_is_the_same_everywhere(n):
    for notion in (db.Banzhaf(), db.Shapley(), db.WeightedBanzhaf(0.3)):
        plain = theory.safety_margin(notion, n)
        assert theory.safety_margin(notion, n, noise=np.full(n - 1, 2.0)) == pytest.approx(
            plain / 2
        )


def test_the_most_robust_p_under_noise_that_falls_with_the_size():
    """Its closed form is the maximum of the margin over a grid of p."""
    n, slope = 12, -0.3
    noise = np.exp(slope * np.arange(1, n) / 2)
    grid = np.linspace(0.4, 0.7, 301)
    margins = [theory.safety_margin(db.WeightedBanzhaf(p), n, noise=noise) for p in grid]
    assert grid[np.argmax(margins)] == pytest.approx(1 / (1 + np.exp(slope)), abs=0.001)


@pytest.mark.parametrize(("slope", "estimator"), [(0.0, "reuse"), (-0.15, "permutation")])
def test_the_most_robust_p_is_found_from_repeats(slope, estimator):
    n = 20

    def noisy(coalitions, keys):
        size = coalitions.sum(axis=1)
        luck = norm.ppf(db.chance.uniform(keys, 1)[:, 0])
        return size + 0.1 * np.exp(slope * size / 2) * luck

    game = db.games.Function(n, noisy, stochastic=True, name=f"noise {slope}")
    ledger = db.Ledger()
    notion = db.Banzhaf() if estimator == "reuse" else db.Shapley()
    db.value(game, notion, estimator=estimator, budget=3000, repeats=2, ledger=ledger)
    found = theory.most_robust_p(ledger)
    truth = 1 / (1 + np.exp(slope))
    assert abs(found.p - truth) < 4 * found.std_error
    assert found.std_error < 0.01
    assert found.notion.p == found.p
    assert found.gain >= 1
    assert found.noise[0] == pytest.approx(0.1 * np.exp(slope / 2), rel=0.2)
    assert ("not distinguishable" in str(found)) == (abs(found.p - 0.5) < 2 * found.std_error)


def test_what_has_no_most_robust_p():
    game = db.games.Function(5, lambda inside: inside.sum(axis=1) * 1.0, name="sum")
    ledger, once = db.Ledger(), db.Ledger()
    db.value(game, ledger=ledger)
    with pytest.raises(db.InvalidInput, match="without noise"):
        theory.most_robust_p(ledger)
    luck = db.games.Function(
        5, lambda inside, keys: db.chance.uniform(keys, 1)[:, 0], stochastic=True, name="luck"
    )
    db.value(luck, ledger=once, estimator="reuse", budget=50)
    with pytest.raises(db.InvalidInput, match="1 training of each"):
        theory.most_robust_p(once)
    with pytest.raises(db.InvalidInput, match="`noise` must have 4 positive"):
        theory.safety_margin(db.Banzhaf(), 5, noise=np.ones(5))


@pytest.mark.parametrize(
    "notion", [db.Banzhaf(), db.Shapley(), db.LeaveOneOut(), db.Beta(4, 1)], ids=lambda n: n.name
)
def test_the_counterexample_to_the_printed_margin_by_hand(notion):
    """Two players: noise of norm 0.707 ties a pair whose printed margin is 1."""
    utility, noisy = np.array([0, 1, 0, 1.0]), np.array([0, 0.5, 0.5, 1.0])
    first, second = db.value(db.games.Table(utility), notion).values
    assert first - second == pytest.approx(1)
    assert theory.safety_margin(notion, 2) == pytest.approx(1)
    assert np.linalg.norm(noisy - utility) == pytest.approx(np.sqrt(0.5))
    tied = db.value(db.games.Table(noisy), notion).values
    assert tied[0] == pytest.approx(tied[1])
