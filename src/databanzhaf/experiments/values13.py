"""Values for the two tables: thirteen datasets, seven notions, five trainings of each coalition; both tables read the same ledgers."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import kept, protocol
from databanzhaf.experiments.notions import LABELS, NOTIONS
from databanzhaf.experiments.outcome import Claim, read_json, replace_text, replacing
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import FURTHER, Setting
from databanzhaf.experiments.side_by_side import side_by_side

COALITIONS, REPEATS = 100_000, 5
# LeNet takes a hundred times as long as the other networks: it has fewer trainings for leave-one-out, and fewer coalitions for our columns.
LENET_LOO, LENET_OURS = 2, 800
WEIGHTED: Final = (0.05, 0.1, 0.2)
OURS: Final = {
    "banzhaf_plain": "Banzhaf, plain loss and probability",
    **{f"weighted_{p}": f"weighted Banzhaf, p = {p}" for p in WEIGHTED},
}
KNOWN: Final = (*protocol.IMAGES, *protocol.TABULAR)
COLUMNS: Final = (*NOTIONS, *OURS)
NAMES: Final = {**LABELS, **OURS}
LINES: Final = (
    "The first line is the paper's; the second our first draw of the data, in brackets the standard error over five value vectors, as in the paper; "
    "the third, where there are more draws, the mean over all of them, in brackets the deviation between draws."
)


@dataclass(frozen=True, eq=False)
class Valued:
    """Value vectors of one draw: for each column five, (5, n), one for each training; how many coalitions each took; whose work each ledger is."""

    draw: Draw
    values: dict[str, NDArray[np.float64]]
    coalitions: dict[str, int]
    work: dict[str, kept.Work]

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


def left_out(setting: Setting) -> list[str]:
    """Datasets that nobody has chosen to leave out."""
    return [name for name in KNOWN if name not in datasets(setting)] if setting.datasets is None else []


def draws(setting: Setting, name: str) -> range:
    """Numbers of the draws; those that LeNet is trained on have one."""
    return range(1 if name in protocol.LENET else setting.n_draws)


def value_draw(name: str, number: int, setting: Setting, columns: Collection[str] = COLUMNS) -> Valued:
    """Values of one draw by some columns, at least. They are kept in a file beside the ledgers, for both tables and for whatever is asked later.

    Only columns that are not yet in the file are evaluated.
    """
    data = protocol.draw(name, number, setting)
    scale = _scale(name, number, setting)
    path = setting.ledger("values", name, f"draw{number}", f"{scale:g}").with_suffix(".npz")
    stamp = _stamp(data, setting)
    values, coalitions, work = _read_values(path, stamp)
    missing = [column for column in columns if column not in values]
    if missing:
        more, counts, further_work = _evaluate(missing, number, setting, data, scale)
        values, coalitions, work = values | more, coalitions | counts, work | further_work
        arrays: dict[str, Any] = {f"values_{column}": found for column, found in values.items()}
        with replacing(path) as temporary:
            np.savez_compressed(temporary, about=json.dumps({"stamp": stamp, "coalitions": coalitions, "work": work}), **arrays)
    return Valued(data, values, coalitions, work)


def _stamp(data: Draw, setting: Setting) -> str:
    """Tells the data and the training of one draw from others."""
    game = protocol.network(data.judged_by_validation(), data.name, setting, compiles=False)
    # Without the digest of the function that makes a module, which is another for each version of Python; its layers are there.
    facts = {name: fact for name, fact in game.fingerprint().items() if name != "module"}
    text = json.dumps([facts, data.judged_by_test().fingerprint()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Values by column, the coalitions that each column took, whose work each ledger is.
Found = tuple[dict[str, NDArray[np.float64]], dict[str, int], dict[str, kept.Work]]


def _read_values(path: Path, stamp: str) -> Found:
    """What was kept; nothing where it is missing, damaged or of other data, since it can be made again."""
    try:
        with path.open("rb") as stream, np.load(stream) as found:
            about = json.loads(str(found["about"]))
            if about["stamp"] != stamp:
                return {}, {}, {}
            work = {ledger: kept.noted(each) for ledger, each in about["work"].items()}
            return {column: found[f"values_{column}"] for column in about["coalitions"]}, about["coalitions"], work
    except MemoryError:
        raise
    except Exception:  # whatever NumPy makes of a damaged archive
        return {}, {}, {}


def _evaluate(columns: list[str], number: int, setting: Setting, data: Draw, scale: float) -> Found:
    """Values by some columns, from the ledgers as far as they are there."""
    name, n = data.name, len(data.y)
    count = max(n, round(scale * COALITIONS))
    fewer = max(200, round(min(scale, FURTHER) * COALITIONS / (1 if number == 0 else 5)))
    if name in protocol.LENET:
        fewer = min(fewer, LENET_OURS)
    dataset = data.judged_by_validation()
    # Code is compiled for long runs only: it takes longer than a short one.
    compiles = setting.on_gpu and (count >= 50_000 or name in protocol.IMAGES)
    game = protocol.network(dataset, name, setting, compiles=compiles)
    values: dict[str, NDArray[np.float64]] = {}
    used: dict[str, int] = {}
    work: dict[str, kept.Work] = {}

    def go(column: str, game: Any, notion: Any, budget: int, estimator: str) -> None:
        if column not in columns:
            return
        # Shapley and all Betas are read from one run of permutations.
        parts = (name, f"draw{number}", "permutation" if estimator == "permutation" else column)
        # Leave-one-out trains on all rows each time: for LeNet that would take as long as all else together.
        repeats = min(REPEATS, LENET_LOO) if estimator == "leave_one_out" and name in protocol.LENET else REPEATS
        seed = setting.seed + number
        told = replace(setting, progress=setting.progress and str(parts[-1]) not in work)
        found = kept.value(told, parts, game, notion, estimator=estimator, budget=budget, repeats=repeats, seed=seed)
        work[str(parts[-1])] = kept.work(setting, [parts])
        used[column] = found.n_evaluations // repeats
        values[column] = found.values_by_repeat

    for column, notion in NOTIONS.items():
        estimator = {"banzhaf": "reuse", "loo": "leave_one_out"}.get(column, "permutation")
        # Whole permutations, of n + 1 coalitions each.
        go(column, game, notion, max(count, n + 1) if estimator == "permutation" else count, estimator)
    other = {"loss": "cross_entropy", "score": "probability", "score_at": "last"}
    plain = protocol.network(dataset, name, setting, **other, compiles=compiles and name in protocol.IMAGES)
    go("banzhaf_plain", plain, db.Banzhaf(), fewer, "reuse")
    for p in WEIGHTED:
        go(f"weighted_{p}", game, db.WeightedBanzhaf(p), fewer, "reuse")
    return values, used, work


def paper_table(file: str) -> pd.DataFrame:
    """The paper's table as a frame: dataset, method, mean, standard_error."""
    from importlib.resources import files

    with files("databanzhaf.experiments").joinpath(file).open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def collect(experiment: str, setting: Setting, columns: Mapping[str, str | None], score: Any, rule: int) -> tuple[pd.DataFrame, kept.Work]:
    """Score every column of every draw; returns the table, and whose work it was.

    `columns` says by which values each is scored, if by any; `score(valued, missing)` gives {column: scores of the five trainings} for the
    missing ones. The scores of a draw are kept in a small file beside the ledgers, so that a table can be made in parts, and on several
    machines, and columns can come later. `rule` is the version of the score: those by another, or of other data, are computed anew.
    """
    protocol.check(datasets(setting))
    if left := left_out(setting):
        print(f"Left out, since there is no GPU: {', '.join(left)}. `--datasets` can name them.", file=sys.stderr)
    asked = [(name, number) for name in datasets(setting) for number in draws(setting, name)]
    alone = replace(setting, progress=setting.progress and setting.workers == 1)
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for name, number, scored in side_by_side(_scored, [(experiment, each, alone, columns, score, rule) for each in asked], setting.workers):
        found[name, number] = scored
        if setting.progress and not alone.progress:
            print(f"{name}, draw {number}: {len(found)} of {len(asked)}", file=sys.stderr)
    rows: list[dict[str, Any]] = []
    work: kept.Work = {}
    for name, number in asked:
        scored = found[name, number]
        for each in scored["work"].values():
            kept.add(work, each)
        rows += [
            {
                "dataset": name,
                "draw": number,
                "method": column,
                "mean": float(np.mean(scores)),
                "std_error": float(np.std(scores, ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else np.nan,
                "coalitions": scored["coalitions"].get(column.removesuffix("_whole"), 0),
            }
            for column, scores in ((column, scored["scores"][column]) for column in columns)
        ]
    return pd.DataFrame(rows), work


def _scored(
    experiment: str, which: tuple[str, int], setting: Setting, columns: Mapping[str, str | None], score: Any, rule: int
) -> tuple[str, int, dict[str, Any]]:
    """The scores of one draw, as they are kept, or computed and kept; with its name and number."""
    name, number = which
    parts = ("scores", experiment, name, f"draw{number}", f"{_scale(name, number, setting):g}")
    path = setting.ledger(*parts).with_suffix(".json")
    mark = {"rule": rule, "stamp": _stamp(protocol.draw(name, number, setting), setting)}
    found = read_json(path)
    if {key: found.get(key) for key in mark} != mark or not _whole(found):
        if found:
            print(f"{path} does not fit ({name} has other data now, or the score is another): it is made anew.", file=sys.stderr)
        found = {**mark, "scores": {}, "coalitions": {}, "work": {}}
    missing = [column for column in columns if column not in found["scores"]]
    if missing:
        needed = {values: None for column in missing if (values := columns[column]) is not None}
        valued = value_draw(name, number, setting, needed)
        found["scores"] |= {column: [float(one) for one in scores] for column, scores in score(valued, missing).items()}
        found["coalitions"] |= {column: valued.coalitions[column] for column in needed}
        found["work"] |= valued.work
        replace_text(path, json.dumps(found) + "\n")
    return name, number, found


def _whole(found: dict[str, Any]) -> bool:
    """Whether scores that were kept have all their parts."""
    scores, coalitions = found.get("scores"), found.get("coalitions")
    return (
        isinstance(scores, dict)
        and isinstance(coalitions, dict)
        and all(isinstance(count, int) for count in coalitions.values())
        and isinstance(found.get("work"), dict)
        and all(kept.noted(work) == work for work in found["work"].values())
        and all(isinstance(each, list) and each and all(isinstance(score, float) for score in each) for each in scores.values())
    )


def _scale(name: str, number: int, setting: Setting) -> float:
    """The share of the paper's coalitions that a draw takes."""
    # LeNet takes a hundred times as long as the others, the network on image features ten times.
    most = {**dict.fromkeys(protocol.LENET, setting.image_scale), "cifar10": min(1.0, 10 * setting.image_scale)}.get(name, 1.0)
    scale = min(setting.scale, most)
    return scale if number == 0 else min(scale, FURTHER)


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


def of_the_same(paper: pd.DataFrame, means: pd.DataFrame) -> pd.DataFrame:
    """The paper's means for the same datasets."""
    return paper.pivot(index="dataset", columns="method", values="mean").reindex(means.index).dropna(how="all")


def wins(means: pd.DataFrame, columns: list[str]) -> pd.Series[Any]:
    """On how many datasets each column is best, most first; where two are equally good, nobody is."""
    some = means[columns]
    alone = some.eq(some.max(axis=1), axis=0).sum(axis=1) == 1
    return some[alone].idxmax(axis=1).value_counts().reindex(columns, fill_value=0).sort_values(ascending=False, kind="stable")


def enough(setting: Setting, means: pd.DataFrame) -> bool:
    """Whether a table can bear a claim: a few datasets, or a handful of coalitions, cannot."""
    return setting.scale >= 0.1 and len(means) >= 5


# What the columns are that the paper does not have.
OURS_EXPLAINED = (
    "Of our columns, `Banzhaf, plain loss and probability` is the Banzhaf value where networks are trained with the plain cross-entropy and U is the mean probability of the right label after the last "
    "epoch; `weighted Banzhaf` has the paper's utility, but a row is in a coalition with probability p instead of one half."
)


def first_draw(table: pd.DataFrame, columns: list[str], setting: Setting, baselines: dict[str, str] | None = None) -> tuple[str, ...]:
    """What the first draw says by itself, where it has more coalitions than the others; `baselines` are columns to compare with, and their labels."""
    if setting.n_draws == 1 or setting.scale <= FURTHER:
        return ()
    means = means_of(table[table["draw"] == 0])
    return (
        f"Further draws have at most {FURTHER:g} of the paper's coalitions; with more, as on the first draw, values are closer to what they estimate. The paper's "
        f"columns on the first draw alone, mean over {counted(means)}: {_averages(means, columns)}; best on: {_best_on(means, columns)}."
        + (f" The simple baselines there: {_averages(means.rename(columns=baselines), list(baselines.values()))}." if baselines else ""),
    )


def mean_over(means: pd.DataFrame, columns: list[str]) -> str:
    """A line for a page."""
    return f"Mean over {counted(means)}, best first: {_averages(means, columns)}."


def counted(means: pd.DataFrame) -> str:
    """How many datasets there are."""
    return f"{len(means)} dataset{'s' * (len(means) > 1)}"


def _averages(means: pd.DataFrame, columns: list[str]) -> str:
    """Means over the datasets, best first."""
    over = means[columns].mean().sort_values(ascending=False)
    return ", ".join(f"{NAMES.get(str(name), name)} {mean:.3f}" for name, mean in over.items())


def _best_on(means: pd.DataFrame, columns: list[str]) -> str:
    """`wins` for a page."""
    counts = wins(means, columns)
    ties = f", tie {len(means) - counts.sum()}" if counts.sum() < len(means) else ""
    return ", ".join(f"{NAMES.get(str(name), name)} {count}" for name, count in counts.items() if count) + ties


def overall_claims(what: str, means: pd.DataFrame, paper: pd.DataFrame, columns: list[str], *, tell: bool) -> tuple[Claim, Claim]:
    """Whether Banzhaf is best most often, and best on average; the paper's numbers are those of the same datasets."""
    theirs = of_the_same(paper, means)
    ours, known = wins(means, columns), [column for column in columns if column in theirs and theirs[column].notna().all()]
    lead = means["banzhaf"] - means[means[columns].drop(columns="banzhaf").mean().idxmax()]
    mean, doubt = float(lead.mean()), 2 * float(np.std(lead, ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else np.inf
    spread = f" ± {doubt:.3f} (two standard errors over the datasets)" if len(lead) > 1 else ""
    return (
        Claim(
            f"{what}: Data Banzhaf is best on the most datasets",
            f"of {len(theirs)}: {_best_on(theirs, [column for column in columns if column in theirs])}",
            f"of {len(means)}: {_best_on(means, columns)}",
            bool(ours["banzhaf"] > ours.drop("banzhaf").max()) if tell else None,
        ),
        Claim(
            f"{what}: Data Banzhaf is best overall (mean over the datasets)",
            f"said in the text; means of its table: {_averages(theirs, known)}",
            f"{_averages(means, columns)}; Banzhaf less the best other {mean:+.3f}{spread}",
            None if not tell or abs(mean) <= doubt else mean > 0,
        ),
    )
