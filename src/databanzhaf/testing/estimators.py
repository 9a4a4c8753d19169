"""What every estimator promises: the truth within its errors, and a refusal of the rest."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np

from databanzhaf import chance, designs, games
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators import Exact
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import BoolArray, Estimator, FloatArray, KeyArray, Notion
from databanzhaf.run import value
from databanzhaf.testing.promises import promise, same

_WORTH = np.array([1.0, -0.5, 0.25, 0.0, 2.0, -1.0])


def check_estimator(estimator: Estimator, notion: Notion, *, budget: int = 20_000) -> None:
    """Check the promises of `protocols.Estimator` for one notion, on small games whose values are
    known.
    """
    promise(isinstance(estimator, Estimator), "an estimator has the members of protocols.Estimator")
    promise(estimator.gives(notion), f"`gives` says that {notion.name} is estimated")
    design = estimator.design(notion, 6, 0)
    promise(isinstance(design, estimator.reads), "an estimator reads the design that it asks for")
    _check_shapes(estimator, notion)
    _check_refusal(estimator, notion)
    if isinstance(notion, SizeWeighted) and design.size is None:
        for game in (games.Function(6, _interacting), games.Function(6, _noisy, stochastic=True)):
            _check_truth(estimator, notion, game, budget)


def distance(estimate: Estimate, truth: FloatArray) -> float:
    """The largest error in units of its standard error."""
    gap = np.abs(estimate.values - truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(gap < 1e-12, 0, gap / estimate.std_errors).max())


def _check_truth(estimator: Estimator, notion: Notion, game: games.Function, budget: int) -> None:
    exact = value(games.Function(6, _interacting), notion, estimator=Exact()).values
    found = value(game, notion, estimator=estimator, budget=budget, seed=1)
    promise(np.isfinite(found.std_errors).all(), f"{budget:,} evaluations give standard errors")
    off = distance(found, exact)
    promise(off < 4, f"values lie within four standard errors of the truth; one is {off:.1f} off")


def _check_shapes(estimator: Estimator, notion: Notion) -> None:
    game = games.Function(6, _noisy, stochastic=True)
    found = value(game, notion, estimator=estimator, budget=700, repeats=2)
    for name in ("values", "std_errors", "degrees_of_freedom"):
        promise(getattr(found, name).shape == (6,), f"`{name}` has one number per player")
    promise(found.values_by_repeat.shape == (2, 6), "each repeat has its own values")
    promise(found.notion == notion, "an estimate knows its notion")
    promise(found.estimator == estimator, "an estimate knows its estimator")
    try:
        found.values = found.values  # type: ignore[misc]
        frozen = False
    except FrozenInstanceError:
        frozen = True
    promise(frozen, "an estimate is frozen")
    again = value(game, notion, estimator=estimator, budget=700, repeats=2)
    same(again.values, found.values, "the same call gives the same bits")


def _check_refusal(estimator: Estimator, notion: Notion) -> None:
    every = (designs.Coin(4, 0, 0.125), designs.Exhaustive(4), designs.LeaveOneOut(4))
    for design in (each for each in every if not isinstance(each, estimator.reads)):
        index = np.arange(design.size or 40)
        evaluations = Evaluations(design, index, np.zeros((len(index), 1)))
        try:
            estimator(evaluations, notion)
        except DesignMismatch:
            continue
        raise AssertionError(f"evaluations of {design!r} are refused with DesignMismatch")


def _interacting(coalitions: BoolArray) -> FloatArray:
    values: FloatArray = np.tanh(coalitions @ _WORTH) + coalitions[:, 0] * coalitions[:, 1]
    return values


def _noisy(coalitions: BoolArray, keys: KeyArray) -> FloatArray:
    noise: FloatArray = 0.3 * (chance.uniform(keys, 1)[:, 0] - 0.5)
    return _interacting(coalitions) + noise
