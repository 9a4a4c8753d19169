"""One fit of `size_regression`: weighted, penalised, and made without each coalition in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from databanzhaf.estimators.ridge import SHARES, SMALL, inverse_of
from databanzhaf.estimators.size_plan import SizePlan
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.protocols import BoolArray, FloatArray, IntArray

# A player is known if coalitions with it, and those without it, count for so many equal ones and
# have so much of the weight that the notion gives them on average.
FEWEST_OF_A_SIDE, LEAST_OF_A_SIDE = 4.0, 0.2


class SizeFit:
    """The ridge fit without each coalition in turn, and what the adjusted samples add up to.

    A fit `like` this one has the same samples and columns, and a plan that differs only in whether
    profiles are turned: products that both need are not computed again.
    """

    def __init__(
        self,
        samples: Evaluations,
        columns: FloatArray,
        plan: SizePlan,
        folds: int | None = None,
        like: SizeFit | None = None,
    ) -> None:
        self.samples, self.plan, self.m, self.folds = samples, plan, len(samples), folds
        self._products: tuple[FloatArray, ...] | None = None if like is None else like._products
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
        plan, n = self.plan, self.samples.n_players
        if self._products is None:
            self._products = self._of_players()
        middle, gram, moments = self._products
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

    def _of_players(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The weighted means of the columns of all slopes, G, and its right-hand sides."""
        profiles, k = len(self.plan.profiles), self.rises.shape[1]
        middle, every = np.zeros(self.samples.n_players * profiles), np.eye(profiles)
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
        return middle, gram, moments

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
        if self._products is None:
            joined = (self._joined(everyone, coalitions[:, players]) for players in parts)
            self._products = (sum((x @ x.T for x in joined), np.zeros((m, m))),)
        (products,) = self._products
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
