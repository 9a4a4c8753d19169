"""Convergence (b): how much the ranking still changes with further samples, on MNIST."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import ledgers, protocol
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

SAMPLES, STEP = 20_000, 1000
# "Much faster": of what pure noise leaves up to an index of 1, so much more.
LEAD = 0.2
ESTIMATORS = {
    "Banzhaf, MSR": (db.Banzhaf(), "reuse", "tab:red"),
    "Banzhaf, simple Monte Carlo": (db.Banzhaf(), "marginal", "tab:orange"),
    "Shapley, permutations": (db.Shapley(), "permutation", "tab:blue"),
    "Shapley, group testing": (db.Shapley(), "group_testing", "tab:cyan"),
}


def run(setting: Setting) -> Outcome:
    rows, step = (20, 20) if setting.small else (500, STEP)
    total = (
        4 * step
        if setting.small
        else max(
            3 * STEP, round(min(setting.scale, 10 * setting.image_scale) * SAMPLES / STEP) * STEP
        )
    )
    data = protocol.draw("mnist", 0, setting, rows=rows, flipped=0.0)
    how: dict[str, Any] = {
        "batch_size": 32,
        "learning_rate": 1e-3,
        "epochs": 30,
        "metric": "accuracy",
        "device": setting.device,
    }
    game = db.games.Module(protocol.lenet, data.judged_by_images(setting), **how)
    counts = np.arange(step, total + 1, step)
    found = []
    for name, (notion, estimator, _) in ESTIMATORS.items():
        unit = {"permutation": rows + 1, "marginal": 2 * rows}.get(estimator, 1)
        # The largest first, in whole batches; the others are read from its ledger.
        values = [
            ledgers.value(
                setting,
                ("mnist", rows, estimator),
                game,
                notion,
                piecewise=True,
                estimator=estimator,
                budget=max(unit, int(count)),
            ).values
            for count in counts[::-1]
        ][::-1]
        agreement = np.nan_to_num(db.ranking.relative_spearman(values))
        whole = np.maximum(counts // unit, 1) * unit
        found += [
            {
                "estimator": name,
                "samples": int(count),
                "relative_spearman": float(index),
                "pure_noise": pure_noise(now, later),
            }
            for count, index, now, later in zip(
                counts[:-1], agreement, whole[:-1], whole[1:], strict=True
            )
        ]
    table = pd.DataFrame(found)
    wide = table.pivot(index="samples", columns="estimator", values="relative_spearman")
    last = table[table["samples"] == wide.index[-1]].set_index("estimator")
    gained = (last["relative_spearman"] - last["pure_noise"]) / (1 - last["pure_noise"])
    others = [name for name in ESTIMATORS if name.startswith("Shapley")]
    return Outcome(
        "How fast rankings converge on MNIST",
        f"Relative Spearman index: between the values from some samples and those from {step:,} "
        f"further ones. LeNet on {rows} images.",
        table,
        lambda figure: _draw(figure, table),
        f"up to {total:,} coalitions for each estimator, one training each",
        (
            *(
                (
                    f"Without a GPU, at this scale: {rows} images instead of 500, steps of "
                    f"{step}. This only shows that the experiment runs.",
                )
                if setting.small
                else ()
            ),
            "The text gives no number of epochs; 30 here, as for LeNet elsewhere. It judges by a "
            f"test set of unknown size; {protocol.held_out_images(setting):,} images here.",
            text("convergence_ranking_shared_samples"),
        ),
        (
            Claim(
                "The ranking by MSR converges much faster than the Shapley estimators'",
                "figure",
                f"at {int(wide.index[-1]):,} samples: "
                + ", ".join(
                    f"{name} {last['relative_spearman'][name]:.3f} (pure noise "
                    f"{last['pure_noise'][name]:.3f}; {gained[name]:.0%} of what it leaves)"
                    for name in ESTIMATORS
                ),
                None
                if setting.small
                else bool(gained["Banzhaf, MSR"] > gained[others].max() + LEAD),
            ),
        ),
        wide.reset_index()[["samples", *ESTIMATORS]],
        data=(protocol.origin("mnist").split(";")[0] + ".",),
        scaled=f"of {SAMPLES:,} coalitions, our number, was asked for; the line `samples` says "
        "what was taken",
        hardware=ledgers.machines(
            ledgers.work(
                setting, [("mnist", rows, estimator) for _, estimator, _ in ESTIMATORS.values()]
            )
        ),
    )


def pure_noise(now: int, later: int) -> float:
    """Spearman between means of `now` draws of noise and of `later`, which include them: normal,
    with correlation sqrt(now / later).
    """
    return float(6 / np.pi * np.arcsin(np.sqrt(now / later) / 2))


def _draw(figure: Any, table: pd.DataFrame) -> None:
    ax = figure.subplots()
    for name, (_, _, colour) in ESTIMATORS.items():
        part = table[table["estimator"] == name]
        ax.plot(
            part["samples"], part["relative_spearman"], "o-", markersize=3, color=colour, label=name
        )
        ax.plot(part["samples"], part["pure_noise"], ":", color=colour)
    ax.plot([], [], ":", color="black", label="pure noise, in each colour")
    ax.set(xlabel="samples", ylabel="relative Spearman index")
    ax.legend()
    ax.grid(alpha=0.3)
