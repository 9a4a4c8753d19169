"""Semivalues from coalitions of random sizes: the fit against refitting, the laws against their
formula, and several notions from one run.
"""

from dataclasses import replace

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs, estimators, evaluators, until
from databanzhaf.estimators import size_laws, size_regression
from databanzhaf.estimators.size_fit import SizeFit
from databanzhaf.estimators.size_plan import SizePlan
from databanzhaf.evaluations import Evaluations
from tests.closed_forms import noisy_additive

NOTIONS = [db.Banzhaf(), db.Shapley(), db.Beta(4, 1), db.Beta(16, 1), db.WeightedBanzhaf(0.3)]
each_notion = pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.name)


def concave(n=6):
    weights = np.linspace(0.2, 2.0, n)
    return db.games.Function(n, lambda c: 1 - np.exp(-(c @ weights) / n), name=f"concave {n}")


def sampled(game, notions, m, seed=0):
    design = designs.Sized(game.n_players, seed, size_laws.shares(notions, game.n_players))
    index = np.arange(m)
    keys = db.chance.keys(seed, db.chance.TRAINING, index)
    utilities = np.asarray(game.utility(design.coalitions(index), keys), dtype=np.float64)
    return Evaluations(design, index, utilities.reshape(m, -1))


def planned(evaluations, notion, share=0.4, power=1.0, *, turned=True):
    plan = SizePlan.of(notion, evaluations.design, len(evaluations), share, power)
    return replace(plan, turned=turned)


def fitted(evaluations, plan):
    columns = np.column_stack([evaluations.utility, evaluations.utilities])
    return SizeFit(evaluations, columns, plan)


def refitted(evaluations, notion, plan):
    """The plain twin: a weighted ridge fit without each coalition, whose own values are those of
    the game that it is.
    """
    n, m = evaluations.n_players, len(evaluations)
    every = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    inside = np.concatenate([block for _, block in evaluations.blocks()])

    def columns(coalitions, turn):
        size = coalitions.sum(axis=1)
        joined = coalitions - (size / n)[:, None]
        slopes = [joined * profile[size, None] for profile in turn @ plan.profiles]
        return np.hstack([np.ones((len(size), 1)), plan.rises[size], *slopes])

    weight = plan.weight[inside.sum(axis=1)]
    found = []
    for fold, penalties, turn in fitted(evaluations, plan)._penalties(5):
        x, everything = columns(inside, turn), columns(every, turn)
        shrink = np.diag(np.concatenate([[0.0], plan.shrinkage, np.repeat(penalties, n)]))
        for t in np.flatnonzero(fold):
            others = np.arange(m) != t
            a = x[others] * weight[others, None]
            fit = np.linalg.solve(a.T @ x[others] + shrink, a.T @ evaluations.utility[others])
            own = db.value(db.games.Table(everything @ fit), notion, estimator="exact")
            size = inside[t].sum()
            z = np.where(inside[t], plan.inside[size], -plan.outside[size])
            found.append(own.values + z * (evaluations.utility[t] - x[t] @ fit))
    return np.mean(found, axis=0)


@each_notion
@pytest.mark.parametrize(("power", "turned"), [(1.0, True), (0.0, False)])
@pytest.mark.parametrize("m", [25, 90])
def test_the_values_are_those_of_refitting_without_each_coalition(notion, power, turned, m):
    evaluations = sampled(concave(9), NOTIONS, m)
    plan = planned(evaluations, notion, power=power, turned=turned)
    fit = fitted(evaluations, plan)
    np.testing.assert_allclose(fit.values[0], refitted(evaluations, notion, plan), atol=1e-8)


def test_the_inverse_by_samples_gives_the_same_numbers(monkeypatch):
    evaluations = sampled(concave(20), NOTIONS, 400)
    plan = planned(evaluations, db.Beta(4, 1))
    assert len(plan.profiles) == 4
    by_players = fitted(evaluations, plan)
    monkeypatch.setattr(SizeFit, "_by_players", SizeFit._by_samples)
    by_samples = fitted(evaluations, plan)
    np.testing.assert_allclose(by_samples.values, by_players.values, atol=1e-9)
    np.testing.assert_allclose(by_samples.errors(), by_players.errors(), rtol=1e-5)


@pytest.mark.parametrize("m", [25, 400])
def test_a_fit_that_takes_the_products_of_another_is_the_same(m):
    evaluations = sampled(concave(20), NOTIONS, m)
    plain, turned = (planned(evaluations, db.Shapley(), turned=each) for each in (False, True))
    columns = evaluations.utilities
    like = SizeFit(evaluations, columns, turned, like=SizeFit(evaluations, columns, plain))
    again = SizeFit(evaluations, columns, turned)
    np.testing.assert_array_equal(like.values, again.values)
    np.testing.assert_array_equal(like.errors(), again.errors())


