"""Banzhaf values by maximum sample reuse, adjusted by a linear fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.designs import Coin, Complementary
from databanzhaf.errors import DesignMismatch
from databanzhaf.estimate import Estimate, Fit
from databanzhaf.estimators.moments import two_part_errors
from databanzhaf.estimators.reuse import Split, bias, check_coin
from databanzhaf.estimators.ridge import SHARES, SMALL, fits_in_memory, inverse_of, noise_share
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.notions import Banzhaf, WeightedBanzhaf
from databanzhaf.protocols import BoolArray, FloatArray, IntArray, Notion

FEWEST = 4
# With a biased coin "auto" takes it if each player is expected in, and out of, so many coalitions.
FEWEST_OF_A_SIDE = 50


@dataclass(frozen=True)
class Regression:
    r"""Banzhaf and weighted Banzhaf values by regression-adjusted sample reuse.

    With coins of bias p, :math:`s_{ti} = (x_{ti} - p) / \sqrt{p (1 - p)}` and
    :math:`z_{ti} = (x_{ti} - p) / (p (1 - p))`, the value is :math:`\phi_i = E[U z_i]`. Take a
    linear fit :math:`a + s \beta` out of U and put back its own value,
    :math:`\beta_i / \sqrt{p (1 - p)}`: as long as the fit has not seen the sample, nothing changes
    in expectation. So each sample t uses the ridge fit without it,

    .. math:: \psi_{ti} = \frac{\beta^{(-t)}_i}{\sqrt{p (1 - p)}} + z_{ti} \tilde e_t, \qquad
        \tilde e_t = \frac{e_t}{1 - h_t}, \qquad \beta^{(-t)} = \hat\beta - G^{-1} s_t \tilde e_t,

    with residual e, leverage h and the penalised Gram matrix G. The mean of :math:`\psi_{ti}` is
    exactly unbiased for a fixed penalty, and its variance is that of what the fit leaves
    unexplained, where `reuse` has that of all of U.

    The penalty is :math:`\lambda = n (1 - \rho) / \rho`: the best one for n values of like size
    that together explain the share :math:`\rho` of the variance of U. It needs no search:
    :math:`\hat\rho = \sum_{t \ne r} u_t u_r\, s_t \cdot s_r / (m (m - 1)\, \mathrm{var}(U))` for
    centred utilities u. The samples are cut into five parts, and the penalty of each part comes
    from the other four, so that the mean stays unbiased.

    A fit can also add noise for a player, say where U depends on nothing else once the player is
    in. Each value is therefore the mixture of `reuse` and regression that has the least estimated
    variance; choosing it adds a bias of order 1/m. With a biased coin a pair of rare players may
    never have met, and residuals cannot show it: the errors then count what the samples may have
    missed by the utilities, as `reuse` does.

    Parameters
    ----------
    paired : bool
        Evaluate each coalition together with its complement, and fit half the difference of their
        utilities. For Banzhaf values only.
    """

    paired: bool = False

    reads = (Coin, Complementary)
    fewest = FEWEST

    @property
    def unit(self) -> int:
        """Coalitions that one throw of the coins decides."""
        return 2 if self.paired else 1

    @property
    def name(self) -> str:
        return "regression:paired" if self.paired else "regression"

    def gives(self, notion: Notion) -> bool:
        return isinstance(notion, Banzhaf) or (
            isinstance(notion, WeightedBanzhaf) and not self.paired
        )

    def suits(self, notion: Notion, n_players: int, budget: int) -> int:
        if self.paired or not self.gives(notion):
            return 0
        p = bias(notion, self.name)
        fewest = FEWEST if p == 0.5 else FEWEST_OF_A_SIDE / min(p, 1 - p)
        usable = fits_in_memory(n_players, budget or n_players)
        return 12 if usable and (not budget or budget >= fewest) else 0

    def design(self, notion: Notion, n_players: int, seed: int) -> Coin | Complementary:
        p = bias(notion, self.name)
        if not self.paired:
            return Coin(n_players, seed, p)
        if p != 0.5:
            raise DesignMismatch(
                f"`{self.name}` gives Banzhaf values only: the complement of a coalition of bias p "
                "has bias 1 - p",
                got=notion.name,
                remedy='Use estimator="regression".',
            )
        return Complementary(n_players, seed)

    def __call__(self, evaluations: Evaluations, notion: Notion) -> Estimate:
        samples = self._samples(evaluations, notion)
        paired = isinstance(evaluations.design, Complementary)
        n, m = samples.n_players, len(samples)
        if m < FEWEST:
            unit = "pairs of coalitions" if paired else "coalitions"
            raise DesignMismatch(
                f"`{self.name}` needs at least {FEWEST} {unit}",
                got=str(m),
                remedy="Raise the budget.",
            )
        if not fits_in_memory(n, m):
            raise DesignMismatch(
                f"`{self.name}` needs too much memory for {n:,} players and {m:,} coalitions",
                remedy='Use estimator="reuse".',
            )
        p = bias(notion, self.name)
        with one_blas_thread():
            split = Split.of(samples)
            fit = _Fit(samples, split, p)
        mixture = fit.mixture()
        seen, reuse = (split.count > 0).all(axis=0), split.differences
        errors, freedom = two_part_errors(
            np.where(seen, fit.variance(mixture), 0.0),
            np.where(seen, split.farthest + mixture * (fit.farthest - split.farthest), 0.0)
            if p == 0.5
            else split.farthest,
            split.count,
            samples.scale(),
        )
        values = np.where(seen, reuse + mixture * (fit.values - reuse), 0.0)
        return Estimate(
            values[0],
            errors,
            freedom,
            values[1:],
            evaluations.n_evaluations,
            notion,
            Regression(paired=paired),
            evaluations.players,
            Fit(
                fit.explained,
                noise_share(samples),
                "differences of complements" if paired else "utilities",
            ),
        )

    def _samples(self, evaluations: Evaluations, notion: Notion) -> Evaluations:
        """The evaluations; a pair of complements as one sample, its first coalition with half the
        difference of the utilities.
        """
        if not isinstance(evaluations.design, Complementary):
            if self.paired:
                raise DesignMismatch(
                    f"`{self.name}` needs coalitions in complementary pairs",
                    got=repr(evaluations.design),
                    remedy='Use estimator="regression", or make a new run.',
                )
            check_coin(evaluations, notion, self.name)
            return (
                evaluations if evaluations.verdicts is None else replace(evaluations, verdicts=None)
            )
        Regression(paired=True).design(notion, evaluations.n_players, 0)  # refuses other notions
        index, utilities = evaluations.indices, evaluations.utilities
        first = np.flatnonzero((index[:-1] % 2 == 0) & (index[1:] == index[:-1] + 1))
        half = (utilities[first] - utilities[first + 1]) / 2
        return Evaluations(evaluations.design, index[first], half, evaluations.stochastic)


class _Fit:
    """The ridge fit without each sample in turn, and what the adjusted samples add up to."""

    def __init__(self, samples: Evaluations, split: Split, p: float) -> None:
        self.samples, self.split, self.m, self.p = samples, split, len(samples), p
        self.deviation = np.sqrt(p * (1 - p))
        self.presence = split.count[0] / self.m
        columns = np.column_stack([samples.utility, samples.utilities])
        self.columns: FloatArray = columns - columns.mean(axis=0)
        # Σ s_t u_t of centred utilities, (n, 1 + repeats)
        self.moments = (split.sums[0] - self.presence * split.sums.sum(axis=0)).T / self.deviation

        n = samples.n_players
        # of adjusted samples with the player and without it
        total, sums = np.zeros((columns.shape[1], n)), np.zeros((2, n))
        squares, cross, residual = np.zeros((2, n)), np.zeros((2, n)), np.zeros(self.m)
        # values lie about these, so that squares keep their digits
        about = split.differences
        for piece in self._by_players() if self.m >= n else self._by_samples():
            rows, players, inside = piece.rows, piece.players, piece.inside
            factor = np.where(inside, 1 / p, -1 / (1 - p)) - piece.weights / self.deviation
            shift = piece.slopes.T / self.deviation - about[:, players]
            total[:, players] += piece.residuals.T @ factor + len(rows) * shift
            adjusted = piece.residuals[:, :1] * factor + shift[0]
            _add(sums, players, inside, adjusted)
            _add(squares, players, inside, adjusted**2)
            _add(cross, players, inside, adjusted * self._plain(rows, players, inside))
            residual[rows] = piece.residuals[:, 0]
        self.values: FloatArray = about + total / self.m
        self.farthest = float(np.abs(residual).max())
        whole = float((self.columns[:, 0] ** 2).sum()) * (self.m / (self.m - 1)) ** 2
        self.explained = 1 - float(residual @ residual) / whole if whole > 0 else float("nan")
        mean = sums.sum(axis=0) / self.m
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = split.spread * (self.m / split.count) ** 2
        # squares and products of the adjusted samples and of those of `reuse`, about their means
        self._terms = squares - 2 * mean * sums + split.count * mean**2, cross, plain

    def mixture(self) -> FloatArray:
        """The share of regression in each value, (n,): that of the least estimated variance."""
        adjusted, cross, plain = (term.sum(axis=0) for term in self._terms)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (plain - cross) / (adjusted + plain - 2 * cross)
        return np.where(np.isfinite(share), np.clip(share, 0.0, 1.0), 1.0)

    def variance(self, mixture: FloatArray) -> FloatArray:
        """Of each mixture: what coalitions with the player add, and those without it, (2, n)."""
        adjusted, cross, plain = self._terms
        terms = mixture**2 * adjusted + 2 * mixture * (1 - mixture) * cross
        variance: FloatArray = terms + (1 - mixture) ** 2 * plain
        return variance / (self.m * (self.m - 1))

    def _plain(self, rows: IntArray, players: slice, inside: BoolArray) -> FloatArray:
        """What each sample adds to `reuse`, about its mean, (rows, players)."""
        mean_in, mean_out = self.split.means[:, 0, players]
        n_in, n_out = self.split.count[:, players]
        utility = self.columns[rows, :1]
        with np.errstate(divide="ignore", invalid="ignore"):
            with_player = (utility - mean_in) * (self.m / n_in)
            without = (mean_out - utility) * (self.m / n_out)
        plain: FloatArray = np.where(inside, with_player, without)
        return plain

    def _standard(self, inside: BoolArray, players: slice) -> FloatArray:
        standard: FloatArray = (inside - self.presence[players]) / self.deviation
        return standard

    def _by_players(self) -> Iterator[_Piece]:
        """With at least as many samples as players: by the inverse of G, (n, n)."""
        n, m = self.samples.n_players, self.m
        everyone, gram = slice(0, n), np.zeros((n, n))
        for _, inside in self.samples.blocks():
            s = self._standard(inside, everyone)
            gram += s.T @ s
        for fold, penalty in self._penalties(folds=5 if n <= SMALL else 2):
            inverse = inverse_of(gram, penalty)
            slopes = inverse @ self.moments
            for part, inside in self.samples.only(fold).blocks():
                rows, s = np.flatnonzero(fold)[part], self._standard(inside, everyone)
                weights = s @ inverse
                room = 1 - 1 / m - np.einsum("ij,ij->i", s, weights)
                residuals = (self.columns[rows] - s @ slopes) / room[:, None]
                yield _Piece(rows, everyone, inside, weights, slopes, residuals)

    def _by_samples(self) -> Iterator[_Piece]:
        """With fewer samples than players: the same numbers by an inverse of shape (m, m)."""
        n, m = self.samples.n_players, self.m
        coalitions = np.concatenate([inside for _, inside in self.samples.blocks()])
        step = max(1, BLOCK_CELLS // m)
        parts = [slice(low, min(low + step, n)) for low in range(0, n, step)]
        gram = np.zeros((m, m))
        for players in parts:
            s = self._standard(coalitions[:, players], players)
            gram += s @ s.T
        for fold, penalty in self._penalties(folds=5 if m <= SMALL else 2):
            rows, inverse = np.flatnonzero(fold), inverse_of(gram, penalty)
            dual = inverse @ self.columns
            room = penalty * np.diagonal(inverse)[rows] - 1 / m
            residuals = penalty * dual[rows] / room[:, None]
            for players in parts:
                s = self._standard(coalitions[:, players], players)
                inside, weights = coalitions[rows, players], inverse[rows] @ s
                yield _Piece(rows, players, inside, weights, s.T @ dual, residuals)

    def _penalties(self, folds: int) -> Iterator[tuple[BoolArray, float]]:
        """Parts of the samples, bool (m,), each with a penalty that the others have chosen: one
        that had seen a sample would pull its residual, and so the values, to one side.
        """
        n, m, p = self.samples.n_players, self.m, self.p
        fold = self.samples.indices // self.samples.design.unit % folds
        utility, size = self.columns[:, 0], np.zeros(m)
        of_fold = np.equal.outer(np.arange(folds), fold).astype(np.float64)
        count, sums = np.zeros((2, folds, n))
        for rows, inside in self.samples.blocks():
            x = inside.astype(np.float64)
            size[rows] = x.sum(axis=1)
            count += of_fold[:, rows] @ x
            sums += (of_fold[:, rows] * utility[rows]) @ x
        for number in range(folds):
            own_fold, others = fold == number, fold != number
            if not own_fold.any():
                continue
            if others.sum() < 2:  # an interrupted run may leave one part alone
                others = own_fold
            u = utility[others] - utility[others].mean()
            used = np.unique(fold[others])
            moments = sums[used].sum(axis=0) - utility[others].mean() * count[used].sum(axis=0)
            own = u**2 @ ((1 - 2 * p) * size[others] + n * p**2)
            spread = (len(u) - 1) * (u @ u) * p * (1 - p)
            share = (moments @ moments - own) / spread if spread > 0 else 0.0
            share = float(np.clip(share, *SHARES))
            yield own_fold, n * (1 - share) / share


@dataclass(frozen=True, eq=False)
class _Piece:
    """Some samples and some players: who is in, G⁻¹ s, the slopes of the fit, and the residual of
    each sample by the fit without it.
    """

    rows: IntArray
    players: slice
    inside: BoolArray
    weights: FloatArray
    slopes: FloatArray
    residuals: FloatArray


def _add(into: FloatArray, players: slice, inside: BoolArray, values: FloatArray) -> None:
    """Add the values (rows, players) of coalitions with the player, and of those without."""
    with_player = np.einsum("ij,ij->j", values, inside)
    into[0, players] += with_player
    into[1, players] += values.sum(axis=0) - with_player
