"""A table whose labels are in doubt: settings → case → result, and the folder of the run."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf._version import __version__
from databanzhaf.errors import InvalidInput, LedgerMismatch, check_between, check_count
from databanzhaf.files import write_text
from databanzhaf.labels import Case, Mislabels, bind, judge
from databanzhaf.labels import prepare as prepare_case
from databanzhaf.ledger import Ledger
from databanzhaf.models import is_classification
from databanzhaf.pipeline import columns, notes, outputs
from databanzhaf.pipeline.record import machine, versions
from databanzhaf.pipeline.settings import Settings
from databanzhaf.pipeline.standing import Start
from databanzhaf.protocols import IntArray
from databanzhaf.tables import file_digest
from databanzhaf.tables.decisions import file_fingerprint, read_sidecar, unused_sidecar

if TYPE_CHECKING:
    import pandas as pd

OUTPUTS = ("mislabels.csv", "run.db", "run.json", "report.html")


@dataclass(frozen=True)
class LabelSettings:
    """Whose labels to judge, by which models. `source` says how the table is read; its validation
    file is that of checked rows.
    """

    source: Settings
    models: tuple[str, ...] = ("auto",)
    budget: int | None = None
    fdr: float = 0.2

    def check(self) -> None:
        self.source.check()
        check_between("fdr", self.fdr, 0, 1, "Try 0.2.")
        if self.budget is not None:
            check_count("budget", self.budget)

    @property
    def reading(self) -> tuple[str, ...]:
        """The options that say how the table is read."""
        usual, parts = Settings("", ""), []
        for name in ("encoding", "separator", "decimal"):
            if getattr(self.source, name) != getattr(usual, name):
                parts += [f"--{name}", str(getattr(self.source, name))]
        return tuple(parts)

    def words(self) -> dict[str, Any]:
        """For run.json."""
        names = ("data", "target", "task", "id", "drop", "text", "encoding", "separator", "decimal")
        source = asdict(self.source)
        words = {name: source[name] for name in (*names, "jobs", "device", "seed")}
        own = {"models": list(self.models), "budget": self.budget, "fdr": self.fdr}
        return {**words, "checked": self.source.validation, **own}

    def command(self, folder: Path) -> str:
        """What to type to make the run again."""
        source, usual = self.source, Settings("", "")
        parts: list[str] = ["databanzhaf", "mislabels", source.data, "--target", source.target]
        parts += ["--checked", source.validation] if source.validation else []
        parts += self.reading
        for name in ("task", "id", "jobs", "device", "seed"):
            if getattr(source, name) != getattr(usual, name):
                parts += [f"--{name}", str(getattr(source, name))]
        for option, names in (("--drop", source.drop), ("--text", source.text)):
            for name in names:
                parts += [option, name]
        for model in () if self.models == ("auto",) else self.models:
            parts += ["--model", model]
        parts += [] if self.budget is None else ["--budget", str(self.budget)]
        parts += [] if self.fdr == LabelSettings.fdr else ["--fdr", f"{self.fdr:g}"]
        return shlex.join([*parts, "--out", str(folder)])


@dataclass(frozen=True, eq=False)
class LabelJob:
    """A table made ready to be judged; nothing was written. `known` are rows that an earlier review
    decided.
    """

    settings: LabelSettings
    case: Case
    table: pd.DataFrame
    features: pd.DataFrame
    ids: Any
    known: IntArray
    digests: dict[str, str]
    notes: tuple[str, ...] = field(default=())

    @property
    def read_as(self) -> str:
        """The columns and classes as they were read."""
        classifies = self.case.classes is not None
        counts = notes.counts(self.settings.source.target, self.case.labels, classifies)
        return " ".join([self.case.judges.read_as, *counts])


@dataclass(frozen=True, eq=False)
class LabelResult:
    """What one run found, and its job; `trained` counts the models of this call, not those that the
    ledger had.
    """

    job: LabelJob
    found: Mislabels
    table: pd.DataFrame
    seconds: float
    trained: int

    @property
    def fingerprint(self) -> str:
        """Of the table's file, as decisions name it."""
        return file_fingerprint(self.job.settings.source.data)


def prepare_labels(settings: LabelSettings) -> LabelJob:
    """Read and check everything; train and write nothing."""
    settings.check()
    source = settings.source
    digests = {path: file_digest(path) for path in (source.data, source.validation) if path}
    table, texts = columns.read_training(source)
    columns.check_names(table, source)
    target = columns.target(table, source.target, source.data)
    ids = columns.ids(table, source)
    left_out = [name for name in table.columns if name in {source.target, source.id, *source.drop}]
    features = table.drop(columns=left_out)
    if not len(features.columns):
        raise InvalidInput(
            "the table must have a column to predict the labels from",
            got=f"the columns {', '.join(map(str, table.columns[:10]))}",
            remedy="Leave out fewer with --drop.",
        )
    classifies = source.task == "classification" or (
        source.task == "auto" and is_classification(target)
    )
    checked = _checked(source, texts, features)
    known, before = _decided(source, target)
    case = prepare_case(
        features.set_axis(range(len(features))),
        target,
        *checked,
        checked=known,
        before=before,
        models=list(settings.models),
        task="classification" if classifies else "regression",
        seed=source.seed,
        n_jobs=source.jobs,
        device=source.device,
    )
    asked = source.task != "auto"
    said = [
        *case.judges.notes,
        *case.notes,
        *notes.codes(table, {*left_out} - {source.target}),
        *(notes.classes(source.target, target, asked=asked) if classifies else ()),
        *notes.formulas(ids),
        *_of_known(known, source.data),
        *([unused] if (unused := unused_sidecar(source.data, source.target)) else []),
    ]
    names = None if ids is None else ids.to_numpy()
    return LabelJob(settings, case, table, features, names, known, digests, tuple(said))


