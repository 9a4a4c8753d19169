"""What every estimator promises, on games with closed forms."""

from dataclasses import replace

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import estimators
from databanzhaf.testing import check_estimator
from databanzhaf.testing.estimators import distance
from tests import closed_forms
from tests.closed_forms import noisy_additive

BANZHAF, SHAPLEY = db.Banzhaf(), db.Shapley()
# Every estimator that samples, with the notions it can estimate.
SAMPLING = [
    (estimators.Reuse(), BANZHAF),
    (estimators.Reuse(), db.WeightedBanzhaf(0.3)),
    (estimators.Regression(), BANZHAF),
    (estimators.Regression(), db.WeightedBanzhaf(0.3)),
    (estimators.Regression(paired=True), BANZHAF),
    (estimators.Marginal(), BANZHAF),
    (estimators.Marginal(), SHAPLEY),
    (estimators.Marginal(), db.Beta(16, 1)),
    (estimators.Permutation(), SHAPLEY),
    (estimators.Permutation(), db.Beta(4, 1)),
    (estimators.Permutation(), db.Beta(1, 16)),
    (estimators.Permutation(), BANZHAF),
    (estimators.GroupTesting(), SHAPLEY),
]
each_sampling = pytest.mark.parametrize(("estimator", "notion"), SAMPLING, ids=lambda x: x.name)
EVERY = [
    *SAMPLING,
    (estimators.Exact(), BANZHAF),
    (estimators.LeaveOneOut(), db.LeaveOneOut()),
    (estimators.LeastCore(), db.LeastCore()),
]
each_estimator = pytest.mark.parametrize(("estimator", "notion"), EVERY, ids=lambda x: x.name)
each_form = pytest.mark.parametrize("form", closed_forms.ALL, ids=lambda form: form.name)


def exact(game, notion):
    return db.value(game, notion, estimator="exact").values


@each_form
def test_exact_equals_the_closed_form(form):
    np.testing.assert_allclose(exact(form.game(), BANZHAF), form.banzhaf, atol=1e-12)
    np.testing.assert_allclose(exact(form.game(), SHAPLEY), form.shapley, atol=1e-12)


@each_form
@each_sampling
def test_within_four_standard_errors_of_exact(form, estimator, notion):
    estimate = db.value(form.game(), notion, estimator=estimator, budget=20_000, seed=1)
    assert np.isfinite(estimate.std_errors).all()
    assert distance(estimate, exact(form.game(), notion)) < 4


def test_a_biased_estimator_fails_that_check():
    form = closed_forms.voting()
    good = db.value(form.game(), BANZHAF, estimator="reuse", budget=20_000, seed=1)
    # A tenth off is a plausible slip in a normaliser.
    biased = replace(good, values=good.values * 0.9)
    assert distance(biased, form.banzhaf) > 4
    # So does answering for another notion.
    assert (
        distance(
            db.value(form.game(), SHAPLEY, estimator="permutation", budget=20_000), form.banzhaf
        )
        > 4
    )


@each_sampling
def test_noise_in_the_utilities_is_averaged_and_counted(estimator, notion):
    game, weights = noisy_additive(n=6, noise=0.5)
    few = db.value(game, notion, estimator=estimator, budget=14_000, seed=2)
    many = db.value(game, notion, estimator=estimator, budget=14_000, repeats=4, seed=2)
    for estimate in (few, many):
        assert distance(estimate, weights) < 4
    assert few.n_evaluations * 4 == many.n_evaluations
    assert many.values_by_repeat.shape == (4, 6)
    np.testing.assert_allclose(many.values_by_repeat.mean(axis=0), many.values, atol=1e-12)
    # all repeats share a penalty, which the average of their utilities has chosen
    fitted = isinstance(estimator, estimators.Regression)
    tolerance = 0.05 * few.std_errors.min() if fitted else 1e-12
    np.testing.assert_allclose(few.values, many.values_by_repeat[0], rtol=0, atol=tolerance)
    assert many.std_errors.mean() < few.std_errors.mean()


@each_estimator
def test_one_player(estimator, notion):
    game = db.games.Table([0.25, 1.0])
    estimate = db.value(game, notion, estimator=estimator, budget=64)
    expected = 1.0 if isinstance(notion, db.LeastCore) else 0.75
    if estimator.name == "group_testing":
        assert abs(estimate.values[0] - 0.75) < 4 * estimate.std_errors[0]
    else:
        assert estimate.values == pytest.approx([expected])


@each_estimator
def test_an_estimator_keeps_its_promises(estimator, notion):
    check_estimator(estimator, notion)


def test_estimators_that_break_a_promise_are_found():
    class Biased(estimators.Reuse):
        def __call__(self, evaluations, notion):
            good = super().__call__(evaluations, notion)
            return replace(good, values=good.values * 0.9)

    class Blind(estimators.Reuse):
        def __call__(self, evaluations, notion):
            design = db.designs.Coin(evaluations.n_players, 0)
            return super().__call__(replace(evaluations, design=design), notion)

    for broken, sentence in ((Biased(), "four standard errors"), (Blind(), "refused")):
        with pytest.raises(AssertionError, match=sentence):
            check_estimator(broken, BANZHAF)


@each_estimator
def test_a_foreign_design_is_refused(estimator, notion):
    own = estimator.design(notion, 4, 0)
    for other, its_notion in EVERY:
        design = other.design(its_notion, 4, 0)
        readable = type(design) is type(own) or (
            isinstance(notion, db.LeastCore) and isinstance(design, db.designs.Permutation)
        )
        if readable:
            continue
        index = np.arange(design.size or 2 * design.unit)
        evaluations = db.Evaluations(design, index, np.zeros((len(index), 1)))
        with pytest.raises(db.DesignMismatch):
            estimator(evaluations, notion)


OTHER = db.Semivalue(lambda n: np.arange(n) * 0.1)
NOTIONS = [
    BANZHAF,
    db.WeightedBanzhaf(0.2),
    SHAPLEY,
    db.Beta(4, 1),
    OTHER,
    db.LeaveOneOut(),
    db.LeastCore(),
]
CAN = {
    "exact": NOTIONS,
    "reuse": [BANZHAF, db.WeightedBanzhaf(0.2)],
    "marginal": NOTIONS[:-1],
    "permutation": NOTIONS[:-1],
    "group_testing": [SHAPLEY],
    "leave_one_out": [db.LeaveOneOut()],
    "least_core": [db.LeastCore()],
}


@pytest.mark.parametrize("name", CAN)
@pytest.mark.parametrize("notion", NOTIONS, ids=lambda notion: notion.name)
def test_which_notions_an_estimator_takes(name, notion):
    game = closed_forms.airport().game()
    if notion in CAN[name]:
        assert db.value(game, notion, estimator=name).notion.name == notion.name
    else:
        with pytest.raises(db.DesignMismatch):
            db.value(game, notion, estimator=name)


def test_weighted_banzhaf_needs_its_own_coin():
    evaluations = db.Evaluations(db.designs.Coin(4, 0, 0.5), np.arange(9), np.zeros((9, 1)))
    with pytest.raises(db.DesignMismatch, match=r"bias 0\.3"):
        db.estimate(evaluations, db.WeightedBanzhaf(0.3))


def test_pairs_of_another_notion_are_refused():
    ledger = db.Ledger()
    db.value(
        closed_forms.airport().game(), BANZHAF, estimator="marginal", budget=100, ledger=ledger
    )
    with pytest.raises(db.DesignMismatch, match="another notion"):
        db.estimate(ledger, SHAPLEY)
