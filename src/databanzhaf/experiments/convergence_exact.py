"""Fig. convergence (a): maximum sample reuse against simple Monte Carlo, where the truth
is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import ten_points
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting

RUNS = 5
PAPER_SAMPLES = 2000
STEPS = 20
PLAYER = 0


def run(setting: Setting) -> Outcome:
    game = ten_points.game(setting.seed)
    truth = db.value(game).values
    largest = setting.count(PAPER_SAMPLES, least=20 * STEPS)
    counts = np.unique(np.linspace(largest / STEPS, largest, STEPS).astype(int) // 20 * 20)
    rows = []
    for count in counts.tolist():
        for estimator in ("reuse", "marginal"):
            runs = np.stack(
                [
                    db.value(
                        game, estimator=estimator, budget=count, seed=setting.seed + run
                    ).values
                    for run in range(RUNS)
                ]
            )
            errors = np.linalg.norm(runs - truth, axis=1)
            rows.append(
                {
                    "samples": count,
                    "estimator": estimator,
                    "value": runs[:, PLAYER].mean(),
                    "deviation": runs[:, PLAYER].std(ddof=1),
                    "l2_error": errors.mean(),
                    "exact": truth[PLAYER],
                }
            )
    table = pd.DataFrame(rows)
    errors = table.pivot(index="samples", columns="estimator", values="l2_error")
    ratio = errors["marginal"] / errors["reuse"]
    spread = table.pivot(index="samples", columns="estimator", values="deviation")
    quieter = float((spread["reuse"] < spread["marginal"]).mean())
    return Outcome(
        "Maximum sample reuse against simple Monte Carlo",
        "Banzhaf value of one of ten points, by both estimators from the same number of "
        "trainings, over five runs (the band is their deviation); "
        "and the l2 error of all ten values.",
        table,
        lambda figure: _draw(figure, table),
        f"up to {largest:,} coalitions, {RUNS} runs; the exact value from all 1,024",
        (
            "The paper's points and test set are not published: these are drawn by its law. "
            "The learning rate (1) and the steps (200) are ours.",
            f"A model of all ten points is right on {game.utilities[-1]:.1%} of "
            f"{ten_points.N_TEST:,} test points (paper: around 80%). One set of points, as in the "
            "paper.",
            "Each sample of simple Monte Carlo is a pair of coalitions; both axes count trainings.",
        ),
        (
            Claim(
                "MSR is closer to the exact values than simple Monte Carlo at equal trainings",
                "figure",
                f"its l2 error is {ratio.mean():.2f} times smaller on average, "
                f"{ratio.iloc[-1]:.2f} times at {counts[-1]:,} trainings; smaller at "
                f"{int((ratio > 1).sum())} of {len(ratio)} sizes",
                bool((ratio > 1).mean() > 0.5),
            ),
            Claim(
                "MSR varies less between runs",
                "figure",
                f"smaller deviation at {quieter:.0%} of the sample sizes",
                quieter > 0.5,
            ),
        ),
        errors.reset_index()[["samples", "reuse", "marginal"]].rename(
            columns={"reuse": "MSR", "marginal": "simple Monte Carlo"}
        ),
        notes=("The table shows the l2 error of all ten values, mean over the runs.",),
        scaled=f"of {PAPER_SAMPLES:,} coalitions, our number, was asked for; the line `samples` "
        "says what was taken",
    )


def _draw(figure: Any, table: pd.DataFrame) -> None:
    left, right = figure.subplots(1, 2)
    for estimator, colour, label in (
        ("reuse", "tab:red", "MSR"),
        ("marginal", "tab:blue", "simple Monte Carlo"),
    ):
        part = table[table["estimator"] == estimator]
        left.plot(part["samples"], part["value"], color=colour, label=label)
        left.fill_between(
            part["samples"],
            part["value"] - part["deviation"],
            part["value"] + part["deviation"],
            color=colour,
            alpha=0.2,
        )
        right.plot(part["samples"], part["l2_error"], color=colour, label=label)
    left.axhline(table["exact"].iloc[0], color="black", linewidth=0.8, label="exact")
    left.set(xlabel="trainings", ylabel="Banzhaf value of one point")
    right.set(xlabel="trainings", ylabel="l2 error of ten values", yscale="log", xscale="log")
    right.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    ends = table["samples"].min(), table["samples"].max()
    right.set_xticks(ends, [f"{end:,}" for end in ends])
    for ax in (left, right):
        ax.legend()
        ax.grid(alpha=0.3)
