"""Formulas and edge cases of single estimators."""

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs, estimators
from tests import closed_forms


def evaluations(design, utilities, **more):
    utilities = np.asarray(utilities, dtype=float)
    columns = utilities[:, None] if utilities.ndim == 1 else utilities
    return db.Evaluations(design, np.arange(len(columns)), columns, **more)


def test_reuse_is_the_papers_equation(rng):
    design = designs.Coin(9, 4)
    m = 57
    utility = rng.normal(size=m)
    coalitions = design.coalitions(np.arange(m))
    estimate = estimators.Reuse()(evaluations(design, utility), db.Banzhaf())
    for i in range(9):
        inside, outside = utility[coalitions[:, i]], utility[~coalitions[:, i]]
        assert estimate.values[i] == pytest.approx(inside.mean() - outside.mean())
        # Welch, with what k samples may have missed: ln 2 (farthest / k)²
        parts = [
            part.var(ddof=1) / len(part)
            + np.log(2) * (np.abs(utility - part.mean()).max() / len(part)) ** 2
            for part in (inside, outside)
        ]
        freedom = sum(parts) ** 2 / (
            parts[0] ** 2 / (len(inside) - 1) + parts[1] ** 2 / (len(outside) - 1)
        )
        assert estimate.std_errors[i] == pytest.approx(np.sqrt(sum(parts)))
        assert estimate.degrees_of_freedom[i] == pytest.approx(freedom)


def test_reuse_without_contrast_gives_zero_and_no_certainty():
    design = designs.Coin(40, 0)
    estimate = estimators.Reuse()(evaluations(design, [0.3, 0.9]), db.Banzhaf())
    first, second = design.coalitions(np.arange(2))
    same = first == second
    assert same.any()
    assert (~same).any()
    assert (estimate.values[same] == 0).all()
    assert estimate.values[~same] == pytest.approx(np.where(second, 0.6, -0.6)[~same])
    assert np.isinf(estimate.std_errors).all()
    low, high = estimate.interval()
    assert (low == -np.inf).all()
    assert (high == np.inf).all()


def test_reuse_streams_over_blocks(monkeypatch, rng):
    design = designs.Coin(33, 1)
    run = evaluations(design, rng.random((500, 2)))
    whole = estimators.Reuse()(run, db.Banzhaf())
    monkeypatch.setattr("databanzhaf.evaluations.BLOCK_CELLS", 33 * 7)
    blocks = [coalitions.shape for _, coalitions in run.blocks()]
    assert max(blocks) == (7, 33)
    assert sum(rows for rows, _ in blocks) == 500
    streamed = estimators.Reuse()(run, db.Banzhaf())
    np.testing.assert_allclose(streamed.values, whole.values, atol=1e-14)
    np.testing.assert_allclose(streamed.std_errors, whole.std_errors, atol=1e-14)


def test_reuse_is_not_moved_by_a_large_constant(rng):
    design = designs.Coin(5, 1)
    utility = rng.random(400)
    plain = estimators.Reuse()(evaluations(design, utility), db.Banzhaf())
    shifted = estimators.Reuse()(evaluations(design, utility + 1e6), db.Banzhaf())
    np.testing.assert_allclose(shifted.values, plain.values, atol=1e-9)
    np.testing.assert_allclose(shifted.std_errors, plain.std_errors, rtol=1e-6)


def test_group_testing_is_the_stated_formula(rng):
    design = designs.GroupTesting(6, 2)
    m = 31
    utility = rng.random(m)
    members = design.with_dummy(np.arange(m)).astype(float)
    terms = design.normaliser * utility[:, None] * (members[:, :-1] - members[:, -1:])
    estimate = estimators.GroupTesting()(evaluations(design, utility), db.Shapley())
    np.testing.assert_allclose(estimate.values, terms.mean(axis=0))
    np.testing.assert_allclose(estimate.std_errors, terms.std(axis=0, ddof=1) / np.sqrt(m))


