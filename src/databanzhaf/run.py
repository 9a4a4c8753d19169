"""From a game to values: the verbs `value` and `estimate`."""

from __future__ import annotations

import os
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf import chance, designs
from databanzhaf.diagnostics import Checkpoint
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.estimate import Estimate
from databanzhaf.estimators import choice
from databanzhaf.evaluations import Evaluations
from databanzhaf.evaluators import Local
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.loop import Run
from databanzhaf.notions import Banzhaf, SizeWeighted
from databanzhaf.population import with_jury
from databanzhaf.progress import Watcher
from databanzhaf.protocols import Design, Estimator, Evaluator, Game, JudgedGame, Notion
from databanzhaf.until import Condition
from databanzhaf.verdicts import Seating

# A model's predictions are kept if they need no more disk than this. The budget has no part in it:
# a run that is continued must equal one that was not.
LARGEST_KEPT_BYTES = 32 * 2**10
_MOST_EVALUATIONS = 10**9
# The utilities of a run, which of them are there, and the copy that an estimator reads.
_BYTES_PER_EVALUATION = 32


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
) -> Estimate:
    """Give every player of a game its value.

    Parameters
    ----------
    game : games.Table, games.Function, games.Learner, or your own
    notion : by default Banzhaf()
    estimator : str or estimator
        "auto" takes "exact" when 2**n coalitions fit in the budget, "regression" for Banzhaf
        values, "permutation" for the other semivalues, "leave_one_out" and "least_core" for
        theirs. Also "reuse" (the paper's estimator of Banzhaf values),
        "marginal" and "group_testing", or an object such as
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
        samples, even where it could list all coalitions.
    progress : bool or function
        Show a progress bar; or call ``function(done, total, checkpoints)`` after each batch, with
        the checkpoints so far. The batch is in the ledger by then, so that an exception raised
        there stops the run and loses nothing.

    >>> from databanzhaf import games
    >>> value(games.Table([0, 0, 0, 1])).values
    array([0.5, 0.5])
    """
    return finish(
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
    ).estimate


@dataclass(frozen=True, eq=False)
class Finished:
    """What a run leaves: its estimate, the evaluations behind it, and how it stood on the way."""

    estimate: Estimate
    evaluations: Evaluations
    checkpoints: tuple[Checkpoint, ...]


def finish(
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
    checkpoints: bool = False,
) -> Finished:
    """`value`, with everything that the run leaves; with `checkpoints` also how it went."""
    notion = _check_notion(notion)
    _check_game(game)
    _check_kind("until", until, Condition, "until", "Try until.ranking_stable(0.9).")
    _check_kind("evaluator", evaluator, Evaluator, "evaluators", "Try evaluators.Processes(2).")
    if not isinstance(progress, bool) and not callable(progress):
        raise InvalidInput(
            "`progress` must be True, False or a function",
            got=short(progress),
            remedy="Pass progress=True for a bar.",
        )
    budget, seed = check_count("budget", budget), chance.check_seed(seed)
    if isinstance(notion, SizeWeighted):
        # Weights that cannot be used are refused before anything is trained.
        notion.log_size_law(game.n_players)
    with ExitStack() as stack:
        store = ledger if isinstance(ledger, Ledger) else stack.enter_context(Ledger(ledger))
        n = game.n_players
        seating = game.seating if isinstance(game, JudgedGame) else None
        chosen = _chosen(estimator, notion, n, budget if until is None else 0, seating)
        if estimator == "auto" and not store.is_new:
            chosen = choice.begun_with(store.design, notion, n, seed, seating) or chosen
        design = chosen.design(notion, n, seed)
        if repeats is None:
            repeats = repeats_that_pay(design, game.stochastic, budget)
        repeats, total = check_count("repeats", repeats), _affordable(design, budget)
        if until is not None and design.size is not None:
            raise InvalidInput(
                f"`until` cannot stop {chosen.name}, which needs all of its {design.size} "
                "coalitions",
                remedy="Leave `until` out.",
            )
        _check_room(total * repeats)
        _warn_of_captured_variables(game, store)
        store.bind(
            game.fingerprint(),
            designs.describe(design),
            seed=seed,
            stochastic=game.stochastic,
            players=game.players,
            keep=_keep(game, store),
        )
        run = Run(game, design, store, repeats, seed, total, chosen, notion)
        reached = run.complete(evaluator or Local(), until, progress, checkpoints)
        evaluations = run.evaluations()
        found = with_jury(chosen(evaluations, notion), evaluations)
        return Finished(found, evaluations, tuple(reached))


def estimate(
    source: str | Path | Ledger | Evaluations,
    notion: Notion | None = None,
    *,
    estimator: str | Estimator = "auto",
    game: Game | None = None,
) -> Estimate:
    """Read a run again for another notion, without a training.

    Parameters
    ----------
    source : ledger's path, Ledger or Evaluations
    notion : optional
        Any that the run's design identifies (all semivalues from permutations); by default
        Banzhaf().
    estimator : str or estimator
        "auto" takes the one that belongs to the run's design.
    game : optional
        The same game with another metric: its utilities are computed from the outcomes that the
        ledger kept.
    """
    notion = _check_notion(notion)
    evaluations = read_evaluations(source, game)
    found = choice.natural(estimator, evaluations, notion)(evaluations, notion)
    return with_jury(found, evaluations)


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
    return _chosen(estimator, notion, n, budget, seating).design(notion, n, seed)


