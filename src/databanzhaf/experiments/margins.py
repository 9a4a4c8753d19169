"""Theorems 1 and 2: how much noise a ranking survives, and how far noise moves values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import databanzhaf as db
from databanzhaf.experiments.notions import COLOURS, LABELS, NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting

SIZES = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
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
    loo = float(np.abs(margins["loo"]).max())
    formula = float(np.abs(margins["banzhaf"] - (margins.index.to_numpy() / 2 - 1) * np.log10(2)).max())
    shown = margins.reset_index()[["n", *NOTIONS]].rename(columns={name: LABELS[name] for name in NOTIONS})
    return Outcome(
        "Safety margin and Lipschitz constant",
        "How much noise in the utility (l2 norm) the order of two players survives who differ by tau = 1 at every size (Theorem 1), and how far noise "
        "moves the values (Theorem 2), over the number of players. Powers of ten. The third picture shows the smallest noise that turns a pair "
        "for n = 3: the difference of the two values while the utility moves towards the worst utility. (For n = 3 Shapley's pair weights happen to be equal too, so its line lies on Banzhaf's.)",
        table,
        lambda figure: _draw(figure, margins, constants),
        "none: formulas",
        (
            "The lemma as printed counts the norm of its vector once for each subset where it has two entries: the pair ties at 1/sqrt(2) of the printed "
            "margin, for every semivalue alike. The table shows the printed margin; the third picture shows the tie.",
        ),
        (
            Claim(
                "The Banzhaf value has the largest safety margin of all semivalues",
                "proved",
                f"largest of 7 at each of {len(SIZES)} sizes",
                best,
            ),
            Claim("Its margin is tau 2^(n/2 - 1)", "proved", f"largest deviation of log10: {formula:.1e}", formula < 1e-9),
            Claim("The margin of leave-one-out is tau, whatever n", "proved", f"largest deviation of log10: {loo:.1e}", loo < 1e-9),
            Claim("The Banzhaf value has the smallest Lipschitz constant", "proved", f"smallest of 7 at each of {len(SIZES)} sizes", least),
        ),
        shown,
        notes=("The table below shows log10 of the safety margin.",),
        size=(13.0, 4.2),
    )


def _draw(figure: Any, margins: pd.DataFrame, constants: pd.DataFrame) -> None:
    left, middle, right = figure.subplots(1, 3)
    for ax, numbers, title in ((left, margins, "log10 of the safety margin"), (middle, constants, "log10 of the Lipschitz constant")):
        for name in NOTIONS:
            # Beta(a, b) and Beta(b, a) have the same line: dashes let the one below be seen.
            style = "o--" if name in ("beta_1_4", "beta_1_16") else "o-"
            ax.plot(numbers.index, numbers[name], style, markersize=3, color=COLOURS[name], label=LABELS[name])
        ax.set(xscale="log", xlabel="players", ylabel=title)
        ax.grid(alpha=0.3)
    left.set_yscale("symlog")
    middle.set_yscale("symlog")
    left.legend(fontsize=8)
    for name in GEOMETRY:
        distances, difference = flipping_path(NOTIONS[name])
        right.plot(distances, difference, color=COLOURS[name], label=LABELS[name])
    right.axhline(0, color="black", linewidth=0.8)
    right.set(xlabel="l2 norm of the noise (n = 3, tau = 1)", ylabel="difference of the two values, 1 without noise")
    right.legend(fontsize=8)
    right.grid(alpha=0.3)


def flipping_path(notion: Any, steps: int = 41) -> tuple[Any, Any]:
    """(noise, difference of the values of players 0 and 1) from U to the worst U at the safety margin, for n = 3."""
    utility, worst = db.theory.worst_perturbation(notion, 3)
    shares = np.linspace(0, 1, steps)
    difference = []
    for share in shares:
        values = db.value(db.games.Table(utility + share * (worst - utility)), notion).values
        difference.append(values[0] - values[1])
    start = difference[0]
    return shares * np.linalg.norm(worst - utility), np.array(difference) / start
