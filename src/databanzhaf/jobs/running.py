"""From a job to values in a file, and from its ledger to other values."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from databanzhaf.applications import removal_curve
from databanzhaf.errors import DesignMismatch, InvalidInput, LedgerMismatch
from databanzhaf.jobs.outputs import make_folder, values_table, write_record, write_text
from databanzhaf.jobs.preparing import Job, prepare
from databanzhaf.jobs.settings import Settings, condition
from databanzhaf.ledger import Ledger
from databanzhaf.notions import named
from databanzhaf.progress import Watcher
from databanzhaf.run import estimate, value
from databanzhaf.types import Estimate

# Predictions are kept, so that the metric can change later, if they need no more disk than this.
MOST_KEPT_BYTES = 200 * 2**20


def run(job: Job, out: Path, *, watch: Watcher | bool = False, curve: bool = False) -> Estimate:
    """Value, with the ledger in `out`; then write values.csv and run.json there."""
    make_folder(out)
    started = time.time()
    path = out / "run.db"
    keep = None if path.exists() else ("outcomes" if keeps_predictions(job, job.settings.budget * job.repeats) else "utilities")
    settings = job.settings
    try:
        with Ledger(path, keep=keep) as ledger:
            seconds_before = ledger.seconds()
            if ledger.is_new:
                write_record(job, out, {"status": "begun"})
            found = value(
                job.game,
                named(settings.notion),
                estimator=settings.estimator,
                budget=settings.budget,
                repeats=job.repeats,
                seed=settings.seed,
                ledger=ledger,
                evaluator=job.evaluator(),
                until=condition(settings.until),
                progress=watch,
            )
            trained = ledger.seconds()
    except LedgerMismatch as error:
        head, *lines, _ = str(error).splitlines()
        more = [f"  ... and {len(lines) - 6} more"] if len(lines) > 6 else []
        remedy = "Give another --out for this run, or repeat the command that wrote it."
        raise LedgerMismatch("\n".join([head, *lines[:6], *more, remedy])) from error
    except KeyboardInterrupt:
        write_record(job, out, {"status": "stopped"})
        raise
    if curve:
        _write_curve(job, found, out)
    write_text(out / "values.csv", values_table(job, found).to_csv(index=False))
    outcome = {
        "status": "finished",
        "evaluations": found.n_evaluations,
        "estimator": found.estimator,
        "seconds": round(time.time() - started, 3),
        "training_seconds": round(trained, 3),
        "training_seconds_now": round(trained - seconds_before, 3),
    }
    write_record(job, out, outcome)
    return found


def _write_curve(job: Job, found: Estimate, out: Path) -> None:
    made = removal_curve(job.game, found, repeats=3, seed=job.settings.seed, evaluator=job.evaluator())
    stored = {"counts": made.counts.tolist(), "utility": made.utility.tolist(), "random": made.random.tolist()}
    write_text(out / "curve.json", json.dumps(stored) + "\n")


def reread(ledger: Path, *, notion: str | None = None, metric: str | None = None) -> tuple[Job, Estimate]:
    """A run's values, or those of another notion or metric, from its ledger, without a training."""
    if not ledger.is_file():
        raise InvalidInput(f"there is no ledger `{ledger}`. Give the run.db that `databanzhaf value` wrote.")
    settings = Settings.read(ledger.parent)
    notion = notion or settings.notion
    job = prepare(replace(settings, notion=notion, metric=metric or settings.metric))
    with Ledger(ledger) as store:
        if store.game.get("data") != job.game.fingerprint()["data"]:
            raise LedgerMismatch(
                f"`{settings.data}` has changed since the run in `{ledger}`. Restore it, or run `databanzhaf value` again."
            )
    try:
        return job, estimate(ledger, named(notion), game=job.game if metric else None)
    except DesignMismatch as error:
        raise DesignMismatch(
            f"{str(error).split(';')[0]}, not {notion}. Run `databanzhaf value` with --notion {notion} and another --out; a run with "
            "--estimator permutation serves every semivalue."
        ) from error


def bytes_of_a_prediction(job: Job) -> int:
    """About what one model's predictions take on disk."""
    outputs = len(np.unique(job.dataset.y)) if job.classifies else 1
    return len(job.dataset.y_val) * (outputs + 1) * 4 + 400


def keeps_predictions(job: Job, evaluations: int) -> bool:
    """Whether a new run keeps the predictions, so that the metric can change later."""
    return evaluations * bytes_of_a_prediction(job) <= MOST_KEPT_BYTES
