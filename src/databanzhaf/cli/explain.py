"""Which training rows helped and which hurt one prediction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from databanzhaf.cli.options import AsJson
from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.streams import only_json
from databanzhaf.cli.text import Screen, show_table

if TYPE_CHECKING:
    import pandas as pd

    from databanzhaf.pipeline import Explainer, Explanation

MOST = 10


def explain(
    ledger: Annotated[
        Path,
        typer.Argument(
            help="run.db of a `databanzhaf value` run, or its folder.", show_default=False
        ),
    ],
    row: Annotated[
        str | None,
        typer.Option(
            help="A row that judged models: by its number in the table, or in the validation file, "
            "counted from 0; or by its --id, where rows judge each other."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Also write the effects of every training row on every judging row, to a file "
            ".npz or .parquet."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which training rows helped and which hurt the prediction for one row; nothing is trained."""
    with one_sentence("Stopped; nothing was written."), only_json(as_json) as answer:
        from databanzhaf import pipeline
        from databanzhaf.errors import InvalidInput

        if row is None and out is None:
            raise InvalidInput(
                "say what to explain", got="neither --row nor --out", remedy="Try --row 17."
            )
        made = pipeline.explainer(ledger)
        screen, said = Screen(quiet=as_json), dict[str, Any]()
        if row is not None:
            found = made.of(row)
            said = _spoken(found)
            _tell(screen, made, found)
        if out is not None:
            made.attribution.save(out)
            players, judges = made.attribution.shape
            screen.print(
                f"Written: {out}, effects of {players:,} {made.result.job.who} on {judges:,} "
                "judging rows",
                soft_wrap=True,
            )
            said["effects"] = str(out)
        if as_json:
            answer(said)


def _tell(screen: Screen, made: Explainer, found: Explanation) -> None:
    job = made.result.job
    name = f" (id {found.name})" if found.name else ""
    whose = "validation row" if job.settings.validation else "row"
    seen = "models that have not seen it" if job.across else "the models"
    screen.print(
        f"{whose.capitalize()} {found.row}{name}, `{job.settings.target}` = {found.label}: "
        f"{seen} score {found.score:.3f} on it on average ({job.metric})."
    )
    if not (found.table["effect"] != 0).any():
        screen.print(f"All of them score the same on it, so no {job.who[:-1]} has an effect.")
        return
    hurt = found.table[found.table["effect"] < 0].head(MOST)
    helped = found.table[found.table["effect"] > 0].iloc[::-1].head(MOST)
    for which, part in (("help", helped), ("hurt", hurt)):
        title = f"{len(part)} {job.who} that {which} it the most"
        show_table(screen, *_lines(part, job.settings.target), title)
    clear, total = int(found.table["beyond_noise"].sum()), len(found.table)
    notion, verb = made.result.estimate.notion, "is" if clear == 1 else "are"
    joins = "joins a random half of the others"
    if notion.name != "banzhaf":
        joins = f"joins others, on average as in {notion.name} values"
    screen.print(
        f"An effect is what the score of this row gains when a {job.who[:-1]} {joins}. "
        f"{clear:,} of {total:,} effects {verb} beyond noise, at 5% for all of them together."
    )


def _lines(part: pd.DataFrame, target: str) -> tuple[list[str], list[list[str]]]:
    names = [name for name in part.columns if name not in ("effect", "std_error", "beyond_noise")]
    rows = [
        [
            *(str(line[name]) for name in names),
            f"{line['effect']:+.5f}",
            f"{line['std_error']:.5f}",
            "" if line["beyond_noise"] else "within noise",
        ]
        for line in part.to_dict(orient="records")
    ]
    header = [target if name == "label" else name for name in names]
    return [*header, "effect", "std. error", ""], rows


def _spoken(found: Explanation) -> dict[str, Any]:
    import json

    lines = json.loads(found.table.to_json(orient="records"))
    return {
        "row": found.row,
        "id": found.name or None,
        "label": str(found.label),
        "score": found.score,
        "effects": lines,
    }
