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
    (estimators.SizeRegression(), SHAPLEY),
    (estimators.SizeRegression(), db.Beta(16, 1)),
    (estimators.SizeRegression(), db.Beta(1, 4)),
    (estimators.SizeRegression(), BANZHAF),
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
    fitted = isinstance(estimator, (estimators.Regression, estimators.SizeRegression))
    tolerance = 0.05 * few.std_errors.min() if fitted else 1e-12
    np.testing.assert_allclose(few.values, many.values_by_repeat[0], rtol=0, atol=tolerance)
    assert many.std_errors.mean() < few.std_errors.mean()


@each_estimator
def test_one_player(estimator, notion):
    game = db.games.Table([0.25, 1.0])
    estimate = db.value(game, notion, estimator=estimator, budget=64)
    expected = 1.0 if isinstance(notion, db.LeastCore) else 0.75
    if estimator.name in ("group_testing", "regression:sizes"):
        assert abs(estimate.values[0] - 0.75) < 4 * estimate.std_errors[0]
    else:
        assert estimate.values == pytest.approx([expected])


@each_estimator
def test_an_estimator_keeps_its_promises(estimator, notion):
    check_estimator(estimator, notion)


def wrong(estimator, *, after=None, before=None, **members):
    """The estimator with its estimates, its evaluations or its members changed."""

    def call(self, evaluations, notion):
        given = evaluations if before is None else before(evaluations)
        estimate = kind.__call__(self, given, notion)
        return estimate if after is None else replace(estimate, **after(estimate))

    kind = type(estimator)
    return type("Wrong", (kind,), {"__call__": call, **members})()


def in_a_row(evaluations):
    return replace(evaluations, indices=np.arange(len(evaluations)))


def any_bias(evaluations):
    coin = isinstance(evaluations.design, db.designs.Coin)
    return replace(evaluations, design=replace(evaluations.design, p=0.5)) if coin else evaluations


def as_coin(evaluations):
    return replace(evaluations, design=db.designs.Coin(evaluations.n_players, 0))


def guess(estimate):
    return {"values": 0 * estimate.values, "std_errors": np.full(6, 9.0)}


class Partial:
    name = "partial"


REUSE, LOO = estimators.Reuse(), db.LeaveOneOut()
BROKEN = {
    "biased": (wrong(REUSE, after=lambda e: {"values": e.values * 0.9}), "four standard errors"),
    "another design": (wrong(REUSE, before=as_coin), "Complementary.* refused with DesignMismatch"),
    "exact": (
        wrong(estimators.Exact(), after=lambda e: {"values": e.values * 2 + 1}),
        r"of the truth; player 4 has 2\.953 ± 0, the truth is 0\.9764",
    ),
    "negated": (
        wrong(estimators.LeaveOneOut(), after=lambda e: {"values": -e.values}),
        "of the truth; player 0",
        LOO,
    ),
    "least core": (
        wrong(estimators.LeastCore(), after=lambda e: {"values": e.values * 1.1}),
        "of the truth; player",
        db.LeastCore(),
    ),
    "guess": (wrong(REUSE, after=guess), r"root mean square .* got 0\.\d+ .* too large"),
    "exact guess": (
        wrong(estimators.Exact(), after=lambda e: {"std_errors": e.std_errors * 3}),
        "root mean square .* too large",
    ),
    "halved": (
        wrong(REUSE, after=lambda e: {"std_errors": e.std_errors / 2}),
        r"root mean square .* got [12]\.\d+ .* too small",
    ),
    "freedom": (
        wrong(REUSE, after=lambda e: {"degrees_of_freedom": np.full(6, -1.0)}),
        "`degrees_of_freedom` are positive; player 0 has -1",
    ),
    "indices": (wrong(REUSE, before=in_a_row), "gaps in `indices`.* player 4"),
    "any bias": (
        wrong(REUSE, before=any_bias),
        r"p=0\.125\) are refused with .* or their values .*; player 4",
    ),
    "players": (wrong(REUSE, after=lambda e: {"players": None}), "names of the players; .* None"),
    "count": (wrong(REUSE, after=lambda e: {"n_evaluations": 1}), "`n_evaluations` is 1,400.* 1$"),
    "repeats": (
        wrong(REUSE, after=lambda e: {"values_by_repeat": 0 * e.values_by_repeat}),
        r"`values_by_repeat\[0\]` .*; player 0 has 0, .* alone gives",
    ),
    "shape": (wrong(REUSE, after=lambda e: {"values": e.values[1:]}), r"`values` .* \(5,\)"),
    "gives all": (wrong(REUSE, gives=lambda self, notion: True), "`gives` .* shapley.* refuses"),
    "gives anything": (
        wrong(estimators.Exact(), gives=lambda self, notion: True),
        "`gives` .* stranger.* refuses",
    ),
    "gives none": (wrong(REUSE, gives=lambda self, notion: False), "`gives` says that banzhaf"),
    "partial": (Partial(), "without __call__, design, gives, reads, suits"),
    "class": (estimators.Reuse, "an object; got the class Reuse"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_estimators_that_break_a_promise_are_found(fault):
    estimator, sentence, *notion = BROKEN[fault]
    with pytest.raises(AssertionError, match=sentence):
        check_estimator(estimator, *(notion or [BANZHAF]))


@pytest.mark.parametrize(
    ("refuses", "sentence"), [(True, "`gives` .*banzhaf.* of the truth"), (False, "not estimated")]
)
def test_an_estimator_that_ignores_the_notion_is_found(refuses, sentence):
    class Deaf(estimators.Permutation):
        def __call__(self, evaluations, notion):
            taken = notion if refuses and not self.gives(notion) else SHAPLEY
            return replace(super().__call__(evaluations, taken), notion=notion)

    with pytest.raises(AssertionError, match=sentence):
        check_estimator(Deaf(), SHAPLEY)


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
    "regression:sizes": NOTIONS[:-1],
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
