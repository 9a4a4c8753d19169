"""Error against evaluations: every estimator of Banzhaf values, and those of shapiq and pyDVL, on
the same games.

The games are in `estimator_games.py`. The data of the networks are read from DATABANZHAF_DATA; the
first run trains about 1.6 million networks (15 to 30 minutes on one core) and keeps their scores
under runs/estimators. Needs shapiq; pyDVL is compared where `make .venv-baseline/.ready` was run.

    python benchmarks/estimators.py
    python benchmarks/estimators.py --quick    # one dataset, small budgets; only prints

Every notion from one run, beside its own best estimator, is measured after them, by `notions.py`.
Afterwards `python docs/figures/estimators.py` draws the figure from estimators.csv.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import notions
import numpy as np
from estimator_games import PLAYERS, Game, closed_forms, networks
from record import record, table
from scipy.special import binom

import databanzhaf as db

HERE = Path(__file__).parent
CELLS = HERE / "estimators.csv"
BASELINE = HERE.parent / ".venv-baseline" / "bin" / "python"
MSR, REGRESSION, PAIRED = "reuse", "regression", "regression:paired"
OURS = {
    MSR: db.estimators.Reuse(),
    REGRESSION: db.estimators.Regression(),
    PAIRED: db.estimators.Regression(paired=True),
    "marginal": db.estimators.Marginal(),
    "permutation": db.estimators.Permutation(),
}
FBII, SVARM = "shapiq RegressionFBII", "shapiq SVARM"
SHAPIQ = (FBII, f"{FBII}, pairs", "shapiq SHAPIQ", SVARM)
# SVARM takes 4 s for 1,000 coalitions of 200 players and 40 s for 10,000.
SVARM_LARGEST = 2.5 * PLAYERS
SCALES = ((2_000, 10_000), (10_000, 20_000))


@dataclass(frozen=True)
class Plan:
    """What a run measures."""

    budgets: tuple[int, ...]
    seeds: int
    datasets: tuple[str, ...]
    reference: int


FULL = Plan(
    tuple(round(share * PLAYERS) for share in (0.5, 1, 2.5, 5, 10, 50)),
    5,
    ("pol", "wind", "creditcard"),
    200_000,
)
QUICK = Plan(FULL.budgets[:4], 1, ("pol",), 20_000)


@dataclass(frozen=True)
class Cell:
    """One estimate: its relative error, and the share of its 95% intervals that hold the truth (of
    those that are finite; NaN if there are none).
    """

    game: str
    estimator: str
    coalitions: int
    seed: int
    error: float
    coverage: float = float("nan")


def main(plan: Plan) -> None:
    cells, games = [], []
    for game in all_games(plan):
        games.append(game)
        start = time.perf_counter()
        for seed in range(plan.seeds):
            cells += [*ours(game, plan, seed), *theirs(game, plan, seed)]
        print(f"{game.name}: {time.perf_counter() - start:.0f} s", flush=True)
    body = report(cells, games, plan)
    if plan is QUICK:
        print(body)
    else:
        write_cells(cells)
        record("Estimators of Banzhaf values", f"{body}\n\n{sizes()}")
    notions.main()


def all_games(plan: Plan) -> Iterator[Game]:
    yield from closed_forms()
    for name in plan.datasets:
        yield from networks(name, plan.reference)


def ours(game: Game, plan: Plan, seed: int) -> Iterator[Cell]:
    """Every estimator of this library at every budget; smaller budgets are the beginnings of the
    largest.
    """
    notion, n = db.Banzhaf(), len(game.truth)
    for name, estimator in OURS.items():
        design = estimator.design(notion, n, seed)
        evaluations = evaluated(game, design, seed, plan.budgets[-1])
        for m in plan.budgets:
            part = evaluations.before(m // design.unit * design.unit)
            if not len(part):
                continue  # not one whole permutation
            estimate = estimator(part, notion)
            share = coverage(estimate, game)
            yield Cell(game.name, name, m, seed, error(estimate.values, game), share)


def coverage(estimate: db.Estimate, game: Game) -> float:
    """Share of the finite 95% intervals that hold the truth, but for rounding."""
    low, high = estimate.interval(0.95)
    finite, slack = np.isfinite(high - low), estimate.rounding()
    held = (low - slack <= game.truth) & (game.truth <= high + slack)
    return float(held[finite].mean()) if finite.any() else float("nan")


def evaluated(game: Game, design, seed: int, budget: int) -> db.Evaluations:
    """Utilities of a design's coalitions, whole units only."""
    indices = np.arange(budget // design.unit * design.unit)
    keys = db.chance.keys(seed, db.chance.TRAINING, indices)
    utilities = game.utility(design.coalitions(indices), keys)
    return db.Evaluations(design, indices, utilities[:, None], game.stochastic)


def theirs(game: Game, plan: Plan, seed: int) -> Iterator[Cell]:
    """The estimators of shapiq, each budget with coalitions of its own."""
    for m in plan.budgets:
        for name in SHAPIQ:
            if name != SVARM or m <= SVARM_LARGEST:
                yield Cell(game.name, name, m, seed, error(by_shapiq(name, game, m, seed), game))


def by_shapiq(name: str, game: Game, m: int, seed: int):
    """Values (n,) from m coalitions."""
    keys = db.chance.keys(seed, db.chance.TRAINING, np.arange(10**7, 10**7 + m))
    n = len(game.truth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a singular fit, where coalitions are few
        found = shapiq_approximator(name, n, seed).approximate(
            m, lambda coalitions: game.utility(coalitions, keys[: len(coalitions)])
        )
    return np.array([found[(player,)] for player in range(n)])


def shapiq_approximator(name: str, n: int, seed: int):
    """Coalition sizes as a fair coin gives them: the default of RegressionFBII, and better for the
    other two than their default, which is made for Shapley values.
    """
    from shapiq import approximator

    coin = binom(n, np.arange(n + 1)) / 2.0**n
    how = {"random_state": seed, "sampling_weights": coin, "pairing_trick": "pairs" in name}
    if name.startswith(FBII):
        return approximator.RegressionFBII(n, 1, **how)
    if name == SVARM:
        return approximator.SVARM(n, "BV", **how)
    return approximator.SHAPIQ(n, 1, "BV", **how)


def error(values, game: Game) -> float:
    return float(np.linalg.norm(values - game.truth) / np.linalg.norm(game.truth))


def report(cells: list[Cell], games: list[Game], plan: Plan) -> str:
    """The section of RESULTS.md."""
    errors, shares = averages(cells)
    return "\n\n".join(
        [
            introduction(games, plan),
            error_table(errors, games, plan),
            "Coalitions as a share of those that `reuse` needs for the same error: the squared "
            "ratio of the two errors at the same number of coalitions, since the error of `reuse` "
            "falls as the root of that number.",
            ratio_table(errors, games, plan),
            "Share of 95% intervals that hold the true value, or the reference, of those that are "
            "finite.",
            coverage_table(shares, games, plan),
            pydvl(games[-1]),
        ]
    )


def averages(cells: list[Cell]) -> tuple[dict, dict]:
    """Root mean squared error over the seeds, and mean coverage, by game, estimator and budget."""
    groups = defaultdict(list)
    for cell in cells:
        groups[cell.game, cell.estimator, cell.coalitions].append((cell.error, cell.coverage))
    errors = {
        key: float(np.sqrt(np.mean(np.square(each), axis=0)[0])) for key, each in groups.items()
    }
    return errors, {key: float(np.mean(each, axis=0)[1]) for key, each in groups.items()}


def introduction(games: list[Game], plan: Plan) -> str:
    noise = "; ".join(
        f"{game.name} {game.reference_error:.1%}" for game in games if game.stochastic
    )
    return (
        f"Relative error ||estimate - truth|| / ||truth|| for {PLAYERS} players, root mean square "
        f"of {plan.seeds} seeds, by number of coalitions. The values of the first three games are "
        "known exactly. Those of the networks (MLP with 100 hidden units, 15 epochs, 200 training "
        "rows with 10% of the labels flipped, 200 validation rows) are those of `regression` with "
        f"{plan.reference:,} trainings of another seed. This reference has an error of its own, "
        f"which every number here includes; by its standard errors it is {noise}. A dash: not one "
        "whole permutation, or not measured since it takes too long (SVARM). SHAPIQ and SVARM draw "
        "coalition sizes as a fair coin does, not by their default, which is made for Shapley "
        "values."
    )


def error_table(errors: dict, games: list[Game], plan: Plan) -> str:
    rows = []
    for game in games:
        for name in (*OURS, *SHAPIQ):
            found = [errors.get((game.name, name, m)) for m in plan.budgets]
            rows.append([game.name, name, *("-" if x is None else shown(x) for x in found)])
    return table(["game", "estimator", *(f"{m:,}" for m in plan.budgets)], rows)


def shown(x: float) -> str:
    return f"{x:.3f}" if x >= 5e-4 else f"{x:.0e}"


def ratio_table(errors: dict, games: list[Game], plan: Plan) -> str:
    large = [m for m in plan.budgets if m >= 5 * PLAYERS]
    names = (REGRESSION, PAIRED, FBII)
    rows = []
    for game in games:
        ratios = [
            (errors[game.name, name, m] / errors[game.name, MSR, m]) ** 2
            for name in names
            for m in large
        ]
        rows.append([game.name, *(shown(x) for x in ratios)])
    return table(["game", *(f"{name}, {m:,}" for name in names for m in large)], rows)


def coverage_table(shares: dict, games: list[Game], plan: Plan) -> str:
    rows = []
    for game in games:
        for name in OURS:
            found = [shares.get((game.name, name, m), np.nan) for m in plan.budgets]
            rows.append([game.name, name, *("-" if np.isnan(x) else f"{x:.0%}" for x in found)])
    return table(["game", "estimator", *(f"{m:,}" for m in plan.budgets)], rows)


def pydvl(game: Game) -> str:
    """How far pyDVL's MSR is from ours on the same evaluations."""
    if not BASELINE.exists():
        return "pyDVL was not measured."
    evaluations = evaluated(game, db.designs.Coin(PLAYERS, 0), 0, 5 * PLAYERS)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "evaluations.npz", Path(folder) / "values.npy"
        coalitions = evaluations.design.coalitions(evaluations.indices)
        np.savez(source, coalitions=coalitions, utilities=evaluations.utility)
        script = str(HERE / "baseline_pydvl_values.py")
        subprocess.run([str(BASELINE), script, str(source), str(target)], check=True)
        values = np.load(target)
    estimate = OURS[MSR](evaluations, db.Banzhaf())
    return (
        "pyDVL 0.10 (`BanzhafValuation` with `MSRSampler`), given the same "
        f"{len(evaluations):,} coalitions and utilities of {game.name}, differs from `reuse` by "
        f"{np.abs(values - estimate.values).max():.0e} at most; its errors are those of `reuse`."
    )


def sizes() -> str:
    """Time and peak memory of `regression` for many players, a process each."""
    rows = []
    for n, m in SCALES:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
        command = [sys.executable, __file__, "size", str(n), str(m)]
        out = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment
        ).stdout
        found = json.loads(out.splitlines()[-1])
        rows.append([f"{n:,}", f"{m:,}", f"{found['seconds']:,.0f}", f"{found['peak']:.2f}"])
    head = ["players", "coalitions", "seconds", "peak GiB of the process"]
    return (
        "`regression` alone, utilities that are random numbers, one BLAS thread, one run:\n\n"
        f"{table(head, rows)}"
    )


def size(n: int, m: int) -> dict[str, float]:
    import resource

    design, indices = db.designs.Coin(n, 0), np.arange(m)
    utilities = np.random.default_rng(0).normal(size=(m, 1))
    start = time.perf_counter()
    OURS[REGRESSION](db.Evaluations(design, indices, utilities), db.Banzhaf())
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def write_cells(cells: list[Cell]) -> None:
    with CELLS.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["game", "estimator", "coalitions", "seed", "error", "coverage"])
        for cell in cells:
            share = "" if np.isnan(cell.coverage) else f"{cell.coverage:.3f}"
            line = [cell.game, cell.estimator, cell.coalitions, cell.seed]
            writer.writerow([*line, f"{cell.error:.4g}", share])


if __name__ == "__main__":
    if sys.argv[1:2] == ["size"]:
        print(json.dumps(size(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(QUICK if "--quick" in sys.argv[1:] else FULL)
