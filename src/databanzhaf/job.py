"""The main job: from a table in a file to values in a file."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf import until as conditions
from databanzhaf._version import __version__
from databanzhaf.applications import mislabels
from databanzhaf.data import Dataset
from databanzhaf.errors import DesignMismatch, InvalidInput, LedgerFailed, LedgerMismatch, check_between, check_count
from databanzhaf.evaluators import Local, Processes
from databanzhaf.games import Learner
from databanzhaf.ledger import Ledger
from databanzhaf.models import is_classification, make_game
from databanzhaf.notions import named
from databanzhaf.progress import Watcher
from databanzhaf.run import design_of, estimate, value
from databanzhaf.tables import Encoder, held_out, read_table
from databanzhaf.types import Estimate, Evaluator, Game, IntArray
from databanzhaf.until import Condition

if TYPE_CHECKING:
    import pandas as pd

# Predictions are kept, so that the metric can change later, if they need no more disk than this.
MOST_KEPT_BYTES = 200 * 2**20


@dataclass(frozen=True)
class Settings:
    """What to value, by what model, and how. Only `data` and `target` have no default."""

    data: str
    target: str
    validation: str | None = None
    validation_fraction: float = 0.3
    model: str = "mlp"
    task: str = "auto"
    metric: str | None = None
    groups: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    encoding: str = "utf-8"
    separator: str | None = None
    notion: str = "banzhaf"
    estimator: str = "auto"
    budget: int = 5000
    repeats: int | None = None
    until: str | None = None
    flag: str = "fdr:0.05"
    jobs: int = -1
    device: str = "auto"
    seed: int = 0

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """The settings of a run that `run.json` in its folder tells."""
        path = folder / "run.json"
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))["settings"]
            return cls(**{**stored, "drop": tuple(stored["drop"])})
        except FileNotFoundError as error:
            raise InvalidInput(
                f"there is no `{path}`, which says how the run was made. Give the run.db of a `databanzhaf value` run."
            ) from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"`{path}` cannot be read ({error!r:.80}). Run `databanzhaf value` again to write it.") from error


@dataclass(frozen=True, eq=False)
class Job:
    """A table made ready: the game, and where its players stand in the user's file."""

    settings: Settings
    game: Game
    dataset: Dataset
    rows: IntArray
    ids: Any
    labels: Any
    group_sizes: dict[Any, int] | None
    classifies: bool
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def metric(self) -> str:
        return self.game.fingerprint()["metric"]

    @cached_property
    def repeats(self) -> int:
        """As asked; else one, but where all coalitions are known (exact, leave-one-out), as many as the budget pays for, 64 at most.

        Then nothing but training noise makes a value uncertain, and repeats measure it.
        """
        if self.settings.repeats is not None:
            return self.settings.repeats
        settings = self.settings
        design = design_of(named(settings.notion), self.dataset.n_players, settings.budget, settings.seed, settings.estimator)
        if design.size is None or not self.game.stochastic:
            return 1
        return int(np.clip(settings.budget // design.size, 2, 64))

    def evaluator(self) -> Evaluator:
        """scikit-learn's models train in several processes; networks use threads of their own."""
        jobs = self.settings.jobs
        return Processes(jobs) if isinstance(self.game, Learner) and jobs != 1 else Local()


def prepare(settings: Settings) -> Job:
    """Read and check everything; writes nothing."""
    _check(settings)
    table = read_table(settings.data, encoding=settings.encoding, separator=settings.separator)
    special = {"--target": settings.target, "--groups": settings.groups, "--id": settings.id}
    for option, name in [*special.items(), *(("--drop", name) for name in settings.drop)]:
        _check_column(table, option, name, settings)
    target = _target(table, settings.target, settings.data)
    classifies = settings.task == "classification" or (settings.task == "auto" and is_classification(target))
    if not classifies and target.dtype.kind not in "iuf":
        raise InvalidInput(f"a regression needs numbers in `{settings.target}`; got {target[:3].tolist()}. Use --task classification.")
    ids = None if settings.id is None else table[settings.id]
    if ids is not None and (ids.isna().any() or ids.duplicated().any()):
        what = "missing" if ids.isna().any() else f"twice {ids[ids.duplicated()].iloc[0]!r}"
        raise InvalidInput(f"`{settings.id}` must name each row once; got {what}. Repair the ids, or leave --id out: rows have numbers.")
    left_out = {*filter(None, special.values()), *settings.drop}
    train, held, y, y_val = _split(table, target, classifies, settings)
    encoder = Encoder(train.drop(columns=[name for name in left_out if name in train.columns]))
    groups = None if settings.groups is None else _groups(train[settings.groups], settings.groups)
    dataset = Dataset(encoder(train), y, encoder(held), y_val, groups=groups)
    threads = None if settings.jobs == -1 else settings.jobs
    game = make_game(settings.model, dataset, classifies=classifies, metric=settings.metric, threads=threads, device=settings.device)
    sizes = None if groups is None else dict(zip(*(part.tolist() for part in np.unique(groups, return_counts=True)), strict=True))
    rows = train.index.to_numpy().astype(np.int64)
    named_ids = None if ids is None else ids.to_numpy()[rows]
    return Job(settings, game, dataset, rows, named_ids, y, sizes, classifies, tuple(encoder.notes))


def _check(settings: Settings) -> None:
    if settings.task not in ("auto", "classification", "regression"):
        raise InvalidInput(f"`task` must be auto, classification or regression; got {settings.task!r}. Try auto.")
    check_between("validation_fraction", settings.validation_fraction, 0, 1, "Try 0.3.")
    check_count("budget", settings.budget)
    if settings.repeats is not None:
        check_count("repeats", settings.repeats)
    if settings.jobs != -1:
        check_count("jobs", settings.jobs)
    named(settings.notion)
    condition(settings.until)
    _flag_rule(settings.flag)


def _check_column(table: pd.DataFrame, option: str, name: str | None, settings: Settings) -> None:
    if name is None or name in table.columns:
        return
    shown = ", ".join(str(column) for column in table.columns[:8]) + (", ..." if len(table.columns) > 8 else "")
    only = str(table.columns[0]) if len(table.columns) == 1 else ""
    found = next((mark for mark in (";", "\t", "|") if mark in only), None)
    remedy = f"Pass --separator {found!r}." if found else f"Choose {option} among them."
    raise InvalidInput(f"{option} must be a column of `{settings.data}`; got {name!r}, and the columns are {shown}. {remedy}")


def _target(table: pd.DataFrame, name: str, path: str) -> Any:
    column = table[name]
    if column.isna().any():
        missing = np.flatnonzero(column.isna())
        raise InvalidInput(
            f"the target `{name}` must be known for every row; it is missing in {len(missing)} rows of `{path}`, the first is row "
            f"{missing[0]}. Drop or fill those rows."
        )
    if column.dtype.kind in "iuf" or str(column.dtype).startswith(("Int", "UInt", "Float")):
        numbers = column.to_numpy(dtype=np.float64)
        if not np.isfinite(numbers).all():
            raise InvalidInput(
                f"the target `{name}` must be finite; row {np.flatnonzero(~np.isfinite(numbers))[0]} is not. Drop those rows."
            )
        whole = bool((numbers == np.round(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
        return numbers.astype(np.int64) if whole else numbers
    return column.astype(str).to_numpy().astype(str)


def _split(table: pd.DataFrame, target: Any, classifies: bool, settings: Settings) -> tuple[Any, Any, Any, Any]:
    """Training and validation rows, and their targets; the training rows keep their numbers as index."""
    if settings.validation is not None:
        held = read_table(settings.validation, encoding=settings.encoding, separator=settings.separator)
        if settings.target not in held.columns:
            raise InvalidInput(f"the validation file `{settings.validation}` must have the target column `{settings.target}`. Add it.")
        y_val = _target(held, settings.target, settings.validation)
        if (target.dtype.kind in "US") != (y_val.dtype.kind in "US"):
            raise InvalidInput(
                f"`{settings.target}` must be of one kind in both files; got {target[:2].tolist()} and {y_val[:2].tolist()}. "
                "Write it the same way in both."
            )
        if classifies and (unseen := np.setdiff1d(y_val, target)).size:
            raise InvalidInput(
                f"the validation file must hold classes of the training file only; `{settings.target}` is {unseen[:3].tolist()} besides. "
                "Drop those validation rows, or add training rows of that class."
            )
        train, y = table, target
    else:
        if len(table) < 2:
            raise InvalidInput(
                f"`{settings.data}` has 1 row, and a row is valued by others that are held out. Give more rows, or --validation."
            )
        chosen = held_out(target, settings.validation_fraction, settings.seed, by_class=classifies)
        if not chosen.any():
            raise InvalidInput(
                f"none of the {len(table)} rows can be held out with --validation-fraction {settings.validation_fraction}. "
                "Give more rows, a larger fraction, or a --validation file."
            )
        train, held, y, y_val = table[~chosen], table[chosen], target[~chosen], target[chosen]
    if classifies and len(np.unique(y)) < 2:
        raise InvalidInput(
            f"the training rows have one class only, {y[0]!r}. Values compare rows by how well classes are told apart; add others."
        )
    return train, held, y, y_val


def _groups(column: pd.Series[Any], name: str) -> Any:
    if column.isna().any():
        raise InvalidInput(
            f"`{name}` must name a group for every row; {int(column.isna().sum())} are missing. Fill them, e.g. with unknown."
        )
    return column.to_numpy() if column.dtype.kind in "iu" else column.astype(str).to_numpy().astype(str)


def condition(text: str | None) -> Condition | None:
    """stable[:SPEARMAN], precise:STD_ERROR, minutes:NUMBER; with "," for either."""
    found: Condition | None = None
    for part in (text or "").split(",") if text else []:
        kind, _, number = part.strip().partition(":")
        try:
            amount = float(number) if number else None
        except ValueError:
            amount = float("nan")
        if kind == "stable":
            one: Condition = conditions.ranking_stable(0.99 if amount is None else amount)
        elif kind == "precise" and amount is not None:
            one = conditions.precise(amount)
        elif kind == "minutes" and amount is not None:
            one = conditions.deadline(60 * amount)
        else:
            raise InvalidInput(f"`until` must be stable, stable:0.95, precise:0.01 or minutes:10; got {text!r}. Try stable.")
        found = one if found is None else found | one
    return found


def _flag_rule(text: str) -> dict[str, Any]:
    kind, _, number = text.partition(":")
    names = {"fdr": "fdr", "lowest": "fraction", "below": "threshold"}
    if text == "cluster":
        return {"rule": "cluster"}
    try:
        if kind in names:
            return {names[kind]: float(number)}
    except ValueError:
        pass
    raise InvalidInput(f"`flag` must be fdr:0.05, lowest:0.1, below:0 or cluster; got {text!r}. Try fdr:0.05.")


def flagged(found: Estimate, rule: str) -> IntArray | None:
    """Players that the rule flags; None where it needs standard errors and there are none."""
    options = _flag_rule(rule)
    if "fdr" in options and np.isnan(found.std_errors).any():
        return None
    return mislabels(found, **options)


def values_table(job: Job, found: Estimate) -> pd.DataFrame:
    """One line per player: row (or group and rows), id, value, std_error, ci_low, ci_high, rank, flag."""
    table = found.to_frame().reset_index(drop=True).drop(columns="player")
    if job.group_sizes is None:
        table.insert(0, "row", job.rows)
        if job.ids is not None:
            table.insert(1, "id", job.ids)
    else:
        table.insert(0, "group", list(job.dataset.players or ()))
        table.insert(1, "rows", [job.group_sizes[name] for name in job.dataset.players or ()])
    suspects = flagged(found, job.settings.flag)
    flags = np.full(len(table), "", dtype=object)
    flags[[] if suspects is None else suspects] = "suspect"
    return table.assign(flag=flags)


def run(job: Job, out: Path, *, watch: Watcher | bool = False) -> Estimate:
    """Value, with the ledger in `out`; then write values.csv and run.json there."""
    _make_folder(out)
    started = time.time()
    path = out / "run.db"
    keep = None if path.exists() else ("outcomes" if keeps_predictions(job, job.settings.budget * job.repeats) else "utilities")
    settings = job.settings
    try:
        with Ledger(path, keep=keep) as ledger:
            seconds_before = ledger.seconds()
            if ledger.is_new:
                _write_record(job, out, {"status": "begun"})
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
        lines = str(error).splitlines()
        raise LedgerMismatch("\n".join([*lines[:-1], "Give another --out for this run, or repeat the command that wrote it."])) from error
    write_text(out / "values.csv", values_table(job, found).to_csv(index=False))
    outcome = {
        "status": "finished",
        "evaluations": found.n_evaluations,
        "estimator": found.estimator,
        "seconds": round(time.time() - started, 3),
        "training_seconds": round(trained, 3),
        "training_seconds_now": round(trained - seconds_before, 3),
    }
    _write_record(job, out, outcome)
    return found


def reread(ledger: Path, *, notion: str, metric: str | None) -> tuple[Job, Estimate]:
    """Another notion or metric from a run's ledger, without a training."""
    if not ledger.is_file():
        raise InvalidInput(f"there is no ledger `{ledger}`. Give the run.db that `databanzhaf value` wrote.")
    settings = Settings.read(ledger.parent)
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


def _write_record(job: Job, out: Path, outcome: dict[str, Any]) -> None:
    """run.json: what would be needed to run it again."""
    from importlib.metadata import version

    packages = ("numpy", "scipy", "scikit-learn", "pandas", "numba")
    record = {
        "databanzhaf": __version__,
        **outcome,
        "settings": asdict(job.settings),
        "players": job.dataset.n_players,
        "training_rows": job.dataset.n_rows,
        "validation_rows": len(job.dataset.y_val),
        "columns_after_encoding": int(job.dataset.X.shape[1]),
        "task": "classification" if job.classifies else "regression",
        "metric": job.metric,
        "notes": list(job.notes),
        "fingerprint": job.game.fingerprint(),
        "files": {path: _file_digest(Path(path)) for path in (job.settings.data, job.settings.validation) if path},
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
    }
    write_text(out / "run.json", json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the folder `{out}` cannot be made ({error.strerror}). Give another --out.") from error
    if not os.access(out, os.W_OK):
        raise InvalidInput(f"the folder `{out}` cannot be written to. Give another --out, or change its permissions.")


def write_text(path: Path, text: str) -> None:
    """All or nothing: write to a temporary name beside it, then rename."""

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    _replace(path, write)


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise LedgerFailed(f"`{path}` cannot be written ({error.strerror}). Check the folder and the free disk space.") from error
