"""Parameters of an estimator that its user left open: random states, splitters, threads."""

from __future__ import annotations

import re
from typing import Any

import numpy as np


def open_states(estimator: Any) -> list[str]:
    """Every random state that is not a number; an object would make the answer depend on the order
    of trainings.
    """
    return sorted(
        name for name, value in estimator.get_params().items() if _is_open_state(name, value)
    )


def open_splitters(estimator: Any) -> list[str]:
    """Splitters of a search (ShuffleSplit and the like) that hold an open random state of their
    own, which get_params does not show.
    """
    return sorted(
        name for name, value in estimator.get_params().items() if _is_open_splitter(value)
    )


def open_threads(estimator: Any) -> list[str]:
    """The threads of boosters, which would take all cores for each small model, and wait for each
    other.
    """
    greedy = any(comes_from(estimator, package) for package in ("lightgbm", "xgboost"))
    return [
        name
        for name, value in estimator.get_params().items()
        if greedy and value is None and re.search(r"(^|__)n_jobs$", name)
    ]


def comes_from(estimator: Any, package: str) -> bool:
    """Whether an estimator, or the last step of a pipeline, is a package's."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return any(kind.__module__.split(".")[0] == package for kind in type(estimator).__mro__)


def _is_open_state(name: str, value: object) -> bool:
    # A RandomState object would make the answer depend on the order of trainings, so it is replaced
    # too.
    is_state = name == "random_state" or name.endswith("__random_state")
    return is_state and not isinstance(value, (int, np.integer))


def _is_open_splitter(value: Any) -> bool:
    has_state = (
        hasattr(value, "random_state")
        and not hasattr(value, "get_params")
        and not isinstance(value, type)
    )
    return (
        has_state
        and getattr(value, "shuffle", True)
        and _is_open_state("random_state", value.random_state)
    )
