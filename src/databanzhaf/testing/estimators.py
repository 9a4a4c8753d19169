"""What every estimator promises: the truth within its errors, and a refusal of the rest."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass
from math import comb

import numpy as np

from databanzhaf import chance, designs, games, notions
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.estimators import Exact
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import SizeWeighted
from databanzhaf.protocols import BoolArray, Design, Estimator, FloatArray, KeyArray, Notion
from databanzhaf.run import value
from databanzhaf.testing.promises import has_members, promise, same

_WORTH = np.array([1.0, -0.5, 0.25, 0.0, 2.0, -1.0])
_N = len(_WORTH)
_NAMES = list("abcdef")
# Evaluations of a quick look: at the members of an estimate, and at its errors over many seeds.
_FEW, _SEEDS = 700, 60
# Evaluations that tell one notion's values from another's.
_SOME = 6_000
# Root mean square of (value - truth) / standard error, for each player. The estimators of the
# package lie between 0.78 and 1.37; 60 seeds give 1 ± 0.1, more with few degrees of freedom.
_RATIOS = 0.6, 1.6
# Repeats of a finite design: training noise is all that makes its values uncertain.
_REPEATS = 8
# How far values may be off where no standard error is known, in units of the utilities' range.
_UNKNOWN = 0.01


@dataclass(frozen=True)
class _Stranger:
    """A notion that no estimator can know."""

    name = "stranger"


_NOTIONS: tuple[Notion, ...] = (
    notions.Banzhaf(),
    notions.WeightedBanzhaf(0.3),
    notions.Shapley(),
    notions.Beta(4, 1),
    notions.LeaveOneOut(),
    notions.LeastCore(),
    _Stranger(),
)


def check_estimator(estimator: Estimator, notion: Notion, *, budget: int = 20_000) -> None:
    """Check the promises of `protocols.Estimator` for one notion, on small games whose values are
    known.

    Values are compared with those by the definition of the notion. That is possible for semivalues
    and the least core; estimates of other notions are checked for their form only.
    """
    has_members(estimator, Estimator, "an estimator")
    promise(estimator.gives(notion), f"`gives` says that {notion.name} is estimated; got False")
    design = estimator.design(notion, _N, 0)
    promise(
        isinstance(design, estimator.reads),
        f"an estimator reads the design that it asks for; {design!r} is not among its `reads`",
    )
    _check_form(estimator, notion, design)
    _check_notions(estimator, design)
    _check_designs(estimator, notion, foreign=True)
    _check_truth(estimator, notion, budget)
    _check_repeats(estimator, notion, design)
    _check_gaps(estimator, notion, budget)
    _check_designs(estimator, notion, foreign=False)
    if isinstance(notion, SizeWeighted):
        _check_errors(estimator, notion)
    _check_claims(estimator)


def distance(estimate: Estimate, truth: FloatArray) -> float:
    """The largest error in units of its standard error."""
    gap = np.abs(estimate.values - truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(gap < 1e-12, 0, gap / estimate.std_errors).max())


def _check_form(estimator: Estimator, notion: Notion, design: Design) -> None:
    given = _evaluate(design, _FEW, repeats=2)
    found = estimator(given, notion)
    promise(isinstance(found, Estimate), f"an estimator returns an Estimate; got {type(found)}")
    for name, shape in (
        ("values", (_N,)),
        ("std_errors", (_N,)),
        ("degrees_of_freedom", (_N,)),
        ("values_by_repeat", (2, _N)),
    ):
        got = np.shape(getattr(found, name))
        promise(got == shape, f"`{name}` of {_N} players and 2 repeats is {shape}; got {got}")
    for name, wrong in (
        ("values", ~np.isfinite(found.values)),
        ("std_errors", found.std_errors < 0),
        ("degrees_of_freedom", ~(found.degrees_of_freedom > 0)),
    ):
        kind = {"values": "finite", "std_errors": "0 or more"}.get(name, "positive")
        for player in np.flatnonzero(wrong)[:1]:
            got = getattr(found, name)[player]
            raise AssertionError(f"`{name}` are {kind}; player {player} has {got:g}")
    promise(found.notion == notion, f"an estimate knows its notion; got {found.notion!r}")
    promise(
        found.estimator == estimator, f"an estimate knows its estimator; got {found.estimator!r}"
    )
    names = None if found.players is None else list(found.players)
    promise(
        names == _NAMES,
        f"an estimate has the evaluations' names of the players; got {names}, not {_NAMES}",
    )
    promise(
        found.n_evaluations == given.n_evaluations,
        f"`n_evaluations` is {given.n_evaluations:,}, coalitions times repeats; "
        f"got {found.n_evaluations}",
    )
    try:
        found.values = found.values  # type: ignore[misc]
        frozen = False
    except FrozenInstanceError:
        frozen = True
    promise(frozen, "an estimate is frozen")
    again = estimator(given, notion).values
    same(again, found.values, "the same call gives the same bits", lambda i: f"player {i}")


def _check_notions(estimator: Estimator, design: Design) -> None:
    """A notion that is not given is refused."""
    given = _evaluate(design, _FEW)
    for notion in (each for each in _NOTIONS if not estimator.gives(each)):
        if _answer(estimator, given, notion) is not None:
            raise AssertionError(
                f"`gives` says that {notion.name} is not estimated, so it is refused with "
                "DesignMismatch; got an estimate"
            )


def _check_claims(estimator: Estimator) -> None:
    """A notion that is given is estimated, and not another one."""
    for notion in (each for each in _NOTIONS if estimator.gives(each)):
        claim = f"`gives` says that {notion.name} is estimated"
        try:
            design = estimator.design(notion, _N, 0)
            found = estimator(_evaluate(design, _SOME, noisy=False), notion)
        except DesignMismatch as error:
            raise AssertionError(f"{claim}, but the estimator refuses it: {error}") from error
        promise(not isinstance(notion, _Stranger), f"{claim}, which no estimator can know")
        _check_values(found, notion, 5, f"{claim}, so its values")


def _check_truth(estimator: Estimator, notion: Notion, budget: int) -> None:
    design = estimator.design(notion, _N, 1)
    plain, noisy = games.Function(_N, _interacting), games.Function(_N, _noisy, stochastic=True)
    # Every coalition of a finite design has noise of its own, which one repeat cannot measure.
    for game in [plain, noisy] if design.size is None else [plain]:
        if not (isinstance(notion, SizeWeighted) or game is plain):
            continue
        found = value(game, notion, estimator=estimator, budget=budget, seed=1)
        known = np.isfinite(found.std_errors).all() or not isinstance(notion, SizeWeighted)
        promise(known, f"{budget:,} evaluations give standard errors; got {found.std_errors}")
        _check_values(found, notion, 4, "values")


def _check_gaps(estimator: Estimator, notion: Notion, budget: int) -> None:
    given = _evaluate(estimator.design(notion, _N, 2), budget, noisy=False, gaps=True)
    found = _answer(estimator, given, notion)
    if found is not None:
        _check_values(found, notion, 4, "values from evaluations with gaps in `indices`")
    elif given.design.size is None:
        raise AssertionError("evaluations with gaps in `indices` are read; got DesignMismatch")


def _check_designs(estimator: Estimator, notion: Notion, *, foreign: bool) -> None:
    """Evaluations of foreign designs are refused, those of others refused or understood."""
    laws = [tuple(each.weights(_N).tolist()) for each in (notions.Banzhaf(), notions.Shapley())]
    every: tuple[Design, ...] = (
        *(designs.Coin(_N, 3, p) for p in (0.125, 0.5)),
        designs.Complementary(_N, 3),
        designs.Anchored(_N, 3),
        *(designs.Paired(_N, 3, law) for law in laws),
        designs.Permutation(_N, 3),
        designs.GroupTesting(_N, 3),
        designs.Exhaustive(_N),
        designs.LeaveOneOut(_N),
    )
    for design in (each for each in every if isinstance(each, estimator.reads) != foreign):
        found = _answer(estimator, _evaluate(design, _SOME, noisy=False), notion)
        if found is None:
            continue
        promise(
            not foreign,
            f"evaluations of {design!r}, which is not among `reads`, are refused with "
            "DesignMismatch; got an estimate",
        )
        whose = f"evaluations of {design!r} are refused with DesignMismatch, or their values"
        _check_values(found, notion, 5, whose)


def _check_repeats(estimator: Estimator, notion: Notion, design: Design) -> None:
    """What a repeat gives is about what it would give alone; not to the last digit, since a fit may
    choose its penalty by all repeats.
    """
    given = _evaluate(design, _FEW, repeats=2)
    found = estimator(given, notion)
    slack = 0.5 * np.nan_to_num(found.std_errors, nan=0.0) + 1e-6
    for repeat, column in enumerate(given.utilities.T):
        alone = estimator(Evaluations(design, given.indices, column[:, None]), notion).values
        got = found.values_by_repeat[repeat]
        for player in np.flatnonzero(~(np.abs(got - alone) <= slack))[:1]:
            raise AssertionError(
                f"`values_by_repeat[{repeat}]` are the values of that repeat; player {player} has "
                f"{got[player]:.4g}, and the repeat alone gives {alone[player]:.4g}"
            )


def _check_errors(estimator: Estimator, notion: SizeWeighted) -> None:
    """Standard errors are of the size of the errors."""
    truth = _semivalues(notion)
    ratios = np.empty((_SEEDS, _N))
    for seed in range(_SEEDS):
        design = estimator.design(notion, _N, seed)
        repeats = 1 if design.size is None else _REPEATS
        found = estimator(_evaluate(design, _FEW, seed=seed, repeats=repeats), notion)
        promise(
            not np.isnan(found.std_errors).any(),
            f"standard errors are known for {design!r}, repeats={repeats}; got NaN",
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[seed] = np.abs(found.values - truth) / found.std_errors
    low, high = _RATIOS
    sizes = np.sqrt((ratios**2).mean(axis=0))
    for player in np.flatnonzero(~((low <= sizes) & (sizes <= high)))[:1]:
        fault = "small" if sizes[player] > high else "large"
        raise AssertionError(
            "standard errors are of the size of the errors: over "
            f"{_SEEDS} seeds the root mean square of (value - truth) / std_error lies between "
            f"{low} and {high}; got {sizes[player]:.2f} for player {player}: they are too {fault}"
        )


def _check_values(found: Estimate, notion: Notion, most: int, whose: str) -> None:
    """Values within `most` standard errors of the truth, where it is known."""
    truth = _truth(notion)
    if truth is None:
        return
    unknown = _UNKNOWN * float(np.ptp(_interacting(_every())))
    room = np.where(np.isnan(found.std_errors), unknown, most * found.std_errors)
    gap = np.abs(found.values - truth)
    wrong = np.flatnonzero(~(gap <= np.maximum(room, 1e-9)))
    if len(wrong):
        player = int(wrong[gap[wrong].argmax()])
        raise AssertionError(
            f"{whose} lie within {'four' if most == 4 else 'five'} standard errors of the truth; "
            f"player {player} has {found.values[player]:.4g} ± {found.std_errors[player]:.2g}, "
            f"the truth is {truth[player]:.4g}"
        )


def _answer(estimator: Estimator, given: Evaluations, notion: Notion) -> Estimate | None:
    """The estimate, None if it is refused."""
    try:
        return estimator(given, notion)
    except DesignMismatch:
        return None


def _truth(notion: Notion) -> FloatArray | None:
    """Values of the game without noise, None if they are not known."""
    if isinstance(notion, SizeWeighted):
        return _semivalues(notion)
    given = _evaluate(designs.Exhaustive(_N), 2**_N, noisy=False)
    return Exact()(given, notion).values if Exact().gives(notion) else None


def _semivalues(notion: SizeWeighted) -> FloatArray:
    """By their definition, term by term."""
    table, law, values = _interacting(_every()), notion.weights(_N), np.zeros(_N)
    for index, coalition in enumerate(_every()):
        size = int(coalition.sum())
        for player in np.flatnonzero(~coalition):
            gain = table[index | 1 << int(player)] - table[index]
            values[player] += law[size] / comb(_N - 1, size) * gain
    return values


def _evaluate(
    design: Design,
    count: int,
    *,
    seed: int = 0,
    repeats: int = 1,
    noisy: bool = True,
    gaps: bool = False,
) -> Evaluations:
    """About `count` evaluations of an endless design, all of a finite one. With gaps, half of the
    units are left out, but for the first ten: some estimators need what an endless design begins
    with.
    """
    units = max(1, count // design.unit) * (1 + gaps)
    indices = np.arange(design.size or units * design.unit)
    if gaps:
        kept = np.random.default_rng(0).random(1 + indices[-1] // design.unit) < 0.5
        kept[:10] = True
        indices = indices[kept[indices // design.unit]]
    coalitions = design.coalitions(indices)
    columns = [
        _noisy(coalitions, chance.keys(seed, chance.TRAINING, indices, repeat))
        if noisy
        else _interacting(coalitions)
        for repeat in range(repeats)
    ]
    return Evaluations(design, indices, np.column_stack(columns), noisy, _NAMES)


def _every() -> BoolArray:
    return designs.Exhaustive(_N).coalitions(np.arange(2**_N))


def _interacting(coalitions: BoolArray) -> FloatArray:
    values: FloatArray = np.tanh(coalitions @ _WORTH) + coalitions[:, 0] * coalitions[:, 1]
    return values


def _noisy(coalitions: BoolArray, keys: KeyArray) -> FloatArray:
    noise: FloatArray = 0.3 * (chance.uniform(keys, 1)[:, 0] - 0.5)
    return _interacting(coalitions) + noise
