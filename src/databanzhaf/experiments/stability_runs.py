"""Rank stability over k repeats, shared by two experiments: SGD, and gradient descent with
randomized smoothing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import t

import databanzhaf as db
from databanzhaf.experiments import agreements, ledgers, protocol
from databanzhaf.experiments.notions import COLOURS, LABELS, NOTIONS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

SAMPLES = 2000
DATASETS: Final = ("cpu", "cifar10")
EVERY: Final = (*NOTIONS, "least_core")
LEDGERS: Final = ("shapley", "banzhaf", "loo", "least_core")
REPEATS: Final = {"cpu": 150, "cifar10": 70}
# Under the noise of training the least core is nearly as stable on cpu as Banzhaf's ranking for
# k = 1: only many repeats can tell which is ahead. The first REPEATS of them are kept.
MORE_REPEATS: Final = {
    ("rank_stability", "cpu", "banzhaf"): 5000,
    ("rank_stability", "cpu", "least_core"): 3000,
}


def reference_and_ks(setting: Setting) -> tuple[int, tuple[int, ...]]:
    """(repeats of a reference, values of k): the paper's reference has k = 50."""
    return (50, (1, 2, 5, 10, 20)) if setting.scale >= 0.1 else (10, (1, 2, 5))


def kept_repeats(name: str, setting: Setting) -> int:
    """Repeats of every run, the evaluations of which are kept beside the pages."""
    return REPEATS[name] if setting.scale >= 0.1 else 15


def all_repeats(experiment: str, name: str, ledger: str, setting: Setting) -> int:
    kept = kept_repeats(name, setting)
    more = MORE_REPEATS.get((experiment, name, ledger), kept)
    return more if setting.scale >= 0.1 else kept


def rows_of(name: str, setting: Setting) -> int:
    return {"cpu": 200, "cifar10": 80 if setting.small else 500}[name]


def outcome(
    setting: Setting, experiment: str, title: str, what: str, differs: tuple[str, ...], changes: Any
) -> Outcome:
    """The experiment's result; `changes(dataset)` are the changes to the dataset's network."""
    protocol.check(setting.chosen(DATASETS))
    rows: list[dict[str, Any]] = []
    work: ledgers.Work = {}
    for name in setting.chosen(DATASETS):
        found, by_ledger = _found(name, experiment, setting, changes(name))
        for each in by_ledger.values():
            ledgers.add(work, each)
        rows += [
            {"dataset": name, "notion": notion, "coalitions": which, **summarised(k, agreement)}
            for (which, notion), by_k in found.items()
            for k, agreement in by_k.items()
        ]
    table = pd.DataFrame(rows)
    enough = setting.scale >= 0.1  # a handful of coalitions says nothing about the notion
    claims = [
        claim
        for name in setting.chosen(DATASETS)
        for claim in _claims(
            table[table["dataset"] == name], f"{title}, {name}: Banzhaf's ranking", enough
        )
    ]
    shown = (
        table.pivot(index=["dataset", "coalitions", "k"], columns="notion", values="spearman")
        .sort_index(level=["dataset", "coalitions", "k"], ascending=[True, False, True])
        .reset_index()[["dataset", "coalitions", "k", *EVERY]]
        .rename(columns=LABELS)
    )
    names, reference = setting.chosen(DATASETS), reference_and_ks(setting)[0]
    sizes = ", ".join(f"{name} {rows_of(name, setting)}" for name in names)
    repeats = ", ".join(
        f"{name} {kept_repeats(name, setting)}"
        + "".join(
            f" ({LABELS[what]} {count:,})"
            for what in LEDGERS
            if (count := all_repeats(experiment, name, what, setting)) > kept_repeats(name, setting)
        ).replace(") (", ", ")
        for name in names
    )
    return Outcome(
        title,
        what,
        table,
        lambda figure: _draw(figure, table[table["coalitions"] == "same"]),
        f"m = {setting.count(SAMPLES, least=40):,} coalitions; for permutations and leave-one-out "
        "as many whole permutations, or repeats of n + 1 coalitions, as fit in m, one at least; "
        f"repeats: {repeats}, of which {reference} are a reference; rows: {sizes}",
        (
            "A reference has repeats of its own: those behind k are others, so that the two share "
            "no training.",
            "Leave-one-out spends its m on repeats of its n + 1 coalitions; permutations are "
            "whole.",
            "The least core is not unique where only some coalitions are known; here it is the "
            "payment closest to equal shares. The empty coalition asks for nothing, though a "
            "guess scores above 0.",
            "CIFAR10: features of SqueezeNet stand in for ResNet18's.",
            protocol.BALANCED,
            protocol.CUT,
            *differs,
        ),
        tuple(claims),
        shown,
        notes=(text("stability_runs_note"),),
        size=(11.0, 4.2),
        data=tuple(protocol.origin(name) for name in setting.chosen(DATASETS)),
        hardware=ledgers.machines(work),
        datasets=len(setting.chosen(DATASETS)),
    )