def _chosen(
    estimator: str | Estimator, notion: Notion, n: int, budget: int, seating: Seating | None
) -> Estimator:
    """The estimator of a new run; each fold of a jury has its share of the budget."""
    share = budget // seating.count if seating is not None and seating.within else budget
    return choice.in_folds(choice.for_run(estimator, notion, n, share), notion, n, seating)


def repeats_that_pay(design: Design, stochastic: bool, budget: int) -> int:
    """One; but where every coalition is evaluated (exact, leave-one-out) as many as the budget pays
    for, from 2 to 64.

    Then nothing but training noise makes a value uncertain, and repeats measure it.
    """
    return (
        1 if design.size is None or not stochastic else int(np.clip(budget // design.size, 2, 64))
    )


def _keep(game: Game, ledger: Ledger) -> str:
    """What a new ledger keeps if it was not asked for anything: outcomes if they are small, so that
    the metric can change later and intervals count the jury.
    """
    if not isinstance(game, JudgedGame):
        return "utilities"
    across = game.jury is not None and game.jury.across
    if across and ledger.keep == "utilities" and ledger.asked_keep == "utilities":
        raise InvalidInput(
            "`keep` must be left out where rows judge each other: values need what each row says "
            "of each model",
            got="scores only",
            remedy="Leave it out, or give validation rows.",
        )
    small = game.outcome_bytes <= LARGEST_KEPT_BYTES
    return "outcomes" if across or small else "utilities"


def _check_kind(name: str, thing: object, kind: Any, room: str, remedy: str) -> None:
    if thing is not None and (isinstance(thing, type) or not isinstance(thing, kind)):
        raise InvalidInput(
            f"`{name}` must be an object from databanzhaf.{room}", got=short(thing), remedy=remedy
        )


def _check_game(game: object) -> None:
    if not isinstance(game, Game):
        raise InvalidInput(
            "`game` must turn coalitions into utility",
            got=f"{type(game).__name__}",
            remedy="Pass a databanzhaf.games object.",
        )
    check_count("game.n_players", game.n_players)


def _check_notion(notion: Notion | None) -> Notion:
    if notion is None:
        return Banzhaf()
    if isinstance(notion, type):
        raise InvalidInput(
            "`notion` must be an instance",
            got=f"the class {notion.__name__}",
            remedy=f"Add the brackets: {notion.__name__}().",
        )
    if not isinstance(notion, Notion):
        raise InvalidInput(
            "`notion` must be a value notion",
            got=short(notion),
            remedy="Pass Banzhaf(), Shapley(), Beta(16, 1), LeaveOneOut(), ...",
        )
    return notion


def _affordable(design: Design, budget: int) -> int:
    """How many indices the budget buys: all of a finite design, whole units of an endless one."""
    if design.size is not None:
        return design.size
    total = budget // design.unit * design.unit
    if not total:
        kind, folds = type(design).__name__, ""
        if isinstance(design, designs.Folds):
            kind, folds = type(design.designs[0]).__name__, ", one for each fold of the jury"
        raise InvalidInput(
            f"`budget` must pay for {design.unit} coalitions that belong together in a "
            f"{kind} design{folds}",
            got=f"{budget}",
            remedy=f"Pass budget={design.unit} or more.",
        )
    return total


def _check_room(evaluations: int) -> None:
    """Refuse a budget whose utilities alone do not fit in memory."""
    if evaluations > _MOST_EVALUATIONS:
        raise InvalidInput(
            f"`budget` times `repeats` must be at most {_MOST_EVALUATIONS:,}",
            got=f"{evaluations:,}",
            remedy="Lower the budget.",
        )
    needed, there = _BYTES_PER_EVALUATION * evaluations, _memory()
    if needed > there:
        raise InvalidInput(
            f"`budget` times `repeats` must fit in memory; {evaluations:,} evaluations need "
            f"{needed / 2**30:,.1f} GiB, and there are "
            f"{there / 2**30:,.1f} GiB",
            remedy="Lower the budget: a larger one continues the run.",
        )


def _memory() -> float:
    """Bytes of memory that this process may have at most; infinite where the system does
    not say.
    """
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ImportError):  # Windows has none
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((limit for limit in limits if limit > 0), default=float("inf"))


def _warn_of_captured_variables(game: Game, ledger: Ledger) -> None:
    captured = getattr(game, "captured", ())
    if captured and ledger.path is not None:
        warnings.warn(
            "the ledger knows a function by its name and code, and cannot see what it captures "
            f"({', '.join(captured)}). "
            "When that changes, use a new ledger, or games.Function(n, function, name=...) with a "
            "new name.",
            stacklevel=3,
        )
