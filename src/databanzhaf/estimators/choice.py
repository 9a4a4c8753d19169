"""Which estimator: by name, for a new run, or for evaluations that are there.

The estimators say it themselves (`reads`, `gives`, `suits`); every one that the package exports
takes part.
"""

from __future__ import annotations

from databanzhaf import designs
from databanzhaf.errors import DesignMismatch, InvalidInput, short
from databanzhaf.estimators.folds import InFolds
from databanzhaf.evaluations import Evaluations
from databanzhaf.protocols import Design, Estimator, Notion
from databanzhaf.verdicts import Seating


def _all() -> dict[str, Estimator]:
    from databanzhaf import estimators

    made = [getattr(estimators, name)() for name in estimators.__all__]
    made.append(estimators.Regression(paired=True))
    return {each.name: each for each in made}


def by_name(estimator: str | Estimator) -> Estimator | None:
    """The estimator of a name, an estimator object as it is, None for "auto"."""
    known = _all()
    if isinstance(estimator, str):
        if estimator != "auto" and estimator not in known:
            raise InvalidInput(
                f'`estimator` must be "auto" or one of {", ".join(known)}',
                got=short(estimator),
                remedy='Try "auto".',
            )
        return known.get(estimator)
    usable = callable(estimator) and hasattr(estimator, "design")
    if isinstance(estimator, type) or not usable:
        raise InvalidInput(
            "`estimator` must be a name or an estimator object",
            got=short(estimator),
            remedy=f"Names: auto, {', '.join(known)}.",
        )
    return estimator


def for_run(estimator: str | Estimator, notion: Notion, n_players: int, budget: int) -> Estimator:
    """The estimator of a new run; "auto" takes the one that suits it best."""
    asked = by_name(estimator)
    if asked is not None:
        return asked
    best = max(_all().values(), key=lambda each: each.suits(notion, n_players, budget))
    if not best.suits(notion, n_players, budget):
        raise InvalidInput(
            f"no estimator is known for {notion.name}", remedy="Pass estimator=... yourself."
        )
    return best


def natural(estimator: str | Estimator, evaluations: Evaluations, notion: Notion) -> Estimator:
    """The estimator of evaluations that are there; "auto" takes the one that suits them best of
    those that read their design.
    """
    asked, design = by_name(estimator), evaluations.design
    if isinstance(design, designs.Folds):
        return InFolds(asked or _reader(design.designs[0], notion, len(evaluations)))
    return asked or _reader(design, notion, len(evaluations))


def _reader(design: Design, notion: Notion, count: int) -> Estimator:
    """The estimator that suits so many evaluations of a design best."""
    readers = [each for each in _all().values() if isinstance(design, each.reads)]
    if not readers:
        raise DesignMismatch(
            f"no estimator is known for {design!r}", remedy="Pass estimator=... yourself."
        )
    # One that does not give the notion says in its own words why.
    giving = [each for each in readers if each.gives(notion)] or readers
    return max(giving, key=lambda each: each.suits(notion, design.n_players, count))


def begun_with(
    description: dict[str, object],
    notion: Notion,
    n_players: int,
    seed: int,
    seating: Seating | None = None,
) -> Estimator | None:
    """The estimator that "auto" took when a run of this design began, with another budget or
    condition; None if there is none.
    """
    few = n_players <= designs.exhaustive.LIMIT
    budgets = (0, 2**n_players) if few else (0,)
    found = [for_run("auto", notion, n_players, budget) for budget in budgets]
    # what an earlier version took, for another budget
    found += [each for each in _all().values() if each.suits(notion, n_players, 0)]
    for each in found:
        candidate = in_folds(each, notion, n_players, seating)
        if designs.describe(candidate.design(notion, n_players, seed)) == description:
            return candidate
    return None


def in_folds(
    estimator: Estimator, notion: Notion, n_players: int, seating: Seating | None
) -> Estimator:
    """The estimator, with the jury in folds where the rows that it leaves outside cannot judge."""
    if seating is None or isinstance(estimator, InFolds):
        return estimator
    across = hasattr(estimator.design(notion, n_players, 0), "outside")
    return estimator if across and not seating.within else InFolds(estimator, seating)
