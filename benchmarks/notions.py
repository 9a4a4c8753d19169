"""Several semivalues from one run, each beside its own best estimator at the same number of
coalitions; and every way to estimate Shapley values.

The games are in `notion_games.py`. The data of the networks are read from DATABANZHAF_DATA; the
first run trains about half a million networks and keeps their scores under runs/estimators. Needs
shapiq.

    python benchmarks/notions.py
    python benchmarks/notions.py --quick    # two games, two seeds; only prints
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from estimator_games import PLAYERS
from notion_games import NotionGame, neighbours, network, with_formulas
from record import record, table

import databanzhaf as db

# `size_regression` was tuned on seeds 0 to 4 of the first five games and the neighbours.
SEEDS = range(10, 15)
BUDGETS = (500, 1000, 2000, 10_000)
NOTIONS = [db.Banzhaf(), db.Shapley(), db.Beta(4, 1), db.Beta(16, 1)]
TOGETHER, ALONE = "one run for all", "regression:sizes"
KERNEL, PAIRS = "shapiq KernelSHAP", "shapiq KernelSHAP, pairs"
SIZES = db.estimators.SizeRegression()


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    errors, shares, games = defaultdict(list), defaultdict(list), []
    for game in all_games(quick):
        games.append(game)
        start = time.perf_counter()
        for seed in SEEDS[:2] if quick else SEEDS:
            for name, notion, m, estimate in estimates(game, seed):
                key = game.name, notion.name, name, m
                values = estimate if isinstance(estimate, np.ndarray) else estimate.values
                truth = game.truth(notion)
                errors[key].append(np.linalg.norm(values - truth) / np.linalg.norm(truth))
                if isinstance(estimate, db.Estimate):
                    shares[key].append(held(estimate, truth))
        print(f"{game.name}: {time.perf_counter() - start:.0f} s", flush=True)
    means = {key: float(np.sqrt(np.mean(np.square(each)))) for key, each in errors.items()}
    body = report(means, {key: float(np.mean(each)) for key, each in shares.items()}, games)
    print(body) if quick else record("Several notions from one run", body)


def all_games(quick: bool) -> Iterator[NotionGame]:
    games = [*with_formulas(), neighbours("pol")]
    yield from (cached(game) for game in (games[3:5] if quick else games))
    if not quick:
        yield network("pol", 200_000, NOTIONS)


def cached(game: NotionGame) -> NotionGame:
    known = {notion.name: game.truth(notion) for notion in NOTIONS}
    return NotionGame(game.name, lambda notion: known[notion.name], game.utility)


def estimates(game: NotionGame, seed: int) -> Iterator[tuple]:
    """Each way, notion and budget; smaller budgets are the beginnings of the largest."""
    shared = evaluated(game, sized(NOTIONS, seed), seed)
    orders = evaluated(game, db.designs.Permutation(PLAYERS, seed), seed)
    for notion in NOTIONS:
        own = evaluated(game, sized([notion], seed), seed)
        ways = [(TOGETHER, SIZES, shared), (ALONE, SIZES, own)]
        ways.append(("permutation", db.estimators.Permutation(), orders))
        if isinstance(notion, db.Banzhaf):
            coin = evaluated(game, db.designs.Coin(PLAYERS, seed), seed)
            ways.append(("regression", db.estimators.Regression(), coin))
        for name, estimator, evaluations in ways:
            for m in BUDGETS:
                unit = evaluations.design.unit
                yield name, notion, m, estimator(evaluations.before(m // unit * unit), notion)
        if isinstance(notion, db.Shapley):
            for m in BUDGETS:
                yield KERNEL, notion, m, by_kernel(game, m, seed, pairs=False)
                yield PAIRS, notion, m, by_kernel(game, m, seed, pairs=True)


def sized(notions, seed: int):
    return db.designs.Sized(PLAYERS, seed, db.estimators.size_laws.shares(notions, PLAYERS))


def evaluated(game: NotionGame, design, seed: int) -> db.Evaluations:
    indices = np.arange(BUDGETS[-1] // design.unit * design.unit)
    keys = db.chance.keys(seed, db.chance.TRAINING, indices)
    utilities = np.asarray(game.utility(design.coalitions(indices), keys), dtype=np.float64)
    return db.Evaluations(design, indices, utilities[:, None], game.stochastic)


def by_kernel(game: NotionGame, m: int, seed: int, *, pairs: bool) -> np.ndarray:
    from shapiq import approximator

    keys = db.chance.keys(seed, db.chance.TRAINING, np.arange(10**7, 10**7 + 2 * m))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a singular fit, where coalitions are few
        found = approximator.KernelSHAP(
            PLAYERS, pairing_trick=pairs, random_state=seed
        ).approximate(m, lambda coalitions: game.utility(coalitions, keys[: len(coalitions)]))
    return np.array([found[(player,)] for player in range(PLAYERS)])


def held(estimate: db.Estimate, truth) -> float:
    """Share of the 95% intervals that hold the truth, but for rounding."""
    low, high = estimate.interval(0.95)
    slack = estimate.rounding()
    return float(((low - slack <= truth) & (truth <= high + slack)).mean())


def report(errors: dict, shares: dict, games: list[NotionGame]) -> str:
    return "\n\n".join(
        [
            introduction(games),
            beside_the_best(errors, games),
            "Shapley values, every way, relative error by number of coalitions. The values of the "
            "additive game are those of one permutation, but for rounding.",
            shapley_table(errors, games),
            "Share of 95% intervals of the run for all that hold the true value.",
            coverage_table(shares, games),
        ]
    )


def introduction(games: list[NotionGame]) -> str:
    noise = "; ".join(
        f"{game.name}, {notion.name} {game.reference_error(notion):.1%}"
        for game in games
        if game.stochastic
        for notion in NOTIONS
    )
    names = ", ".join(notion.name for notion in NOTIONS)
    return (
        f"`db.value(game, [..])` for {names}: relative error ||estimate - truth|| / ||truth|| for "
        f"{PLAYERS} players, root mean square of {len(SEEDS)} seeds, by number of coalitions, and "
        "that of the best estimator that the notion has for itself at as many: "
        "`regression:sizes` or `regression` with coalitions drawn for it alone, permutations, or "
        "KernelSHAP. The values of the first six games are known exactly; those of the network "
        "(see the section on estimators of Banzhaf values) are those of one run for all with "
        f"200,000 trainings of another seed, whose own standard errors are {noise or 'none'}."
    )


def best_alone(errors: dict, game: str, notion: str, m: int) -> tuple[str, float]:
    ways = {
        key[2]: found
        for key, found in errors.items()
        if key[:2] == (game, notion) and key[3] == m and key[2] != TOGETHER
    }
    name = min(ways, key=ways.__getitem__)
    return name, ways[name]


def beside_the_best(errors: dict, games: list[NotionGame]) -> str:
    rows = []
    for game in games:
        for notion in NOTIONS:
            line = [game.name, notion.name]
            for m in BUDGETS:
                mine = errors[game.name, notion.name, TOGETHER, m]
                name, best = best_alone(errors, game.name, notion.name, m)
                # a ratio of errors that both are next to nothing says nothing
                ratio = f" = {mine / best:.2f}" if best > 1e-3 else ""
                line.append(f"{shown(mine)} / {shown(best)}{ratio}")
            rows.append([*line, name])
    head = ["game", "notion", *(f"{m:,}" for m in BUDGETS), f"best alone at {BUDGETS[-1]:,}"]
    return table(head, rows)


def shapley_table(errors: dict, games: list[NotionGame]) -> str:
    rows = [
        [game.name, name, *(shown(errors[game.name, "shapley", name, m]) for m in BUDGETS)]
        for game in games
        for name in (ALONE, TOGETHER, "permutation", KERNEL, PAIRS)
    ]
    return table(["game", "estimator", *(f"{m:,}" for m in BUDGETS)], rows)


def coverage_table(shares: dict, games: list[NotionGame]) -> str:
    rows = [
        [
            game.name,
            notion.name,
            *(f"{shares[game.name, notion.name, TOGETHER, m]:.0%}" for m in BUDGETS),
        ]
        for game in games
        for notion in NOTIONS
    ]
    return table(["game", "notion", *(f"{m:,}" for m in BUDGETS)], rows)


def shown(x: float) -> str:
    return f"{x:.3f}" if x >= 5e-4 else f"{x:.0e}"


if __name__ == "__main__":
    main()
