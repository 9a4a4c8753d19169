"""Whoever waits for a compilation is told so, once, and not when the code is in the cache."""

import numba

from databanzhaf.kernels import compiling, numba_chance
from databanzhaf.progress import Bar


def test_the_bar_says_once_that_code_is_compiled(capsys):
    assert numba_chance.compiled  # listens from its import on
    bar = Bar()
    bar(0, 10, [])
    for _ in range(2):
        numba.njit(lambda x: x + 1)(1)
    bar(10, 10, [])
    bar.close()
    assert capsys.readouterr().err.count("Compiling the training code") == 1


def test_a_closed_bar_says_nothing(capsys):
    bar = Bar()
    bar(0, 10, [])
    bar.close()
    numba.njit(lambda x: x + 2)(1)
    assert "Compiling" not in capsys.readouterr().err
    assert compiling._listeners == []
