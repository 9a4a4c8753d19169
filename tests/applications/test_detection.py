from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import false_discovery_control, norm, t
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

import databanzhaf as db
from databanzhaf.applications import detection_scores, flagged


def estimated(values, std_errors=0.0, freedom=np.inf):
    values = np.asarray(values, dtype=np.float64)
    errors, freedom = (
        np.broadcast_to(std_errors, values.shape),
        np.broadcast_to(freedom, values.shape),
    )
    return db.Estimate(
        values,
        errors.astype(float),
        freedom.astype(float),
        values[None],
        5000,
        db.Banzhaf(),
        db.estimators.Reuse(),
    )


def benjamini_hochberg(p, level):
    """By definition: the k smallest, for the largest k with p_(k) <= k level / n."""
    good = [k for k in range(1, len(p) + 1) if np.sort(p)[k - 1] <= k * level / len(p)]
    return set(np.argsort(p)[: max(good, default=0)].tolist())


def within(values):
    return ((values - values.mean()) ** 2).sum() if len(values) else 0.0


@pytest.mark.parametrize("n", [10, 200, 500])
def test_a_tenth_is_the_papers_percentile(rng, n):
    values = rng.normal(size=n)
    chosen = flagged(estimated(values))
    assert set(chosen) == set(np.flatnonzero(values < np.percentile(values, 10)))
    assert np.array_equal(chosen, np.argsort(values)[: n // 10])
    assert chosen.dtype == np.int64


def test_a_fraction_is_rounded_keeps_the_players_order_and_flags_somebody():
    ties = estimated([1.0, 0.0, 0.0, 0.0, 2.0])
    assert flagged(ties, fraction=0.4).tolist() == [1, 2]
    assert flagged(ties, fraction=0.55).tolist() == [1, 2, 3]
    assert flagged(ties, fraction=0.01).tolist() == [1]
    assert flagged(estimated([7.0])).tolist() == [0]
    assert len(flagged(estimated(np.arange(100)), fraction=0.999)) == 100


def test_a_threshold_is_strict(rng):
    values = rng.integers(-3, 4, size=50).astype(float)
    chosen = flagged(estimated(values), threshold=0)
    assert set(chosen) == set(np.flatnonzero(values < 0))
    assert (np.diff(values[chosen]) >= 0).all()
    assert flagged(estimated(values), threshold=-3.0).size == 0
    assert flagged(estimated(np.array([-1e-17, -1e-9])), threshold=0).tolist() == [
        1
    ]  # rounding is no loss


def test_clusters_are_the_best_of_all_splits(rng):
    for n in (2, 3, 5, 8, 11):
        for values in (
            rng.normal(size=n),
            rng.integers(0, 4, size=n).astype(float),
            1e6 + rng.random(n),
            rng.standard_cauchy(n),
        ):
            if np.ptp(values) == 0:
                continue
            low = np.isin(np.arange(n), flagged(estimated(values), "cluster"))
            best = min(
                within(values[np.array(split)]) + within(values[~np.array(split)])
                for split in product([False, True], repeat=n)
                if any(split)
            )
            assert within(values[low]) + within(values[~low]) == pytest.approx(
                best, rel=1e-9, abs=1e-12
            )
            assert values[low].max() < values[~low].min()


def test_clusters_flag_fewer_where_it_is_equal_and_nobody_where_there_is_one():
    for values in ([-1.0, 0.0, 1.0], [0.1, 0.2, 0.3], [0.7, 0.1, 0.4]):
        assert flagged(estimated(values), "cluster").tolist() == [int(np.argmin(values))]
    assert flagged(estimated([0.1] * 5), "cluster").size == 0
    assert flagged(estimated([3.0]), "cluster").size == 0
    assert flagged(estimated([2.0, 1.0, 2.0, 1.0]), "cluster").tolist() == [1, 3]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_clusters_do_not_depend_on_the_scale(rng, scale):
    values = np.concatenate([rng.normal(-4, 1, 20), rng.normal(4, 1, 80)])
    assert set(flagged(estimated(values * scale), "cluster")) == set(range(20))


@pytest.mark.parametrize("level", [0.01, 0.05, 0.3, 0.9])
def test_fdr_is_benjamini_hochberg(rng, level):
    counts = set()
    for n in (1, 2, 7, 40):
        for power in (1, 3):
            p = rng.random(n) ** power
            values, freedom = rng.choice([0.01, 1.0, 5.0], n), rng.choice([2.0, 9.5, np.inf], n)
            estimate = estimated(values * t.ppf(p, freedom), values, freedom)
            chosen = flagged(estimate, fdr=level)
            assert (
                set(chosen)
                == benjamini_hochberg(p, level)
                == set(np.flatnonzero(false_discovery_control(p) <= level))
            )
            assert (np.diff(estimate.values[chosen]) >= 0).all()
            counts.add(len(chosen))
    assert len(counts) > 1


def test_false_discoveries_keep_to_the_level_and_uncorrected_ones_do_not(rng):
    # Values of exactly 0 are the hardest that are not to be flagged; then the rate is level *
    # (share of them), exactly.
    n, level, freedom = 100, 0.1, 6
    harmful = np.arange(n) < 20
    rate, uncorrected = [], []
    for _ in range(800):
        values = np.where(harmful, -4.0, 0.0) + rng.normal(size=n)
        estimate = estimated(values, np.sqrt(rng.chisquare(freedom, n) / freedom), freedom)
        chosen = flagged(estimate, fdr=level)
        plain = np.flatnonzero(t.cdf(values / estimate.std_errors, freedom) < level)
        rate.append(np.mean(~harmful[chosen]) if len(chosen) else 0.0)
        uncorrected.append(np.mean(~harmful[plain]))
    assert abs(np.mean(rate) - level * 0.8) < 4 * np.std(rate) / np.sqrt(len(rate))
    assert np.mean(uncorrected) - 4 * np.std(uncorrected) / np.sqrt(len(rate)) > level


def test_fdr_of_exact_and_unmeasured_values():
    estimate = estimated(
        [-1.0, 0.0, 1.0, -9.0, -9.0], [0, 0, 0, np.inf, 1.0], [np.inf, np.inf, np.inf, np.nan, 3.0]
    )
    assert flagged(estimate, fdr=0.05).tolist() == [4, 0]
    assert flagged(estimated([0.0, 1.0]), fdr=0.99).size == 0
    # At 5 players a p of 0.03 alone is not enough; without doubt about another player it is.
    p = norm.ppf(0.03)
    assert flagged(estimated([p, 1, 1, 1, 1], 1.0), fdr=0.05).size == 0
    assert flagged(estimated([p, -1, -1, -1, 1], [1, 0, 0, 0, 0]), fdr=0.05).size == 4


def test_scores_equal_scikit_learns(rng):
    for n in (4, 30, 100):
        values, truth = rng.integers(-5, 6, size=n).astype(float), np.arange(n) % 3 == 0
        estimate = estimated(values)
        found = np.isin(np.arange(n), flagged(estimate, fraction=0.3))
        expected = [score(truth, found) for score in (f1_score, precision_score, recall_score)] + [
            roc_auc_score(truth, -values)
        ]
        for wrong in (truth, np.flatnonzero(truth), np.flatnonzero(truth).tolist()):
            scores = detection_scores(estimate, wrong, flagged=found)
            np.testing.assert_allclose(
                [scores.f1, scores.precision, scores.recall, scores.auc], expected
            )
        unequal = estimated(rng.permutation(n).astype(float))
        for share in (0.1, 0.3):
            assert detection_scores(unequal, truth, fraction=share) == detection_scores(
                unequal, truth, flagged=flagged(unequal, fraction=share)
            )
        assert detection_scores(unequal, truth) == detection_scores(unequal, truth, fraction=0.1)


def test_equal_values_at_the_edge_score_the_mean_over_all_orders_of_the_rows():
    values, truth = np.array([0.0, 1.0, 1.0, 1.0, 2.0]), np.array([True, True, False, False, False])
    for fraction in (0.2, 0.4, 0.6, 0.8):
        found = detection_scores(estimated(values), truth, fraction=fraction)
        orders = [list(order) for order in permutations(range(5))]
        flags = [
            np.isin(np.arange(5), flagged(estimated(values[order]), fraction=fraction))
            for order in orders
        ]
        for name, score in (
            ("f1", f1_score),
            ("precision", precision_score),
            ("recall", recall_score),
        ):
            expected = np.mean(
                [score(truth[order], chosen) for order, chosen in zip(orders, flags, strict=True)]
            )
            assert getattr(found, name) == pytest.approx(expected)


def test_perfect_reversed_and_constant_values():
    truth = np.arange(20) < 2
    perfect = detection_scores(estimated(np.where(truth, -1.0, 1.0)), truth)
    assert (perfect.f1, perfect.precision, perfect.recall, perfect.auc) == (1, 1, 1, 1)
    assert detection_scores(estimated(np.where(truth, 1.0, -1.0)), truth).auc == 0
    assert detection_scores(estimated(np.ones(20)), truth).auc == 0.5


def test_zero_by_zero_is_nan():
    estimate = estimated([1.0, 2.0, 3.0])
    nobody_wrong = detection_scores(estimate, [])
    assert (nobody_wrong.f1, nobody_wrong.precision) == (0, 0)
    assert np.isnan([nobody_wrong.recall, nobody_wrong.auc]).all()
    nobody_flagged = detection_scores(estimate, [0], flagged=[])
    assert (nobody_flagged.f1, nobody_flagged.recall, nobody_flagged.auc) == (0, 0, 1)
    assert np.isnan(nobody_flagged.precision)
    assert np.isnan(detection_scores(estimate, [0, 1, 2]).auc)


FOUR = estimated([0.0, 1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: flagged([1.0, 2.0]), "`estimate` must be an Estimate; got list"),
        (lambda: flagged(estimated([1.0, np.nan])), "one finite value per player"),
        (lambda: flagged(FOUR, "clusters"), '`rule` must be "cluster"'),
        (lambda: flagged(FOUR, 0.1), "fraction=0.1"),
        (lambda: flagged(FOUR, fraction=0.1, fdr=0.05), "fraction and fdr"),
        (lambda: flagged(FOUR, "cluster", threshold=0.0), "threshold and cluster"),
        (lambda: flagged(FOUR, fraction=0), "`fraction` must be"),
        (lambda: flagged(FOUR, fraction=1), "`fraction` must be"),
        (lambda: flagged(FOUR, fraction="0.1"), "`fraction` must be"),
        (lambda: flagged(FOUR, threshold=np.nan), "`threshold` must be"),
        (lambda: flagged(FOUR, threshold=True), "`threshold` must be"),
        (lambda: flagged(FOUR, fdr=0), "`fdr` must be"),
        (lambda: flagged(FOUR, fdr=1.5), "`fdr` must be"),
        (lambda: flagged(estimated([1.0, 2.0], [1.0, np.nan]), fdr=0.05), "repeats=2"),
        (lambda: flagged(estimated([1.0, 2.0], 1.0, np.nan), fdr=0.05), "repeats=2"),
        (lambda: detection_scores(FOUR, [0, 1, 0, 0]), "dtype=bool"),
        (lambda: detection_scores(FOUR, [4]), "from 0 to 3"),
        (lambda: detection_scores(FOUR, [-1]), "from 0 to 3"),
        (lambda: detection_scores(FOUR, [0.5]), "from 0 to 3"),
        (lambda: detection_scores(FOUR, [True, False]), "shape \\(4,\\)"),
        (lambda: detection_scores(FOUR, [0], flagged=["a"]), "`flagged` must be"),
        (lambda: detection_scores(FOUR, [0], flagged=[0], fraction=0.1), "Leave one"),
        (lambda: detection_scores(FOUR, [0], fraction=2), "`fraction` must be"),
    ],
)
def test_bad_input_is_refused(call, said):
    with pytest.raises(db.InvalidInput, match=said):
        call()


def luck(coalitions, keys):
    return 0.01 * db.chance.uniform(keys, 1)[:, 0]


@pytest.mark.parametrize(("budget", "most"), [(8, 0), (200, 0.05)])
def test_where_nobody_hurts_somebody_is_flagged_no_more_often_than_the_level(budget, most):
    """With eight coalitions some of 5,000 players fit the noise by chance, with a tiny spread
    within: Student's law alone flags them.
    """
    game = db.games.Function(5000, luck, stochastic=True, name="luck")
    seeds = 60
    wrong = sum(
        flagged(db.value(game, budget=budget, seed=seed), fdr=0.05).size > 0
        for seed in range(seeds)
    )
    assert wrong / seeds <= most + 4 * np.sqrt(most * (1 - most) / seeds)


def test_rounding_below_zero_is_no_suspicion():
    assert flagged(estimated([-1e-17, 0.5, -2e-13, 1.0]), fdr=0.05).size == 0
    assert flagged(estimated([-1e-9, 0.5]), fdr=0.05).tolist() == [0]
