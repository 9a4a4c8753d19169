"""Theorems 1 and 2: how much noise a ranking survives; and how far noise moves values (the
Lipschitz theorem of the appendix).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments.notions import COLOURS, LABELS, NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text, whole

SIZES = (2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)
DRAWN = 50  # players in the picture: beyond, Banzhaf's line would press the others flat
GEOMETRY = ("loo", "shapley", "banzhaf")


def run(setting: Setting) -> Outcome:
    table = pd.DataFrame(
        [
            {
                "n": n,
                "notion": name,
                "log10_margin": db.theory.safety_margin(notion, n, log=True) / np.log(10),
                "log10_lipschitz": db.theory.lipschitz(notion, n, log=True) / np.log(10),
            }
            for n in SIZES
            for name, notion in NOTIONS.items()
        ]
    )
    margins = table.pivot(index="n", columns="notion", values="log10_margin")
    best = bool((margins.sub(margins["banzhaf"], axis=0) <= 1e-9).all(axis=None))
    constants = table.pivot(index="n", columns="notion", values="log10_lipschitz")
    least = bool((constants.sub(constants["banzhaf"], axis=0) >= -1e-9).all(axis=None))
    n = margins.index.to_numpy()
    between = bool(
        (
            (margins["loo"] <= margins["shapley"]) & (margins["shapley"] <= np.log10(n - 1) + 1e-9)
        ).all()
    )
    constant = float(np.abs(constants["banzhaf"] - (1 - n / 2) * np.log10(2)).max())
    ties = {name: tie(notion) for name, notion in NOTIONS.items()}
    shown = pd.concat(
        [margins.assign(what="safety margin"), constants.assign(what="Lipschitz constant")]
    ).reset_index()
    shown = shown[["what", "n", *NOTIONS]].rename(
        columns={"what": "log10 of", **{name: LABELS[name] for name in NOTIONS}}
    )
    return Outcome(
        "Safety margin and Lipschitz constant",
        text("margins_what"),
        table,
        lambda figure: _draw(figure, margins, constants),
        "none: formulas",
        (text("margins_differs"),),
        (
            Claim(
                "The Banzhaf value has the largest safety margin of all semivalues",
                "proved",
                f"largest of 7 at each of {len(SIZES)} sizes",
                best,
            ),
            *(
                Claim(
                    what,
                    "proved",
                    f"at n = 3 the pair ties at {ties[name]:.3f} of that; for all seven notions "
                    f"at {min(ties.values()):.3f} to {max(ties.values()):.3f}",
                    abs(ties[name] - 1) < 1e-6,
                )
                for name, what in (
                    ("banzhaf", "The Banzhaf value's margin is tau 2^(n/2 - 1)"),
                    ("loo", "The margin of leave-one-out is tau, whatever n"),
                )
            ),
            Claim(
                "The margin of leave-one-out is at most Shapley's, and that at most tau (n - 1)",
                "proved",
                f"at each of {len(SIZES)} sizes",
                between,
            ),
            Claim(
                "The Banzhaf value has the smallest Lipschitz constant",
                "proved",
                f"smallest of 7 at each of {len(SIZES)} sizes",
                least,
            ),
            Claim(
                "The Banzhaf value's Lipschitz constant is 2^(1 - n/2)",
                "proved",
                f"largest deviation of log10: {constant:.1e}",
                constant < 1e-9,
            ),
        ),
        shown,
        notes=(whole("margins_proof.md"),),
        size=(13.0, 4.2),
        scaled="changes nothing here: formulas",
    )


def _draw(figure: Any, margins: pd.DataFrame, constants: pd.DataFrame) -> None:
    left, middle, right = figure.subplots(1, 3)
    for ax, numbers, title in (
        (left, margins, "safety margin"),
        (middle, constants, "Lipschitz constant"),
    ):
        part = 10 ** numbers[numbers.index <= DRAWN]
        for name in NOTIONS:
            # Beta(a, b) and Beta(b, a) have the same line: dashes let the one below be seen.
            style = "o--" if name in ("beta_1_4", "beta_1_16") else "o-"
            ax.plot(
                part.index, part[name], style, markersize=3, color=COLOURS[name], label=LABELS[name]
            )
        ax.set(yscale="log", xlabel="players", ylabel=title)
        ax.grid(alpha=0.3)
    left.legend(fontsize=8)
    for name in GEOMETRY:
        distances, difference = flipping_path(NOTIONS[name])
        right.plot(distances, difference, color=COLOURS[name], label=LABELS[name])
    right.axhline(0, color="black", linewidth=0.8)
    right.set(
        xlabel="l2 norm of the noise (n = 3, tau = 1)",
        ylabel="difference of the two values, 1 without noise",
    )
    right.legend(fontsize=8)
    right.grid(alpha=0.3)


def tie(notion: Any) -> float:
    """The noise at which the pair ties, as a share of the printed safety margin, for n = 3."""
    distances, difference = flipping_path(notion)
    return float(np.interp(0, -difference, distances)) / float(db.theory.safety_margin(notion, 3))


def flipping_path(notion: Any, steps: int = 41) -> tuple[Any, Any]:
    """(noise, difference of the values of players 0 and 1) from U to the worst U at the safety
    margin, for n = 3.
    """
    utility, worst = db.theory.worst_perturbation(notion, 3)
    shares = np.linspace(0, 1, steps)
    difference = []
    for share in shares:
        values = db.value(db.games.Table(utility + share * (worst - utility)), notion).values
        difference.append(values[0] - values[1])
    start = difference[0]
    return shares * np.linalg.norm(worst - utility), np.array(difference) / start
