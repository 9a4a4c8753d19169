"""Cost in advance: how many evaluations a wanted precision takes, by theory and by a pilot on the
user's own data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from databanzhaf import chance, theory
from databanzhaf.designs import describe
from databanzhaf.diagnostics import Checkpoint
from databanzhaf.diagnostics import stability as rank_stability
from databanzhaf.errors import EvaluationFailed, InvalidInput, check_between, check_count
from databanzhaf.estimate import Estimate
from databanzhaf.evaluators import play
from databanzhaf.notions import Banzhaf, LeastCore, each_of
from databanzhaf.pipeline.notes import in_clusters
from databanzhaf.pipeline.preparing import Job
from databanzhaf.pipeline.running import open_ledger
from databanzhaf.protocols import BoolArray, Design, IntArray
from databanzhaf.run import design_of, value

# Metrics whose values lie in [0, 1], as the paper's guarantee assumes.
_BOUNDED = (
    "probability",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "jaccard",
    "roc_auc",
    "average_precision",
)


_NOTHING = (
    "Nothing needs to be planned: the values of nearest neighbours are exact, by a closed form, "
    "and no model is trained."
)
# Below this rank stability a run says what would do.
LOW_STABILITY = 0.5
# The largest number of evaluations that is planned for.
MOST_PLANNED = 100_000_000
# A pilot is made ten times longer, or five evaluations for each player, if that takes no longer.
CHEAP_SECONDS = 10.0


@dataclass(frozen=True)
class Option:
    """A goal and what it costs. `evaluations` is None where the pilot cannot tell."""

    goal: str
    evaluations: int | None
    seconds: float | None
    disk_bytes: float | None
    std_error: float | None
    stability: float | None


@dataclass(frozen=True)
class Plan:
    """What the pilot saw, and the options."""

    players: int
    pilot: int
    seconds_per_evaluation: float
    std_error: float
    signal: float
    memory_bytes: int | None
    options: tuple[Option, ...]
    notes: tuple[str, ...]


def make_plan(
    job: Job,
    *,
    pilot: int = 100,
    epsilon: float | None = None,
    delta: float = 0.05,
    std_error: float | None = None,
    stability: float = 0.9,
) -> Plan:
    r"""Run a pilot and predict.

    The pilot of m₀ evaluations has a median standard error s₀, which falls as the root of the
    evaluations: s(m) = s₀ √(m₀ / m). How well the ranks of two runs of m evaluations would agree
    follows from the pilot's values and these errors (`ranking.expected_agreement`).
    """
    check_count("pilot", pilot, 10)
    if epsilon is not None:
        check_between("epsilon", epsilon, 0, np.inf, "Try 0.1.")
    check_between("delta", delta, 0, 1, "Try 0.05.")
    if std_error is not None:
        check_between("std_error", std_error, 0, np.inf, "Try 0.005.")
    check_between("stability", stability, 0, 1, "Try 0.9.")
    notion, n = job.settings.notion, job.dataset.n_players
    if job.closed:
        return Plan(n, 0, 0.0, 0.0, 0.0, None, (), (_NOTHING,))
    design = design_of(
        job.game, notion, job.settings.budget, job.settings.seed, job.settings.estimator
    )
    everyone = np.ones((1, n), dtype=np.bool_)
    job.game.utility(everyone, np.zeros(1, np.uint64))  # compiles, imports
    if design.size is None:
        units = max(2, -(-pilot // design.unit)) * design.unit
        m0, seconds, size, found = _pilot(job, units)
        longer = max(10 * units, -(-5 * n // design.unit) * design.unit)
        if longer * job.repeats * seconds < CHEAP_SECONDS:
            m0, seconds, size, found = _pilot(job, longer)
        error, signal = _spread(found)
    else:
        m0, seconds, size = _timed(job, design, min(pilot, design.size))
        error, signal, found = float("nan"), 0.0, None

    def agreement(m: float) -> float:
        return float("nan") if found is None else rank_stability(found, np.sqrt(m0 / m))

    def option(goal: str, m: int | None) -> Option:
        if m is None:
            return Option(goal, None, None, None, None, None)
        s = error * np.sqrt(m0 / m)
        agrees = agreement(m)
        return Option(
            goal,
            m,
            m * seconds,
            m * size,
            s if np.isfinite(s) else None,
            agrees if np.isfinite(agrees) else None,
        )

    notes, options = [], []
    if design.size is not None:
        options.append(
            option(
                f"all {design.size:,} coalitions, {job.repeats} times", design.size * job.repeats
            )
        )
    else:
        wanted_error = std_error or signal / 5
        if wanted_error > 0 and np.isfinite(error):
            options.append(
                option(f"std. error {wanted_error:.2g}", _whole(m0 * (error / wanted_error) ** 2))
            )
        goal = f"rank stability {stability:g}"
        wanted = _enough(agreement, stability)
        options.append(option(goal, wanted))
        if wanted is None:
            notes.append(
                f"{m0:,} evaluations cannot tell the values from noise: even {MOST_PLANNED:,} "
                f"would not promise this ranking. Try --pilot {10 * m0}, or value groups of rows "
                "with --groups or --clusters."
            )
        elif m0 < 2 * n * job.repeats:
            notes.append(
                f"A pilot of {m0:,} evaluations for {n:,} {job.who} predicts roughly. Try --pilot "
                f"{5 * n}."
            )
        options.append(option("your --budget", job.settings.budget * job.repeats))
        if isinstance(notion, Banzhaf) and job.metric.startswith(_BOUNDED):
            epsilon = epsilon or signal or 0.1
            goal = f"proof: error below {epsilon:.2g} at {1 - delta:.0%}"
            options.append(option(goal, _whole(theory.samples_needed(n, epsilon, delta))))
            notes.append("The last line is what the paper's proof asks for whatever the data.")
        else:
            notes.append(
                "There is no line for the paper's guarantee: it holds for runs for Banzhaf values "
                "alone, by a metric between 0 and 1."
            )
    first, *others = each_of(notion)
    if others:
        notes.append(
            f"Errors and stability are those of {first.name} values; other notions have their own."
        )
    if isinstance(notion, LeastCore):
        notes.append("The least core has no standard errors; only time can be predicted.")
    return Plan(n, m0, seconds, error, signal, _peak_memory(), tuple(options), tuple(notes))


def forecast(job: Job, checkpoint: Checkpoint, total: int, seconds: float) -> list[str]:
    """What the first evaluations of a run promise for all of them: rank stability and time; and, if
    that is little, what would do. `seconds` is what they took.
    """
    found = checkpoint.estimate if job.shown is None else checkpoint.estimate.of(job.shown)
    done = found.n_evaluations
    agrees = rank_stability(found, np.sqrt(done / total))
    if not np.isfinite(agrees) or done >= total:
        return []
    time_left = in_words(seconds * (total - done) / done)
    said = f"After {total:,} evaluations ({time_left} of training left) another run would agree "
    several = f" by {found.notion.name}" if len(each_of(job.settings.notion)) > 1 else ""
    said += f"with the ranking of the {job.who}{several} at a rank correlation of roughly "
    said += f"{max(agrees, 0.0):.1f}."
    if agrees >= LOW_STABILITY:
        return [said]
    wanted = _enough(lambda m: rank_stability(found, np.sqrt(done / m)), LOW_STABILITY)
    lines = [said, f"That is too little to compare single {job.who}; the lowest settle first."]
    if wanted is not None:
        cost = in_words(seconds * wanted / done)
        budget = two_digits(wanted // job.repeats)
        lines.append(f"--budget {budget} would reach {LOW_STABILITY:g} in {cost}, roughly.")
    return [
        " ".join(
            [*lines, *([] if job.shown is not None else in_clusters(job.dataset, job.settings))]
        )
    ]


def two_digits(number: int) -> int:
    """Rounded up, since a forecast knows no more.

    >>> two_digits(5134), two_digits(85918), two_digits(7)
    (5200, 86000, 7)
    """
    unit = int(10 ** max(0, len(str(number)) - 2))
    return -(-number // unit) * unit


def in_words(seconds: float) -> str:
    """A duration as people say it."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            return f"about {seconds / size:,.0f} {unit}"
    return "about a second" if seconds < 1.5 else f"about {seconds:,.0f} seconds"


