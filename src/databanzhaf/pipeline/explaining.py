"""Which training rows helped and which hurt the prediction for one judging row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from databanzhaf.attribution import Attribution, attribution_of
from databanzhaf.errors import InvalidInput
from databanzhaf.pipeline.preparing import Job
from databanzhaf.pipeline.rereading import reread
from databanzhaf.pipeline.result import Result
from databanzhaf.protocols import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

_LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class Explanation:
    """One judging row: its number in the user's file, its name, label and mean score, and a table
    of all players, the most harmful first: effect, std_error, and whether it is beyond noise.
    """

    row: int
    name: str
    label: object
    score: float
    table: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Explainer:
    """A run whose predictions can be explained; `numbers` are those of the judging rows in the
    user's table, or in the validation file.
    """

    result: Result
    attribution: Attribution
    numbers: IntArray

    def of(self, row: int | str) -> Explanation:
        """The explanation of the row with this number; where rows judge each other, or this id."""
        job, row = self.result.job, self._number(row)
        place = np.flatnonzero(self.numbers == row)
        where = (
            "the validation file"
            if job.settings.validation
            else f"`{Path(job.settings.data).name}`"
        )
        if not place.size:
            first, last = int(self.numbers.min()), int(self.numbers.max())
            number = self._with_id(row)
            also = "" if number is None else f" Row {number} has the id {row}."
            raise InvalidInput(
                f"--row must be a row of {where} that judged models",
                got=f"{row}",
                remedy=f"{len(self.numbers):,} rows judged, from {first:,} to {last:,}.{also}",
            )
        judge = int(place[0])
        effects, errors = self.attribution.on(judge)
        verdicts = self.attribution.evaluations.verdicts
        assert verdicts is not None
        score = float(np.nanmean(verdicts.scores[:, :, judge]))
        table = self._table(effects, errors)
        return Explanation(int(row), self._name(int(row)), job.dataset.y_val[judge], score, table)

    def _number(self, row: int | str) -> int | str:
        """The number of a row that may be named by its id."""
        try:
            return int(row)
        except ValueError:
            number = self._with_id(row)
            return row if number is None else number

    def _with_id(self, row: int | str) -> int | None:
        """The number of the row that has this id, if there is one."""
        job = self.result.job
        if job.ids is None or not job.across:  # ids of other rows than those that judged
            return None
        named = np.flatnonzero(np.asarray(job.ids, dtype=str) == str(row))
        return int(job.rows[named[0]]) if len(named) == 1 else None

    def _table(self, effects: FloatArray, errors: FloatArray) -> pd.DataFrame:
        from scipy.stats import norm

        names = [name for name in ("row", "id", "group", "rows", "label") if name in self._columns]
        table = self.result.table[names].assign(effect=effects, std_error=errors)
        table = table[table["effect"].notna()]
        limit = norm.isf(_LEVEL / 2 / max(1, len(table)))  # for all players together (Bonferroni)
        table["beyond_noise"] = table["effect"].abs() > limit * table["std_error"]
        return table.sort_values("effect", kind="stable", ignore_index=True)

    @property
    def _columns(self) -> list[str]:
        return list(self.result.table.columns)

    def _name(self, row: int) -> str:
        """What the user calls the row, where that is known."""
        job = self.result.job
        known = job.across and job.ids is not None
        here = np.flatnonzero(job.rows == row) if known else np.empty(0, dtype=np.int64)
        return str(job.ids[here[0]]) if here.size else ""


def explainer(ledger: Path) -> Explainer:
    """Read a run again to explain predictions; nothing is trained."""
    result = reread(ledger, as_recorded=True, whole_jury=True)
    job = result.job
    if job.shown is not None:
        raise InvalidInput(
            "predictions are explained by all players",
            got="a run in which the rows of some clusters are shown",
            remedy="Explain the run of the clusters, in the folder above.",
        )
    if result.evaluations is None:
        raise InvalidInput(
            "predictions are explained by the models of a run, and this one is a closed form for "
            "nearest neighbours that trains none",
            remedy="Run `databanzhaf value` with --estimator regression and another --out.",
        )
    found = attribution_of(result.evaluations, result.estimate, job.game)
    return Explainer(result, found, _numbers(job))


def _numbers(job: Job) -> IntArray:
    dataset = job.dataset
    if dataset.judges is not None:
        return job.rows[dataset.judges]
    judges = len(dataset.y_val)
    if job.settings.validation is not None:
        return np.arange(judges)
    return np.setdiff1d(np.arange(len(job.rows) + judges), job.rows)
