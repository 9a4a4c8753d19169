"""What the evaluations of a run say so far: what costs an estimate, and is computed rarely."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.blas import one_blas_thread
from databanzhaf.errors import DatabanzhafError, DesignMismatch
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.live.curve import Curve, finite
from databanzhaf.live.place import Place
from databanzhaf.notions import Banzhaf, each_of
from databanzhaf.pipeline import Flag, Job, prepare
from databanzhaf.pipeline.record import Record, read_record
from databanzhaf.pipeline.result import suspects_of, value_table
from databanzhaf.protocols import IntArray
from databanzhaf.report.content import Series, cell
from databanzhaf.run import estimate, estimator_for

# The lowest values that are listed.
LISTED = 20


@dataclass(frozen=True)
class Listed:
    """The lowest values as a table of texts, and which of its lines are suspects."""

    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    suspect: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Values:
    """The values at one moment, made of `used` evaluations. Numbers that are unknown are None."""

    used: int = 0
    subject: str = ""
    notes: tuple[str, ...] = ()
    players: int = 0
    who: str = "players"
    rule: str = ""
    suspects: int | None = None
    stability: float | None = None
    std_error: float | None = None
    counts_jury: bool = False
    series: Series = field(default_factory=lambda: Series([], [], []))
    lowest: Listed = field(default_factory=Listed)


class Reader:
    """Reads the values of one run again and again; its table is read once."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._seen: tuple[Any, ...] | None = None
        self._of: tuple[Any, ...] | None = None
        self._record: Record | None = None
        self._job: Job | None = None
        self._note = ""
        self._curve = Curve()

    def prepare(self) -> None:
        """Read run.json if it has changed, and the table that it names: they tell labels, ids and
        how the validation rows judged. No model is made.
        """
        folder = self._place.folder
        with Ledger.looking(self._place.ledger) as ledger:
            of = ledger.game, ledger.seed
        seen = *of, None if folder is None else _written(folder)
        if seen == self._seen:
            return
        self._seen, self._record, self._note = seen, None, ""
        if of != self._of:
            self._of, self._job = of, None
        if folder is None or seen[-1] is None:
            return
        try:
            self._take(read_record(folder), *of)
        except DatabanzhafError as error:
            self._job, self._note = None, f"{_WITHOUT_TABLE} {error}"

    def _take(self, record: Record, game: dict[str, str], seed: int) -> None:
        if record.fingerprint != game or record.settings.seed != seed:
            self._job, self._note = None, "The run.json beside the ledger is of another run."
            return
        self._record = record
        if self._job is not None:  # the budget, the flag and the like may be others
            self._job = replace(self._job, settings=record.settings)
            return
        job = prepare(record.settings, game)
        if game.get("data") == job.dataset.fingerprint():
            self._job = job
        else:
            data = record.settings.data
            self._note = f"{_WITHOUT_TABLE} `{data}` has changed since the run began."

    def values(self) -> Values:
        """The values of all evaluations; raises what is wrong with the ledger."""
        record, job = self._record, self._job
        with Ledger.looking(self._place.ledger) as ledger:
            shape = None if record is None else record.shape
            evaluations = read_evaluations(ledger, None if job is None else job.game, shape)
        notion = Banzhaf() if record is None else each_of(record.settings.notion)[0]
        asked = "auto" if record is None else record.estimator or record.settings.estimator
        players = None if job is None else job.shown
        began = time.thread_time()
        try:
            with one_blas_thread():
                found = estimate(evaluations, notion, estimator=estimator_for(asked, notion))
                spent = time.thread_time() - began
                series = self._curve.until(evaluations, found, players, spent)
        except DesignMismatch as error:
            return Values(notes=(_not_yet(error, evaluations),))
        return self._shown(found if players is None else found.of(players), series)

    def _shown(self, found: Estimate, series: Series) -> Values:
        record, job = self._record, self._job
        flag = Flag() if record is None else record.settings.flag
        if job is None or record is None:
            who, how = "players", f"by {found.estimator.name}"
            suspects = flag.suspects(found)
        else:
            who, settings = job.who, job.settings
            how = (
                f"for predicting {settings.target} by {settings.model}, scored by {job.metric}, "
                f"judged by {job.judges}"
            )
            suspects = suspects_of(job, found, record)
        errors = found.errors.std_errors
        return Values(
            found.n_evaluations,
            f"{found.notion.name.capitalize()} values of {len(found.values):,} {who} {how}.",
            (self._note,) if self._note else (),
            len(found.values),
            who,
            str(flag),
            None if suspects is None else len(suspects),
            series.stability[-1],
            finite(float(np.median(errors))) if np.isfinite(errors).all() else None,
            found.population is not None,
            series,
            self._lowest(found, suspects),
        )

    def _lowest(self, found: Estimate, suspects: IntArray | None) -> Listed:
        """The lowest values with the names, and in the form, that the terminal gives them."""
        job, lowest, digits = self._job, found.ranking()[:LISTED], found.digits()
        if job is None:
            known = found.players
            columns, names = ["player"], [[i if known is None else known[i]] for i in lowest]
        else:
            table = value_table(job, found, suspects)
            told = ("row", "id", "group", "rows", "label")
            of_player = [name for name in told if name in table.columns]
            columns = [job.settings.target if name == "label" else name for name in of_player]
            names = table[of_player].iloc[lowest].to_numpy(dtype=object).tolist()
        flagged = np.isin(lowest, [] if suspects is None else suspects).tolist()
        errors = found.errors.std_errors
        rows = [
            (
                *(str(cell(part)) for part in name),
                f"{found.values[i]:+.{digits}f}",
                f"{errors[i]:.{digits}f}" if np.isfinite(errors[i]) else "unknown",
                "suspect" if is_suspect else "",
            )
            for i, name, is_suspect in zip(lowest, names, flagged, strict=True)
        ]
        return Listed((*columns, "value", "std. error", "flag"), tuple(rows), tuple(flagged))


_WITHOUT_TABLE = "Labels are not shown, and errors do not count which validation rows judged."


def _written(folder: Path) -> int | None:
    """When run.json was written, in nanoseconds."""
    try:
        return (folder / "run.json").stat().st_mtime_ns
    except OSError:
        return None


def _not_yet(error: DesignMismatch, evaluations: Evaluations) -> str:
    """Why there are no values."""
    size = evaluations.design.size
    if size is not None and len(evaluations) < size:
        return f"The values need all of the run's {size:,} coalitions, so they come at the end."
    return f"There are no values yet: {error.rule}."