def test_permutation_is_a_weighted_mean_over_permutations(rng):
    n, t = 5, 12
    design = designs.Permutation(n, 2)
    utility = rng.random(t * (n + 1))
    chains, orders = utility.reshape(t, n + 1), design.orders(np.arange(t))
    for notion in (db.Shapley(), db.Beta(2, 1), db.Banzhaf()):
        terms = np.zeros((t, n))
        for row in range(t):
            for k in range(n):
                terms[row, orders[row, k]] = (
                    n * notion.weights(n)[k] * (chains[row, k + 1] - chains[row, k])
                )
        estimate = estimators.Permutation()(evaluations(design, utility), notion)
        np.testing.assert_allclose(estimate.values, terms.mean(axis=0), atol=1e-14)


def test_permutation_values_are_efficient():
    form = closed_forms.airport()
    estimate = db.value(form.game(), db.Shapley(), estimator="permutation", budget=70)
    assert estimate.values.sum() == pytest.approx(7.5)


def test_permutation_does_not_pretend_to_know_unseen_players():
    """Leave-one-out from ten permutations: only the players that came last have been seen."""
    n, t = 50, 10
    design = designs.Permutation(n, 0)
    last = design.orders(np.arange(t))[:, -1]
    run = db.value(
        db.games.Function(n, lambda c: c.sum(axis=1) / n, name="mean"),
        db.Shapley(),
        estimator="permutation",
        budget=t * (n + 1),
    )
    assert run.std_errors == pytest.approx(np.zeros(n), abs=1e-12)
    ledger = db.Ledger()
    db.value(
        db.games.Function(n, lambda c: c.sum(axis=1) / n, name="mean"),
        db.Shapley(),
        estimator="permutation",
        budget=t * (n + 1),
        ledger=ledger,
    )
    estimate = db.estimate(ledger, db.LeaveOneOut())
    unseen = ~np.isin(np.arange(n), last)
    assert np.isinf(estimate.std_errors[unseen]).all()


def test_an_incomplete_permutation_is_left_out(rng):
    design = designs.Permutation(4, 1)
    utility = rng.random(13)
    part = estimators.Permutation()(evaluations(design, utility), db.Shapley())
    whole = estimators.Permutation()(evaluations(design, utility[:10]), db.Shapley())
    assert np.array_equal(part.values, whole.values)
    nothing = estimators.Permutation()(evaluations(design, utility[:3]), db.Shapley())
    assert (nothing.values == 0).all()
    assert np.isinf(nothing.std_errors).all()


def test_an_incomplete_pair_is_left_out(rng):
    design = designs.Paired(2, 1, (0.5, 0.5))
    utility = rng.random(8)
    whole = estimators.Marginal()(evaluations(design, utility), db.Shapley())
    gap = db.Evaluations(design, np.array([0, 1, 2, 3, 4, 5, 7]), np.delete(utility, 6)[:, None])
    part = estimators.Marginal()(gap, db.Shapley())
    assert part.values[0] == whole.values[0]
    assert part.values[1] == pytest.approx(utility[3] - utility[2])
    assert np.isinf(part.std_errors[1])


def test_truncation_saves_trainings_and_says_how_many():
    n = 20
    calls = []

    def saturating(coalitions):
        calls.append(len(coalitions))
        return np.minimum(coalitions.sum(axis=1), 5) / 5

    game = db.games.Function(n, saturating, name="saturating")
    truncated = db.value(
        game, db.Shapley(), estimator=estimators.Permutation(truncation=0.0), budget=210
    )
    assert truncated.n_evaluations == sum(calls)
    # Ten permutations need U(N) and the coalitions of 0 to 5 players each.
    assert truncated.n_evaluations == 10 * 7
    whole = db.value(game, db.Shapley(), estimator="permutation", budget=210)
    np.testing.assert_allclose(truncated.values, whole.values)


def test_truncation_does_not_depend_on_batches_or_repeats():
    game, _ = closed_forms.noisy_additive(n=8, noise=0.4)
    ledger = db.Ledger()
    one = db.value(
        game,
        db.Shapley(),
        estimator=estimators.Permutation(truncation=0.3),
        budget=900,
        repeats=2,
        ledger=ledger,
    )
    two = db.value(
        game,
        db.Shapley(),
        estimator=estimators.Permutation(truncation=0.3),
        budget=900,
        repeats=2,
        evaluator=db.evaluators.Processes(2),
    )
    assert one.n_evaluations < 1800
    assert np.array_equal(one.values, two.values)
    again = db.estimate(ledger, db.Shapley())
    assert np.array_equal(again.values, one.values)
    np.testing.assert_allclose(one.values_by_repeat.mean(axis=0), one.values, atol=1e-12)