def _pilot(job: Job, budget: int) -> tuple[int, float, float, Estimate]:
    """Evaluations; seconds and bytes on disk for each; and what they say."""
    settings = job.settings
    with _on_disk(job, budget) as (path, written):
        start = time.perf_counter()
        with open_ledger(path, job) as ledger:
            found = value(
                job.game,
                settings.notion,
                budget=budget,
                ledger=ledger,
                estimator=settings.estimator,
                repeats=job.repeats,
                seed=settings.seed,
                evaluator=job.evaluator,
            )
        seconds = time.perf_counter() - start
        return (
            found.n_evaluations,
            seconds / found.n_evaluations,
            written() / found.n_evaluations,
            found,
        )


def _timed(job: Job, design: Design, count: int) -> tuple[int, float, float]:
    """Evaluations spread evenly over a design's coalitions; seconds and bytes on disk for each."""
    indices = np.unique(np.linspace(0, (design.size or 1) - 1, count).astype(np.int64))
    m = len(indices)
    keys, repeats = chance.keys(job.settings.seed, chance.TRAINING, indices), np.zeros(m, np.int64)

    def coalitions(positions: IntArray) -> BoolArray:
        return design.coalitions(indices[positions])

    with _on_disk(job, job.settings.budget) as (path, written):
        with open_ledger(path, job) as ledger:
            keep, start = ledger.keep == "outcomes", time.perf_counter()
            how = (job.game, job.evaluator, coalitions, keys, indices, repeats)
            try:
                batch = play(*how, keep_outcomes=keep)
            except EvaluationFailed as error:
                raise InvalidInput(
                    f"the model fails on this data ({error.reason})",
                    remedy="Fix it, or choose another --model.",
                ) from error
            ledger.append(indices, repeats, batch.utilities, batch.seconds, batch.outcomes)
            seconds = time.perf_counter() - start
        return m, seconds / m, written() / m


