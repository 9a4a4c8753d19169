"""From a game to values: the verbs `value` and `estimate`."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np

from databanzhaf import chance, designs, estimators
from databanzhaf.designs import Permutation
from databanzhaf.errors import DesignMismatch, InvalidInput, LedgerMismatch, check_count, check_path, short
from databanzhaf.estimators import Estimator
from databanzhaf.evaluators import Local
from databanzhaf.ledger import Ledger
from databanzhaf.loop import Run, checkpoints, complete_rows
from databanzhaf.notions import Banzhaf, LeastCore, LeaveOneOut, Notion, SizeWeighted, WeightedBanzhaf, named
from databanzhaf.progress import Watcher
from databanzhaf.stability import checkpoint
from databanzhaf.types import Checkpoint, Design, Estimate, Evaluations, Evaluator, Game, TwoStepGame
from databanzhaf.until import Condition

_ESTIMATORS: dict[str, Estimator] = {
    "exact": estimators.Exact(),
    "reuse": estimators.Reuse(),
    "marginal": estimators.Marginal(),
    "permutation": estimators.Permutation(),
    "group_testing": estimators.GroupTesting(),
    "leave_one_out": estimators.LeaveOneOut(),
    "least_core": estimators.LeastCore(),
}


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
        "auto" takes "exact" when 2**n coalitions fit in the budget, "reuse" for Banzhaf values, "permutation" for the
        other semivalues, "leave_one_out" and "least_core" for theirs. Also "marginal" and "group_testing", or an object such as
        ``estimators.Permutation(truncation=0.01)``.
    budget : int
        Coalitions to evaluate; trainings are budget times repeats. Permutations are taken whole; leave-one-out
        always takes its n + 1 and "exact" its 2**n.
    repeats : int, optional
        Trainings of each coalition, with different keys; their utilities are averaged. None takes `repeats_that_pay`.
    seed : int
        Decides every coalition and every training, whatever the batch size, worker count or machine.
    ledger : path or Ledger, optional
        Where evaluations are kept. The same call again evaluates only what is missing; a larger budget, or more
        repeats, continues the run, with the design that it began with.
    evaluator : optional
        ``evaluators.Processes(n_jobs=2)``; by default this process.
    until : optional
        A condition from `until` that may stop the run before the budget is spent; "auto" then samples, even where it could
        list all coalitions.
    progress : bool or function
        Show a progress bar; or call ``function(done, total, checkpoints)`` after each batch, with the checkpoints so far. The
        batch is in the ledger by then, so that an exception raised there stops the run and loses nothing.

    >>> from databanzhaf import games
    >>> value(games.Table([0, 0, 0, 1])).values
    array([0.5, 0.5])
    """
    notion = _check_notion(notion)
    _check_game(game)
    if until is not None and (isinstance(until, type) or not isinstance(until, Condition)):
        raise InvalidInput(f"`until` must be a condition from databanzhaf.until; got {short(until)}. Try until.ranking_stable(0.9).")
    if evaluator is not None and (isinstance(evaluator, type) or not isinstance(evaluator, Evaluator)):
        raise InvalidInput(f"`evaluator` must be a databanzhaf.evaluators object; got {short(evaluator)}. Try evaluators.Processes(2).")
    if not isinstance(progress, bool) and not callable(progress):
        raise InvalidInput(f"`progress` must be True, False or a function; got {short(progress)}. Pass progress=True for a bar.")
    budget, seed = check_count("budget", budget), chance.check_seed(seed)
    if isinstance(notion, SizeWeighted):
        notion.log_size_law(game.n_players)  # weights that cannot be used are refused before anything is trained
    with ExitStack() as stack:
        store = ledger if isinstance(ledger, Ledger) else stack.enter_context(Ledger(ledger))
        chosen = _choose(estimator, notion, game.n_players, budget if until is None else 0)
        if estimator == "auto" and not store.is_new:
            chosen = _begun_with(store, notion, game.n_players, seed) or chosen
        design = chosen.design(notion, game.n_players, seed)
        repeats = repeats_that_pay(design, game.stochastic, budget) if repeats is None else check_count("repeats", repeats)
        total = _affordable(design, budget)
        if until is not None and design.size is not None:
            raise InvalidInput(f"`until` cannot stop {chosen.name}, which needs all of its {design.size} coalitions. Leave `until` out.")
        _check_room(total * repeats)
        _warn_of_captured_variables(game, store)
        store.bind(game.fingerprint(), designs.describe(design), seed=seed, stochastic=game.stochastic, players=game.players)
        run = Run(game, design, store, repeats, seed, total, chosen, notion)
        run.complete(evaluator or Local(), until, progress)
        return chosen(run.evaluations(), notion)


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
    notion : any that the run's design identifies (all semivalues from permutations); by default Banzhaf()
    estimator : str or estimator
        "auto" takes the one that belongs to the run's design.
    game : optional
        The same game with another metric: its utilities are computed from the outcomes that the ledger kept.
    """
    notion = _check_notion(notion)
    evaluations = source if isinstance(source, Evaluations) else _read(source, game)
    return _resolve(estimator, lambda: _natural(evaluations.design, notion))(evaluations, notion)


def design_of(notion: Notion, n_players: int, budget: int, seed: int = 0, estimator: str | Estimator = "auto") -> Design:
    """The design that `value` would evaluate."""
    return _choose(estimator, notion, n_players, budget).design(notion, n_players, seed)


def _begun_with(ledger: Ledger, notion: Notion, n_players: int, seed: int) -> Estimator | None:
    """The estimator that "auto" took when the ledger's run began, with another budget or condition; None if there is none."""
    few = n_players <= designs.exhaustive.LIMIT
    for budget in (0, 2**n_players) if few else (0,):
        candidate = _choose("auto", notion, n_players, budget)
        if json.loads(json.dumps(designs.describe(candidate.design(notion, n_players, seed)))) == ledger.design:
            return candidate
    return None