def test_exact_measures_noise_from_repeats_and_admits_when_it_cannot():
    game, weights = closed_forms.noisy_additive(n=4, noise=0.5)
    alone = db.value(game, estimator="exact")
    assert np.isnan(alone.std_errors).all()
    estimate = db.value(game, estimator="exact", repeats=50, seed=3)
    # phi is a difference of two means over 8 coalitions of 50 trainings each.
    assert estimate.std_errors == pytest.approx(np.full(4, 0.5 * np.sqrt(2 / (8 * 50))), rel=0.15)
    assert (np.abs(estimate.values - weights) < 4 * estimate.std_errors).all()


def test_leave_one_out_is_exact_without_noise_and_measured_with_it():
    form = closed_forms.airport()
    estimate = db.value(form.game(), db.LeaveOneOut(), budget=1)
    assert estimate.values == pytest.approx([0, 0, 0, 0, 0, 0.5])
    assert (estimate.std_errors == 0).all()
    assert estimate.n_evaluations == 7
    game, weights = closed_forms.noisy_additive(n=10, noise=0.3)
    assert np.isnan(db.value(game, db.LeaveOneOut()).std_errors).all()
    noisy = db.value(game, db.LeaveOneOut(), repeats=200)
    assert noisy.std_errors == pytest.approx(np.full(10, 0.3 * np.sqrt(2 / 200)), rel=0.2)
    assert (np.abs(noisy.values - weights) < 4 * noisy.std_errors).all()


def core_excess(values, utility):
    n = len(values)
    table = np.arange(2**n)[:, None] >> np.arange(n) & 1
    return (utility - table @ values).max()


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_least_core_solves_the_papers_program(n, rng):
    from scipy.optimize import linprog

    for _ in range(5):
        utility = rng.random(2**n)
        values = db.value(db.games.Table(utility), db.LeastCore()).values
        table = np.arange(2**n)[:, None] >> np.arange(n) & 1
        program = linprog(
            np.append(np.zeros(n), 1),
            A_ub=-np.column_stack([table, np.ones(2**n)])[1:],  # nobody asks for nothing
            b_ub=-utility[1:],
            A_eq=[np.append(np.ones(n), 0)],
            b_eq=[utility[-1]],
            bounds=(None, None),
        )
        assert values.sum() == pytest.approx(utility[-1], abs=1e-9)
        assert core_excess(values, np.append(0, utility[1:])) == pytest.approx(
            program.fun, abs=1e-7
        )
        # Of all solutions, the one closest to equal shares.
        assert np.linalg.norm(values) <= np.linalg.norm(program.x[:-1]) + 1e-7


def test_least_core_where_the_first_solver_gives_up():
    """HiGHS: "Status 15", from too few coalitions to need a subsidy."""
    design, utility = db.designs.Anchored(20, 9), np.random.default_rng(9).random(26)
    values = db.estimate(
        db.Evaluations(design, np.arange(26), utility[:, None]), db.LeastCore()
    ).values
    received = design.coalitions(np.arange(1, 26)) @ values
    assert (received - utility[1:]).min() > -1e-7  # no subsidy is needed
    assert values.sum() == pytest.approx(utility[1])


def test_least_core_does_not_ask_for_repeats_that_would_not_help():
    game = db.games.Function(
        3,
        lambda coalitions, keys: coalitions.sum(axis=1) + keys % 7 / 100,
        stochastic=True,
        name="three",
    )
    told = str(db.value(game, db.LeastCore(), estimator="exact", repeats=4))
    assert "nan" in told
    assert "repeats" not in told
    assert "repeats=2" in str(db.value(game, estimator="exact"))  # there they do help