def _claims(part: pd.DataFrame, ranking: str, enough: bool) -> list[Claim]:
    """What one dataset says."""
    same = part[part["coalitions"] == "same"]
    wide = same.pivot(index="k", columns="notion", values="spearman")
    ahead = wide.rsub(wide["banzhaf"], axis=0).drop(columns="banzhaf")
    doubt = _doubt(same)

    def first_at_every_k(notions: list[str]) -> tuple[str, bool | None]:
        highest, beaten = (
            int((ahead[notions] > 0).all(axis=1).sum()),
            int((ahead[notions] + doubt[notions] < 0).any(axis=1).sum()),
        )
        leads, halves = (each[notions].to_numpy() for each in (ahead, doubt))
        least = np.unravel_index(int(np.argmin(leads)), leads.shape)
        known = f" ± {halves[least]:.4f}" if np.isfinite(halves[least]) else ""
        at = wide.index[int(least[0])]
        found = (
            f"highest at {highest} of {len(wide)} values of k; beaten at {beaten}, by 95% "
            f"intervals; smallest lead {leads[least]:+.4f}{known}, at k = {at}"
        )
        return found, True if enough and highest == len(
            wide
        ) else False if enough and beaten else None

    semivalues = [notion for notion in NOTIONS if notion != "banzhaf"]
    lead, over_shapley = ahead[semivalues].min(axis=1), ahead["shapley"]
    most = doubt.index[doubt["shapley"].notna()].max()
    grows = float(over_shapley.iloc[0] - over_shapley.get(most, np.nan))
    unsure = float(np.hypot(doubt["shapley"].iloc[0], doubt["shapley"].get(most, np.nan)))
    other = (
        part[(part["coalitions"] == "other") & (part["k"] == 1)]
        .set_index("notion")["spearman"]
        .dropna()
    )
    found = ", ".join(
        f"{LABELS[str(notion)]} {index:.3f}"
        for notion, index in other.sort_values(ascending=False).items()
    )
    return [
        Claim(
            f"{ranking} is the most stable of the semivalues at every k",
            "figure",
            *first_at_every_k(semivalues),
        ),
        Claim(
            f"{ranking} leads them by a large margin (0.05) for most k",
            "figure",
            f"by {lead.min():.3f} to {lead.max():.3f}; at k = 1 Banzhaf "
            f"{wide['banzhaf'].iloc[0]:.3f}, Shapley {wide['shapley'].iloc[0]:.3f}",
            bool((lead > 0.05).mean() > 0.5) if enough else None,
        ),
        Claim(
            f"{ranking} is more stable than the least core's at every k",
            "figure of the appendix",
            *first_at_every_k(["least_core"]),
        ),
        Claim(
            f"{ranking} leads Shapley's by more where there is more noise",
            "figure",
            "; ".join(f"k = {k}: {number:.3f}" for k, number in over_shapley.items())
            + f"; from k = {most} to 1 by {grows:+.3f} ± {unsure:.3f} (95% interval)",
            grows > 0 if enough and abs(grows) > unsure else None,
        ),
        Claim(
            f"{ranking} reaches 0.9 where Shapley's is below 0.8",
            "not asked",
            "; ".join(
                f"k = {k}: {line['banzhaf']:.3f} and {line['shapley']:.3f}"
                for k, line in wide.iterrows()
            ),
            bool(((wide["banzhaf"] > 0.9) & (wide["shapley"] < 0.8)).any()) if enough else None,
            asked_by_paper=False,
        ),
        Claim(
            f"{ranking} is the most stable at k = 1 if the reference has other coalitions",
            "not asked",
            found,
            bool((other.drop("banzhaf") < other["banzhaf"]).all())
            if enough and "shapley" in other
            else None,
            asked_by_paper=False,
        ),
    ]


def _doubt(same: pd.DataFrame) -> pd.DataFrame:
    """Half the 95% interval of Banzhaf's lead over each notion, by Welch's t; NaN where an error is
    unknown.
    """
    part = same.assign(
        square=same["std_error"] ** 2, of_square=same["std_error"] ** 4 / same["freedom"]
    )
    square, of_square = (
        (wide := part.pivot(index="k", columns="notion", values=name)).add(wide["banzhaf"], axis=0)
        for name in ("square", "of_square")
    )
    freedom = (square**2 / of_square).where(square > 0, 1)
    return square**0.5 * freedom.apply(lambda each: t.isf(0.025, each))


