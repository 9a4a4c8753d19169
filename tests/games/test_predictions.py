"""What is kept of a trained model: written as `np.save` does, read alone or many at once."""

import io

import numpy as np
import pytest

from databanzhaf.games import Network
from databanzhaf.games.predictions import ClassifierAnswers, RegressorAnswers, unpack, unpack_many
from tests.games.test_trained import dataset, jobs, regression

CLASSES = np.array(["a", "b", "c"])
FIELDS = ("predict", "predict_proba", "decision_function")


def answers(seed, kind=np.float32, order="C", **more):
    rng = np.random.default_rng(seed)
    proba = np.asarray(rng.random((7, 3)), kind, order=order)
    return ClassifierAnswers(
        {"predict": CLASSES[proba.argmax(axis=1)], "predict_proba": proba, **more}, CLASSES
    )


def saved(*arrays):
    file = io.BytesIO()
    for array in arrays:
        np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("kind", [np.float32, np.float64, ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_answers_are_kept_as_numpy_saves_them(kind, order):
    some = answers(0, kind, order, decision_function=np.arange(14.0)[::2])
    numbers = np.searchsorted(CLASSES, some.predict(None)).astype(np.int32)
    parts = numbers, some.predict_proba(None), some.decision_function(None)
    assert some.pack() == saved(*parts)
    again = unpack(some.pack(), CLASSES)
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(again, name)(None), getattr(some, name)(None))
    plain = RegressorAnswers({"predict": np.arange(5.0)})
    assert plain.pack() == saved(np.arange(5.0), np.empty(0), np.empty(0))
    assert not hasattr(unpack(plain.pack(), None), "predict_proba")


def test_many_are_read_at_once_where_they_have_one_form():
    packed = [answers(seed).pack() for seed in range(5)]
    together = unpack_many(packed, CLASSES)
    for name in FIELDS[:2]:
        each = np.stack([getattr(unpack(one, CLASSES), name)(None) for one in packed])
        np.testing.assert_array_equal(getattr(together, name)(None), each)
    assert not hasattr(together, "decision_function")
    for other in (answers(1, np.float64), answers(1, "i4"), answers(1, order="F")):
        assert unpack_many([*packed, other.pack()], CLASSES) is None
    assert unpack_many([answers(1, order="F").pack()], CLASSES) is None
    assert unpack_many([], CLASSES) is None


METRICS = ("probability", "accuracy", "log_loss", "balanced_probability", "f1_macro")


@pytest.mark.parametrize(
    ("data", "options"),
    [
        *((dataset, {"metric": metric}) for metric in METRICS),
        (regression, {"loss": "squared", "metric": "r2"}),
        (regression, {"loss": "squared", "metric": "mse"}),
        (regression, {"loss": "squared", "metric": "neg_mean_absolute_error"}),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_scores_and_verdicts_of_many_are_those_of_each_to_the_bit(data, options):
    game = Network(data(), device="cpu", epochs=2, **options)
    coalitions, keys = jobs(30, 20)
    coalitions[3] = False  # a model without rows
    outcomes = game.outcomes(coalitions, keys)
    np.testing.assert_array_equal(
        game.score_many(outcomes), [game.score(outcome) for outcome in outcomes]
    )
    if game.jury is not None:
        each = np.concatenate([game.verdicts([outcome]) for outcome in outcomes])
        np.testing.assert_array_equal(game.verdicts(outcomes), each)


def test_a_score_of_ones_own_is_asked_for_each():
    class Mine(Network):
        def score(self, outcome):
            return 42.0

    game = Mine(dataset(), device="cpu", epochs=1)
    assert set(game.score_many(game.outcomes(*jobs(30, 3)))) == {42.0}


def test_labels_of_many_models_are_made_when_they_are_asked_for():
    class Counted(np.ndarray):
        made = 0

        def __getitem__(self, key):
            Counted.made += 1
            return super().__getitem__(key)

    classes = CLASSES.view(Counted)
    together = unpack_many([answers(seed).pack() for seed in range(3)], classes)
    together.predict_proba(None)
    assert Counted.made == 0
    assert together.predict(None).shape == (3, 7)
    assert Counted.made == 1


def test_answers_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="Object arrays"):
        RegressorAnswers({"predict": np.array([1.5], object)}).pack()
