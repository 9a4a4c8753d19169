"""A table in a file made ready to be valued."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.beginning import repeats_that_pay
from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput
from databanzhaf.evaluations import Evaluations
from databanzhaf.evaluators import Processes, cluster
from databanzhaf.games import Neighbors
from databanzhaf.models import is_classification
from databanzhaf.pipeline import closed, columns, notes
from databanzhaf.pipeline.rows import Model, make_ready
from databanzhaf.pipeline.settings import Settings
from databanzhaf.protocols import Evaluator, Game, IntArray
from databanzhaf.run import design_of
from databanzhaf.tables import clusters, file_digest

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Job:
    """A table made ready: the game, and where its players stand in the user's file.

    Where the rows of some clusters are valued one by one (`shown`), rows, ids, labels and table are
    theirs alone; the other clusters are players, too, but not shown.
    """

    settings: Settings
    game: Game
    dataset: Dataset
    evaluator: Evaluator
    rows: IntArray
    ids: Any
    labels: Any
    group_sizes: dict[Any, int] | None
    classifies: bool
    table: pd.DataFrame
    digests: dict[str, str]
    notes: tuple[str, ...] = field(default=())
    read_as: str = ""
    clusters: Any = None  # the name of each row's cluster
    shown: IntArray | None = None  # the players that are rows, if others are clusters

    @cached_property
    def metric(self) -> str:
        return self.game.fingerprint().get("metric", "unknown")

    @property
    def neighbors(self) -> int | None:
        """How many nearest rows vote, if the values are their closed form; None otherwise."""
        return self.game.k if isinstance(self.game, Neighbors) else None

    @property
    def closed(self) -> bool:
        """Whether the values are known in closed form, so that nothing is trained."""
        return self.neighbors is not None

    @property
    def across(self) -> bool:
        """Whether the rows judge each other."""
        return self.dataset.judges is not None

    @property
    def in_folds(self) -> bool:
        """Whether they do so in folds, since the run's coalitions leave no row outside."""
        if self.closed:
            return False
        settings = self.settings
        how = (settings.notion, settings.budget, settings.seed, settings.estimator)
        return self.across and hasattr(design_of(self.game, *how), "judge_folds")

    @property
    def judges(self) -> str:
        """Who judges, for the end of a sentence."""
        if not self.across:
            return f"{len(self.dataset.y_val):,} validation rows"
        few = len(self.dataset.y_val) < self.dataset.n_rows
        rows = f"{len(self.dataset.y_val):,} of the rows" if few else "the rows themselves"
        return f"{rows}, in five folds" if self.in_folds else rows

    @property
    def who(self) -> str:
        """What gets a value: rows, groups or clusters."""
        if self.group_sizes is None:
            return "rows"
        return "groups" if self.settings.clusters is None else "clusters"

    @cached_property
    def repeats(self) -> int:
        """As asked, else those that a new run would take."""
        settings = self.settings
        if settings.repeats is not None:
            return settings.repeats
        budget = settings.budget
        design = design_of(self.game, settings.notion, budget, settings.seed, settings.estimator)
        return repeats_that_pay(design, self.game.stochastic, budget)

    def continued(self, evaluations: Evaluations | None) -> list[str]:
        """A note if the run continues with random coalitions where a new one would list all."""
        settings = self.settings
        if (
            evaluations is None
            or settings.estimator != "auto"
            or settings.until
            or evaluations.design.size is not None
        ):
            return []
        fresh = design_of(self.game, settings.notion, settings.budget, settings.seed)
        if fresh.size is None:
            return []
        return [
            "This run continues with random coalitions, as it began. A new --out would take all "
            f"{fresh.size:,} of them."
        ]


