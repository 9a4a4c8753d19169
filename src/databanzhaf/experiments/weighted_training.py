"""Table 1: accuracy of networks trained with values as weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import protocol, values13
from databanzhaf.experiments.notions import COLOURS, NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.values13 import NAMES, OURS, Valued

TRAININGS = 5
PAPERS = [*NOTIONS, "uniform"]


def run(setting: Setting) -> Outcome:
    table = values13.collect("weighted_training", setting, lambda valued: accuracies(valued, setting))
    paper = values13.paper_table("paper_weighted_accuracy.csv")
    columns = [*PAPERS, *(name for name in OURS if name in set(table["method"]))]
    best = values13.best_of(table, PAPERS)
    theirs = paper.loc[paper.groupby("dataset")["mean"].idxmax()].set_index("dataset")["method"]
    wins, shared = int((best == "banzhaf").sum()), [name for name in best.index if name in theirs.index]
    their_wins = int((theirs[shared] == "banzhaf").sum())
    means = table.groupby(["dataset", "method"])["mean"].mean().unstack()
    beats = int((means["banzhaf"] > means["uniform"]).sum())
    wide = paper.pivot(index="dataset", columns="method", values="mean").loc[shared]
    their_beats = int((wide["banzhaf"] > wide["uniform"]).sum())
    gain = float((means["banzhaf"] - means["uniform"]).mean())
    number = setting.n_draws
    return Outcome(
        "Learning with weighted samples (Table 1)",
        "Test accuracy of a network whose mini-batches are drawn in proportion to the values, scaled to [0, 1]. " + values13.LINES,
        table.drop(columns="hardware"),
        lambda figure: _draw(figure, table),
        samples(table),
        differs(),
        (
            Claim(
                "Weighted training: Data Banzhaf is best",
                f"{their_wins} of these {len(shared)} datasets",
                f"{wins} of {len(best)} (mean over {number} draws)",
                wins > len(best) / 2,
            ),
            Claim(
                "Weighted training: Banzhaf values beat uniform weights",
                f"{their_beats} of these {len(shared)}",
                f"{beats} of {len(means)}, by {gain:+.3f} on average",
                beats == len(means),
            ),
        ),
        values13.beside(table, paper, columns),
        notes=("The columns after `uniform` are not the paper's.",),
        size=(11.0, 4.5),
        data=origins(setting),
        hardware=values13.made_on(table),
    )


def accuracies(valued: Valued, setting: Setting) -> dict[str, list[float]]:
    """For each column the accuracy of each of its value vectors, mean over five trainings."""
    data = valued.draw
    uniform = np.ones(len(data.y))
    found = {column: [accuracy(data, db.applications.weights(one), setting) for one in valued.vectors(column)] for column in valued.values}
    return {**found, "uniform": [accuracy(data, uniform, setting, number) for number in range(values13.REPEATS)]}


def accuracy(data: protocol.Draw, weights: Any, setting: Setting, number: int = 0) -> float:
    """Mean test accuracy of five networks, each epoch of which is one mini-batch drawn by the weights."""
    # A handful of small networks is quickest on the CPU.
    where = {"compiles": False} if data.name in protocol.LENET else {"device": "cpu"}
    game = protocol.network(
        data.judged_by_test(), data.name, setting, sample_weight=weights, weighting="sampling", batches_per_epoch=1, **where
    )
    keys = db.chance.keys(setting.seed, db.chance.TRAINING, np.arange(TRAININGS) + TRAININGS * number)
    return float(game.utility(np.ones((TRAININGS, len(data.y)), dtype=np.bool_), keys).mean())


def samples(table: pd.DataFrame) -> str:
    """How many coalitions each kind of column took, in the first draw and in the others."""
    kinds = {"the paper's columns": [*NOTIONS], "columns of ours": [*OURS]}
    told = []
    for first, which in ((True, "first draw"), (False, "further draws")):
        for kind, columns in kinds.items():
            counts = table[((table["draw"] == 0) == first) & table["method"].isin(columns) & (table["method"] != "loo")]["coalitions"]
            if len(counts):
                told.append(f"{which}, {kind}: {counts.min():,} to {counts.max():,} coalitions")
    shared = "Shapley and all Betas from one run of whole permutations; leave-one-out from all n + 1 coalitions"
    return f"{'; '.join(told)}; {values13.REPEATS} trainings each; {shared}"


def differs() -> tuple[str, ...]:
    return (
        protocol.BALANCED,
        "CIFAR10: features of SqueezeNet stand in for ResNet18's. Vehicle is another version, Apsfail is partial (see the data lines).",
        "The Beta columns at 1,000 rows and more, which the paper leaves empty, are filled: our weights are in logs.",
        f"Image sets are judged by 200 validation rows too, and have one draw; MNIST and Fashion-MNIST have one permutation and {values13.LENET_LOO} trainings for leave-one-out. Without a GPU, image "
        "sets are left out.",
    )


def origins(setting: Setting) -> tuple[str, ...]:
    return tuple(f"{name}: {protocol.load(name).origin.split(': ', 1)[-1]}" for name in values13.datasets(setting))


def _draw(figure: Any, table: pd.DataFrame) -> None:
    ax = figure.subplots()
    means = table.groupby(["dataset", "method"])["mean"].mean().unstack()
    gains = means.sub(means["uniform"], axis=0)[[*NOTIONS, *(name for name in OURS if name in means)]]
    place = np.arange(len(gains))
    # Colours of the paper's notions are those of the other figures; ours are gray, darker for larger p.
    colours = {**COLOURS, **dict(zip(OURS, ("gold", "0.8", "0.5", "0.2"), strict=True))}
    for number, column in enumerate(gains.columns):
        ax.bar(place + number * 0.075, gains[column], 0.075, color=colours[column], label=NAMES[column])
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xticks(place + 0.3, gains.index, rotation=30)
    ax.set(ylabel="accuracy less that of uniform weights")
    ax.legend(fontsize=7, ncols=3)