def _found(
    name: str, experiment: str, setting: Setting, changes: dict[str, Any]
) -> tuple[dict[tuple[str, str], agreements.Found], dict[str, ledgers.Work]]:
    """Agreements by (which coalitions the reference has, notion), and whose work each ledger is.
    What is kept is not evaluated again.
    """
    reference, ks = reference_and_ks(setting)
    kept = kept_repeats(name, setting)
    data = protocol.draw(name, 0, setting, rows=rows_of(name, setting), flipped=0.0)
    game = protocol.network(data.judged_by_validation(), name, setting, **changes)
    n, m = len(data.y), setting.count(SAMPLES, least=40)
    again = max(1, m // (n + 1))  # what one repeat costs the other notions buys so many of LOO
    runs: dict[str, tuple[Any, int, int, dict[str, Any]]] = {
        "banzhaf": (db.Banzhaf(), m, 1, {"estimator": "reuse"}),
        "loo": (db.LeaveOneOut(), n + 1, again, {}),
        "shapley": (db.Shapley(), max(m, n + 1), 1, {"estimator": "permutation"}),
        "least_core": (db.LeastCore(), m, 1, {"estimator": _OneProgram()}),
    }

    @cache
    def run(what: str, repeats: int) -> db.Evaluations:
        notion, budget, each, options = runs[what]
        count = repeats * each
        parts = (experiment, name, n, what)
        ledgers.value(
            setting, parts, game, notion, piecewise=True, kept_repeats=kept * each,
            budget=budget, repeats=count, **options,
        )  # fmt: skip
        found = ledgers.evaluations(setting, parts, budget, count)
        utilities = found.utilities
        return replace(found, utilities=utilities.reshape(len(utilities), -1, each).mean(axis=2))

    def sides(what: str, which: str, repeats: int) -> tuple[Any, ledgers.Work]:
        evaluations = run(what, repeats)
        both = (evaluations, evaluations) if which == "same" else ledgers.halves(evaluations)
        return both, ledgers.work(setting, [(experiment, name, n, what)])

    units = {"loo": 0, "shapley": m // (n + 1)}
    stamp = hashlib.sha256(json.dumps(game.fingerprint(), sort_keys=True).encode()).hexdigest()[:16]
    found: dict[tuple[str, str], agreements.Found] = {}
    work: dict[str, ledgers.Work] = {}
    for which in ("same", "other"):
        for notion in EVERY:
            what = notion if notion in LEDGERS else "shapley"  # all read the same permutations
            if which == "other" and units.get(what, m) < 2:  # nothing to share out
                continue
            key = {
                "experiment": experiment, "dataset": name, "notion": notion, "coalitions": which,
                "count": m, "seed": setting.seed,
            }  # fmt: skip
            count = all_repeats(experiment, name, what, setting) if which == "same" else kept
            if setting.progress:
                print(f"{name} {notion}, {which} coalitions", file=sys.stderr)
            found[which, notion], done = agreements.collect(
                setting.out / agreements.FILE, key, stamp,
                agreements.rounds(count, reference), ks,
                partial(sides, what, which, count), setting.workers,
            )  # fmt: skip
            work[what] = max(work.get(what, {}), done, key=ledgers.trainings)
    return found, work


class _OneProgram(db.estimators.LeastCore):
    """The least core of the first training: all trainings are evaluated, but not each
    solved for.
    """

    def __call__(self, evaluations: db.Evaluations, notion: Any) -> db.Estimate:
        return super().__call__(
            replace(evaluations, utilities=evaluations.utilities[:, :1]), notion
        )


def summarised(k: int, agreement: NDArray[np.float64]) -> dict[str, float]:
    """A line of the table, from agreements (rounds, groups). The error is that over rounds, each of
    which has a reference of its own; where there is one, that over its groups.
    """
    each = agreement.mean(axis=1) if len(agreement) > 1 else agreement.ravel()
    known = len(each) > 1
    return {
        "k": k,
        "spearman": float(agreement.mean()) if agreement.size else np.nan,
        "std_error": float(each.std(ddof=1) / np.sqrt(len(each))) if known else np.nan,
        "freedom": len(each) - 1 if known else np.nan,
        "groups": agreement.size,
    }


def _draw(figure: Any, table: pd.DataFrame) -> None:
    names = list(table["dataset"].unique())
    for ax, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for notion in EVERY:
            part = table[(table["dataset"] == name) & (table["notion"] == notion)]
            ax.errorbar(
                part["k"],
                part["spearman"],
                part["std_error"],
                marker="o",
                markersize=3,
                capsize=2,
                color=COLOURS[notion],
                label=LABELS[notion],
            )
        ax.set(
            title=name,
            xscale="log",
            xlabel="k, trainings of each coalition",
            ylabel="Spearman to the reference",
        )
        ks = sorted(table["k"].unique())
        ax.set_xticks(ks, [str(k) for k in ks])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
