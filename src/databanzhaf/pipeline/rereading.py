"""From a run's folder back to its result."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from databanzhaf.diagnostics import history
from databanzhaf.errors import (
    DatabanzhafWarning,
    DesignMismatch,
    InvalidInput,
    LedgerMismatch,
    check_path,
)
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.notions import SizeWeighted, each_of, named
from databanzhaf.pipeline import closed, outputs
from databanzhaf.pipeline.preparing import Job, prepare
from databanzhaf.pipeline.record import Record, read_record
from databanzhaf.pipeline.recorded import Recorded
from databanzhaf.pipeline.result import Result, make_result
from databanzhaf.pipeline.running import curve_of, note_other_table
from databanzhaf.protocols import Notion
from databanzhaf.run import Finished, estimate, estimator_for, finish


def reread(
    ledger: Path,
    *,
    notion: str | None = None,
    metric: str | None = None,
    model: str | None = None,
    as_recorded: bool = False,
    watch: Callable[[int, int], None] | None = None,
    whole_jury: bool = False,
) -> Result:
    """A run's values, or those of another notion or metric, from its ledger, without a training; or
    in closed form, if they were.

    From all evaluations of the ledger, or from those that values.csv is made of (`as_recorded`; a
    smaller budget leaves some out). A folder may come from somebody else: code that its run.json
    names is not run. Another metric needs the model, which `model` names then.
    """
    check_path(ledger)
    ledger = ledger / "run.db" if ledger.is_dir() else ledger
    there = ledger.is_file()
    record = read_record(ledger.parent) if there or _is_of_a_run(ledger.parent) else None
    if record is None or not (there or record.closed):
        raise InvalidInput(
            f"there is no ledger `{ledger}`",
            remedy="Give the run.db that `databanzhaf value` wrote.",
        )
    wanted = each_of(record.settings.notion)[0] if notion is None else named(notion)
    job = _job_again(record, ledger, wanted, metric, model)
    if record.closed:
        return _closed_again(job, wanted, record, ledger)
    with Ledger(ledger) as store:
        if metric is not None and store.keep != "outcomes":
            raise LedgerMismatch(
                "another metric needs the models' predictions, and this run kept scores only",
                remedy="Run it again with --keep predictions and another --out.",
            )
        shape = record.shape if as_recorded else None
        evaluations = read_evaluations(store, job.game, shape, watch, whole_jury=whole_jury)
        seconds, kept = store.seconds(), store.count()
    # "auto" may choose another estimator than the version that made the run
    name = (record.estimator if as_recorded else None) or job.settings.estimator
    try:
        values = estimate(evaluations, wanted, estimator=estimator_for(name, wanted))
    except DesignMismatch as error:
        if len(evaluations) < (evaluations.design.size or 0):
            raise error.with_remedy("Rerun the command that made it, to finish the run.") from error
        had = each_of(record.settings.notion)
        raise error if wanted in had else error.with_remedy(_remedy(wanted, had)) from error
    if job.metric != record.fingerprint.get("metric", job.metric):
        record = replace(record, scores=None)  # they are of the run's own metric
    stops = job.settings.until is not None
    checkpoints = tuple(history(evaluations, values, stops=stops)) if as_recorded else ()
    curve = outputs.read_curve(ledger.parent / "curve.json", curve_of(job, values))
    return make_result(
        job, Finished(values, evaluations, checkpoints), record, seconds, kept, curve
    )


def _is_of_a_run(folder: Path) -> bool:
    return (folder / "run.json").is_file()


def _remedy(wanted: Notion, had: tuple[Notion, ...]) -> str:
    """How to get the values of a notion that this run cannot give."""
    asked, said = shlex.quote(wanted.name), "Run `databanzhaf value` with --notion"
    if not all(isinstance(each, SizeWeighted) for each in (wanted, *had)):
        return f"{said} {asked} and another --out."
    both = shlex.quote(",".join(each.name for each in (*had, wanted)))
    return f"{said} {asked}, or with {both} for one run that serves all, and another --out."


def _closed_again(job: Job, wanted: Notion, record: Record, ledger: Path) -> Result:
    """Computed again: it takes seconds, and nothing was kept."""
    finished = finish(job.game, wanted, estimator=closed.ESTIMATOR)
    curve = outputs.read_curve(ledger.parent / "curve.json", curve_of(job, finished.estimate))
    return make_result(job, finished, record, 0.0, 0, curve)


def _job_again(
    record: Record, ledger: Path, wanted: Notion, metric: str | None, model: str | None
) -> Job:
    """The job of a record, for other values; the table must be the one of the run."""
    settings = record.settings
    if not Path(settings.data).is_file():
        raise InvalidInput(
            f"the values of a run are read together with its table, `{settings.data}`",
            got="no such file, neither here nor where the run was started",
            remedy="Put it back, or run the command in the folder that holds it.",
        )
    own_code = ":" in settings.model and model is None
    if own_code and metric is not None:
        raise InvalidInput(
            "another metric needs the model of the run, which is code that its run.json names: "
            f"`{settings.model}`",
            remedy=f"If you trust that code, pass --model {settings.model} again.",
        )
    asked = replace(
        settings,
        metric=metric or settings.metric,
        model=model or settings.model,
    )
    if record.closed:
        game, seed, run = record.fingerprint, settings.seed, ledger.parent
        if what := closed.obstacle(replace(asked, notion=wanted), classifies=True):
            raise InvalidInput(
                "this run is a closed form, which gives semivalues of nearest neighbours scored by "
                "probability",
                got=what,
                remedy="Run `databanzhaf value` with it and another --out, which trains models.",
            )
    else:
        with Ledger(ledger) as store:
            game, seed, run = store.game, store.seed, ledger
    job = prepare(asked, game if own_code else None, trained=not record.closed)
    same_table = set(record.files.values()) == set(job.digests.values())
    if game.get("data") != job.dataset.fingerprint() or seed != settings.seed:
        whose = "run.json" if same_table else f"`{settings.data}`"
        or_else = ", or this version encodes the table differently" if same_table else ""
        raise LedgerMismatch(
            f"{whose} has changed since the run in `{run}`{or_else}",
            remedy="Restore it, or run `databanzhaf value` again.",
        )
    if not same_table:
        note_other_table(settings.data)
    asked_for = {"metric"} if metric else set()
    now = job.game.fingerprint()
    other = sorted(name for name in {*game, *now} - asked_for if game.get(name) != now.get(name))
    if other:
        warnings.warn(
            f"the settings in run.json do not match the ledger in {', '.join(other[:6])}: it was "
            "edited, --model names another one, or the packages have changed. The values are the "
            "ledger's.",
            DatabanzhafWarning,
            stacklevel=2,
        )
    if other and metric is None and not record.closed:
        job = replace(job, game=Recorded(job.dataset, game, job.classifies))
    return job
