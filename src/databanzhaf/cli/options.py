"""The options of the commands that read a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(help="Training table: .csv, .tsv, .parquet or .npz (X, y).", show_default=False),
]
Target = Annotated[str, typer.Option(help="Column to predict (y in an .npz).", show_default=False)]
Validation = Annotated[
    Path | None,
    typer.Option(
        help="Table of validation rows. Without it, models are judged by rows they have not seen."
    ),
]
Fraction = Annotated[
    float | None,
    typer.Option(help="Share of each class held out for validation; those rows get no value."),
]
Model = Annotated[
    str,
    typer.Option(
        help="Model to train: forest, mlp, logistic, linear, boosting, knn (exact values without "
        "a training, where it can), or package.module:factory."
    ),
]
Task = Annotated[str, typer.Option(help="auto, classification or regression.")]
Metric = Annotated[
    str | None,
    typer.Option(
        help="probability, balanced_probability, accuracy, f1, log_loss, auc, r2, mse, mae or a "
        "scikit-learn scorer."
    ),
]
Groups = Annotated[
    str | None, typer.Option(help="Column of groups (suppliers, sites): value these, not rows.")
]
Clusters = Annotated[
    int | None,
    typer.Option(
        help="Number of clusters of similar rows to value, then the rows of the worst clusters. "
        "For tables with more rows than the budget can rank."
    ),
]
Open = Annotated[
    list[str] | None,
    typer.Option(
        help="Cluster whose rows to value one by one, instead of the worst; may be repeated."
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
Drop = Annotated[
    list[str] | None, typer.Option(help="Column that is not a feature; may be repeated.")
]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Column of codes, read as written and not as numbers; may be repeated."),
]
_NOTIONS = "banzhaf, shapley, beta:16,1, loo, least-core or weighted-banzhaf:0.3"
OtherNotions = Annotated[
    str,
    typer.Option(help=f"{_NOTIONS}; or several, with a table for each: 'shapley,beta(4,1)'."),
]
Notions = Annotated[
    str,
    typer.Option(
        help=f"{_NOTIONS}; or several from one run: 'banzhaf,shapley,beta(16,1)'. values.csv has "
        "the first, values-shapley.csv and the like the others."
    ),
]
How = Annotated[
    str,
    typer.Option(
        help="auto, regression, regression:paired, regression:sizes, reuse, permutation, marginal, "
        "exact, closed_form, ..."
    ),
]
Budget = Annotated[
    int, typer.Option(help="Coalitions to train on; a larger budget continues the run.")
]
Repeats = Annotated[
    int | None,
    typer.Option(
        help="Trainings of each coalition; by default 1, or up to 64 where every coalition is "
        "evaluated."
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        help="Stop early: stable, stable:0.95, precise:0.01, minutes:10. Comma-separate several; "
        "the first one met stops the run."
    ),
]
Flag = Annotated[
    str, typer.Option(help="How suspects are flagged: fdr:0.05, lowest:0.1, below:0 or cluster.")
]
Keep = Annotated[
    str,
    typer.Option(
        help="What to keep of each model: predictions (the metric can change later), scores, or "
        "auto (predictions if they are small)."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(help="Processes or threads; -1 is one for each core. Values do not depend on it."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Train on a cluster: dask://host:8786 or ray://host:10001; dask or ray alone start "
        "workers on this machine (--jobs says how many for dask). Values do not depend on it."
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        help="Seconds for a piece of work (about a second's worth, and one call of the model at "
        "least); a worker process that takes longer is replaced."
    ),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[
    int, typer.Option(help="Determines every coalition, every training and any rows held out.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of text files.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark of a text file's numbers.")]
Separator = Annotated[str | None, typer.Option(help="Separator of the columns of a text file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
