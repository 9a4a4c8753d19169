"""From a job to values in a file, and from its ledger to other values."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from databanzhaf import chance
from databanzhaf.applications import removal_curve
from databanzhaf.errors import DatabanzhafError, DesignMismatch, InvalidInput, LedgerMismatch, check_path
from databanzhaf.games import Learner
from databanzhaf.jobs.outputs import as_csv, check_not_ours, make_folder, values_table, write_text
from databanzhaf.jobs.preparing import Job, prepare
from databanzhaf.jobs.record import Record, read_record, write_record
from databanzhaf.jobs.settings import condition
from databanzhaf.ledger import Ledger
from databanzhaf.notions import named
from databanzhaf.progress import Watcher
from databanzhaf.run import estimate, read_evaluations, value
from databanzhaf.types import Checkpoint, Estimate, Evaluations

# A model's predictions are kept, so that the metric can change later, if they need no more disk than this. The budget has no part in it:
# a run that is continued must equal one that was not.
LARGEST_KEPT_BYTES = 10 * 2**10


def run(job: Job, out: Path, *, watch: Watcher | None = None) -> Estimate:
    """Value, with the ledger in `out`; then write values.csv and run.json there."""
    for name in ("values.csv", "run.db", "run.json", "report.html", "curve.json"):
        check_not_ours(out / name, [job.settings.data, job.settings.validation])
    make_folder(out)
    started = time.time()
    path = out / "run.db"
    settings = job.settings
    begun = False

    def watcher(done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        nonlocal begun
        if not begun:  # all is checked, and the ledger is this run's
            write_record(job, out, {"status": "begun"})
            begun = True
        if watch is not None:
            watch(done, total, checkpoints)

    try:
        with open_ledger(path, job) as ledger:
            seconds_before = ledger.seconds()
            found = value(
                job.game,
                named(settings.notion),
                estimator=settings.estimator,
                budget=settings.budget,
                repeats=settings.repeats,
                seed=settings.seed,
                ledger=ledger,
                evaluator=job.evaluator(),
                until=condition(settings.until),
                progress=watcher,
            )
            trained = ledger.seconds()
    except LedgerMismatch as error:
        head, *lines, _ = str(error).splitlines()
        more = [f"  ... and {len(lines) - 6} more"] if len(lines) > 6 else []
        remedy = "Give another --out for this run, or repeat the command that wrote it."
        raise LedgerMismatch("\n".join([head, *lines[:6], *more, remedy])) from error
    except KeyboardInterrupt:
        if begun:
            write_record(job, out, {"status": "stopped"})
        raise
    except DatabanzhafError:
        with suppress(OSError):  # it is not empty
            out.rmdir()
        raise
    write_text(out / "values.csv", as_csv(values_table(job, found)))
    outcome = {
        "status": "finished",
        "scores": _scores(job),
        "evaluations": found.n_evaluations,
        "repeats": len(found.values_by_repeat),
        "estimator": found.estimator,
        "seconds": round(time.time() - started, 3),
        "training_seconds": round(trained, 3),
        "training_seconds_now": round(trained - seconds_before, 3),
    }
    write_record(job, out, outcome)
    return found


def open_ledger(path: Path, job: Job) -> Ledger:
    """The run's ledger: an old one as it is, a new one that keeps predictions if they are small."""
    with Ledger(path) as there:
        new = there.is_new
    return Ledger(path, keep=("outcomes" if keeps_predictions(job) else "utilities") if new else None)


def _scores(job: Job) -> dict[str, float]:
    """The score of one model that is trained with everybody, and that of guessing."""
    n = job.dataset.n_players
    coalitions = np.stack([np.ones(n, np.bool_), np.zeros(n, np.bool_)])
    keys = chance.keys(job.settings.seed, chance.CURVE_TRAINING, np.zeros(2, np.int64))
    with job.evaluator().session(job.game) as evaluate:
        everybody, nobody = evaluate(coalitions, keys, np.arange(2)).utilities
    return {"all": float(everybody), "none": float(nobody)}


def write_curve(job: Job, found: Estimate, out: Path) -> None:
    """Retrain while removing the lowest values first, for the report."""
    made = removal_curve(job.game, found, repeats=3, seed=job.settings.seed, evaluator=job.evaluator())
    stored = {
        "evaluations": found.n_evaluations,
        "counts": made.counts.tolist(),
        "utility": made.utility.tolist(),
        "random": made.random.tolist(),
    }
    write_text(out / "curve.json", json.dumps(stored) + "\n")


def reread(
    ledger: Path, *, notion: str | None = None, metric: str | None = None, model: str | None = None, as_recorded: bool = False
) -> tuple[Job, Estimate]:
    """A run's values, or those of another notion or metric, from its ledger, without a training.

    From all evaluations of the ledger, or from those that values.csv is made of (`as_recorded`; a smaller budget leaves some out). A folder
    may come from somebody else: code that its run.json names is not run. Another metric needs the model, which `model` names then.
    """
    check_path(ledger)
    if not ledger.is_file():
        raise InvalidInput(f"there is no ledger `{ledger}`. Give the run.db that `databanzhaf value` wrote.")
    record = read_record(ledger.parent)
    settings = record.settings
    notion = notion or settings.notion
    own_code = ":" in settings.model and model is None
    if own_code and metric is not None:
        raise InvalidInput(
            f"another metric needs the model of the run, which is code that its run.json names: `{settings.model}`. "
            "If you trust it, name it again by --model."
        )
    with Ledger(ledger) as store:
        settings = replace(settings, notion=notion, metric=metric or settings.metric, model=model or settings.model)
        job = prepare(settings, store.game if own_code else None)
        if store.game.get("data") != job.dataset.fingerprint():
            raise LedgerMismatch(
                f"`{settings.data}` has changed since the run in `{ledger}`. Restore it, or run `databanzhaf value` again."
            )
    try:
        if as_recorded:
            with Ledger(ledger) as store:
                return job, estimate(recorded(read_evaluations(store), record), named(notion))
        return job, estimate(ledger, named(notion), game=job.game if metric else None)
    except LedgerMismatch as error:
        if "utilities only" not in str(error):
            raise
        remedy = "Run it again with --keep predictions and another --out."
        raise LedgerMismatch(f"another metric needs the predictions, and this run kept scores only. {remedy}") from error
    except DesignMismatch as error:
        raise DesignMismatch(
            f"{str(error).split(';')[0]}, not {notion}. Run `databanzhaf value` with --notion {notion} and another --out; a run with "
            "--estimator permutation serves every semivalue."
        ) from error


def recorded(evaluations: Evaluations, record: Record) -> Evaluations:
    """The evaluations that a run last used, by its record; all of them if it did not finish."""
    if record.evaluations is None or record.repeats is None:
        return evaluations
    used = evaluations.only(np.arange(len(evaluations.indices)) < record.evaluations // record.repeats)
    return replace(used, utilities=used.utilities[:, : record.repeats])


def bytes_of_a_prediction(job: Job) -> int:
    """About what one model's predictions take on disk."""
    outputs = len(np.unique(job.dataset.y)) if job.classifies else 0
    number = 8 if isinstance(job.game, Learner) else 4  # float64 from scikit-learn, float32 from the networks
    return len(job.dataset.y_val) * (outputs * number + (4 if job.classifies else 8)) + 400


def keeps_predictions(job: Job) -> bool:
    """Whether a new run keeps the predictions, so that the metric can change later."""
    asked = job.settings.keep
    return asked == "predictions" or (asked == "auto" and bytes_of_a_prediction(job) <= LARGEST_KEPT_BYTES)
