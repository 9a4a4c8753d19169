"""The least core from sampled coalitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import DatabanzhafError, DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.notions import LeastCore as LeastCoreNotion
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, Notion

# Slack of the second step, relative to the largest utility; ten times the tolerance of the first.
_SLACK = 1e-9
# Constraints added per round, at least and per player: fewer make more rounds. 500 players, 2,000
# coalitions: 200 take 35 s, 2,000 take 10.
_PER_ROUND, _PER_PLAYER = 400, 4
# Now and then HiGHS gives up (many optimal payments), or calls optimal what is not feasible: then
# the next way is tried.
_WAYS: Final[tuple[tuple[Literal["highs", "highs-ipm"], float], ...]] = (
    ("highs", 1e-10),
    ("highs-ipm", 1e-10),
    ("highs", 1e-7),
    ("highs-ipm", 1e-7),
)


@dataclass(frozen=True)
class LeastCore:
    r"""Monte Carlo least core (Yan & Procaccia 2021): the linear program of the paper's Eq. 8 on
    the sampled coalitions that have members.

    The full coalition is always among them. The standard errors are NaN: no honest one is known
    for the solution of a sampled linear program.
    """

    name = "least_core"
    reads = (designs.Anchored, designs.Permutation)

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, LeastCoreNotion)

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        return 10 if self.gives(notion) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> designs.Anchored:
        _check(notion)
        return designs.Anchored(n_players, seed)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        _check(notion)
        design, index, n = evaluations.design, evaluations.indices, evaluations.n_players
        if isinstance(design, designs.Anchored):
            anchors = np.array([0, 1])
        elif isinstance(design, designs.Permutation) and design.truncation is None:
            anchors = np.array([0, n])
        else:
            raise DesignMismatch(
                "`least_core` needs the empty and the full coalition among its coalitions",
                got=repr(design),
                remedy='Run with estimator="least_core".',
            )
        if len(index) <= anchors[1] or not np.isin(anchors, index).all():
            raise DesignMismatch(
                f"`least_core` needs evaluations {anchors.tolist()}, the empty and the full "
                "coalition; they are missing",
                remedy="Raise the budget.",
            )
        everybody = int(np.searchsorted(index, anchors[1]))

        def sums(values: FloatArray) -> FloatArray:
            return np.concatenate([coalitions @ values for _, coalitions in evaluations.blocks()])

        def members(rows: IntArray) -> BoolArray:
            return design.coalitions(index[rows])

        by_repeat = np.stack(
            [
                least_core_values(column, sums, members, everybody)
                for column in evaluations.utilities.T
            ]
        )
        values = (
            by_repeat[0]
            if len(by_repeat) == 1
            else least_core_values(evaluations.utility, sums, members, everybody)
        )
        unknown = np.full(n, np.nan)
        return Estimate(
            values,
            unknown,
            np.ones(n),
            by_repeat,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
        )


def least_core_values(
    utility: FloatArray,
    sums: Callable[[FloatArray], FloatArray],
    members: Callable[[IntArray], BoolArray],
    everybody: int,
) -> FloatArray:
    r"""The least core's payment that is closest to equal shares.

    First the smallest subsidy e by a linear program (HiGHS); then, among the payments that reach
    it, the one of smallest norm, by Lawson & Hanson's reduction of least distance to non-negative
    least squares. Without the second step the answer would be whichever vertex the solver meets,
    and equal players could get unequal values. Both are solved on a growing set of constraints:
    those that the current payment violates most are added until none is.

    Parameters
    ----------
    utility : float64 array (m,)
    sums : payment (n,) → what each coalition receives (m,)
    members : positions (k,) → coalitions, bool (k, n)
    everybody : int
        Position of the full coalition.
    """
    # The empty coalition sets no bound: its utility is often that of a guess, and as a subsidy for
    # all it would leave equal shares.
    asks = sums(np.ones(members(np.array([everybody])).shape[1])) > 0
    scale = float(np.abs(utility[asks]).max()) or 1.0
    return scale * _unit_least_core(
        np.where(asks, utility, -np.inf) / scale, sums, members, everybody
    )


def _unit_least_core(
    utility: FloatArray,
    sums: Callable[[FloatArray], FloatArray],
    members: Callable[[IntArray], BoolArray],
    everybody: int,
) -> FloatArray:
    """`least_core_values` of utilities within [-1, 1], as the solvers' tolerances assume."""
    total = float(utility[everybody])
    n = members(np.array([everybody])).shape[1]
    equal = np.full(n, total / n)
    working = np.array([everybody])
    payment, subsidy = equal, 0.0
    while True:
        shortfall = utility - sums(payment) - subsidy
        shortfall[working] = -np.inf
        worst = np.argsort(-shortfall, kind="stable")[: max(_PER_ROUND, _PER_PLAYER * n)]
        worst = worst[shortfall[worst] > 2 * _SLACK]
        if not worst.size:
            return payment
        working = np.sort(np.concatenate([working, worst]))
        constraints = members(working).astype(np.float64)
        subsidy = _smallest_subsidy(constraints, utility[working], total)
        payment = _closest(constraints, utility[working] - subsidy - _SLACK, equal)


def _smallest_subsidy(constraints: FloatArray, utility: FloatArray, total: float) -> float:
    """The smallest e that a solver finds and its own payment confirms."""
    from scipy.optimize import linprog

    k, n = constraints.shape
    least = np.inf
    for method, tolerance in _WAYS:
        solution: Any = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=-np.column_stack([constraints, np.ones(k)]),
            b_ub=-utility,
            A_eq=np.append(np.ones(n), 0.0)[None, :],
            b_eq=[total],
            bounds=(None, None),
            method=method,
            options={
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            },
        )
        if solution.status != 0:
            continue
        # What its payment really needs: the solver may fall short by its tolerance, and the second
        # step must have a solution.
        payment = solution.x[:-1] + (total - solution.x[:-1].sum()) / n
        least = min(least, float(np.max(utility - constraints @ payment)))
        if least - solution.fun < _SLACK:
            break
    if least == np.inf:
        raise DatabanzhafError(
            f"the least core's linear program was not solved ({solution.message}). Evaluations "
            "are kept; raise the budget and run again."
        )
    return least


def _closest(constraints: FloatArray, demand: FloatArray, equal: FloatArray) -> FloatArray:
    """The payment closest to `equal` with the same sum and ``constraints @ payment >= demand``."""
    from scipy.optimize import nnls

    centred = constraints - constraints.mean(axis=1, keepdims=True)
    lack = demand - constraints @ equal
    target = np.append(np.zeros(len(equal)), 1.0)
    matrix = np.vstack([centred.T, lack])
    multipliers, _ = nnls(matrix, target, maxiter=10 * sum(matrix.shape))
    residual = matrix @ multipliers - target
    closest: FloatArray = equal - residual[:-1] / residual[-1]
    return closest


def _check(notion: Notion) -> None:
    if not isinstance(notion, LeastCoreNotion):
        raise DesignMismatch(
            "`least_core` estimates the least core",
            got=f"{notion.name}",
            remedy='Use estimator="auto".',
        )
