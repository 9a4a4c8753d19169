"""Our tables beside the paper's: means, wins, and what they say."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from databanzhaf.experiments.draw_values import NAMES
from databanzhaf.experiments.outcome import Claim
from databanzhaf.experiments.setting import FURTHER, Setting
from databanzhaf.experiments.texts import text

LINES: Final = text("comparison_three_lines")


def paper_table(file: str) -> pd.DataFrame:
    """The paper's table as a frame: dataset, method, mean, standard_error."""
    from importlib.resources import files

    with files("databanzhaf.experiments").joinpath(file).open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def beside(table: pd.DataFrame, paper: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The page's table: for each dataset the paper's number, the first draw (spread of trainings),
    all draws (spread of draws).
    """
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
                    known = (
                        column in theirs.index
                        and theirs.loc[column, "mean"] == theirs.loc[column, "mean"]
                    )
                    row[NAMES.get(column, column)] = (
                        _with_error(
                            theirs.loc[column, "mean"], theirs.loc[column, "standard_error"]
                        )
                        if known
                        else ""
                    )
                elif kind == "first draw":
                    row[NAMES.get(column, column)] = (
                        _with_error(*first.loc[column, ["mean", "std_error"]])
                        if column in first.index
                        else ""
                    )
                elif part["draw"].nunique() > 1:
                    row[NAMES.get(column, column)] = (
                        _with_error(over.mean()[column], over.std()[column], "±")
                        if column in over.mean()
                        else ""
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
    return (
        paper.pivot(index="dataset", columns="method", values="mean")
        .reindex(means.index)
        .dropna(how="all")
    )


def wins(means: pd.DataFrame, columns: list[str]) -> pd.Series[Any]:
    """On how many datasets each column is best, most first; a tie counts for
    none.
    """
    some = means[columns]
    alone = some.eq(some.max(axis=1), axis=0).sum(axis=1) == 1
    return (
        some[alone]
        .idxmax(axis=1)
        .value_counts()
        .reindex(columns, fill_value=0)
        .sort_values(ascending=False, kind="stable")
    )


def enough(setting: Setting, means: pd.DataFrame) -> bool:
    """Whether a table can bear a claim: a few datasets, or a handful of coalitions, cannot."""
    return setting.scale >= 0.1 and len(means) >= 5


# What the columns are that the paper does not have.
OURS_EXPLAINED = text("comparison_our_columns")


def first_draw(
    table: pd.DataFrame,
    columns: list[str],
    setting: Setting,
    others: dict[str, str] | None = None,
) -> tuple[str, ...]:
    """What the first draw says by itself, where it has more coalitions than the others; `others`
    are columns to compare with, and their labels.
    """
    if setting.n_draws == 1 or setting.scale <= FURTHER:
        return ()
    means = means_of(table[table["draw"] == 0])
    return (
        f"Further draws have at most {FURTHER:g} of the paper's coalitions; with more, as on the "
        "first draw, values are closer to what they estimate. The paper's "
        f"columns on the first draw alone, mean over {counted(means)}: "
        f"{_averages(means, columns)}; best on: {_best_on(means, columns)}."
        + (
            " The columns without values there: "
            f"{_averages(means.rename(columns=others), list(others.values()))}."
            if others
            else ""
        ),
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
    return (
        ", ".join(
            f"{NAMES.get(str(name), name)} {count}" for name, count in counts.items() if count
        )
        + ties
    )


def overall_claims(
    what: str, means: pd.DataFrame, paper: pd.DataFrame, columns: list[str], *, tell: bool
) -> tuple[Claim, Claim]:
    """Whether Banzhaf is best most often, and best on average; the paper's numbers are those of the
    same datasets.
    """
    theirs = of_the_same(paper, means)
    ours, known = (
        wins(means, columns),
        [column for column in columns if column in theirs and theirs[column].notna().all()],
    )
    lead = means["banzhaf"] - means[means[columns].drop(columns="banzhaf").mean().idxmax()]
    mean, doubt = (
        float(lead.mean()),
        2 * float(np.std(lead, ddof=1) / np.sqrt(len(lead))) if len(lead) > 1 else np.inf,
    )
    spread = f" ± {doubt:.3f} (two standard errors over the datasets)" if len(lead) > 1 else ""
    return (
        Claim(
            f"{what}: Data Banzhaf is best on the most datasets",
            f"of {len(theirs)}: "
            f"{_best_on(theirs, [column for column in columns if column in theirs])}",
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
