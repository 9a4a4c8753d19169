"""Share of images that stay in the top and in the bottom k% over five trainings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import image_runs, protocol
from databanzhaf.experiments.image_runs import NOTIONS
from databanzhaf.experiments.notions import COLOURS, LABELS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting

SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def run(setting: Setting) -> Outcome:
    images = image_runs.value_images(setting)
    table = pd.DataFrame(
        [
            {
                "side": side,
                "share": share,
                "notion": name,
                "consistent": db.ranking.consistent(images.values[name], share, side),
            }
            for side in ("top", "bottom")
            for share in SHARES
            for name in NOTIONS
        ]
    )
    wide = table.pivot(index=["side", "share"], columns="notion", values="consistent")
    next_best = wide[["loo", "shapley"]].max(axis=1)
    best, equal = (
        int((wide["banzhaf"] > next_best).sum()),
        int((wide["banzhaf"] == next_best).sum()),
    )
    others = float(wide[["loo", "shapley"]].to_numpy().max())
    lead = float((wide["banzhaf"] - next_best).mean())
    far = best + equal == len(wide) and lead > 0.1
    return Outcome(
        "Images that stay in the top and bottom k%",
        "Share of the top (bottom) k% that all five runs agree on. Pure chance gives k^5 / k: "
        "0.0001 at 10%, 0.06 at 50%.",
        table,
        lambda figure: _draw(figure, table),
        "; ".join(
            f"{LABELS[name]} {images.coalitions[name]:,} evaluations for each of "
            f"{image_runs.SEEDS} runs"
            for name in NOTIONS
        ),
        image_runs.differs(setting),
        (
            Claim(
                "Banzhaf values pick the same images over all runs, far more (0.1) than the others",
                "figure",
                f"most at {best} of {len(wide)} points, as many as another at {equal}; "
                f"{lead:+.2f} more than the next on average",
                True
                if far and not setting.small
                else False
                if images.as_many_as_the_paper("banzhaf")  # more of the others only raise them
                else None,
            ),
            Claim(
                "Leave-one-out and Shapley: below 10% for every k up to 50%",
                "below 10%",
                f"at most {others:.1%}",
                others < 0.1
                if images.as_many_as_the_paper()
                else None
                if setting.small or others < 0.1
                else False,
            ),
        ),
        wide.reset_index()[["side", "share", *NOTIONS]].rename(columns=LABELS),
        hardware=images.hardware,
        data=(protocol.origin("cifar10_images"),),
    )


def _draw(figure: Any, table: pd.DataFrame) -> None:
    for ax, side in zip(figure.subplots(1, 2, sharey=True), ("top", "bottom"), strict=True):
        for name in NOTIONS:
            part = table[(table["side"] == side) & (table["notion"] == name)]
            ax.plot(
                100 * part["share"],
                100 * part["consistent"],
                "o-",
                color=COLOURS[name],
                label=LABELS[name],
            )
        chance = np.array(SHARES)
        ax.plot(100 * chance, 100 * chance**4, ":", color="black", label="pure chance")
        ax.set(xlabel=f"{side} k%", ylabel="% in all five runs")
        ax.legend()
        ax.grid(alpha=0.3)
