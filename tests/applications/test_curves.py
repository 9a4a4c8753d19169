import numpy as np
import pytest

import databanzhaf as db
from databanzhaf.applications import Curve, addition_curve, removal_curve
from tests.applications.test_detection import estimated
from tests.closed_forms import noisy_additive

# Whole numbers, so that sums are exact in any order.
WORTH = np.array([3.0, -7.0, 1.0, 12.0, 0.0, -2.0, 5.0, -1.0, 8.0, 2.0])
N = len(WORTH)


def additive(call_size=16):
    return db.games.Function(
        N, lambda coalitions: coalitions @ WORTH, name="worth", call_size=call_size
    )


def noise(n=6, call_size=16):
    return db.games.Function(
        n,
        lambda coalitions, keys: db.chance.uniform(keys, 1)[:, 0],
        stochastic=True,
        call_size=call_size,
    )


def test_curves_of_an_additive_game_are_sums_of_sorted_worths():
    low, high = np.sort(WORTH), np.sort(WORTH)[::-1]
    joined = [sum(high[:k]) for k in range(N + 1)]
    game, estimate = additive(), db.value(additive())
    removal = removal_curve(game, estimate)
    assert removal.counts.tolist() == list(range(N + 1))
    assert removal.counts.dtype == np.int64
    assert removal.utility.tolist() == [sum(low[k:]) for k in range(N + 1)]
    assert removal_curve(game, estimate, lowest_first=False).utility.tolist() == [
        sum(high[k:]) for k in range(N + 1)
    ]
    assert (
        addition_curve(game, estimate).utility.tolist() == joined == removal.utility[::-1].tolist()
    )
    assert addition_curve(game, estimate, lowest_first=True).utility.tolist() == [
        sum(low[:k]) for k in range(N + 1)
    ]


def test_true_values_are_the_envelope_of_all_orders():
    game, estimate = additive(), estimated(WORTH)
    best = removal_curve(game, estimate, random_orders=200)
    worst = removal_curve(game, estimate, random_orders=200, lowest_first=False)
    assert np.array_equal(best.random, worst.random)
    assert (best.random <= best.utility).all()
    assert (worst.random >= worst.utility).all()
    assert (best.utility > best.random_mean)[1:-1].all()
    # A negative control: values that have nothing to do with the worths are no envelope.
    wrong = removal_curve(game, estimated(np.arange(N)), random_orders=200)
    assert (wrong.random > wrong.utility).any()
    assert (wrong.random < wrong.utility).any()


def test_random_orders_are_uniform_on_average():
    orders = 400
    curve = removal_curve(additive(), estimated(WORTH), random_orders=orders)
    left = N - curve.counts
    # The sum of a sample of `left` of n without replacement: mean left * mean, variance left (n -
    # left) / n * s^2.
    spread = np.sqrt(left * (N - left) / N * WORTH.var(ddof=1) / orders)
    assert (np.abs(curve.random_mean - left * WORTH.mean()) <= 4 * spread).all()
    assert len(np.unique(curve.random, axis=0)) > orders * 0.9


@pytest.mark.parametrize("orders", [2, 3, 10])
def test_the_band_holds_a_further_order_95_times_in_100(rng, orders):
    cases = 20_000
    draws = rng.normal(2.0, 3.0, size=(orders + 1, cases))
    curve = Curve(np.arange(cases), draws[0], draws[1:], "removed", True)
    inside = ((curve.random_low <= curve.utility) & (curve.utility <= curve.random_high)).mean()
    assert abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / cases)


def test_few_random_orders_have_no_band():
    none, one = (removal_curve(additive(), estimated(WORTH), random_orders=k) for k in (0, 1))
    assert none.random.shape == (0, N + 1)
    assert np.isnan([none.random_mean, none.random_low, none.random_high]).all()
    assert np.array_equal(one.random_mean, one.random[0])
    assert np.isnan([one.random_low, one.random_high]).all()