@contextmanager
def _on_disk(job: Job, budget: int) -> Iterator[tuple[Path, Callable[[], int]]]:
    """A ledger as the run would have, in a temporary folder, and a function that says by how many
    bytes it has grown.
    """
    settings = job.settings
    design = design_of(job.game, settings.notion, budget, settings.seed, settings.estimator)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with open_ledger(path, job) as ledger:
            ledger.bind(
                job.game.fingerprint(),
                describe(design),
                seed=settings.seed,
                stochastic=job.game.stochastic,
                players=job.game.players,
            )
        before = path.stat().st_size
        yield path, lambda: path.stat().st_size - before


def _spread(found: Estimate) -> tuple[float, float]:
    """(median standard error, spread of the true values as far as the pilot can tell)."""
    known = np.isfinite(found.std_errors)
    if not known.any():
        return float("nan"), 0.0
    error = float(np.median(found.std_errors[known]))
    deviation = 1.4826 * float(np.median(np.abs(found.values - np.median(found.values))))
    clear = 2 * 2.33 * deviation**2 / np.sqrt(len(found.values))
    return error, float(
        np.sqrt(deviation**2 - error**2)
    ) if deviation**2 - error**2 > clear else 0.0


def _enough(agreement: Callable[[float], float], wanted: float) -> int | None:
    """The fewest evaluations, to a hundredth, for which two runs would agree so well; None if not
    even the most would do.
    """
    low, high = np.log(10.0), np.log(float(MOST_PLANNED))
    if not agreement(MOST_PLANNED) >= wanted:
        return None
    while high - low > 0.01:
        middle = (low + high) / 2
        if agreement(np.exp(middle)) >= wanted:
            high = middle
        else:
            low = middle
    return _whole(np.exp(high))


def _whole(m: float) -> int:
    if m > 1e15:
        raise InvalidInput(
            "the goal would take more than 1e15 evaluations", remedy="Ask for less precision."
        )
    return int(np.ceil(m))


def _peak_memory() -> int | None:
    """Peak memory of this process and its largest worker, bytes; None where the system does not
    tell.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * sum(
        resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
