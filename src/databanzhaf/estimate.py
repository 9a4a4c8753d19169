"""Estimate: values with standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.protocols import BoolArray, Estimator, FloatArray, IntArray, Labels, Notion

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Fit:
    """A fit of the utilities, or of the differences of complements (`of`): the share of their
    variance that it predicts for coalitions that it has not seen (R²), and the share that is
    training noise, which no fit can; NaN where unknown.
    """

    explained: float
    noise: float
    of: str = "utilities"

    def __str__(self) -> str:
        if np.isnan(self.explained):
            return "the fit explains nothing: all utilities are equal"
        said = f"the fit explains {max(self.explained, 0.0):.0%} of the variance of the {self.of}"
        return said if np.isnan(self.noise) else f"{said}; {self.noise:.0%} is training noise"


@dataclass(frozen=True, eq=False)
class Errors:
    """Standard errors (n,), and their degrees of freedom (n,) for Student's t."""

    std_errors: FloatArray
    degrees_of_freedom: FloatArray


@dataclass(frozen=True, repr=False, eq=False)
class Estimate:
    """Values with standard errors.

    Two things make a value uncertain: which coalitions and trainings the run drew, and which rows
    judged the models. `std_errors` count the first; `population` has those that count both, for
    the value that judging rows without end would give. Intervals, p-values and flags count both
    where that is known.

    A standard error is 0 where the value is exact, infinite where the evaluations say nothing about
    the player, and NaN where it is unknown (training noise that `repeats=2` or more would measure).

    Attributes
    ----------
    values, std_errors : float64 array (n,)
    degrees_of_freedom : float64 array (n,)
        Of each standard error, for Student's t.
    values_by_repeat : float64 array (k, n)
        The values that each repeat alone gives; their mean is `values` where the estimator is
        linear.
    n_evaluations : int
        Trainings used: coalitions times repeats.
    notion : Notion
    estimator : Estimator
        What was estimated, and by whom; both have a `name`.
    players : sequence or None
        The user's own names of the players.
    fit : Fit or None
        How well the estimator's own fit of the utilities does; None if it has none.
    population : Errors or None
        Standard errors that also count which rows judged; None where that is unknown.
    """

    values: FloatArray
    std_errors: FloatArray
    degrees_of_freedom: FloatArray
    values_by_repeat: FloatArray
    n_evaluations: int
    notion: Notion
    estimator: Estimator
    players: Labels | None = field(default=None)
    fit: Fit | None = None
    population: Errors | None = None

    @property
    def errors(self) -> Errors:
        """The standard errors that count all that is known to be uncertain."""
        return self.population or self.run_errors

    @property
    def run_errors(self) -> Errors:
        """The standard errors of the run alone: other coalitions and trainings, the same jury."""
        return Errors(self.std_errors, self.degrees_of_freedom)

    def of(self, players: IntArray) -> Estimate:
        """The same for some players only."""
        both = self.population
        names = None if self.players is None else [self.players[int(each)] for each in players]
        return replace(
            self,
            values=self.values[players],
            std_errors=self.std_errors[players],
            degrees_of_freedom=self.degrees_of_freedom[players],
            values_by_repeat=self.values_by_repeat[:, players],
            players=names,
            population=both and Errors(both.std_errors[players], both.degrees_of_freedom[players]),
        )

    def interval(
        self, level: float = 0.95, *, errors: Errors | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Confidence interval of each value: (low, high), by Student's t; with
        ``errors=estimate.run_errors`` it counts the run alone.
        """
        from scipy.stats import t

        if not 0 < level < 1:
            raise InvalidInput(
                "`level` must lie strictly between 0 and 1", got=short(level), remedy="Try 0.95."
            )
        half = np.zeros_like(self.values)
        by = errors or self.errors
        spread = by.std_errors != 0
        half[spread] = t.ppf(0.5 + level / 2, by.degrees_of_freedom[spread]) * by.std_errors[spread]
        return self.values - half, self.values + half

    def ranking(self) -> IntArray:
        """Player numbers, lowest value first; equal values in the players' order."""
        return np.argsort(self.values, kind="stable").astype(np.int64)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """One row per player: player, value, std_error, std_error_population (where it is known),
        ci_low, ci_high, rank (1 is the lowest value).

        `player` counts from 0; the frame's index is the user's own (the rows' pandas index, or the
        groups).
        """
        import pandas as pd

        low, high = self.interval(level)
        rank = np.empty(len(self.values), dtype=np.int64)
        rank[self.ranking()] = np.arange(1, len(rank) + 1)
        columns = {
            "player": np.arange(len(rank)),
            "value": self.values,
            "std_error": self.std_errors,
            **(
                {}
                if self.population is None
                else {"std_error_population": self.population.std_errors}
            ),
            "ci_low": low,
            "ci_high": high,
            "rank": rank,
        }
        index = (
            self.players
            if self.players is None or isinstance(self.players, pd.Index)
            else pd.Index(self.players)
        )
        return pd.DataFrame(columns, index=index)

    def p_values(self) -> FloatArray:
        r"""One-sided p-values of "the value is 0 or more", (n,): :math:`F_t(\hat\phi_i /
        \mathrm{se}_i)`.

        A standard error of 0 leaves no doubt (0 below 0, else 1), an infinite one nothing but doubt
        (1); m coalitions never give less than 2^-m, and a closed form draws none. NaN where the
        standard error is unknown.
        """
        from scipy.stats import t

        errors, freedom = self.errors.std_errors, self.errors.degrees_of_freedom
        measured = np.isfinite(errors) & (errors > 0)
        # An exact value that is zero but for rounding is not below it.
        p = np.where((errors == 0) & (self.values < -self.rounding()), 0.0, 1.0)
        p[measured] = t.cdf(self.values[measured] / errors[measured], freedom[measured])
        # A coin that decided m times who is in cannot say more than 2^-m; Student's law does, for a
        # handful of evaluations.
        if self.n_evaluations:
            coalitions = self.n_evaluations / max(1, len(self.values_by_repeat))
            coalitions /= getattr(self.estimator, "unit", 1)
            p = np.where(errors == 0, p, np.maximum(p, np.exp2(-coalitions)))
        return np.where(np.isnan(errors) | (measured & np.isnan(freedom)), np.nan, p)

    def below_zero(self, level: float = 0.05) -> BoolArray:
        """Who has a value below 0 at this false discovery rate (Benjamini & Hochberg 1995), bool
        (n,); none if a standard error is unknown.
        """
        from scipy.stats import false_discovery_control

        p = self.p_values()
        if np.isnan(p).any():
            return np.zeros(len(p), dtype=np.bool_)
        return np.asarray(false_discovery_control(p) <= level)

    def rounding(self) -> float:
        """Values closer than this differ by rounding only."""
        return 1e-12 * max(1.0, float(np.abs(self.values).max()))

    def plot_values(self, ax: Any = None) -> Any:
        """All values, lowest first, with a 95% band; those below zero beyond chance are crosses.

        By matplotlib; returns the axes.
        """
        from databanzhaf import plots

        order, (low, high) = self.ranking(), self.interval(0.95)
        lines = self.values[order], low[order], high[order]
        return plots.values(*lines, self.below_zero()[order], self.notion.name, ax)

    def plot_intervals(self, count: int = 20, ax: Any = None) -> Any:
        """The `count` lowest values with their 95% intervals, by matplotlib; returns the axes."""
        from databanzhaf import plots

        order, (low, high) = self.ranking()[: check_count("count", count)], self.interval(0.95)
        names = [self._name(player) for player in order]
        half = np.nan_to_num((high - low)[order] / 2, nan=0.0, posinf=0.0)
        return plots.intervals(names, self.values[order], half, self.notion.name, ax)

    def plot_convergence(self, ledger: Any, ax: Any = None) -> Any:
        """Rank stability and standard error over the run in `ledger` (a path, a Ledger or
        Evaluations); returns the axes.
        """
        from databanzhaf import plots
        from databanzhaf.diagnostics import history
        from databanzhaf.ledger import read_evaluations

        return plots.convergence(history(read_evaluations(ledger), self), ax)

    def _repr_html_(self) -> str:
        from databanzhaf import plots

        order, rows = self.ranking().tolist(), 5
        shown = order if len(order) <= 2 * rows else [*order[:rows], None, *order[-rows:]]
        (low, high), digits, suspect = self.interval(0.95), self.digits(), self.below_zero()
        known = not np.isnan(self.errors.std_errors).any()
        cells = [
            None
            if player is None
            else (
                self._name(player)[:80],
                f"{self.values[player]:+.{digits}f}",
                f"{low[player]:+.{digits}f} to {high[player]:+.{digits}f}" if known else "unknown",
                "suspect" if suspect[player] else "",
            )
            for player in shown
        ]
        found = f"; {suspect.sum():,} below zero beyond chance" if known else ""
        return plots.small_table(f"{self._head()}{found}", cells)

    def _name(self, player: int) -> str:
        return str(player if self.players is None else self.players[int(player)])

    def _head(self) -> str:
        return (
            f"{self.notion.name} values of {len(self.values):,} players by {self.estimator.name}, "
            f"{self.n_evaluations:,} evaluations"
        )

    def digits(self) -> int:
        """Decimals that show two digits of a typical standard error (of the run, or of an exact
        one's jury), or six of a typical value.
        """
        errors = self.std_errors if self.std_errors.any() else self.errors.std_errors
        known = errors[np.isfinite(errors) & (errors > 0)]
        scale, wanted = (np.median(known), 2) if known.size else (np.abs(self.values).max(), 6)
        return int(np.clip(wanted - 1 - np.floor(np.log10(scale)), 0, 12)) if scale > 0 else 1

    def __repr__(self) -> str:
        order = self.ranking()
        shown = (
            order.tolist() if len(order) <= 7 else [*order[:3].tolist(), None, *order[-3:].tolist()]
        )
        digits = self.digits()
        rows = [
            f"  {self._name(i):>12}  {self.values[i]:+.{digits}f} ± {self.std_errors[i]:.{digits}f}"
            if i is not None
            else "           ..."
            for i in shown
        ]
        if self.fit is not None:
            rows.append(str(self.fit))
        if np.isnan(self.std_errors).any() and self.notion.name != "least_core":
            rows.append("± nan: training noise was not measured; repeats=2 or more measures it")
        if np.isinf(self.std_errors).any():
            rows.append(
                "± inf: too few evaluations to estimate an error for these; raise the budget"
            )
        return "\n".join([f"Estimate: {self._head()}; lowest first, ± standard error", *rows])