def test_equal_values_keep_the_players_order():
    estimate = estimated([1.0, 0.0, 0.0, 1.0])
    game = db.games.Function(4, lambda coalitions: coalitions @ [1.0, 2.0, 4.0, 8.0], name="bits")
    assert addition_curve(game, estimate, lowest_first=True).utility.tolist() == [0, 2, 6, 7, 15]
    assert addition_curve(game, estimate).utility.tolist() == [0, 1, 9, 11, 15]


def test_steps_are_spread_evenly_or_given():
    game, estimate = noise(100), estimated(np.arange(100))
    assert removal_curve(game, estimate, random_orders=0).counts.tolist() == list(range(0, 101, 5))
    assert removal_curve(game, estimate, random_orders=0, steps=2).counts.tolist() == [0, 100]
    assert removal_curve(game, estimate, random_orders=0, steps=[7]).counts.tolist() == [7]
    assert removal_curve(game, estimate, random_orders=0, steps=range(3)).counts.tolist() == [
        0,
        1,
        2,
    ]
    assert removal_curve(game, estimate, random_orders=0, steps=10**12).counts.tolist() == list(
        range(101)
    )


def test_one_player():
    curve = removal_curve(db.games.Table([0, 1]), estimated([1.0]))
    assert curve.counts.tolist() == [0, 1]
    assert curve.utility.tolist() == [1, 0]


@pytest.mark.parametrize(
    "game", [noisy_additive(10)[0], noise(10, call_size=1), noise(10, call_size=7)], ids=repr
)
@pytest.mark.parametrize(
    "evaluator", [db.evaluators.Processes(1), db.evaluators.Processes(2)], ids=repr
)
def test_every_evaluator_gives_the_same_bits(game, evaluator):
    one, other = (
        addition_curve(game, estimated(WORTH), repeats=2, seed=5, evaluator=where)
        for where in (db.evaluators.Local(), evaluator)
    )
    assert np.array_equal(one.utility, other.utility)
    assert np.array_equal(one.random, other.random)


def test_a_point_does_not_depend_on_the_other_points():
    game, estimate = noise(10), estimated(WORTH)
    whole = removal_curve(game, estimate, random_orders=6, repeats=2)
    part = removal_curve(game, estimate, random_orders=3, repeats=2, steps=[2, 5, 9])
    assert np.array_equal(part.utility, whole.utility[[2, 5, 9]])
    assert np.array_equal(part.random, whole.random[:3, [2, 5, 9]])
    assert not np.isin(removal_curve(game, estimate, seed=1, repeats=2).random, whole.random).any()


def test_repeats_are_averaged_and_no_two_trainings_share_their_noise():
    n = 40
    estimate, size = estimated(np.arange(n)), 41 * 31
    for repeats in (1, 4):
        curve = removal_curve(noise(n), estimate, steps=n + 1, random_orders=30, repeats=repeats)
        drawn = np.concatenate([curve.utility, curve.random.ravel()])
        assert len(np.unique(drawn)) == size
        # Uniform noise has mean 1/2 and variance 1/12; the variance of a variance is at most that
        # of a Gaussian.
        assert abs(drawn.mean() - 0.5) < 4 * np.sqrt(1 / 12 / repeats / size)
        assert abs(drawn.var() * 12 * repeats - 1) < 4 * np.sqrt(2 / size)


def test_the_curve_is_the_game_at_its_keys():
    game, estimate = noise(6), estimated(np.arange(6))
    keys = [
        db.chance.keys(3, db.chance.CURVE_TRAINING, np.arange(7), repeat) for repeat in range(3)
    ]
    expected = np.mean([db.chance.uniform(key, 1)[:, 0] for key in keys], axis=0)
    assert np.array_equal(removal_curve(game, estimate, seed=3, repeats=3).utility, expected)


def test_its_noise_is_not_that_of_the_run():
    streams = db.chance
    assert (
        len(
            {
                streams.DESIGN,
                streams.TRAINING,
                streams.CURVE_ORDERS,
                streams.CURVE_TRAINING,
                streams.SPLIT,
            }
        )
        == 5
    )


