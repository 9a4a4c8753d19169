"""What a run needs before its first evaluation: everything is checked, and the ledger is bound."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf import chance, designs
from databanzhaf.errors import InvalidInput, check_count, short
from databanzhaf.estimators import choice
from databanzhaf.estimators.folds import InFolds
from databanzhaf.ledger import Ledger
from databanzhaf.loop import Run
from databanzhaf.notions import Banzhaf, SizeWeighted, Together, each_of
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


def begun(
    stack: ExitStack,
    game: Game,
    notion: Notion | Sequence[Notion] | None,
    *,
    estimator: str | Estimator,
    budget: int,
    repeats: int | None,
    seed: int,
    ledger: str | Path | Ledger | None,
    evaluator: Evaluator | None,
    until: Condition | None,
    progress: bool | Watcher,
) -> Run:
    """A run whose ledger is bound; everything is checked."""
    notion = check_notion(notion)
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
    for each in each_of(notion):
        if isinstance(each, SizeWeighted):
            # Weights that cannot be used are refused before anything is trained.
            each.log_size_law(game.n_players)
    store = ledger if isinstance(ledger, Ledger) else stack.enter_context(Ledger(ledger))
    n = game.n_players
    seating = game.seating if isinstance(game, JudgedGame) else None
    chosen = chosen_for(estimator, notion, n, budget if until is None else 0, seating)
    if estimator == "auto" and not store.is_new:
        chosen = choice.begun_with(store.design, notion, n, seed, seating) or chosen
    design = chosen.design(notion, n, seed)
    if repeats is None:
        repeats = repeats_that_pay(design, game.stochastic, budget)
    repeats, total = check_count("repeats", repeats), _affordable(design, budget)
    _check_enough(chosen, total, design.unit)
    if until is not None and design.size is not None:
        raise InvalidInput(
            f"`until` cannot stop {chosen.name}, which needs all of its {design.size} coalitions",
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
    return Run(game, design, store, repeats, seed, total, chosen, each_of(notion))


def check_shard(shard: object) -> tuple[int, int]:
    """Return (k, count) if it is one."""
    right = isinstance(shard, tuple) and len(shard) == 2
    whole = right and all(isinstance(each, int) for each in shard)  # type: ignore[attr-defined]
    if not whole or not 1 <= shard[0] <= shard[1]:  # type: ignore[index]
        raise InvalidInput(
            "`shard` must be the number of a share and how many there are, from (1, 1) on",
            got=short(shard),
            remedy="The third of 64 is (3, 64).",
        )
    return shard  # type: ignore[return-value]


def chosen_for(
    estimator: str | Estimator, notion: Notion, n: int, budget: int, seating: Seating | None
) -> Estimator:
    """The estimator of a new run; each fold of a jury has its share of the budget."""
    share = budget // seating.count if seating is not None and seating.within else budget
    return choice.in_folds(choice.for_run(estimator, notion, n, share), notion, n, seating)


def _check_enough(chosen: Estimator, total: int, unit: int) -> None:
    """Refuse before anything is trained what the estimator would refuse afterwards."""
    inner = chosen.inner if isinstance(chosen, InFolds) else chosen
    fewest = unit * int(getattr(inner, "fewest", 1))
    if total < fewest:
        raise InvalidInput(
            f"`budget` must pay for the {fewest} coalitions that {chosen.name} needs"
            + (" where rows judge each other in folds" if inner is not chosen else ""),
            got=str(total),
            remedy=f"Pass budget={fewest} or more.",
        )


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


def check_notion(notion: Notion | Sequence[Notion] | None) -> Notion:
    """The notion; several become one that is `Together`, Banzhaf() stands for none."""
    if notion is None:
        return Banzhaf()
    if isinstance(notion, (list, tuple)):
        if any(one is None for one in notion):
            raise InvalidInput(
                "each notion of a list must be one", got="None", remedy="Leave None out."
            )
        each = tuple(check_notion(one) for one in notion)
        return each[0] if len(each) == 1 else Together(each)
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