def _checked(source: Settings, texts: list[str], features: Any) -> tuple[Any, Any]:
    """The checked rows and their labels."""
    if source.validation is None:
        return None, None
    held = columns.read(source.validation, source, texts)
    if source.target not in held.columns:
        raise InvalidInput(
            f"the file of checked rows `{source.validation}` must have the target column "
            f"`{source.target}`",
            remedy="Add it.",
        )
    absent = [name for name in features.columns if name not in held.columns]
    if absent:
        raise InvalidInput(
            "the checked rows must have the table's columns",
            got=f"none called {', '.join(f'`{name}`' for name in absent[:5])}",
            remedy="Add what is missing, or leave it out with --drop.",
        )
    labels = columns.target(held, source.target, source.validation)
    return held[list(features.columns)], labels


def _decided(source: Settings, target: Any) -> tuple[IntArray, Any]:
    """The rows that a review decided before this copy of the table was written, and all labels as
    they were before it.
    """
    found = read_sidecar(source.data, source.target)
    made = () if found is None else found.made
    before = np.array(target)
    texts = {str(label): label for label in np.unique(target)}
    for each in made:
        if each.was in texts and each.row < len(before):
            before[each.row] = texts[each.was]
    return np.array(sorted(each.row for each in made), dtype=np.int64), before


def _of_known(known: IntArray, data: str) -> list[str]:
    if not len(known):
        return []
    rows = "row was" if len(known) == 1 else "rows were"
    return [
        f"{len(known):,} {rows} decided in an earlier review of `{Path(data).name}` and counted as "
        "checked."
    ]


def default_folder(data: Path) -> Path:
    """runs/NAME-labels: apart from the folder of a `value` run."""
    return Path("runs") / f"{data.stem}-labels"


def run_labels(
    job: LabelJob, out: Path, *, watch: Callable[[int, int], None] | None = None
) -> LabelResult:
    """Judge every row, with the ledger in `out`; then write mislabels.csv and run.json there."""
    source = job.settings.source
    for name in OUTPUTS:
        outputs.check_not_input(out / name, [source.data, source.validation])
    outputs.make_folder(out)
    started, start = time.time(), None  # type: float, Start | None

    def watching(done: int, total: int) -> None:
        nonlocal start
        if start is None:
            start = Start(time.time(), before, total)
            _write_record(job, out, status="running", start=start)
        if watch is not None:
            watch(done, total)

    try:
        with Ledger(out / "run.db", keep="outcomes") as ledger:
            bind(job.case, ledger)  # a folder of another run is refused before it is touched
            before = ledger.count()
            found = judge(
                job.case,
                budget=job.settings.budget,
                fdr=job.settings.fdr,
                ledger=ledger,
                progress=watching,
            )
            trained = (ledger.count() - before) * len(found.judges)
    except LedgerMismatch as error:
        raise error.with_remedy("Give another --out, or the settings of that run.") from error
    except KeyboardInterrupt:
        if start is not None:
            _write_record(job, out, status="stopped", start=start)
        raise
    table = found.table()
    if job.ids is not None:
        table["id"] = job.ids
    outputs.write_table(out / "mislabels.csv", table)
    result = LabelResult(job, found, table, time.time() - started, trained)
    _write_record(job, out, status="finished", start=start, result=result)
    return result


def _write_record(
    job: LabelJob,
    out: Path,
    *,
    status: str,
    start: Start | None,
    result: LabelResult | None = None,
) -> None:
    """run.json: what would be needed to run it again."""
    known: dict[str, Any] = {}
    if result is not None:
        found = result.found
        known = {
            "flagged": int(found.flag.sum()),
            "share": None if not found.learned else list(found.share),
            "found_of_100": found.found_of_100,
            "trainings": found.n_trainings,
            "judges": list(found.judges),
            "seconds": round(result.seconds, 3),
        }
    written = {
        "databanzhaf": __version__,
        "command": "mislabels",
        "status": status,
        "start": None if start is None else start.words(),
        **known,
        "settings": job.settings.words(),
        "rows": len(job.case.labels),
        "checked_rows": job.case.n_checked,
        "notes": list(job.notes),
        "files": job.digests,
        "versions": versions(),
        "machine": machine(),
    }
    text = json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False)
    write_text(out / "run.json", text + "\n")
