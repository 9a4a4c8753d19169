"""Theorems 3 to 6: measured errors against what is proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import ten_points
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting

DELTA = 0.05
COUNTS = (100, 300, 1000, 3000, 10000)
RUNS = 200
NOISE = 0.05
N = 10


def run(setting: Setting) -> Outcome:
    truth = ten_points.utilities(setting.seed)
    exact = db.value(db.games.Table(truth)).values
    noise = np.random.default_rng([setting.seed, 31]).uniform(-NOISE, NOISE, len(truth))
    noise[[0, -1]] = 0  # so that no utility leaves [0, 1]
    noisy = np.clip(truth + noise, 0, 1)
    gamma = float(np.linalg.norm(noisy - truth))
    runs = setting.count(RUNS, least=40)
    rows = []
    for m in COUNTS:
        for estimator, utilities, is_noisy in (
            ("reuse", truth, False),
            ("marginal", truth, False),
            ("reuse", noisy, True),
        ):
            game = db.games.Table(utilities)
            errors = largest_errors(game, exact, estimator, m, setting.seed, runs)
            bound = db.theory.error_bound(N, m, DELTA, estimator=estimator, noisy=is_noisy)
            rows.append(
                {
                    "samples": m,
                    "estimator": {"reuse": "MSR", "marginal": "simple Monte Carlo"}[estimator],
                    "noisy": is_noisy,
                    "measured": float(np.quantile(errors, 1 - DELTA)),
                    "mean": float(np.mean(errors)),
                    "bound": bound + (db.theory.noise_floor(N, gamma) if is_noisy else 0.0),
                    "lower_bound": (1 - 2 * DELTA) / (2 * m),
                }
            )
    table = pd.DataFrame(rows)
    held = int((table["measured"] <= table["bound"]).sum())
    clean = table[~table["noisy"]].pivot(index="samples", columns="estimator", values="measured")
    few = fewer(truth[:32], setting.seed, runs)
    slopes = {
        name: float(np.polyfit(np.log(clean.index), np.log(clean[name]), 1)[0])
        for name in clean.columns
    }
    ratio = float((clean["simple Monte Carlo"] / clean["MSR"]).mean())
    floor = db.theory.noise_floor(N, gamma)
    remaining = float(np.abs(db.value(db.games.Table(noisy)).values - exact).max())
    at_end = float(table[table["noisy"]]["mean"].iloc[-1])
    return Outcome(
        "Sample bounds",
        f"The largest error of the ten Banzhaf values (its 95% quantile over {runs} runs) beside "
        f"the bounds that the paper proves at delta = {DELTA}, "
        "and the lower bound for any estimator.",
        table,
        lambda figure: _draw(figure, table),
        f"up to {COUNTS[-1]:,} coalitions, {runs} runs each",
        (
            "The bound of simple Monte Carlo is Hoeffding's for an interval of length 2; the "
            "proof prints that for length 1 (see `theory.samples_needed`).",
            f"Noise: uniform within {NOISE}, fixed for each coalition, l2 norm {gamma:.3f}. It "
            f"adds {floor:.4f} to the bound (Theorem 6), whose other constants are larger than "
            "without noise, too.",
            "A bound above 1 says nothing, since utilities lie in [0, 1]; all bounds are far "
            "above what is measured. The lower bound cannot be tested by one estimator: it is "
            "drawn.",
        ),
        (
            Claim(
                "Every measured error is below its bound",
                "proved",
                f"{held} of {len(table)}",
                held == len(table),
            ),
            Claim(
                "MSR's error is O(1 / sqrt(m))",
                "proved",
                f"slope {slopes['MSR']:.3f} in logs",
                abs(slopes["MSR"] + 0.5) < 0.1,
            ),
            Claim(
                "MSR needs fewer samples than simple Monte Carlo, by a factor of the order of n",
                "proved (order)",
                f"by the squared ratio of their errors {few:.1f} times fewer for the first 5 "
                f"points, {ratio**2:.1f} for all 10 (it grows by half or more: yes)",
                ratio**2 > 1.5 * few > 1.5,
            ),
            Claim(
                "With noise an error remains, of at most the floor",
                "proved",
                f"{remaining:.4f} in the exact values of the noisy utilities (measured at m = "
                f"{COUNTS[-1]:,}: {at_end:.4f} on average); floor {floor:.4f}",
                0 < remaining <= floor,
            ),
        ),
        scaled=f"of {RUNS} runs, our number, was asked for; the line `samples` says what was taken",
    )


def largest_errors(
    game: Any, exact: Any, estimator: str, m: int, seed: int, runs: int
) -> list[float]:
    """The largest error of all values, for each run."""
    return [
        float(
            np.abs(
                db.value(game, estimator=estimator, budget=m, seed=seed + run).values - exact
            ).max()
        )
        for run in range(runs)
    ]


def fewer(utilities: Any, seed: int, runs: int) -> float:
    """How many times fewer samples MSR needs than simple Monte Carlo, by the squared ratio of their
    errors (95% quantiles), mean over the counts.
    """
    game = db.games.Table(utilities)
    exact = db.value(game).values

    def error(estimator: str, m: int) -> float:
        return float(np.quantile(largest_errors(game, exact, estimator, m, seed, runs), 1 - DELTA))

    return float(np.mean([error("marginal", m) / error("reuse", m) for m in COUNTS])) ** 2


def _draw(figure: Any, table: pd.DataFrame) -> None:
    ax = figure.subplots()
    for (estimator, noisy), part in table.groupby(["estimator", "noisy"]):
        label = f"{estimator}{', noisy utility' if noisy else ''}"
        line = ax.plot(
            part["samples"], part["measured"], "o-", markersize=3, label=f"{label}: measured"
        )[0]
        ax.plot(
            part["samples"], part["bound"], "--", color=line.get_color(), label=f"{label}: bound"
        )
    low = table.drop_duplicates("samples")
    ax.plot(
        low["samples"],
        low["lower_bound"],
        ":",
        color="black",
        label="lower bound for any estimator",
    )
    ax.set(xscale="log", yscale="log", xlabel="trainings", ylabel="largest error of ten values")
    ax.legend(fontsize=7, ncols=2)
    ax.grid(alpha=0.3)
