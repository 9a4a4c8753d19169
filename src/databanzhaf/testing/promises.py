"""One promise at a time."""

from __future__ import annotations

from typing import Any

import numpy as np


def promise(holds: Any, sentence: str) -> None:
    """Raise `AssertionError` with the sentence unless it holds."""
    if not holds:
        raise AssertionError(sentence)


def same(one: Any, two: Any, sentence: str) -> None:
    """The same bits."""
    promise(np.array_equal(np.asarray(one), np.asarray(two), equal_nan=True), sentence)
