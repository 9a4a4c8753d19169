"""From a game to values: the verbs `value` and `estimate`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from databanzhaf.beginning import begun, check_notion, check_shard, chosen_for
from databanzhaf.diagnostics import Checkpoint
from databanzhaf.estimate import Estimate
from databanzhaf.estimators import ClosedForm, choice
from databanzhaf.evaluations import Evaluations
from databanzhaf.evaluators import Local
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.notions import each_of
from databanzhaf.population import with_jury
from databanzhaf.progress import Watcher
from databanzhaf.protocols import (
    ClosedGame,
    Design,
    Estimator,
    Evaluator,
    Game,
    JudgedGame,
    Notion,
)
from databanzhaf.until import Condition


@overload
def value(
    game: Game,
    notion: Notion | None = None,
    *,
    estimator: str | Estimator = "auto",
    budget: int = 2000,
    repeats: int | None = 1,
    seed: int = 0,
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    until: Condition | None = None,
    progress: bool | Watcher = False,
) -> Estimate: ...


@overload
def value(
    game: Game,
    notion: Sequence[Notion],
    *,
    estimator: str | Estimator = "auto",
    budget: int = 2000,
    repeats: int | None = 1,
    seed: int = 0,
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    until: Condition | None = None,
    progress: bool | Watcher = False,
) -> list[Estimate]: ...


def value(
    game: Game,
    notion: Notion | Sequence[Notion] | None = None,
    *,
    estimator: str | Estimator = "auto",
    budget: int = 2000,
    repeats: int | None = 1,
    seed: int = 0,
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    until: Condition | None = None,
    progress: bool | Watcher = False,
) -> Estimate | list[Estimate]:
    """Give every player of a game its value.

    Parameters
    ----------
    game : games.Table, games.Function, games.Learner, or your own
    notion : Notion or list of semivalues
        By default Banzhaf(). For a list, such as ``[Banzhaf(), Shapley()]``, one run serves all,
        and a list of estimates is returned, in this order.
    estimator : str or estimator
        "auto" takes "exact" when 2**n coalitions fit in the budget, "regression" for Banzhaf
        values, "regression:sizes" for the other semivalues and for several of them,
        "leave_one_out" and "least_core" for theirs; for games.Neighbors without a ledger
        "closed_form", which needs no evaluation. Also "reuse" (the paper's estimator of Banzhaf
        values), "permutation", "marginal" and "group_testing", or an object such as
        ``estimators.Permutation(truncation=0.01)``.
    budget : int
        Coalitions to evaluate; trainings are budget times repeats. Permutations are taken whole;
        leave-one-out always takes its n + 1 and "exact" its 2**n.
    repeats : int, optional
        Trainings of each coalition, with different keys; their utilities are averaged. None takes
        `repeats_that_pay`.
    seed : int
        Decides every coalition and every training, whatever the batch size, worker count or
        machine.
    ledger : path or Ledger, optional
        Where evaluations are kept. The same call again evaluates only what is missing; a larger
        budget, or more repeats, continues the run, with the design that it began with.
    evaluator : optional
        ``evaluators.Processes(n_jobs=2)``; by default this process.
    until : optional
        A condition from `until` that may stop the run before the budget is spent; "auto" then
        samples, even where it could list all coalitions. It must hold for each of several notions.
    progress : bool or function
        Show a progress bar; or call ``function(done, total, checkpoints)`` after each batch, with
        the checkpoints so far. The batch is in the ledger by then, so that an exception raised
        there stops the run and loses nothing.

    >>> from databanzhaf import games
    >>> value(games.Table([0, 0, 0, 1])).values
    array([0.5, 0.5])
    >>> from databanzhaf import Banzhaf, Shapley
    >>> [each.values for each in value(games.Table([0, 0, 0, 1]), [Banzhaf(), Shapley()])]
    [array([0.5, 0.5]), array([0.5, 0.5])]
    """
    finished = finish(
        game,
        notion,
        estimator=estimator,
        budget=budget,
        repeats=repeats,
        seed=seed,
        ledger=ledger,
        evaluator=evaluator,
        until=until,
        progress=progress,
    )
    several = isinstance(notion, (list, tuple))
    return [finished.estimate, *finished.others] if several else finished.estimate


@dataclass(frozen=True, eq=False)
class Finished:
    """What a run leaves: its estimate, the evaluations behind it (None for a closed form), how it
    stood on the way, and the estimates of further notions.
    """

    estimate: Estimate
    evaluations: Evaluations | None
    checkpoints: tuple[Checkpoint, ...]
    others: tuple[Estimate, ...] = ()


def finish(
    game: Game,
    notion: Notion | Sequence[Notion] | None = None,
    *,
    estimator: str | Estimator = "auto",
    budget: int = 2000,
    repeats: int | None = 1,
    seed: int = 0,
    ledger: str | Path | Ledger | None = None,
    evaluator: Evaluator | None = None,
    until: Condition | None = None,
    progress: bool | Watcher = False,
    checkpoints: bool = False,
) -> Finished:
    """`value`, with everything that the run leaves; with `checkpoints` also how it went."""
    notion = check_notion(notion)
    known = isinstance(game, ClosedGame) and all(map(ClosedForm().gives, each_of(notion)))
    if known and estimator == "auto" and ledger is None and until is None:
        estimator = ClosedForm()
    if estimator == "closed_form" or isinstance(estimator, ClosedForm):
        first, *others = (ClosedForm().values(game, each) for each in each_of(notion))
        return Finished(first, None, (), tuple(others))
    with ExitStack() as stack:
        run = begun(
            stack,
            game,
            notion,
            estimator=estimator,
            budget=budget,
            repeats=repeats,
            seed=seed,
            ledger=ledger,
            evaluator=evaluator,
            until=until,
            progress=progress,
        )
        reached = run.complete(evaluator or Local(), until, progress, checkpoints)
        evaluations = run.evaluations()
        # The last checkpoint is the end, unless a deadline came after it.
        ends = [] if run.stood is None else [run.stood.estimate]
        if any(each.n_evaluations != evaluations.n_evaluations for each in ends):
            ends = []
        rest = [run.estimator(evaluations, each) for each in run.notions[len(ends) :]]
        first, *others = (with_jury(each, evaluations) for each in [*ends, *rest])
        return Finished(first, evaluations, tuple(reached), tuple(others))


def evaluate(
    game: Game,
    notion: Notion | Sequence[Notion] | None = None,
    *,
    shard: tuple[int, int],
    ledger: str | Path | Ledger,
    estimator: str | Estimator = "auto",
    budget: int = 2000,
    repeats: int | None = 1,
    seed: int = 0,
    evaluator: Evaluator | None = None,
    progress: bool | Watcher = False,
) -> int:
    """Evaluate one share of a run into a ledger of its own, and return how many evaluations it has.

    `shard` is (k, count): the k-th of `count` shares, from 1. Shares are blocks of indices, dealt
    out in turn, so that a larger budget continues each of them. `databanzhaf ledger merge` joins
    their ledgers, and `value` with the joined one evaluates what is missing and gives the values.
    The other parameters are those of `value`.
    """
    number, count = check_shard(shard)
    with ExitStack() as stack:
        run = begun(
            stack,
            game,
            notion,
            estimator=estimator,
            budget=budget,
            repeats=repeats,
            seed=seed,
            ledger=ledger,
            evaluator=evaluator,
            until=None,
            progress=progress,
        )
        run.take(number - 1, count)
        run.complete(evaluator or Local(), None, progress, checkpoints=False)
        return run.done


@overload
def estimate(
    source: str | Path | Ledger | Evaluations,
    notion: Notion | None = None,
    *,
    estimator: str | Estimator = "auto",
    game: Game | None = None,
) -> Estimate: ...


@overload
def estimate(
    source: str | Path | Ledger | Evaluations,
    notion: Sequence[Notion],
    *,
    estimator: str | Estimator = "auto",
    game: Game | None = None,
) -> list[Estimate]: ...


def estimate(
    source: str | Path | Ledger | Evaluations,
    notion: Notion | Sequence[Notion] | None = None,
    *,
    estimator: str | Estimator = "auto",
    game: Game | None = None,
) -> Estimate | list[Estimate]:
    """Read a run again for another notion, or for several, without a training.

    Parameters
    ----------
    source : ledger's path, Ledger or Evaluations
    notion : optional
        Any that the run's design identifies (all semivalues, from a run for several or from
        permutations); by default Banzhaf(). For a list a list is returned.
    estimator : str or estimator
        "auto" takes the one that belongs to the run's design.
    game : optional
        The same game with another metric: its utilities are computed from the outcomes that the
        ledger kept.
    """
    several, notions = isinstance(notion, (list, tuple)), each_of(check_notion(notion))
    evaluations = read_evaluations(source, game)
    found = [
        with_jury(choice.natural(estimator, evaluations, each)(evaluations, each), evaluations)
        for each in notions
    ]
    return found if several else found[0]


def estimator_for(name: str, notion: Notion) -> str:
    """The estimator of this name if it gives the notion, else "auto"."""
    named = choice.by_name(name)
    return name if named is not None and named.gives(notion) else "auto"


def design_of(
    game: Game,
    notion: Notion,
    budget: int,
    seed: int = 0,
    estimator: str | Estimator = "auto",
) -> Design:
    """The design that `value` would evaluate."""
    n, seating = game.n_players, game.seating if isinstance(game, JudgedGame) else None
    return chosen_for(estimator, notion, n, budget, seating).design(notion, n, seed)