@pytest.mark.parametrize("cells", [1, 100, 1 << 22])
@pytest.mark.parametrize("evaluator", [db.evaluators.Local(), db.evaluators.Processes(2)], ids=repr)
def test_calls_begin_at_multiples_of_the_call_size(monkeypatch, evaluator, cells):
    monkeypatch.setattr("databanzhaf.evaluators.batch.BLOCK_CELLS", cells)
    game = db.games.Function(
        4, lambda coalitions: np.full(len(coalitions), float(len(coalitions))), call_size=3
    )
    curve = removal_curve(game, estimated(np.arange(4)), random_orders=3, evaluator=evaluator)
    sizes = [*curve.utility, *curve.random.ravel()]
    assert sizes == [3.0] * 18 + [2.0] * 2


def test_a_failure_names_its_coalition():
    def broken(coalitions):
        if not coalitions[:, 1].all():
            raise ValueError("player 1 is missed")
        return coalitions.sum(axis=1)

    game = db.games.Function(N, broken, call_size=1)
    for evaluator in (db.evaluators.Local(), db.evaluators.Processes(2)):
        with pytest.raises(db.EvaluationFailed, match="player 1 is missed") as caught:
            removal_curve(game, estimated(WORTH), evaluator=evaluator)
        assert (caught.value.index, caught.value.repeat) == (1, 0)
        assert np.flatnonzero(~caught.value.coalition).tolist() == [1]


def test_to_frame_and_repr():
    curve = removal_curve(additive(), estimated(WORTH), random_orders=4)
    frame = curve.to_frame()
    assert list(frame.columns) == ["count", "utility", "random_mean", "random_low", "random_high"]
    assert np.array_equal(frame["utility"], curve.utility)
    assert np.array_equal(frame["random_low"], curve.random_low)
    assert len(frame) == N + 1
    text = repr(curve)
    assert "players removed, lowest value first" in text
    assert "4 random orders" in text
    assert len(text.splitlines()) == 2 + N + 1
    long = repr(addition_curve(noise(100), estimated(np.arange(100)), steps=101, random_orders=0))
    assert "players added, highest value first" in long
    assert len(long.splitlines()) == 2 + 12
    assert [line.split()[0] for line in long.splitlines()[2:]][::11] == ["0", "100"]


THREE = estimated([1.0, 2.0, 3.0])
GAME = db.games.Table(np.arange(8))


@pytest.mark.parametrize("curve", [removal_curve, addition_curve])
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"game": 3}, "`game` must turn coalitions"),
        ({"game": db.games.Table([0, 1])}, "same players; got 1 and 3"),
        ({"estimate": WORTH}, "`estimate` must be an Estimate"),
        ({"estimate": estimated([1.0, 2.0, np.nan])}, "finite value"),
        ({"steps": 1}, "`steps` must be a whole number, 2 or more"),
        ({"steps": True}, "`steps` must be a whole number"),
        ({"steps": "many"}, "`steps` must be a whole number"),
        ({"steps": 2.5}, "`steps` must be a whole number"),
        ({"steps": None}, "`steps` must be a number of steps, or increasing"),
        ({"steps": []}, "increasing"),
        ({"steps": [0, 4]}, "from 0 to 3"),
        ({"steps": [-1, 2]}, "from 0 to 3"),
        ({"steps": [2, 1]}, "increasing"),
        ({"steps": [1, 1]}, "increasing"),
        ({"steps": [0.0, 0.5]}, "whole numbers"),
        ({"lowest_first": "yes"}, "`lowest_first` must be True or False"),
        ({"repeats": 0}, "`repeats` must be"),
        ({"random_orders": -1}, "`random_orders` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"evaluator": "processes"}, "`evaluator` must be"),
        ({"evaluator": db.evaluators.Local}, "`evaluator` must be"),
    ],
)
def test_bad_input_is_refused(curve, arguments, said):
    with pytest.raises(db.InvalidInput, match=said):
        curve(**{"game": GAME, "estimate": THREE} | arguments)
