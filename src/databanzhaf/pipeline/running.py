"""From a job to its result, and from a run's folder back to one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.applications import removal_curve
from databanzhaf.diagnostics import Checkpoint
from databanzhaf.errors import (
    DatabanzhafError,
    DatabanzhafWarning,
    InvalidInput,
    LedgerMismatch,
)
from databanzhaf.estimate import Estimate
from databanzhaf.evaluators import Local, Processes
from databanzhaf.ledger import Ledger
from databanzhaf.models import make_game
from databanzhaf.notions import each_of
from databanzhaf.pipeline import closed, outputs, scoring
from databanzhaf.pipeline.preparing import Job
from databanzhaf.pipeline.record import (
    earlier_record,
    make_record,
    read_record,
    write_record,
)
from databanzhaf.pipeline.result import Result, cluster_table, make_result
from databanzhaf.pipeline.settings import Settings
from databanzhaf.pipeline.standing import Start
from databanzhaf.progress import Watcher
from databanzhaf.run import Finished, evaluate, finish

# A run can rank about one row for so many evaluations (measured: benchmarks/clusters.py).
EVALUATIONS_PER_ROW = 10
# What a run may write into its folder.
OUTPUTS = ("values.csv", "clusters.csv", "run.db", "run.json", "report.html", "curve.json")


def run(job: Job, out: Path, *, watch: Watcher | None = None) -> Result:
    """Value, with the ledger in `out`; then write values.csv and run.json there."""
    inputs: list[Path | str | None] = [job.settings.data, job.settings.validation]
    others = [outputs.table_name(each) for each in each_of(job.settings.notion)[1:]]
    for name in (*OUTPUTS, *others):
        outputs.check_not_input(out / name, inputs)
    outputs.make_folder(out)
    started = time.time()
    # A run that continues has trained the model of all rows before.
    earlier = earlier_record(out, job)
    if earlier is not None and set(earlier.files.values()) != set(job.digests.values()):
        note_other_table(job.settings.data)
    before, trained, kept, start = 0.0, 0.0, 0, None
    if job.closed:
        try:
            closed.check_folder(out)
        except LedgerMismatch as error:
            raise error.with_differences(_differences(job, out)) from error
        finished = finish(job.game, job.settings.notion, estimator=closed.ESTIMATOR)
    else:
        with open_ledger(out / "run.db", job) as ledger:
            before = ledger.seconds()
            finished, start = _evaluate(job, out, ledger, watch)
            trained, kept = ledger.seconds(), ledger.count()
    scores = (earlier and earlier.scores) or scoring.scores(job)
    record = make_record(job, finished.estimate, scores)
    result = make_result(job, finished, record, trained, kept)
    outputs.write_table(out / "values.csv", result.table)
    for name, (_, table) in result.others.items():
        outputs.write_table(out / name, table)
    if job.who == "clusters":
        outputs.write_table(out / "clusters.csv", cluster_table(job))
    times = {
        "seconds": round(time.time() - started, 3),
        "training_seconds": round(trained, 3),
        "training_seconds_now": round(trained - before, 3),
    }
    write_record(job, record, out, status="finished", start=start, times=times)
    return result


def run_shard(job: Job, out: Path, shard: tuple[int, int], *, watch: Watcher | None = None) -> int:
    """Evaluate one share of a run into `out`; how many evaluations it has there."""
    settings = job.settings
    if job.closed:
        closed.refuse_shard()
    for option, asked in (("--until", settings.until), ("--clusters", settings.clusters)):
        if asked is not None:
            raise InvalidInput(
                f"{option} needs all evaluations, and a shard has some",
                got="both",
                remedy=f"Leave {option} out.",
            )
    outputs.make_folder(out)
    with (
        open_ledger(out / "run.db", job) as ledger,
        _recording(job, out, ledger, watch) as watcher,
    ):
        return evaluate(
            job.game,
            settings.notion,
            shard=shard,
            estimator=settings.estimator,
            budget=settings.budget,
            repeats=settings.repeats,
            seed=settings.seed,
            ledger=ledger,
            evaluator=job.evaluator,
            progress=watcher,
        )


def _evaluate(
    job: Job, out: Path, ledger: Ledger, watch: Watcher | None
) -> tuple[Finished, Start | None]:
    """The run itself, and how it started; run.json says how far it came."""
    settings = job.settings
    with _recording(job, out, ledger, watch) as watcher:
        finished = finish(
            job.game,
            settings.notion,
            estimator=settings.estimator,
            budget=settings.budget,
            repeats=settings.repeats,
            seed=settings.seed,
            ledger=ledger,
            evaluator=job.evaluator,
            until=None if settings.until is None else settings.until.condition,
            progress=watcher,
            checkpoints=True,
        )
    return finished, watcher.start


class _Recorder:
    """A watcher that notes in run.json that a run has begun."""

    def __init__(self, job: Job, out: Path, ledger: Ledger, watch: Watcher | None) -> None:
        self._job, self._out, self._ledger, self._watch = job, out, ledger, watch
        self.start: Start | None = None

    def __call__(self, done: int, total: int, checkpoints: Sequence[Checkpoint]) -> None:
        if self.start is None:  # all is checked, and the ledger is this run's
            self.start = Start(time.time(), self._ledger.count(), total)
            self.note("begun")
        if self._watch is not None:
            self._watch(done, total, checkpoints)

    def note(self, status: str) -> None:
        write_record(self._job, make_record(self._job), self._out, status=status, start=self.start)


@contextmanager
def _recording(job: Job, out: Path, ledger: Ledger, watch: Watcher | None) -> Iterator[_Recorder]:
    """A watcher by which run.json says how far a run came, however it ends."""
    recorder = _Recorder(job, out, ledger, watch)
    try:
        yield recorder
    except LedgerMismatch as error:
        remedy = "Give another --out for this run, or repeat the command that wrote it."
        raise error.with_differences(_differences(job, out)).with_remedy(remedy) from error
    except KeyboardInterrupt:
        if recorder.start is not None:
            recorder.note("stopped")
        raise
    except DatabanzhafError:
        with suppress(OSError):  # it is not empty
            out.rmdir()
        raise


def _shown(value: Any) -> str:
    """A setting as it is typed."""
    if value is None or value == ():
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _differences(job: Job, out: Path) -> tuple[str, ...]:
    """What this command asks for and the one that wrote the folder did not, in its own words."""
    try:
        record = read_record(out)
    except InvalidInput:
        return ()
    free = set(_free(job.settings))
    then, now = record.settings.words(), job.settings.words()
    lines = [
        f"--{name.replace('_', '-')}: the run has {_shown(then[name])}, this call has "
        f"{_shown(now[name])}"
        for name in now
        if name not in free and then[name] != now[name]
    ]
    if set(record.files.values()) != set(job.digests.values()):
        lines.insert(0, f"`{job.settings.data}` has changed since the run")
    if [line.split(":")[0] for line in lines] == ["--metric"]:
        lines.append(
            f"`databanzhaf estimate {out / 'run.db'} --metric {now['metric']}` trains nothing"
        )
    return tuple(lines)


def open_ledger(path: Path, job: Job) -> Ledger:
    """The run's ledger: an old one as it is, a new one that keeps predictions if they are small."""
    with Ledger(path) as there:
        new = there.is_new
    asked = {"predictions": "outcomes", "scores": "utilities"}.get(job.settings.keep)
    return Ledger(path, keep=asked if new else None)