def repeats_that_pay(design: Design, stochastic: bool, budget: int) -> int:
    """One; but where every coalition is evaluated (exact, leave-one-out) as many as the budget pays for, from 2 to 64.

    Then nothing but training noise makes a value uncertain, and repeats measure it.
    """
    return 1 if design.size is None or not stochastic else int(np.clip(budget // design.size, 2, 64))


def history(source: str | Path | Ledger | Evaluations, notion: str) -> list[Checkpoint]:
    """The checkpoints of a run, for a notion by its name; an exact run has one."""
    evaluations = source if isinstance(source, Evaluations) else _read(source, None)
    kind = named(notion)
    end = int(evaluations.indices[-1]) + 1 if len(evaluations.indices) else 0
    parts = (evaluations.before(mark) for mark in checkpoints(evaluations.design, end))
    return [checkpoint(part, kind, estimate) for part in parts if len(part.indices)]


def _check_game(game: object) -> None:
    if not isinstance(game, Game):
        raise InvalidInput(f"`game` must turn coalitions into utility; got {type(game).__name__}. Pass a databanzhaf.games object.")
    check_count("game.n_players", game.n_players)


def _choose(estimator: str | Estimator, notion: Notion, n_players: int, budget: int) -> Estimator:
    def best() -> str:
        if isinstance(notion, LeaveOneOut):
            return "leave_one_out"
        if n_players <= designs.exhaustive.LIMIT and 2**n_players <= budget:
            return "exact"
        if isinstance(notion, LeastCore):
            return "least_core"
        return "reuse" if isinstance(notion, (Banzhaf, WeightedBanzhaf)) else "permutation"

    return _resolve(estimator, best)


def _check_notion(notion: Notion | None) -> Notion:
    if notion is None:
        return Banzhaf()
    if isinstance(notion, type):
        raise InvalidInput(f"`notion` must be an instance; got the class {notion.__name__}. Add the brackets: {notion.__name__}().")
    if not isinstance(notion, Notion):
        raise InvalidInput(
            f"`notion` must be a value notion; got {short(notion)}. Pass Banzhaf(), Shapley(), Beta(16, 1), LeaveOneOut(), ..."
        )
    return notion


def _resolve(estimator: str | Estimator, best: Callable[[], str]) -> Estimator:
    if not isinstance(estimator, str):
        if isinstance(estimator, type) or not (callable(estimator) and hasattr(estimator, "design")):
            raise InvalidInput(
                f"`estimator` must be a name or an estimator object; got {short(estimator)}. Names: auto, {', '.join(_ESTIMATORS)}."
            )
        return estimator
    name = best() if estimator == "auto" else estimator
    if name not in _ESTIMATORS:
        raise InvalidInput(f'`estimator` must be "auto" or one of {", ".join(_ESTIMATORS)}; got {name!r}. Try "auto".')
    return _ESTIMATORS[name]


def _natural(design: Design, notion: Notion) -> str:
    """The estimator that belongs to a design."""
    if isinstance(design, Permutation) and isinstance(notion, LeastCore):
        return "least_core"
    made_for = {
        designs.Coin: "reuse",
        designs.Exhaustive: "exact",
        designs.Paired: "marginal",
        designs.Permutation: "permutation",
        designs.GroupTesting: "group_testing",
        designs.LeaveOneOut: "leave_one_out",
        designs.Anchored: "least_core",
    }
    if type(design) not in made_for:
        raise DesignMismatch(f"no estimator is known for {design!r}. Pass estimator=... yourself.")
    return made_for[type(design)]


def _affordable(design: Design, budget: int) -> int:
    """How many indices the budget buys: all of a finite design, whole units of an endless one."""
    if design.size is not None:
        return design.size
    total = budget // design.unit * design.unit
    if not total:
        raise InvalidInput(
            f"`budget` must pay for {design.unit} coalitions that belong together in a {type(design).__name__} design; got {budget}. "
            f"Pass budget={design.unit} or more."
        )
    return total


def _check_room(evaluations: int) -> None:
    """Refuse a budget whose utilities alone do not fit in memory."""
    if evaluations > _MOST_EVALUATIONS:
        raise InvalidInput(f"`budget` times `repeats` must be at most {_MOST_EVALUATIONS:,}; got {evaluations:,}. Lower the budget.")
    needed, there = _BYTES_PER_EVALUATION * evaluations, _memory()
    if needed > there:
        raise InvalidInput(
            f"`budget` times `repeats` must fit in memory; {evaluations:,} evaluations need {needed / 2**30:,.1f} GiB, and there are "
            f"{there / 2**30:,.1f} GiB. Lower the budget: a larger one continues the run."
        )


def _memory() -> float:
    """Bytes of memory that this process may have at most; infinite where the system does not say."""
    limits = []
    with suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ImportError):  # Windows has none
        import resource

        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((limit for limit in limits if limit > 0), default=float("inf"))


def _read(source: str | Path | Ledger, game: Game | None) -> Evaluations:
    if isinstance(source, Ledger):
        return read_evaluations(source, game)
    if not isinstance(source, (str, Path)):
        raise InvalidInput(
            f"`source` must be a ledger's path, a Ledger or Evaluations; got {short(source)}. Pass what db.value(..., ledger=...) wrote."
        )
    check_path(source)
    if not Path(source).is_file():
        raise InvalidInput(f"there is no ledger at `{source}`. Give the path that was passed as ledger=... to databanzhaf.value.")
    with Ledger(source) as ledger:
        return read_evaluations(ledger, game)


def read_evaluations(ledger: Ledger, game: Game | None = None) -> Evaluations:
    """All evaluations of a ledger that have their repeats; with `game`, scored anew by its metric."""
    if ledger.is_new:
        raise InvalidInput(f"{ledger!r} holds no evaluations yet. Pass it as ledger=... to databanzhaf.value first.")
    utilities = ledger.utilities(None if game is None else _rescoring(ledger, game))
    # If a run stopped among its repeats, read as many repeats as use the most evaluations.
    complete = np.cumsum(np.isnan(utilities), axis=1) == 0
    repeats = 1 + int(np.argmax(complete.sum(axis=0) * np.arange(1, utilities.shape[1] + 1)))
    return complete_rows(designs.restore(ledger.design), utilities[:, :repeats], ledger.stochastic, ledger.players)


def _rescoring(ledger: Ledger, game: Game) -> Callable[[bytes], float] | None:
    """How the game scores the outcomes that the ledger kept; None if the ledger's own utilities are those."""
    found, asked = ledger.game, game.fingerprint()
    if found == asked:
        return None
    different = [name for name in dict.fromkeys([*found, *asked]) if name != "metric" and found.get(name) != asked.get(name)]
    if different or not isinstance(game, TwoStepGame):
        raise LedgerMismatch(
            f"`game` may differ from the ledger's in its metric alone; it differs in {', '.join(different) or 'kind'}. "
            "Pass the game that made the run, with another `scoring`."
        )
    two_step = game

    def score(outcome: bytes) -> float:
        utility = two_step.score(outcome)
        if not np.isfinite(utility):
            raise InvalidInput(f"the metric {asked.get('metric')} is {utility} for an outcome in the ledger. Choose another metric.")
        return utility

    return score


def _warn_of_captured_variables(game: Game, ledger: Ledger) -> None:
    captured = getattr(game, "captured", ())
    if captured and ledger.path is not None:
        warnings.warn(
            f"the ledger knows a function by its name and code, and cannot see what it captures ({', '.join(captured)}). "
            "When that changes, use a new ledger, or games.Function(n, function, name=...) with a new name.",
            stacklevel=3,
        )
