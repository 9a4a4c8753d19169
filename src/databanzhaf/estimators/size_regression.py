"""Any semivalue, and several from one run, by coalitions of random sizes and a fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.designs import Sized
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate, Fit
from databanzhaf.estimators.ridge import SHARES, SMALL, fits_in_memory, inverse_of, noise_share
from databanzhaf.estimators.size_laws import identified, shares
from databanzhaf.estimators.size_plan import SizePlan
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.notions import (
    Banzhaf,
    LeaveOneOut,
    SizeWeighted,
    Together,
    WeightedBanzhaf,
    each_of,
)
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, Notion

FEWEST = 8
# A fit holds about eleven matrices with so many rows and columns (18 GB).
LARGEST = 14_000
# Coalitions drawn for the notion alone that a run must be worth, for errors to be known.
FEWEST_KNOWN = 10.0
# A player is known if coalitions with it, and those without it, count for so many equal ones and
# have so much of the weight that the notion gives them on average.
FEWEST_OF_A_SIDE, LEAST_OF_A_SIDE = 4.0, 0.2
# The fits that are tried: powers of the weights by which a coalition counts for the notion.
POWERS = 1.0, 0.5, 0.0


@dataclass(frozen=True)
class SizeRegression:
    r"""Semivalues by regression-adjusted sample reuse, from coalitions whose sizes follow a law.

    With the notion's size law :math:`\pi`, sizes drawn by q and the factors

    .. math:: z_{ti} = \begin{cases} \frac{n}{s} \frac{\pi_{s-1}}{q_s} & i \in S_t, \\
        -\frac{n}{n - s} \frac{\pi_s}{q_s} & i \notin S_t, \end{cases} \qquad s = |S_t|,

    a value is :math:`\phi_i = E[U z_i]`. As in `Regression`, a fit is taken out of U and its own
    value put back:

    .. math:: f(S) = g(s) + \sum_k h_k(s) \sum_i \beta_{ki} (1_{i \in S} - s / n),

    with a curve g over the sizes that is linear between some of them, and up to four profiles
    :math:`h_k`, polynomials of the share of coalitions that are smaller: a player may help small
    coalitions more than large ones. The fit's own value is

    .. math:: \phi_i(f) = \sum_s \pi_s (g(s + 1) - g(s)) + \sum_k \beta_{ki} \sum_s \pi_s
        \frac{(n - 1 - s) h_k(s + 1) + s h_k(s)}{n - 1},

    and

    .. math:: \psi_{ti} = \phi_i(f^{(-t)}) + z_{ti} (U_t - f^{(-t)}(S_t))

    is unbiased, since the fit :math:`f^{(-t)}` has not seen the coalition. The penalties of the
    slopes come from other coalitions, too: a part of the variance for each profile, and none for a
    profile that chance alone could explain. The profiles may be turned first, to those along which
    the slopes of the players vary most: where all slopes change with the size alike, one is enough;
    where they are the same at all sizes, the first profile is already that one, exactly.

    What makes the sum of the variances small is a fit that weighs coalitions by
    :math:`\sum_i z_{ti}^2`, but none by more than three times the mean; where the game is much the
    same at all sizes, one that weighs all alike, since it learns from more of them. The estimate is
    that of the least estimated variance of these two and one in between, each with profiles turned
    and not; choosing it adds a bias of order 1/m.

    Shapley values add up to what all players earn together. The estimates do so up to a fraction
    of their errors, and the rest is dealt out equally.

    `size_laws` says by which law sizes are drawn. The run of one notion is read by that of another
    with a larger error; one whose sizes were hardly drawn is refused.
    """

    name = "regression:sizes"
    reads = (Sized,)
    fewest = FEWEST

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, (SizeWeighted, Together))

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        own = isinstance(notion, (Banzhaf, WeightedBanzhaf, LeaveOneOut))
        usable = fits_in_memory(n_players, budget or n_players, LARGEST)
        # with few players permutations need few coalitions, too
        enough = not budget or budget >= 2 * FEWEST_KNOWN or budget <= n_players
        return 11 if self.gives(notion) and not own and usable and enough else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Sized:
        semivalues = [_semivalue(each) for each in each_of(notion)]
        return Sized(n_players, seed, shares(semivalues, n_players))

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        fit, unit, enough = self._fit(evaluations, notion)
        errors, freedom = fit.errors()
        return Estimate(
            fit.values[0] * unit,
            np.where(fit.seen() & enough, errors * unit, np.inf),
            freedom,
            fit.values[1:] * unit,
            evaluations.n_evaluations,
            notion,
            self,
            evaluations.players,
            Fit(fit.explained, noise_share(evaluations, unit), "utilities"),
        )

    def by_columns(
        self, evaluations: Evaluations, notion: Notion, columns: FloatArray
    ) -> FloatArray:
        """The values that other utilities of the same coalitions would give, (columns, n), by the
        fit that is best for the evaluations' own: so they are linear in the utilities.
        """
        fit, unit, _ = self._fit(evaluations, notion, columns)
        return fit.values[1:] * unit

    def _fit(
        self, evaluations: Evaluations, notion: Notion, others: FloatArray | None = None
    ) -> tuple[_Fit, float, bool]:
        """The best of the fits in units of a power of two, the unit, and whether its errors are
        known. `others` stand in the place of the repeats.
        """
        semivalue, design = _semivalue(notion), evaluations.design
        if not isinstance(design, Sized):
            raise DesignMismatch(
                f"`{self.name}` needs coalitions whose sizes follow a law",
                got=repr(design),
                remedy=f'Run with estimator="{self.name}".',
            )
        m, n = len(evaluations), design.n_players
        if m < FEWEST or not fits_in_memory(n, m, LARGEST):
            few = m < FEWEST
            raise DesignMismatch(
                f"`{self.name}` needs at least {FEWEST} coalitions"
                if few
                else f"`{self.name}` needs too much memory for so many players",
                got=f"{m:,}" if few else f"{n:,} players and {m:,} coalitions",
                remedy="Raise the budget." if few else 'Use estimator="permutation".',
            )
        share = identified(semivalue, design.law)
        utility = evaluations.utility
        columns = np.column_stack([utility, evaluations.utilities if others is None else others])
        columns -= columns[0]  # values are differences
        # so that squares are neither too large for a number nor too small; no bit is lost
        unit = 2.0 ** np.floor(np.log2(np.abs(columns).max() or 1.0))
        columns /= unit
        with one_blas_thread():
            plans = [
                SizePlan.of(semivalue, design, m, share, power, turned=turned)
                for power in POWERS
                for turned in (False, True)
            ]
            fit = _Fit(evaluations, columns, min(plans, key=partial(_loss, evaluations, columns)))
        fit.values += _missing_from_the_total(evaluations, semivalue, columns, fit.values)
        return fit, unit, bool(m * share >= FEWEST_KNOWN and evaluations.scale() > 0)


def _semivalue(notion: Notion) -> SizeWeighted:
    if not isinstance(notion, SizeWeighted):
        raise DesignMismatch(
            f"`{SizeRegression.name}` is for semivalues, and {notion.name} is not one",
            remedy="Make a run of its own for it.",
        )
    return notion


def _loss(evaluations: Evaluations, columns: FloatArray, plan: SizePlan) -> float:
    """The sum of the variances with this plan, by penalties that all samples choose at once."""
    return float((_Fit(evaluations, columns[:, :1], plan, folds=1).errors()[0] ** 2).sum())


def _missing_from_the_total(
    evaluations: Evaluations, notion: SizeWeighted, columns: FloatArray, values: FloatArray
) -> FloatArray:
    """For Shapley values what each needs for its row of `values` to add up to the score of all
    players less that of none, (rows, 1); 0 for others, and where one of these was not drawn.
    """
    n, law = evaluations.n_players, notion.weights(evaluations.n_players)
    sizes = np.concatenate([inside.sum(axis=1) for _, inside in evaluations.blocks()])
    everyone, nobody = sizes == n, sizes == 0
    missing = np.zeros((len(values), 1))
    if np.allclose(law, 1 / n) and everyone.any() and nobody.any():
        total = columns[everyone].mean(axis=0) - columns[nobody].mean(axis=0)
        missing[:, 0] = (total - values.sum(axis=1)) / n
    return missing


class _Fit:
    """The ridge fit without each coalition in turn, and what the adjusted samples add up to."""

    def __init__(
        self, samples: Evaluations, columns: FloatArray, plan: SizePlan, folds: int | None = None
    ) -> None:
        self.samples, self.plan, self.m, self.folds = samples, plan, len(samples), folds
        n, m = samples.n_players, self.m
        self.sizes = np.concatenate([inside.sum(axis=1) for _, inside in samples.blocks()])
        self.weights = plan.weight[self.sizes]
        self.profiles = plan.profiles[:, self.sizes]
        self.rises = self._centred(plan.rises[self.sizes])
        self.columns = self._centred(columns)

        total = np.zeros((self.columns.shape[1], n))
        sums, squares, fourth, farthest = np.zeros((4, n))
        about, residual = np.full(n, np.nan), np.zeros(m)
        unknowns = self.rises.shape[1] + n * len(plan.profiles)
        for piece in self._by_players() if m >= unknowns else self._by_samples():
            rows, players = piece.rows, piece.players
            if np.isnan(about[players]).any():  # adjusted samples lie about the fit's own values
                about[players] = piece.own[0]
            shift = piece.own - about[players]
            total[:, players] += piece.residuals.T @ piece.factor + len(rows) * shift
            adjusted = piece.residuals[:, :1] * piece.factor + shift[0]
            sums[players] += adjusted.sum(axis=0)
            adjusted **= 2
            squares[players] += adjusted.sum(axis=0)
            farthest[players] = np.maximum(farthest[players], adjusted.max(axis=0))
            fourth[players] += np.einsum("ij,ij->j", adjusted, adjusted)
            residual[rows] = piece.residuals[:, 0]
        self.values: FloatArray = about + total / m
        self._moments = sums, squares, fourth, farthest
        alone = (columns[:, 0] - columns[:, 0].mean()) / (1 - 1 / m)
        whole = float((alone**2).sum())
        self.explained = 1 - float((residual**2).sum()) / whole if whole > 0 else float("nan")

    def _centred(self, columns: FloatArray) -> FloatArray:
        """Less their weighted means."""
        return np.asarray(columns - self.weights @ columns / self.weights.sum())

    def errors(self) -> tuple[FloatArray, FloatArray]:
        r"""Standard errors and degrees of freedom, (n,).

        As in `moments.two_part_errors`, an event that m samples miss with even odds counts, as far
        off as the farthest sample. A variance that rests on a few heavy samples is itself
        uncertain: with kurtosis :math:`\kappa` it has :math:`2 m / (\kappa - 1)` degrees of
        freedom.
        """
        (sums, squares, fourth, farthest), m = self._moments, self.m
        spread = np.maximum(squares - sums**2 / m, 0.0)
        variance = spread / (m * (m - 1)) + np.log(2) * farthest / m**2
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = 2 * m / (m * fourth / squares**2 - 1)
        known = np.isfinite(freedom) & (freedom > 0)
        return np.sqrt(variance), np.clip(np.where(known, freedom, m - 1.0), 1.0, m - 1.0)

    def seen(self) -> BoolArray:
        """Players of which the coalitions say something, both with them and without them: a notion
        may rest on rare sizes, and where a player was never in one of them nothing varies.
        """
        plan, n = self.plan, self.samples.n_players
        factors = np.stack([plan.inside[self.sizes], plan.outside[self.sizes]])
        sums = np.zeros((4, n))  # of factors and of their squares: with the player, without it
        for block, inside in self.samples.blocks():
            both = np.concatenate([factors[:, block], factors[:, block] ** 2])
            joined = both @ inside
            sums[[0, 2]] += joined[[0, 2]]
            sums[[1, 3]] += both[[1, 3]].sum(axis=1, keepdims=True) - joined[[1, 3]]
        total, squares = np.maximum(sums[:2], 0.0), sums[2:]
        with np.errstate(divide="ignore", invalid="ignore"):
            count = np.where(total > LEAST_OF_A_SIDE * self.m, total**2 / squares, 0.0)
        return np.asarray((count > FEWEST_OF_A_SIDE - 1e-9).all(axis=0))

    def _by_players(self) -> Iterator[_Piece]:
        """With at least as many samples as unknowns: by the inverse of G."""
        plan, n, k = self.plan, self.samples.n_players, self.rises.shape[1]
        middle, every = np.zeros(n * len(plan.profiles)), np.eye(len(plan.profiles))
        for block, inside in self.samples.blocks():
            middle += self.weights[block] @ self._slopes(block, inside, every)
        middle /= self.weights.sum()
        gram = np.zeros((k + len(middle), k + len(middle)))
        moments = np.zeros((len(gram), self.columns.shape[1]))
        for block, inside in self.samples.blocks():
            z = np.hstack([self.rises[block], self._slopes(block, inside, every) - middle])
            weighted = z * self.weights[block, None]
            gram += weighted.T @ z
            moments += weighted.T @ self.columns[block]
        for fold, penalties, turn in self._penalties(self.folds or (5 if n <= SMALL else 2)):
            inverse = inverse_of(
                self._turned(turn, self._turned(turn, gram).T),
                np.concatenate([plan.shrinkage, np.repeat(penalties, n)]),
            )
            slopes = inverse @ self._turned(turn, moments)
            own, mean = self._own(slopes.T, turn), (turn @ middle.reshape(-1, n)).ravel()
            for part, inside in self.samples.only(fold).blocks():
                rows: IntArray = np.flatnonzero(fold)[part]
                weight = self.weights[rows]
                z = np.hstack([self.rises[rows], self._slopes(rows, inside, turn) - mean])
                v = z @ inverse
                room = 1 - weight / self.weights.sum() - weight * np.einsum("ij,ij->i", z, v)
                residuals = (self.columns[rows] - z @ slopes) / room[:, None]
                factor = self._factors(rows, inside) - weight[:, None] * self._own(v, turn)
                yield _Piece(rows, slice(0, n), factor, own, residuals)

    def _turned(self, turn: FloatArray, unknowns: FloatArray) -> FloatArray:
        """A line for each rise and each slope of each profile, as lines for the turned profiles."""
        k, n, columns = self.rises.shape[1], self.samples.n_players, unknowns.shape[1]
        slopes = np.tensordot(turn, unknowns[k:].reshape(-1, n, columns), axes=1)
        return np.concatenate([unknowns[:k], slopes.reshape(-1, columns)])

    def _own(self, unknowns: FloatArray, turn: FloatArray) -> FloatArray:
        """The values of fits with these unknowns: rises, and the slopes of the turned profiles."""
        k, n = self.rises.shape[1], self.samples.n_players
        slopes = unknowns[:, k:].reshape(len(unknowns), len(turn), n)
        level = unknowns[:, :k] @ self.plan.worth
        own: FloatArray = level[:, None] + np.einsum(
            "ijk,j->ik", slopes, turn @ self.plan.worth_of_slopes
        )
        return own

    def _by_samples(self) -> Iterator[_Piece]:
        """With fewer samples than unknowns: the same numbers by an inverse of shape (m, m)."""
        plan, n, m = self.plan, self.samples.n_players, self.m
        coalitions = np.concatenate([inside for _, inside in self.samples.blocks()])
        everyone, root, total = slice(0, m), np.sqrt(self.weights), self.weights.sum()
        step = max(1, BLOCK_CELLS // m)
        parts = [slice(low, min(low + step, n)) for low in range(0, n, step)]
        products = np.zeros((m, m))
        for players in parts:
            x = self._joined(everyone, coalitions[:, players])
            products += x @ x.T
        rises = self.rises * root[:, None]
        of_rises = (rises / plan.shrinkage) @ rises.T
        for fold, penalties, turn in self._penalties(self.folds or (5 if m <= SMALL else 2)):
            profiles = turn @ self.profiles
            gram = products * ((profiles.T / penalties) @ profiles)
            gram = self._centred(self._centred(gram).T) * np.outer(root, root)
            rows, inverse = np.flatnonzero(fold), inverse_of(of_rises + gram, 1.0)
            dual = inverse @ (self.columns * root[:, None])
            room = np.diagonal(inverse)[rows] - self.weights[rows] / total
            residuals = dual[rows] / (root[rows] * room)[:, None]
            moved = root[rows, None] * inverse[rows]
            of_curve = rises @ (plan.worth / plan.shrinkage)
            level, own = moved @ of_curve, dual.T @ of_curve
            lifted = (turn @ plan.worth_of_slopes / penalties) @ profiles
            for players in parts:
                x = self._joined(everyone, coalitions[:, players]) * lifted[:, None]
                x = self._centred(x) * root[:, None]
                factor = self._factors(rows, coalitions[rows, players])
                factor -= moved @ x + level[:, None]
                yield _Piece(rows, players, factor, own[:, None] + dual.T @ x, residuals)

    def _joined(self, rows: slice | IntArray, inside: BoolArray) -> FloatArray:
        """1 where a player is in, less the share of the players that are."""
        share = self.sizes[rows] / self.samples.n_players
        return np.asarray(inside - share[:, None])

    def _slopes(self, rows: slice | IntArray, inside: BoolArray, turn: FloatArray) -> FloatArray:
        """The columns of the slopes, a player after the other for each turned profile."""
        joined = self._joined(rows, inside)
        return np.hstack([joined * profile[:, None] for profile in turn @ self.profiles[:, rows]])

    def _factors(self, rows: IntArray, inside: BoolArray) -> FloatArray:
        """z of each sample and player."""
        size = self.sizes[rows]
        plan = self.plan
        factors: FloatArray = np.where(
            inside, plan.inside[size][:, None], -plan.outside[size][:, None]
        )
        return factors

    def _penalties(self, folds: int) -> Iterator[tuple[BoolArray, FloatArray, FloatArray]]:
        """Parts of the samples, bool (m,), each with the penalties (k,) that the others have
        chosen, and with the profiles that they belong to, as sums of `profiles` (k, K).

        A plan may turn the profiles so that slopes by one tell nothing of those by another: where
        all slopes follow the size alike, one profile is enough. Penalties are as in `Regression`:
        by the share of the variance about the curve that is linear in the players by each profile.
        A further profile whose share is within one standard deviation of what chance makes is left
        out.
        """
        n, m, utility = self.samples.n_players, self.m, self.columns[:, 0]
        fold = self.samples.indices % folds
        left = np.zeros((m, folds))
        curve = np.column_stack([np.ones(m), self.rises])
        shrink = np.diag([1e-6, *self.plan.shrinkage])
        for number in range(folds):
            others = (fold != number) if (fold != number).sum() > 1 else fold == number
            weighted = curve[others] * self.weights[others, None]
            slopes = np.linalg.solve(
                weighted.T @ curve[others] + shrink, weighted.T @ utility[others]
            )
            left[others, number] = utility[others] - curve[others] @ slopes
        weighted = left * self.weights[:, None]
        count = len(self.profiles)
        moments = np.zeros((count, folds, n))
        for rows, inside in self.samples.blocks():
            joined = self._joined(rows, inside)
            for number, profile in enumerate(self.profiles):
                moments[number] += (weighted[rows] * profile[rows, None]).T @ joined
        lengths = self.sizes * (n - self.sizes) / n
        for number in range(folds):
            own_fold, used = fold == number, left[:, number] != 0
            if not own_fold.any():
                continue
            own = (self.profiles * lengths * weighted[:, number] ** 2) @ self.profiles.T
            pairs = max(2, int(used.sum())) - 1
            spread = pairs * float(self.weights @ left[:, number] ** 2)
            common = moments[:, number] @ moments[:, number].T - own
            if not self.plan.turned:
                common = np.diag(np.diag(common))
            shares, turn = np.linalg.eigh(common / spread if spread > 0 else 0 * common)
            shares, turn = shares[::-1].copy(), turn.T[::-1]  # the largest first
            weight = self.weights[used]
            chance = np.sqrt(2 * n) * float((weight**2).sum()) / max(float(weight.sum()), 1.0) ** 2
            shares[0] = max(shares[0], SHARES[0])
            shares[1:] -= chance
            kept = shares >= SHARES[0] / 10
            shares, turn = shares[kept], turn[kept]
            linear = min(float(shares.sum()), SHARES[1])
            yield own_fold, n * (1 - linear) / (shares * (linear / shares.sum())), turn


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some samples and some players: what a residual adds to each value, the fit's own values, and
    the residual of each sample by the fit without it.
    """

    rows: IntArray
    players: slice
    factor: FloatArray
    own: FloatArray
    residuals: FloatArray