def test_the_first_coalitions_choose_the_fit(monkeypatch):
    evaluations = sampled(concave(12), NOTIONS, 600)
    seen = []
    own = SizeFit.__init__

    def noted(self, samples, columns, plan, folds=None, like=None):
        seen.append((len(samples), len(columns), folds))
        own(self, samples, columns, plan, folds, like)

    monkeypatch.setattr(size_regression, "MOST_CHOOSE", 300)
    monkeypatch.setattr(SizeFit, "__init__", noted)
    truth = db.value(concave(12), db.Shapley(), estimator="exact").values
    estimate = estimators.SizeRegression()(evaluations, db.Shapley())
    assert seen == [(300, 300, 1)] * 6 + [(600, 600, None)]
    assert (np.abs(estimate.values - truth) < 4 * estimate.std_errors).all()


def test_a_sum_is_learned_exactly():
    """Slopes that are the same at all sizes are by the first profile alone: a turned one, which is
    estimated, would leave errors of 0.002 and more.
    """
    weights = np.linspace(-1, 1, 50)
    game = db.games.Function(50, lambda c: c @ weights, name="sum")
    for estimate in db.value(game, NOTIONS, budget=2000):
        assert np.sqrt(np.mean((estimate.values - weights) ** 2)) < 5e-4