def prepare(
    settings: Settings, fingerprint: dict[str, str] | None = None, *, trained: bool = False
) -> Job:
    """Read and check everything; writes nothing. With the fingerprint of a game that was played no
    model is made; if it was `trained`, it is that of a model even where a closed form is known.
    """
    settings.check()
    digests = {path: file_digest(path) for path in (settings.data, settings.validation) if path}
    table, texts = columns.read_training(settings)
    columns.check_names(table, settings)
    target = columns.target(table, settings.target, settings.data)
    classifies = _classifies(target, settings)
    ids = columns.ids(table, settings)
    groups = None if settings.groups is None else columns.groups(table, settings.groups)
    special = {settings.target, settings.groups, settings.id}
    left_out = [name for name in table.columns if name in {*special, *settings.drop}]
    of_row = None
    if settings.clusters is not None:
        features, seed = table.drop(columns=left_out), settings.seed
        of_row = clusters(features, target, settings.clusters, classifies=classifies, seed=seed)
        groups = _players(of_row, settings.open)
    in_closed_form = not trained and closed.is_asked(settings, classifies)
    model = Model(
        settings.model,
        settings.metric,
        settings.jobs,
        settings.device,
        fingerprint,
        in_closed_form,
    )
    ready = make_ready(
        table.drop(columns=left_out),
        target,
        model,
        classifies=classifies,
        validation=_validation(settings, texts, target, classifies, left_out),
        fraction=settings.validation_fraction,
        seed=settings.seed,
        groups=groups,
    )
    rows = np.flatnonzero(~ready.held_out).astype(np.int64)
    named = ids if groups is None else ready.dataset.players
    noted = [
        *ready.notes,
        *notes.codes(table, {*left_out} - {settings.target}),
        *(
            notes.classes(settings.target, target, asked=settings.task != "auto")
            if classifies
            else ()
        ),
        *notes.unvalued("clusters" if of_row is not None else f"`{settings.groups}`", groups, rows),
        *([] if in_closed_form else notes.several(settings.notion)),
        *notes.shared(ready.dataset),
        *notes.copies(ready.dataset),
        *notes.formulas(named),
    ]
    job = Job(
        settings,
        ready.game,
        ready.dataset,
        _evaluator(settings, ready.evaluator),
        rows,
        None if ids is None else ids.to_numpy()[rows],
        target[rows],
        None if groups is None else _sizes(groups[rows]),
        classifies,
        table.iloc[rows],
        digests,
        tuple(noted),
        " ".join([ready.read_as, *notes.counts(settings.target, target, classifies)]),
        None if of_row is None else of_row[rows],
    )
    return _opened(job) if settings.open else job


def _classifies(target: Any, settings: Settings) -> bool:
    asked = settings.task == "classification"
    classifies = asked or (settings.task == "auto" and is_classification(target))
    if not classifies and target.dtype.kind not in "iuf":
        raise InvalidInput(
            f"a regression needs numbers in `{settings.target}`",
            got=str(target[:3].tolist()),
            remedy="Write them as plain numbers, without units or currency signs; or use --task "
            "classification if they are classes.",
        )
    return classifies


def _validation(
    settings: Settings, texts: list[str], target: Any, classifies: bool, left_out: list[str]
) -> tuple[Any, Any] | None:
    """The rows of the validation file and their targets; None without one."""
    if settings.validation is None:
        return None
    held = columns.read(settings.validation, settings, texts)
    if settings.target not in held.columns:
        raise InvalidInput(
            f"the validation file `{settings.validation}` must have the target column "
            f"`{settings.target}`",
            remedy="Add it.",
        )
    y_val = columns.target(held, settings.target, settings.validation)
    if (target.dtype.kind in "US") != (y_val.dtype.kind in "US"):
        raise InvalidInput(
            f"`{settings.target}` must be of one kind in both files",
            got=f"{target[:2].tolist()} and {y_val[:2].tolist()}",
            remedy="Write it the same way in both.",
        )
    if classifies and (unseen := np.setdiff1d(y_val, target)).size:
        raise InvalidInput(
            "the validation file must hold classes of the training file only",
            got=f"{unseen[:3].tolist()} in `{settings.target}` as well",
            remedy="Drop those validation rows, or add training rows of that class.",
        )
    return held.drop(columns=[name for name in left_out if name in held.columns]), y_val


def _players(of_row: Any, opened: tuple[str, ...]) -> Any:
    """Who gets a value: clusters, and the rows of those that are opened, one by one."""
    unknown = sorted(set(opened) - set(of_row.tolist()))
    if unknown:
        raise InvalidInput(
            "--open must name clusters",
            got=f"{', '.join(unknown[:3])}; the clusters are {', '.join(np.unique(of_row)[:10])}, "
            "...",
            remedy="A run without --open writes all of them to clusters.csv.",
        )
    rows = np.array([f"row {row}" for row in range(len(of_row))])
    return np.where(np.isin(of_row, opened), rows, of_row)


def _opened(job: Job) -> Job:
    """The job of the rows in opened clusters."""
    places = np.flatnonzero(np.isin(job.clusters, job.settings.open))
    if not len(places):
        raise InvalidInput(
            "--open must name a cluster that has rows to value",
            got="clusters whose rows are all held out",
            remedy="Open others, or hold out fewer rows.",
        )
    return replace(
        job,
        rows=job.rows[places],
        ids=None if job.ids is None else job.ids[places],
        labels=job.labels[places],
        group_sizes=None,
        table=job.table.iloc[places],
        shown=job.dataset.player_of_row[places],
    )


def _sizes(groups: Any) -> dict[Any, int]:
    names, counts = np.unique(groups, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


def _evaluator(settings: Settings, usual: Evaluator) -> Evaluator:
    """Where models are trained, if the settings say so."""
    if settings.cluster is not None:
        return cluster(settings.cluster, n_jobs=settings.jobs, timeout=settings.timeout)
    return usual if settings.timeout is None else Processes(settings.jobs, settings.timeout)