def test_least_core_that_no_solver_finds_is_an_error_of_ours(monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr(
        "scipy.optimize.linprog", lambda *args, **how: SimpleNamespace(status=4, message="numbers")
    )
    with pytest.raises(db.DatabanzhafError, match="raise the budget"):
        db.value(db.games.Table([0.0, 1, 1, 1]), db.LeastCore())


def test_least_core_does_not_trust_a_solver(monkeypatch):
    """One that calls infeasible payments optimal is asked again in another way."""
    from scipy.optimize import linprog

    def careless(*args, **how):
        found = linprog(*args, **how)
        if how["method"] == "highs" and how["options"]["primal_feasibility_tolerance"] < 1e-9:
            found.x[0] += 0.1
        return found

    utility = np.random.default_rng(3).random(2**5)
    right = db.value(db.games.Table(utility), db.LeastCore()).values
    monkeypatch.setattr("scipy.optimize.linprog", careless)
    np.testing.assert_allclose(
        db.value(db.games.Table(utility), db.LeastCore()).values, right, atol=1e-6
    )


@pytest.mark.parametrize("guess", [-1.0, 0.5, 100.0, 1e300])
def test_least_core_does_not_depend_on_what_nobody_scores(guess, rng):
    utility = rng.random(2**5)
    values = db.value(db.games.Table(utility), db.LeastCore()).values
    assert np.ptp(values) > 0.1
    other = db.games.Table(np.append(guess, utility[1:]))
    np.testing.assert_allclose(db.value(other, db.LeastCore()).values, values, atol=1e-7)
    sampled = db.value(other, db.LeastCore(), estimator="least_core", budget=200, seed=1)
    np.testing.assert_allclose(sampled.values, values, atol=1e-6)


def test_least_core_of_the_glove_game_pays_the_scarce_glove():
    table = np.arange(8)[:, None] >> np.arange(3) & 1
    utility = np.minimum(table[:, 0], table[:, 1:].sum(axis=1))
    assert db.value(db.games.Table(utility), db.LeastCore()).values == pytest.approx(
        [1, 0, 0], abs=1e-7
    )


def test_least_core_gives_equal_players_equal_shares():
    # A convex game with a large core: any vertex of it would be lopsided.
    game = db.games.Function(6, lambda c: c.sum(axis=1) ** 2, name="convex")
    assert db.value(game, db.LeastCore()).values == pytest.approx(np.full(6, 6.0))


def test_least_core_of_a_game_that_is_tight_to_seven_digits():
    """The solver's default tolerance of 1e-7 would call it feasible without a subsidy, and the
    second step would have no solution.
    """
    values = db.value(db.games.Table([-2.0, 1.1920929e-07, -2.0, -2.0]), db.LeastCore()).values
    assert values == pytest.approx([0, -2], abs=1e-6)


def test_sampled_least_core_nears_the_exact_one():
    game = closed_forms.airport().game()
    exact = db.value(game, db.LeastCore()).values
    sampled = db.value(game, db.LeastCore(), estimator="least_core", budget=1000)
    np.testing.assert_allclose(sampled.values, exact, atol=1e-6)
    assert np.isnan(sampled.std_errors).all()


def test_least_core_can_be_read_from_permutations():
    game, ledger = closed_forms.airport().game(), db.Ledger()
    db.value(game, db.Shapley(), estimator="permutation", budget=2100, ledger=ledger)
    np.testing.assert_allclose(
        db.estimate(ledger, db.LeastCore()).values, db.value(game, db.LeastCore()).values, atol=1e-6
    )


def test_exact_at_twenty_players():
    weights = np.linspace(0, 1, 20)
    game = db.games.Function(20, lambda c: (c @ weights) ** 2, name="square")
    # U is quadratic: phi_i = w_i^2 + 2 w_i E[sum of the others present], half of them for Shapley
    # and Banzhaf alike.
    expected = weights**2 + weights * (weights.sum() - weights)
    ledger = db.Ledger()
    estimate = db.value(game, estimator="exact", ledger=ledger)
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        db.estimate(ledger, db.Shapley()).values, expected, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("scale", [1e-12, 1e6, 1e10, 1e100])
def test_least_core_does_not_depend_on_the_unit(scale, rng):
    utility = rng.random(2**6)
    plain = db.value(db.games.Table(utility), db.LeastCore()).values
    np.testing.assert_allclose(
        db.value(db.games.Table(utility * scale), db.LeastCore()).values / scale, plain, atol=1e-7
    )
    assert db.value(db.games.Table(np.zeros(8)), db.LeastCore()).values == pytest.approx(
        np.zeros(3)
    )