@pytest.mark.parametrize("unit", [1e-250, 1e-170, 1e-12, 1e12, 1e200])
def test_utilities_of_any_size_have_values_and_errors(unit):
    game = concave(20)
    plain = db.value(game, NOTIONS, budget=300)
    scaled = db.games.Function(20, lambda c: unit * game.utility(c, None), name="scaled")
    for mine, other in zip(db.value(scaled, NOTIONS, budget=300), plain, strict=True):
        np.testing.assert_allclose(mine.values / unit, other.values, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(mine.std_errors / unit, other.std_errors, rtol=1e-4)


def test_slopes_that_follow_the_size_alike_take_one_profile():
    """U = h(size) times what each player adds: in the plan's own profiles the slopes are sums of
    several; turned, of one, whose shape is that of h.
    """
    n, m = 40, 4000
    size = np.arange(n + 1)
    h, adds = np.exp(-size / 10), np.linspace(-1, 1, n)
    game = db.games.Function(n, lambda c: h[c.sum(axis=1)] * (c @ adds), name="one profile")
    evaluations = sampled(game, NOTIONS, m)
    plan = planned(evaluations, db.Shapley())
    own = [profile @ h / np.linalg.norm(profile) / np.linalg.norm(h) for profile in plan.profiles]
    assert len(own) == 4
    assert max(own) < 0.95
    for _, penalties, turn in fitted(evaluations, plan)._penalties(5):
        assert (penalties[1:] > 30 * penalties[0]).all()
        np.testing.assert_allclose(turn @ turn.T, np.eye(len(turn)), atol=1e-9)
        shape = turn[0] @ plan.profiles
        drawn = evaluations.design.law * plan.weight * size * (n - size)
        inner = (drawn * shape) @ h / np.sqrt((drawn @ shape**2) * (drawn @ h**2))
        assert abs(inner) > 0.98


def burden(notion, n, *, falling):
    """The plain twin: what a size adds to the variance, with one that is the same or falls."""
    weights, size = np.concatenate([[0.0], notion.weights(n), [0.0]]), np.arange(n + 1)
    joins = weights[:-1] ** 2 / np.maximum(size, 1)
    leaves = weights[1:] ** 2 / np.maximum(n - size, 1)
    return (joins + leaves) / (size + 1 if falling else 1)


@each_notion
@pytest.mark.parametrize("n", [1, 2, 30, 500])
def test_the_law_of_one_notion_serves_both_spreads_alike(notion, n):
    """Its square is a mixture of the two burdens, and the two variances are as far from their
    smallest.
    """
    law = designs.Sized(n, 0, size_laws.shares([notion], n)).law
    same, falls = (burden(notion, n, falling=falling) for falling in (False, True))
    size, root = np.arange(n + 1), np.sqrt(burden(db.Shapley(), n, falling=False))
    floor = size_laws.FLOOR * root / root.sum()
    inner = (law > 1.1 * floor) & (size > 0) & (size < n)
    mixture = np.stack([same, falls], axis=1)[inner]
    parts = np.linalg.lstsq(mixture, law[inner] ** 2, rcond=None)[0]
    np.testing.assert_allclose(mixture @ parts, law[inner] ** 2, rtol=0.01)
    over = [(v[v > 0] / law[v > 0]).sum() / np.sqrt(v).sum() ** 2 for v in (same, falls)]
    assert over[0] == pytest.approx(over[1], abs=0.08)
    assert max(over) < 1.2
    assert size_laws.efficiency(notion, law) == pytest.approx(1 / over[0])
    assert size_laws.efficiency(notion, np.sqrt(same) / np.sqrt(same).sum()) == pytest.approx(1)


@pytest.mark.parametrize("n", [20, 200, 2000])
def test_notions_share_a_run_at_less_than_its_division(n):
    law = designs.Sized(n, 0, size_laws.shares(NOTIONS, n)).law
    shares = [size_laws.efficiency(notion, law) for notion in NOTIONS]
    assert min(shares) > 1 / len(NOTIONS)
    assert max(shares) < 0.75
    assert size_laws.shares(NOTIONS[::-1], n) == size_laws.shares(NOTIONS, n)
    assert size_laws.shares(NOTIONS * 2, n) == pytest.approx(size_laws.shares(NOTIONS, n), rel=1e-3)


def test_sizes_follow_the_law():
    design = designs.Sized(12, 3, size_laws.shares(NOTIONS, 12))
    coalitions = design.coalitions(np.arange(20_000))
    seen = np.bincount(coalitions.sum(axis=1), minlength=13) / 20_000
    np.testing.assert_allclose(seen, design.law, atol=4 * np.sqrt(0.25 / 20_000))
    np.testing.assert_allclose(coalitions.mean(axis=0), coalitions.mean(), atol=0.015)


def test_one_run_gives_each_notion_its_estimate(tmp_path):
    game, path = concave(8), tmp_path / "run.db"
    estimates = db.value(game, NOTIONS, budget=200, seed=1, ledger=path)
    assert [each.notion for each in estimates] == NOTIONS
    assert {each.n_evaluations for each in estimates} == {200}
    for estimate, again in zip(estimates, db.estimate(path, NOTIONS), strict=True):
        assert np.array_equal(again.values, estimate.values)
        assert np.array_equal(again.std_errors, estimate.std_errors)
    # in another order it is the same run, and more of it continues it
    more = db.value(game, NOTIONS[::-1], budget=250, seed=1, ledger=path)
    assert [each.notion for each in more] == NOTIONS[::-1]
    fresh = db.value(
        game, NOTIONS[::-1], budget=250, seed=1, evaluator=evaluators.Processes(n_jobs=2)
    )
    for one, other in zip(more, fresh, strict=True):
        assert np.array_equal(one.values, other.values)
    assert len(db.value(game, [db.Shapley()], budget=250)) == 1
    with pytest.raises(db.LedgerMismatch, match=r"those of other notions\n.*estimate\(ledger"):
        db.value(game, db.Shapley(), budget=200, seed=1, ledger=path)


def test_shapley_values_add_up_to_the_total():
    game = concave(16)
    nobody, everyone = game.utility(np.array([[False] * 16, [True] * 16]), None)
    shapley, beta, banzhaf = db.value(
        game, [db.Shapley(), db.Beta(1, 1), db.Banzhaf()], budget=1000
    )
    assert shapley.values.sum() == pytest.approx(everyone - nobody, abs=1e-12)
    assert beta.values.sum() == pytest.approx(everyone - nobody, abs=1e-12)
    assert banzhaf.values.sum() < 0.99 * (everyone - nobody)


def test_a_list_names_each_notion_once():
    twice = [db.Shapley(), db.Banzhaf(), db.Shapley()]
    with pytest.raises(db.InvalidInput, match="each notion once; got shapley twice"):
        db.value(concave(6), twice, budget=64)
    with pytest.raises(db.InvalidInput, match="got None"):
        db.value(concave(6), [db.Shapley(), None], budget=64)


def test_a_small_game_is_listed_for_all_notions():
    estimates = db.value(concave(6), NOTIONS, budget=64)
    assert {each.estimator.name for each in estimates} == {"exact"}
    assert all((each.std_errors == 0).all() for each in estimates)


def test_the_condition_must_hold_for_every_notion():
    game, _ = noisy_additive(n=6, noise=0.3)
    condition = until.precise(0.06)
    alone = db.value(
        game, db.Banzhaf(), estimator="regression:sizes", budget=20_000, until=condition
    )
    both = db.value(game, [db.Banzhaf(), db.Beta(1, 16)], budget=20_000, until=condition)
    assert all(each.std_errors.max() <= 0.06 for each in both)
    assert alone.n_evaluations < both[0].n_evaluations < 20_000


def test_training_noise_is_averaged_and_counted():
    game, weights = noisy_additive(n=14, noise=0.5)
    for estimate in db.value(game, NOTIONS, budget=3_000, repeats=2):
        assert (np.abs(estimate.values - weights) < 4 * estimate.std_errors).all()
        assert estimate.values_by_repeat.shape == (2, 14)
        np.testing.assert_allclose(
            estimate.values_by_repeat.mean(axis=0), estimate.values, atol=1e-12
        )
        assert estimate.fit.explained + estimate.fit.noise == pytest.approx(1, abs=0.05)


def test_a_notion_whose_sizes_were_hardly_drawn_is_refused():
    ledger = db.Ledger()
    db.value(concave(600), db.Beta(16, 1), budget=300, ledger=ledger)
    with pytest.raises(
        db.DesignMismatch, match=r"sizes .* that leave_one_out values need; got 0\."
    ):
        db.estimate(ledger, db.LeaveOneOut())
    # those that were drawn too rarely for an error to be known have none
    assert np.isinf(db.estimate(ledger, db.Beta(1, 200)).std_errors).all()
    assert np.isfinite(db.estimate(ledger, db.Beta(16, 1)).std_errors).mean() > 0.8


def test_a_player_that_no_coalition_of_the_notion_shows_has_no_error():
    """Leave-one-out rests on coalitions of all but one: who was left out is known."""
    n = 60
    weights = np.linspace(-1, 1, n)
    game = db.games.Function(n, lambda c: np.tanh(c @ weights), name="tanh")
    full = np.ones((1, n), bool)
    truth = game.utility(full, None) - game.utility(~np.eye(n, dtype=bool), None)
    known, held = [], []
    for seed in range(20):
        ledger = db.Ledger()
        _, estimate = db.value(
            game, [db.Shapley(), db.LeaveOneOut()], budget=900, seed=seed, ledger=ledger
        )
        design = designs.Sized(n, seed, size_laws.shares([db.Shapley(), db.LeaveOneOut()], n))
        coalitions = design.coalitions(np.arange(900))
        alone = coalitions[coalitions.sum(axis=1) == n - 1]
        finite = np.isfinite(estimate.std_errors)
        assert np.array_equal(finite, (~alone).sum(axis=0) >= 4)
        known.append(finite.mean())
        low, high = estimate.interval(0.95)
        held.append(((low <= truth) & (truth <= high))[finite].mean())
    assert 0.2 < np.mean(known) < 0.99
    assert 0.9 < np.mean(held) < 0.99


def test_few_evaluations_are_refused_before_a_training():
    played = []
    game = db.games.Function(50, lambda c: played.append(1) or c.sum(axis=1), name="counted")
    with pytest.raises(db.InvalidInput, match=r"pay for the 8 coalitions that .*; got 7\. Pass"):
        db.value(game, db.Shapley(), estimator="regression:sizes", budget=7)
    assert not played
    assert np.isinf(db.value(game, db.Shapley(), budget=15).std_errors).any()
    rows = db.Dataset(np.arange(40.0)[:, None], np.arange(40) % 2)
    with pytest.raises(db.InvalidInput, match=r"pay for the 40 coalitions .* Pass budget=40"):
        db.value(db.games.Forest(rows, trees=2), db.Shapley(), budget=39)


@pytest.mark.parametrize(
    ("notions", "sentence"),
    [
        ([], "several semivalues; got none"),
        ([db.Banzhaf(), db.LeastCore()], "got 'least_core'. Make a run of its own"),
        ([db.Banzhaf(), db.Shapley], "got the class Shapley"),
        (["shapley"], "must be a value notion; got 'shapley'"),
    ],
)
def test_lists_that_cannot_share_a_run(notions, sentence):
    with pytest.raises(db.InvalidInput, match=sentence):
        db.value(concave(), notions)


@pytest.mark.parametrize("shares", [(1, 2), (1, 1, 1, -1), (0, 0, 0, 0), (0.5, 0.5, 0, 0)])
def test_shares_that_are_not_a_law(shares):
    with pytest.raises(db.InvalidInput, match="`shares` must be 4 whole numbers"):
        designs.Sized(3, 0, shares)


def test_too_few_coalitions_and_no_spread():
    evaluations = sampled(concave(), NOTIONS, 7)
    with pytest.raises(db.DesignMismatch, match="at least 8 coalitions; got 7"):
        estimators.SizeRegression()(evaluations, db.Shapley())
    flat = db.games.Function(5, lambda c: np.ones(len(c)), name="flat")
    for estimate in db.value(flat, NOTIONS, budget=30):
        assert (estimate.values == 0).all()
        assert np.isinf(estimate.std_errors).all()
