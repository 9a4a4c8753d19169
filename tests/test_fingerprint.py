import functools

import numpy as np
from sklearn.metrics import f1_score, make_scorer

from databanzhaf.fingerprint import captured, describe

POWER = 2


def reads_a_global(x):
    return x**POWER


def defaulted(x, power=2):
    return x**power


class Scorer:
    def __init__(self, sign):
        self.sign = sign

    def __call__(self, model, X, y):
        return self.sign


def test_functions_differ_by_code_defaults_and_arguments():
    functions = [
        lambda x: x,
        lambda x: -x,
        lambda x: x + 1,
        lambda x: x + 2,
        defaulted,
        functools.partial(defaulted, power=3),
        functools.partial(defaulted, power=4),
        Scorer(1),
        Scorer(2),
        make_scorer(f1_score),
        make_scorer(f1_score, average="macro"),
        make_scorer(lambda y, p: 0.0),
        make_scorer(lambda y, p: 1.0),
        np.mean,
    ]
    texts = [describe(function) for function in functions]
    assert len(set(texts)) == len(functions)
    assert not any("0x" in text for text in texts)


def test_equal_things_have_equal_text():
    for make in (
        lambda: Scorer(1),
        lambda: make_scorer(f1_score, average="macro"),
        lambda: functools.partial(defaulted, power=3),
        lambda: {"a": np.arange(3), "b": [1, {"x", "y"}]},
    ):
        assert describe(make()) == describe(make())


def test_arrays_and_containers_are_told_apart():
    things = [
        np.arange(3),
        np.arange(3.0),
        np.arange(4),
        [0, 1, 2],
        {"a": 1},
        {"a": 2},
        {1, 2},
        "1",
        1,
        1.0,
        True,
        None,
        int,
    ]
    assert len({describe(thing) for thing in things}) == len(things)


def test_captured_variables_are_named():
    weights = np.ones(3)
    assert captured(lambda c: c @ weights) == ("weights",)
    assert captured(reads_a_global) == ("POWER",)
    assert captured(defaulted) == ()
    assert captured(lambda c: np.sum(c)) == ()
    assert captured(Scorer(1)) == ("self",)


def test_an_object_that_holds_itself_comes_to_an_end():
    loop = Scorer(1)
    loop.me = [loop]
    assert "again" in describe(loop)
    assert describe(loop) != describe(Scorer(1))
