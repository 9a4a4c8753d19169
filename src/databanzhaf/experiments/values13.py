"""Values for the two tables: thirteen datasets, seven notions, five trainings of each coalition; both tables read the same ledgers."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import protocol
from databanzhaf.experiments.notions import LABELS, NOTIONS
from databanzhaf.experiments.outcome import Claim, hardware, replace_text
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import Setting

COALITIONS, REPEATS, LENET_LOO = 100_000, 5, 2
# Draws after the first, and columns that are not the paper's, take at most a tenth of the paper's coalitions.
FURTHER = 0.1
WEIGHTED: Final = (0.05, 0.1, 0.2)
OURS: Final = {
    "banzhaf_plain": "Banzhaf, plain loss and probability",
    **{f"weighted_{p}": f"weighted Banzhaf, p = {p}" for p in WEIGHTED},
}
KNOWN: Final = (*protocol.IMAGES, *protocol.TABULAR)
NAMES: Final = {**LABELS, **OURS}
LINES: Final = (
    "The first line is the paper's; the second our first draw of the data, in brackets the standard error over five value vectors, as in the paper; "
    "the third, where there are more draws, the mean over all of them, in brackets the deviation between draws."
)


@dataclass(frozen=True, eq=False)
class Valued:
    """Value vectors of one draw: for each column five, (5, n), one for each training."""

    draw: Draw
    values: dict[str, NDArray[np.float64]]
    coalitions: dict[str, int]
    seconds: float
    hardware: str

    def vectors(self, column: str) -> list[db.Estimate]:
        """The estimate of each training alone."""
        return [as_estimate(values, column) for values in self.values[column]]


def as_estimate(values: NDArray[np.float64], column: str) -> db.Estimate:
    """Numbers of one column as an estimate, of unknown error."""
    unknown = np.full(len(values), np.nan)
    return db.Estimate(values, unknown, unknown, values[None], 0, column, column, None)


def datasets(setting: Setting) -> tuple[str, ...]:
    """As asked; by default all thirteen, on a machine without a GPU the tables only."""
    if setting.datasets is None and not setting.on_gpu:
        return protocol.TABULAR
    return setting.chosen(KNOWN)


def draws(setting: Setting, name: str) -> range:
    """Numbers of the draws; image sets have one."""
    return range(1 if name in protocol.IMAGES else setting.n_draws)


def value_draw(name: str, number: int, setting: Setting) -> Valued:
    """Values of one draw by all columns. They are kept in a file beside the ledgers, for both tables and for whatever is asked later."""
    data = protocol.draw(name, number, setting)
    scale = _scale(name, number, setting)
    path = setting.ledger("values", name, f"draw{number}", f"{scale:g}", setting.seed).with_suffix(".npz")
    if not path.is_file():
        start = time.perf_counter()
        values, coalitions = _evaluate(name, number, setting, data, scale)
        about = {"coalitions": coalitions, "seconds": round(time.perf_counter() - start, 1), "hardware": hardware(setting)}
        temporary = path.with_name(f".{path.name}")
        arrays: dict[str, Any] = {f"values_{column}": found for column, found in values.items()}
        np.savez_compressed(temporary, about=json.dumps(about), **arrays)
        temporary.replace(path)
    with np.load(path) as kept:
        about = json.loads(str(kept["about"]))
        values = {column: kept[f"values_{column}"] for column in about["coalitions"]}
    return Valued(data, values, **about)


def _evaluate(name: str, number: int, setting: Setting, data: Draw, scale: float) -> tuple[dict[str, NDArray[np.float64]], dict[str, int]]:
    """Values by all columns, and how many coalitions each took; from the ledgers, as far as they are there."""
    n = len(data.y)
    count = max(n, round(scale * COALITIONS))
    fewer = max(200, round(min(scale, FURTHER) * COALITIONS / (1 if number == 0 else 5)))
    dataset = data.judged_by_validation()
    # Code is compiled for long runs only: it takes longer than a short one.
    compiles = setting.on_gpu and (count >= 50_000 or name in protocol.IMAGES)
    game = protocol.network(dataset, name, setting, compiles=compiles)
    values: dict[str, NDArray[np.float64]] = {}
    used: dict[str, int] = {}

    def go(column: str, game: Any, notion: Any, budget: int, estimator: str) -> None:
        # Shapley and all Betas are read from one run of permutations.
        path = setting.ledger(name, f"draw{number}", "permutation" if estimator == "permutation" else column)
        # Leave-one-out trains on all rows each time: for LeNet that would take as long as all else together.
        repeats = min(REPEATS, LENET_LOO) if estimator == "leave_one_out" and name in protocol.LENET else REPEATS
        found = db.value(game, notion, estimator=estimator, budget=budget, repeats=repeats, seed=setting.seed + number, ledger=path)
        used[column] = found.n_evaluations // repeats
        values[column] = found.values_by_repeat

    for column, notion in NOTIONS.items():
        estimator = {"banzhaf": "reuse", "loo": "leave_one_out"}.get(column, "permutation")
        # Whole permutations, of n + 1 coalitions each.
        go(column, game, notion, max(count, n + 1) if estimator == "permutation" else count, estimator)
    if name not in protocol.LENET:
        plain = protocol.network(
            dataset,
            name,
            setting,
            loss="cross_entropy",
            score="probability",
            score_at="last",
            compiles=compiles and name in protocol.IMAGES,
        )
        go("banzhaf_plain", plain, db.Banzhaf(), fewer, "reuse")
        for p in WEIGHTED:
            go(f"weighted_{p}", game, db.WeightedBanzhaf(p), fewer, "reuse")
    return values, used


def paper_table(file: str) -> pd.DataFrame:
    """The paper's table as a frame: dataset, method, mean, standard_error."""
    from importlib.resources import files

    with files("databanzhaf.experiments").joinpath(file).open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def collect(experiment: str, setting: Setting, score: Any, rule: int) -> pd.DataFrame:
    """Score every column of every draw: `score(valued)` gives {column: scores of the five trainings}.

    The scores of a draw are kept in a small file beside the ledgers, with the hardware that made them, so that a table can be made in
    parts, and on several machines. `rule` is the version of the score: those by another are computed anew.
    """
    rows = []
    for name in datasets(setting):
        for number in draws(setting, name):
            path = setting.ledger(
                "scores", experiment, name, f"draw{number}", f"{_scale(name, number, setting):g}", setting.seed
            ).with_suffix(".json")
            kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            if kept.get("rule") != rule:
                valued = value_draw(name, number, setting)
                kept = {
                    "rule": rule,
                    "hardware": valued.hardware,
                    "scores": {column: [float(one) for one in scores] for column, scores in score(valued).items()},
                    "coalitions": valued.coalitions,
                    "seconds": valued.seconds,
                }
                replace_text(path, json.dumps(kept) + "\n")
            for column, scores in kept["scores"].items():
                rows.append(
                    {
                        "dataset": name,
                        "draw": number,
                        "method": column,
                        "mean": float(np.mean(scores)),
                        "std_error": float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else np.nan,
                        "coalitions": kept["coalitions"].get(column, 0),
                        "seconds": kept["seconds"],
                        "hardware": kept["hardware"],
                    }
                )
    return pd.DataFrame(rows)


