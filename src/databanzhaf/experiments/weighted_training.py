"""Table 1: accuracy of networks trained with values as weights."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import comparison, draw_values, ledgers, protocol, score_table
from databanzhaf.experiments.draw_values import NAMES, OURS, Valued
from databanzhaf.experiments.notions import COLOURS, NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

TRAININGS = 5
PAPERS = [*NOTIONS, "uniform"]
WHOLE: Final = {"banzhaf_whole": "Banzhaf, whole epochs", "uniform_whole": "uniform, whole epochs"}
# Each column, and the values that it takes as weights.
SCORED: Final = {
    **{column: column for column in draw_values.COLUMNS},
    "uniform": None,
    "banzhaf_whole": "banzhaf",
    "uniform_whole": None,
}

# Version of the accuracy: 2 trains each value vector with keys of its own.
RULE = 2


def run(setting: Setting) -> Outcome:
    table, work = score_table.collect(
        "weighted_training",
        setting,
        SCORED,
        lambda valued, missing: accuracies(valued, setting, missing),
        RULE,
    )
    paper = comparison.paper_table("paper_weighted_accuracy.csv")
    means = comparison.means_of(table)
    tell = comparison.enough(setting, means)
    columns = [*PAPERS, *OURS, *WHOLE]
    beats = int((means["banzhaf"] > means["uniform"]).sum())
    theirs = comparison.of_the_same(paper, means)
    their_beats = int((theirs["banzhaf"] > theirs["uniform"]).sum())
    gain = float((means["banzhaf"] - means["uniform"]).mean())
    whole = int((means["banzhaf"] > means["uniform_whole"]).sum())
    whole_gain = means["banzhaf_whole"] - means["uniform_whole"]
    return Outcome(
        "Learning with weighted samples (Table 1)",
        "Test accuracy of a network whose mini-batches are drawn in proportion to the values, "
        "scaled to [0, 1]. " + comparison.LINES,
        table,
        lambda figure: _draw(figure, table),
        samples(table),
        differs(setting) + training_differs(setting),
        (
            *comparison.overall_claims("Weighted training", means, paper, PAPERS, tell=tell),
            Claim(
                "Weighted training: Banzhaf values beat uniform weights",
                f"on {their_beats} of {len(theirs)}",
                f"on {beats} of {len(means)}, by {gain:+.3f} on average; a yes takes all",
                beats == len(means) if tell else None,
            ),
            Claim(
                "Do Banzhaf weights with one mini-batch an epoch beat uniform weights with whole "
                "epochs?",
                "not asked",
                f"on {whole} of {len(means)}: {means['banzhaf'].mean():.3f} against "
                f"{means['uniform_whole'].mean():.3f} on average",
                whole > len(means) / 2 if tell else None,
                asked_by_paper=False,
            ),
            Claim(
                "Do Banzhaf weights help with whole epochs?",
                "not asked",
                f"on {int((whole_gain > 0).sum())} of {len(means)}, by {whole_gain.mean():+.3f} "
                "on average",
                bool((whole_gain > 0).sum() > len(means) / 2) if tell else None,
                asked_by_paper=False,
            ),
        ),
        comparison.beside(table, paper, columns).rename(columns=WHOLE),
        notes=(
            "The columns after `uniform` are not the paper's. Whole epochs take as many "
            "mini-batches as the rows fill, not one; rows are drawn with replacement there too.",
            comparison.OURS_EXPLAINED,
            comparison.mean_over(
                means.rename(columns=WHOLE), [WHOLE.get(name, name) for name in columns]
            ),
            *comparison.first_draw(table, PAPERS, setting),
        ),
        size=(11.0, 4.5),
        data=origins(setting),
        hardware=ledgers.machines(work),
        datasets=len(means),
    )


def accuracies(
    valued: Valued, setting: Setting, columns: Collection[str]
) -> dict[str, list[float]]:
    """For each column the accuracy of each of its value vectors, mean over five trainings; the five
    vectors of a column have keys of their own.
    """
    data = valued.draw

    def scores(column: str) -> list[float]:
        values = SCORED[column]
        equal = [np.ones(len(data.y))] * draw_values.REPEATS
        weights = (
            equal
            if values is None
            else [db.applications.weights(one) for one in valued.vectors(values)]
        )
        return [
            accuracy(data, one, setting, number, whole=column in WHOLE)
            for number, one in enumerate(weights)
        ]

    return {column: scores(column) for column in columns}


def accuracy(
    data: protocol.Draw, weights: Any, setting: Setting, number: int, *, whole: bool
) -> float:
    """Mean test accuracy of five networks, the mini-batches of which are drawn by the weights: one
    in each epoch, or as many as the rows fill.
    """
    # A handful of small networks is quickest on the CPU.
    how: dict[str, Any] = {"compiles": False} if data.name in protocol.LENET else {"device": "cpu"}
    if not whole:
        how["batches_per_epoch"] = 1
    game = protocol.network(
        data.judged_by_test(),
        data.name,
        setting,
        sample_weight=weights,
        weighting="sampling",
        **how,
    )
    keys = db.chance.keys(
        setting.seed, db.chance.TRAINING, np.arange(TRAININGS) + TRAININGS * number
    )
    return float(game.utility(np.ones((TRAININGS, len(data.y)), dtype=np.bool_), keys).mean())


def samples(table: pd.DataFrame) -> str:
    """How many coalitions each kind of column took, in the first draw and in the others."""
    kinds = {"the paper's columns": [*NOTIONS], "columns of ours": [*OURS]}
    parts = []
    for first, which in ((True, "first draw"), (False, "further draws")):
        for kind, columns in kinds.items():
            counts = table[
                ((table["draw"] == 0) == first)
                & table["method"].isin(columns)
                & (table["method"] != "loo")
            ]["coalitions"]
            if len(counts):
                span = (
                    f"{counts.min():,}"
                    if counts.min() == counts.max()
                    else f"{counts.min():,} to {counts.max():,}"
                )
                parts.append(f"{which}, {kind}: {span} coalitions")
    shared = (
        "Shapley and all Betas from one run of whole permutations; leave-one-out from all n "
        "+ 1 coalitions"
    )
    return f"{'; '.join(parts)}; {draw_values.REPEATS} trainings each; {shared}"


def differs(setting: Setting) -> tuple[str, ...]:
    """What differs in both tables."""
    left, names = draw_values.left_out(setting), draw_values.datasets(setting)
    lenet = [name for name in names if name in protocol.LENET]
    lines = {
        protocol.BALANCED: True,
        protocol.CUT: True,
        "The hidden units are leaky ReLUs and a softmax is applied before the cross-entropy, as "
        "in the authors' code; the paper's text says ReLU and does not mention the softmax.": True,
        "cifar10: features of SqueezeNet stand in for ResNet18's.": "cifar10" in names,
        "vehicle is another version (see the data lines).": "vehicle" in names,
        "apsfail is partial (see the data lines).": "apsfail" in names,
        "The Beta columns at 1,000 rows and more, which the paper leaves empty, are filled: our "
        "weights are in logs.": any(protocol.ROWS.get(name, 0) >= 1000 for name in names),
        "Image sets have 200 validation rows too.": any(name in protocol.IMAGES for name in names),
        f"LeNet ({', '.join(lenet)}) has one draw, {_permutations(setting)}, "
        f"{draw_values.LENET_LOO} trainings for leave-one-out, and at most "
        f"{draw_values.LENET_OURS} coalitions for our columns.": lenet,
        "Left out, since there is no GPU and `--datasets` does not name them: "
        f"{', '.join(left)}.": left,
    }
    return tuple(line for line, applies in lines.items() if applies)


def _permutations(setting: Setting) -> str:
    """Of those that LeNet is trained on."""
    name = protocol.LENET[0]
    coalitions = draw_values.scale_of(name, 0, setting) * draw_values.COALITIONS
    count = max(1, round(coalitions) // (protocol.ROWS[name] + 1))
    return "one permutation" if count == 1 else f"{count} permutations"


def training_differs(setting: Setting) -> tuple[str, ...]:
    """What differs in weighted training alone."""
    tested = {
        name: len(protocol.draw(name, 0, setting).y_test) for name in draw_values.datasets(setting)
    }
    fewer = {name: count for name, count in tested.items() if count < protocol.TEST}
    return (
        text("weighted_training_differs"),
        f"Test rows: {protocol.TEST:,}"
        + "".join(f"; {name} {count:,}, all that are left" for name, count in fewer.items())
        + ".",
    )


def origins(setting: Setting) -> tuple[str, ...]:
    return tuple(protocol.origin(name) for name in draw_values.datasets(setting))


def _draw(figure: Any, table: pd.DataFrame) -> None:
    ax = figure.subplots()
    scores = table.pivot(index=["dataset", "draw"], columns="method", values="mean")
    of_draws = scores.sub(scores["uniform"], axis=0)[[*NOTIONS, *OURS]].groupby("dataset")
    trainings = table[table["draw"] == 0].pivot(
        index="dataset", columns="method", values="std_error"
    )
    of_one_draw = np.hypot(trainings, trainings[["uniform"]].to_numpy())
    gains, errors = of_draws.mean(), of_draws.sem().combine_first(of_one_draw)
    place = np.arange(len(gains))
    # Colours of the paper's notions are those of the other figures.
    colours = {
        **COLOURS,
        **dict(zip(OURS, ("gold", "tab:pink", "tab:brown", "black"), strict=True)),
    }
    for number, column in enumerate(gains.columns):
        error = {"yerr": 2 * errors[column], "error_kw": {"elinewidth": 0.7, "ecolor": "gray"}}
        ax.bar(
            place + number * 0.075,
            gains[column],
            0.075,
            color=colours[column],
            label=NAMES[column],
            **error,
        )
    ax.axhline(0, color="black", linewidth=0.8)
    least, most = (float(edge(gains.to_numpy(), initial=0.0)) for edge in (np.nanmin, np.nanmax))
    ax.set_ylim(1.5 * least - 1e-3, 1.7 * most + 1e-3)
    ax.set_xticks(place + 0.3, gains.index, rotation=30)
    ax.set(
        ylabel="accuracy minus that of uniform weights",
        xlabel="lines, cut at the frame: two standard errors, over the draws, or over the value "
        "vectors of the only one",
    )
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