def worst_clusters(result: Result, out: Path) -> Settings:
    """What to value next, in the folder `out`: the rows of the clusters with the lowest value per
    row, as many clusters as hold a tenth of the budget of rows, and one at least; the other
    clusters stay players. A run that is there continues with the clusters that it has opened.
    """
    with suppress(InvalidInput):
        earlier = read_record(out).settings
        if replace(result.job.settings, open=earlier.open, **_free(earlier)) == earlier:
            return replace(result.job.settings, open=earlier.open)
    sizes = result.table["rows"].to_numpy()
    order = np.argsort(result.table["value"].to_numpy() / sizes, kind="stable")
    room = result.job.settings.budget // EVALUATIONS_PER_ROW
    count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), room, side="right")))
    names = result.table["group"].iloc[order[:count]]
    return replace(result.job.settings, open=tuple(map(str, names)))


def _free(settings: Settings) -> dict[str, Any]:
    """The settings that a run may change on the way."""
    names = (
        "data",
        "validation",
        "budget",
        "repeats",
        "until",
        "flag",
        "jobs",
        "cluster",
        "timeout",
        "keep",
    )
    return {name: getattr(settings, name) for name in names}


def add_curve(result: Result, out: Path) -> Result:
    """Retrain while removing the lowest values first, for the report."""
    job, values = result.job, result.estimate
    game, seed, evaluator = job.game, job.settings.seed, job.evaluator
    if job.closed:  # which scores no model where rows judge each other
        game = make_game(job.settings.model, job.dataset, classifies=True)
        evaluator = Local() if job.settings.jobs == 1 else Processes(job.settings.jobs)
    curve = removal_curve(game, values, repeats=3, seed=seed, evaluator=evaluator)
    outputs.write_curve(out / "curve.json", curve, curve_of(job, values))
    return replace(result, curve=curve)


def curve_of(job: Job, values: Estimate) -> dict[str, Any]:
    """Which values a removal curve belongs to."""
    return {
        "game": job.game.fingerprint(),
        "notion": values.notion.name,
        "estimator": values.estimator.name,
        "seed": job.settings.seed,
        "evaluations": values.n_evaluations,
        "repeats": len(values.values_by_repeat),
    }


def note_other_table(path: str) -> None:
    warnings.warn(
        f"`{path}` is not the file of the run, though its features and labels are the same: ids "
        "and "
        "other columns are shown as they are now.",
        DatabanzhafWarning,
        stacklevel=3,
    )
