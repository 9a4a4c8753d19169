"""What one main job returns: everything that files, report and terminal show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from databanzhaf.applications import Curve
from databanzhaf.diagnostics import Checkpoint, Trust, examine, stability
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.pipeline.notes import learns_nothing
from databanzhaf.pipeline.outputs import table_name
from databanzhaf.pipeline.preparing import Job
from databanzhaf.pipeline.record import Record
from databanzhaf.protocols import IntArray
from databanzhaf.run import Finished

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Result:
    """The values of a job, and all that is said about them.

    Attributes
    ----------
    table : pandas.DataFrame
        One line per player: row, id and label (or group and rows), value, std_error,
        std_error_population (where it is known), ci_low, ci_high, rank, flag. This is values.csv.
    suspects : int64 array, or None
        Player numbers, lowest value first; None where the rule needs standard errors and there are
        none.
    evaluations : Evaluations or None
        None for a closed form.
    record : Record
        What run.json says of it.
    seconds, kept : float, int
        Training time and number of all evaluations in the ledger, which may hold more than were
        used.
    others : file name → (Estimate, pandas.DataFrame)
        The same for each further notion of the run.
    """

    job: Job
    estimate: Estimate
    evaluations: Evaluations | None
    checkpoints: tuple[Checkpoint, ...]
    trust: Trust
    suspects: IntArray | None
    table: pd.DataFrame
    record: Record
    seconds: float
    kept: int
    curve: Curve | None = None
    others: Mapping[str, tuple[Estimate, pd.DataFrame]] = field(default_factory=dict)


def make_result(
    job: Job,
    finished: Finished,
    record: Record,
    seconds: float,
    kept: int,
    curve: Curve | None = None,
) -> Result:
    """Flag, tabulate and examine, each once."""
    estimate, evaluations, checkpoints = (
        finished.estimate, finished.evaluations, finished.checkpoints,
    )  # fmt: skip
    trust = Trust(None, None, None)  # of a closed form, which draws nothing
    if evaluations is not None:
        trust = examine(evaluations, estimate, job.shown)
    if job.shown is not None:
        estimate = estimate.of(job.shown)
        seen = (each.estimate.of(job.shown) for each in checkpoints)
        checkpoints = tuple(Checkpoint(each, stability(each)) for each in seen)
    suspects = suspects_of(job, estimate, record)
    return Result(
        job,
        estimate,
        evaluations,
        checkpoints,
        trust,
        suspects,
        value_table(job, estimate, suspects),
        record,
        seconds,
        kept,
        curve,
        {table_name(each.notion): _other(job, each, record) for each in finished.others},
    )


def _other(job: Job, estimate: Estimate, record: Record) -> tuple[Estimate, pd.DataFrame]:
    """The values of a further notion, with its own suspects."""
    shown = estimate if job.shown is None else estimate.of(job.shown)
    return shown, value_table(job, shown, suspects_of(job, shown, record))


def suspects_of(job: Job, estimate: Estimate, record: Record) -> IntArray | None:
    """Who is flagged; nobody beyond chance where a model of all rows learns nothing."""
    flag = job.settings.flag
    suspects = flag.suspects(estimate)
    hopeless = flag.beyond_chance and learns_nothing(record.scores)
    return suspects[:0] if hopeless and suspects is not None else suspects


def value_table(job: Job, estimate: Estimate, suspects: IntArray | None) -> pd.DataFrame:
    """values.csv: see `Result.table`."""
    table = estimate.to_frame().reset_index(drop=True).drop(columns="player")
    if job.group_sizes is None:
        table.insert(0, "row", job.rows)
        if job.ids is not None:
            table.insert(1, "id", job.ids)
        table.insert(1 + (job.ids is not None), "label", job.labels)
    else:
        players = list(job.dataset.players or ())
        table.insert(0, "group", players)
        table.insert(1, "rows", [job.group_sizes[name] for name in players])
        if job.clusters is not None and job.classifies:  # all rows of a cluster have one label
            _, first = np.unique(job.dataset.player_of_row, return_index=True)
            table.insert(2, "label", job.labels[first])
    flags = np.full(len(table), "", dtype=object)
    flags[[] if suspects is None else suspects] = "suspect"
    return table.assign(flag=flags)


def cluster_table(job: Job) -> pd.DataFrame:
    """Which cluster each row is in: row, id, label, cluster. This is clusters.csv."""
    import pandas as pd

    names = {} if job.ids is None else {"id": job.ids}
    return pd.DataFrame({"row": job.rows, **names, "label": job.labels, "cluster": job.clusters})
