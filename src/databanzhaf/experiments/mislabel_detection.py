"""Table 2: F1 of flagging the lowest 10%, where 10% of the labels are flipped."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import baselines, comparison, draw_values, ledgers, score_table
from databanzhaf.experiments.draw_values import NAMES, OURS, Valued
from databanzhaf.experiments.notions import NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text
from databanzhaf.experiments.weighted_training import differs, origins, samples

# Our way to find wrong labels, which needs no values.
FINDERS: Final = {
    "mislabels": "`mislabels`",
    "mislabels_checked": "`mislabels`, validation rows as checked rows",
}
WITHOUT_VALUES: Final = {**baselines.NAMES, **FINDERS}
# Each column, and the values that it ranks rows by, if any.
SCORED: Final = {
    **{column: column for column in draw_values.COLUMNS},
    **dict.fromkeys(WITHOUT_VALUES),
}

# Version of the F1: 2 puts equal values in order by chance.
RULE = 2

BASELINES_EXPLAINED = text("mislabel_detection_baselines", neighbours=baselines.NEIGHBOURS)
FINDERS_EXPLAINED = text("mislabel_detection_finders")


def run(setting: Setting) -> Outcome:
    table, work = score_table.collect(
        "mislabel_detection",
        setting,
        SCORED,
        lambda valued, missing: f1_scores(valued, setting, missing),
        RULE,
    )
    paper = comparison.paper_table("paper_mislabel_f1.csv")
    means = comparison.means_of(table)
    tell = comparison.enough(setting, means)
    columns = [*NOTIONS, *OURS, *WITHOUT_VALUES]
    shown = comparison.beside(table, paper, columns).rename(columns=WITHOUT_VALUES)
    over = means[columns].mean().sort_values(ascending=False)
    notion, simple = str(over[list(NOTIONS)].idxmax()), str(over[list(baselines.NAMES)].idxmax())
    better = int((means[notion] > means[simple]).sum())
    between = table.groupby(["dataset", "method"])["mean"].std()
    spread = float(between.xs("banzhaf", level="method").mean()) if setting.n_draws > 1 else np.nan
    return Outcome(
        "Mislabel detection (Table 2)",
        "F1 of flagging the 10% of rows with the lowest values, where 10% of the labels are "
        "flipped. " + comparison.LINES,
        table,
        lambda figure: _draw(figure, means[over.index]),
        samples(table),
        (
            "Equal values at the edge of the lowest 10% are put in order by chance: the F1 is its "
            "expectation.",
            *differs(setting),
            *(
                [
                    "2dplanes: the paper prints the same numbers for Beta(4, 1) and Beta(1, 4), "
                    "and for Beta(16, 1) and Beta(1, 16)."
                ]
                if "2dplanes" in means.index
                else []
            ),
        ),
        (
            *comparison.overall_claims(
                "Mislabel detection", means, paper, list(NOTIONS), tell=tell
            ),
            Claim(
                f"Does the best notion ({_label(notion)}) find more wrong labels than the best "
                f"simple baseline ({_label(simple)})?",
                "not asked",
                f"on {better} of {comparison.counted(means)}; mean {over[notion]:.3f} against "
                f"{over[simple]:.3f}",
                better > len(means) / 2 if tell else None,
                asked_by_paper=False,
            ),
        ),
        shown,
        notes=(
            "The columns after `Beta(1, 16)` are not the paper's: other utilities and notions of "
            "ours, then what a person would try first, then our `mislabels`.",
            comparison.OURS_EXPLAINED,
            BASELINES_EXPLAINED,
            FINDERS_EXPLAINED,
            comparison.mean_over(
                means.rename(columns=WITHOUT_VALUES),
                [WITHOUT_VALUES.get(name, name) for name in columns],
            ),
            *comparison.first_draw(table, list(NOTIONS), setting, WITHOUT_VALUES),
            *(
                []
                if spread != spread
                else [
                    f"Another draw of the data moves the F1 of Banzhaf values by {spread:.3f} "
                    "(standard deviation, mean over datasets)."
                ]
            ),
        ),
        size=(9.0, 5.0),
        data=origins(setting),
        hardware=ledgers.machines(work),
        datasets=len(means),
    )


def f1_scores(valued: Valued, setting: Setting, columns: Collection[str]) -> dict[str, list[float]]:
    """For each column the F1 of each of its value vectors; for each baseline its only one."""
    wrong = valued.draw.flipped
    simple = (
        baselines.scores(valued.draw, setting)
        if any(column in baselines.NAMES for column in columns)
        else {}
    )

    def vectors(column: str) -> list[db.Estimate]:
        if column in FINDERS:
            simple[column] = _ranks(valued.draw, setting, checked=column == "mislabels_checked")
        return (
            [draw_values.as_estimate(simple[column], column)]
            if column in WITHOUT_VALUES
            else valued.vectors(column)
        )

    return {column: [f1(one, wrong) for one in vectors(column)] for column in columns}


def _ranks(draw: Draw, setting: Setting, *, checked: bool) -> Any:
    """The rank of each row by `mislabels`, 1 for the most doubtful."""
    known = (draw.X_val, draw.y_val) if checked else ()
    found = db.mislabels(draw.X, draw.y, *known, seed=setting.seed, n_jobs=1, device="cpu")
    return found.rank.astype(np.float64)


def f1(estimate: db.Estimate, wrong: Any) -> float:
    return db.applications.detection_scores(estimate, wrong, fraction=0.1).f1


def _label(name: Any) -> str:
    return str(NAMES.get(name) or WITHOUT_VALUES[name])


def _draw(figure: Any, f1s: pd.DataFrame) -> None:
    ax = figure.subplots()
    place = np.arange(len(f1s.columns))
    for kind, names, colour in (
        ("the paper's notions", NOTIONS, "tab:red"),
        ("ours", OURS, "tab:orange"),
        ("simple baselines", baselines.NAMES, "tab:gray"),
        ("our mislabels", FINDERS, "tab:blue"),
    ):
        chosen = f1s.columns.isin(list(names))
        ax.barh(place[chosen], f1s.mean()[chosen], color=colour, label=kind)
    ax.scatter(
        f1s.to_numpy().ravel(),
        np.tile(place, len(f1s)),
        s=9,
        color="white",
        edgecolors="black",
        linewidths=0.6,
        zorder=3,
    )
    ax.set_yticks(place, [_label(name) for name in f1s])
    ax.invert_yaxis()
    ax.set(xlabel=f"F1: bars the mean over {comparison.counted(f1s)}, dots the datasets")
    ax.legend(loc="lower right")
