"""Several semivalues from one run, each beside its own best estimator at the same number of
coalitions; and every way to estimate Shapley values.

The games are in `notion_games.py`. The data of the networks are read from DATABANZHAF_DATA; the
first run trains about two million networks and keeps their scores under runs/estimators. What it
has measured is kept there game by game; `--continue` takes it over. Needs shapiq.

    python benchmarks/notions.py
    python benchmarks/notions.py --continue
    python benchmarks/notions.py --quick    # two games, two seeds; only prints
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from estimator_games import CACHE, METRICS, PLAYERS
from joblib import Parallel, delayed
from notion_games import NotionGame, neighbours, network, with_formulas
from record import record, table

import databanzhaf as db

# `size_regression` was tuned on seeds 0 to 4 of the first five games, of the neighbours and of the
# network on pol.
SEEDS = range(10, 15)
BUDGETS = (500, 1000, 2000, 10_000)
NOTIONS = [db.Banzhaf(), db.Shapley(), db.Beta(4, 1), db.Beta(16, 1)]
TWO = NOTIONS[:2]
DATASETS = ("pol", "wind", "creditcard")
TOGETHER, BOTH, ALONE = "one run for four", "one run for two", "regression:sizes"
KERNEL, PAIRS = "shapiq KernelSHAP", "shapiq KernelSHAP, pairs"
SIZES = db.estimators.SizeRegression()


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    errors, shares, noise = defaultdict(list), defaultdict(list), {}
    for name, make in all_games(quick).items():
        kept = CACHE / f"notions-{name.replace(', ', '-')}.pickle"
        start = time.perf_counter()
        if "--continue" in sys.argv[1:] and kept.is_file():
            noise[name], found = pickle.loads(kept.read_bytes())
        else:
            game = make()
            noise[name] = {notion.name: game.reference_error(notion) for notion in NOTIONS}
            seeds = SEEDS[:2] if quick else SEEDS
            found = Parallel(n_jobs=2)(delayed(measured)(game, seed) for seed in seeds)
            if not quick:
                kept.write_bytes(pickle.dumps((noise[name], found)))
        for of_a_seed in found:
            for key, (error, share) in of_a_seed.items():
                errors[name, *key].append(error)
                shares[name, *key].append(share)
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    means = {key: float(np.sqrt(np.mean(np.square(each)))) for key, each in errors.items()}
    body = report(means, {key: float(np.mean(each)) for key, each in shares.items()}, noise)
    print(body) if quick else record("Several notions from one run", body)


def all_games(quick: bool) -> dict[str, Callable[[], NotionGame]]:
    games = {game.name: partial(cached, game) for game in with_formulas()}
    if quick:
        return {name: games[name] for name in ("diminishing", "airport")}
    games["pol, neighbours"] = lambda: cached(neighbours("pol"))
    return games | {
        f"{name}, {METRICS[0]}": partial(network, name, 200_000, NOTIONS) for name in DATASETS
    }


def measured(game: NotionGame, seed: int) -> dict[tuple, tuple[float, float]]:
    """Relative error, and the share of intervals that hold the truth (NaN where there are none), of
    each notion, way and budget.
    """
    found = {}
    for name, notion, m, estimate in estimates(game, seed):
        known = isinstance(estimate, db.Estimate)
        truth = game.truth(notion)
        error = np.linalg.norm((estimate.values if known else estimate) - truth)
        found[notion.name, name, m] = (
            float(error / np.linalg.norm(truth)),
            held(estimate, truth) if known else float("nan"),
        )
    return found


def cached(game: NotionGame) -> NotionGame:
    known = {notion.name: game.truth(notion) for notion in NOTIONS}
    return NotionGame(game.name, lambda notion: known[notion.name], game.utility)


def estimates(game: NotionGame, seed: int) -> Iterator[tuple]:
    """Each way, notion and budget; smaller budgets are the beginnings of the largest."""
    shared, both = (evaluated(game, sized(notions, seed), seed) for notions in (NOTIONS, TWO))
    orders = evaluated(game, db.designs.Permutation(PLAYERS, seed), seed)
    for notion in NOTIONS:
        own = evaluated(game, sized([notion], seed), seed)
        ways = [(TOGETHER, SIZES, shared), (ALONE, SIZES, own)]
        if notion in TWO:
            ways.append((BOTH, SIZES, both))
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


def report(errors: dict, shares: dict, noise: dict) -> str:
    games = list(noise)
    return "\n\n".join(
        [
            introduction(noise),
            beside_the_best(errors, games, TOGETHER, NOTIONS),
            "The same for a run for two, Banzhaf and Shapley.",
            beside_the_best(errors, games, BOTH, TWO),
            "Shapley values, every way, relative error by number of coalitions. The values of the "
            "additive game are those of one permutation, but for rounding.",
            shapley_table(errors, games),
            "Share of 95% intervals of the run for four that hold the true value.",
            coverage_table(shares, games),
        ]
    )


def introduction(noise: dict) -> str:
    said = "; ".join(
        f"{game}, " + ", ".join(f"{notion} {error:.1%}" for notion, error in of_notions.items())
        for game, of_notions in noise.items()
        if any(of_notions.values())
    )
    names = ", ".join(notion.name for notion in NOTIONS)
    return (
        f"`db.value(game, [..])` for {names}: relative error ||estimate - truth|| / ||truth|| for "
        f"{PLAYERS} players, root mean square of {len(SEEDS)} seeds, by number of coalitions, and "
        "that of the best estimator that the notion has for itself at as many: "
        "`regression:sizes` or `regression` with coalitions drawn for it alone, permutations, or "
        "KernelSHAP. The values of the first six games are known exactly; those of the networks "
        "(see the section on estimators of Banzhaf values) are those of one run for four with "
        f"200,000 trainings of another seed, whose own standard errors are {said or 'none'}."
    )


def best_alone(errors: dict, game: str, notion: str, m: int) -> tuple[str, float]:
    ways = {
        key[2]: found
        for key, found in errors.items()
        if key[:2] == (game, notion) and key[3] == m and key[2] not in (TOGETHER, BOTH)
    }
    name = min(ways, key=ways.__getitem__)
    return name, ways[name]


def beside_the_best(errors: dict, games: list[str], way: str, notions: list) -> str:
    rows = []
    for game in games:
        for notion in notions:
            line = [game, notion.name]
            for m in BUDGETS:
                mine = errors[game, notion.name, way, m]
                name, best = best_alone(errors, game, notion.name, m)
                # a ratio of errors that both are next to nothing says nothing
                ratio = f" = {mine / best:.2f}" if best > 1e-3 else ""
                line.append(f"{shown(mine)} / {shown(best)}{ratio}")
            rows.append([*line, name])
    head = ["game", "notion", *(f"{m:,}" for m in BUDGETS), f"best alone at {BUDGETS[-1]:,}"]
    return table(head, rows)


def shapley_table(errors: dict, games: list[str]) -> str:
    rows = [
        [game, name, *(shown(errors[game, "shapley", name, m]) for m in BUDGETS)]
        for game in games
        for name in (ALONE, BOTH, TOGETHER, "permutation", KERNEL, PAIRS)
    ]
    return table(["game", "estimator", *(f"{m:,}" for m in BUDGETS)], rows)


def coverage_table(shares: dict, games: list[str]) -> str:
    rows = [
        [game, notion.name, *(f"{shares[game, notion.name, TOGETHER, m]:.0%}" for m in BUDGETS)]
        for game in games
        for notion in NOTIONS
    ]
    return table(["game", "notion", *(f"{m:,}" for m in BUDGETS)], rows)


def shown(x: float) -> str:
    return f"{x:.3f}" if x >= 5e-4 else f"{x:.0e}"


if __name__ == "__main__":
    main()