def _scale(name: str, number: int, setting: Setting) -> float:
    """The share of the paper's coalitions that a draw takes."""
    # LeNet takes a hundred times as long as the others, the network on image features ten times.
    most = {**dict.fromkeys(protocol.LENET, setting.image_scale), "cifar10": min(1.0, 10 * setting.image_scale)}.get(name, 1.0)
    scale = min(setting.scale, most)
    return scale if number == 0 else min(scale, FURTHER)


def made_on(table: pd.DataFrame) -> str:
    """Which machines made how many of the draws, and how long that took."""
    parts = table.drop_duplicates(["dataset", "draw"])
    return "; ".join(f"{machine} ({len(part)} draws, {part['seconds'].sum():,.0f} s)" for machine, part in parts.groupby("hardware"))


def beside(table: pd.DataFrame, paper: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The page's table: for each dataset the paper's number, the first draw (spread of trainings), all draws (spread of draws)."""
    rows = []
    for name in table["dataset"].unique():
        part = table[table["dataset"] == name]
        first = part[part["draw"] == 0].set_index("method")
        over = part.groupby("method")["mean"]
        theirs = paper[paper["dataset"] == name].set_index("method")
        for kind in ("paper", "first draw", "all draws"):
            row = {"dataset": name, "": kind}
            for column in columns:
                if kind == "paper":
                    known = column in theirs.index and theirs.loc[column, "mean"] == theirs.loc[column, "mean"]
                    row[NAMES.get(column, column)] = (
                        _with_error(theirs.loc[column, "mean"], theirs.loc[column, "standard_error"]) if known else ""
                    )
                elif kind == "first draw":
                    row[NAMES.get(column, column)] = _with_error(*first.loc[column, ["mean", "std_error"]]) if column in first.index else ""
                elif part["draw"].nunique() > 1:
                    row[NAMES.get(column, column)] = (
                        _with_error(over.mean()[column], over.std()[column], "±") if column in over.mean() else ""
                    )
            if kind != "all draws" or part["draw"].nunique() > 1:
                rows.append(row)
    return pd.DataFrame(rows)


def _with_error(mean: float, error: float, mark: str = "") -> str:
    spread = "" if error != error else f" ({mark}{error:.3f})"
    return f"{mean:.3f}{spread}"


def means_of(table: pd.DataFrame) -> pd.DataFrame:
    """Mean over the draws: a line for each dataset, a column for each method."""
    return table.groupby(["dataset", "method"])["mean"].mean().unstack()


def wins(means: pd.DataFrame, columns: list[str]) -> pd.Series[Any]:
    """On how many datasets each column is best, most first; where two are equally good, nobody is."""
    some = means[columns]
    alone = some.eq(some.max(axis=1), axis=0).sum(axis=1) == 1
    return some[alone].idxmax(axis=1).value_counts().reindex(columns, fill_value=0).sort_values(ascending=False, kind="stable")


def overall_claims(what: str, means: pd.DataFrame, paper: pd.DataFrame, columns: list[str]) -> tuple[Claim, Claim]:
    """Whether Banzhaf is best most often, and best on average; the paper's numbers are those of the same datasets."""
    theirs = paper.pivot(index="dataset", columns="method", values="mean").reindex(means.index).dropna(how="all")
    ours, known = wins(means, columns), [column for column in columns if column in theirs and theirs[column].notna().all()]
    papers = wins(theirs, [column for column in columns if column in theirs])

    def told(counts: pd.Series[Any]) -> str:
        return ", ".join(f"{NAMES.get(str(name), name)} {count}" for name, count in counts.items() if count)

    def average(of: pd.DataFrame, names: list[str]) -> str:
        return ", ".join(f"{NAMES.get(str(name), name)} {mean:.3f}" for name, mean in of[names].mean().sort_values(ascending=False).items())

    return (
        Claim(
            f"{what}: Data Banzhaf is best on the most datasets",
            f"of {len(theirs)}: {told(papers)}",
            f"of {len(means)}: {told(ours)}",
            bool(ours["banzhaf"] > ours.drop("banzhaf").max()),
        ),
        Claim(
            f"{what}: Data Banzhaf is best overall (mean over the datasets)",
            average(theirs, known),
            average(means, columns),
            bool(means[columns].mean().idxmax() == "banzhaf"),
        ),
    )
