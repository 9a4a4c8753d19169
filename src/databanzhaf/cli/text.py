"""What a person, or a program, reads of a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.cli.streams import printable

if TYPE_CHECKING:
    import pandas as pd

    from databanzhaf.estimate import Estimate
    from databanzhaf.pipeline import Job, Result

# Fewer evaluations than this are too few for reliable values.
FEW = 200
FLAGGED = 20  # flagged players that are shown though they are not among the lowest


class Screen:
    """The terminal, by rich; what the data say never commands it."""

    def __init__(self, *, quiet: bool = False) -> None:
        from rich.console import Console

        self.quiet = quiet
        self._console = Console(highlight=False, markup=False, quiet=quiet)

    def print(self, thing: Any, *, soft_wrap: bool = False) -> None:
        shown = printable(thing) if isinstance(thing, str) else thing
        self._console.print(shown, soft_wrap=soft_wrap)


def introduce(screen: Screen, job: Job) -> None:
    kind = "classification" if job.classifies else "regression"
    players = f"{job.dataset.n_players:,} {job.who}"
    if job.shown is not None:
        others = job.dataset.n_players - len(job.shown)
        players = f"{len(job.shown):,} rows beside {others:,} clusters"
    screen.print(
        f"{players} to value, judged by {job.judges}; {kind} of "
        f"`{job.settings.target}` by {job.settings.model}, scored by {job.metric}."
    )
    if job.read_as:
        screen.print(job.read_as)
    if job.closed:
        screen.print("The score is the share of the nearest rows that have the true class.")
    elif job.metric == "probability":
        screen.print("A model's score is the mean probability that it gives to the true class.")
    counted = " Rows count from 0." if job.who == "rows" else ""
    if job.across:
        judged = "Every model is judged by rows that it has not seen."
        judged = "Every row judges the others." if job.closed else judged
        screen.print(f"{judged}{counted}")
    elif job.settings.validation is None:
        screen.print(
            "The validation rows are held out of the table and get no value; another --seed holds "
            f"out other rows.{counted}"
        )
    for note in job.notes:
        screen.print(f"Note: {note}")


def summary(result: Result, folder: Path, *, reread: bool = False) -> dict[str, Any]:
    """The result for a program."""
    job, estimate, table = result.job, result.estimate, result.table.sort_values("rank")
    name = "row" if job.who == "rows" else "group"
    return {
        "notion": estimate.notion.name,
        "estimator": estimate.estimator.name,
        "metric": job.metric,
        "players": len(table),
        "evaluations": estimate.n_evaluations,
        "stability": result.trust.stability,
        "stability_of_juries": result.trust.stability_of_juries,
        "noise_share": result.trust.noise_share,
        "explained": None if estimate.fit is None else _finite(estimate.fit.explained),
        "scores": result.record.scores,
        "judged": "in folds" if job.in_folds else "across" if job.across else "validation rows",
        "judging_rows": len(job.dataset.y_val),
        "suspects": table.loc[table["flag"] == "suspect", name].tolist(),
        "lowest": table.head(10).drop(columns="flag").to_dict(orient="records"),
        "command": command_of(result, folder),
        "values": str(folder / "values.csv"),
        "other_values": [str(folder / name) for name in result.others],
        "ledger": None if result.evaluations is None else str(folder / "run.db"),
        "notes": [*job.notes, *_doubts(result, reread=reread)],
    }


def command_of(result: Result, folder: Path) -> str:
    """What to type to make the run again."""
    from databanzhaf.report.build import command

    return command(result, folder)


def _finite(number: float) -> float | None:
    return number if np.isfinite(number) else None


def tell(screen: Screen, result: Result, *, reread: bool = False) -> None:
    """The lowest values, what to think of them, and who is flagged; of a run, or of what `reread`
    makes of its ledger.
    """
    _show_lowest(screen, result, result.estimate, result.table, 10)
    for estimate, table in result.others.values():
        _show_lowest(screen, result, estimate, table, 5)
    if result.job.closed:
        screen.print(
            f"These are exact values by a closed form for {result.job.neighbors} nearest "
            "neighbours; no model was trained."
        )
    if (scores := result.record.scores) is not None:
        which = "the other rows" if result.job.across else f"all {result.job.who}"
        model = f"A model trained on {which} scores"
        if result.job.closed:
            model = f"The {result.job.neighbors} nearest of {which} score"
        screen.print(f"{model} {scores['all']:.3f}, a guess {scores['none']:.3f}.")
    verdict = _verdict(result)
    if result.others:
        verdict = f"By {result.estimate.notion.name} values, {verdict[0].lower()}{verdict[1:]}"
    for sentence in (*_doubts(result, reread=reread), verdict, *_other_verdicts(result)):
        screen.print(sentence)


def tell_files(screen: Screen, result: Result, folder: Path, page: Path) -> None:
    """What was written, and how to make it again."""
    made = ["values.csv", *([] if result.evaluations is None else ["run.db"]), "run.json"]
    made[1:1] = result.others
    made += ["clusters.csv"] if result.job.who == "clusters" else []
    made += ["curve.json"] if result.curve is not None else []
    written = ", ".join(str(folder / name) for name in made)
    screen.print(f"Written: {written}", soft_wrap=True)
    if older := sorted({path.name for path in folder.glob("values-*.csv")} - set(result.others)):
        screen.print(
            f"Left by an earlier command, and not updated: {', '.join(older)}.", soft_wrap=True
        )
    screen.print(
        f"Open {page} in a browser: values, suspects and how far to trust them.", soft_wrap=True
    )
    screen.print(f"To repeat it: {command_of(result, folder)}", soft_wrap=True)


def _show_lowest(
    screen: Screen, result: Result, estimate: Estimate, table: pd.DataFrame, most: int
) -> None:
    import pandas as pd

    job, table = result.job, table.sort_values("rank")
    names = [each for each in ("row", "id", "group", "rows", "label") if each in table.columns]
    digits, rows = estimate.digits(), []
    flagged = table.iloc[most:].query("flag != ''")
    shown = pd.concat([table.head(most), flagged.head(FLAGGED)]).to_dict(orient="records")
    for line in shown:
        low, high = line["ci_low"], line["ci_high"]
        known = np.isfinite(high - low)
        interval = f"{low:+.{digits}f} to {high:+.{digits}f}" if known else "unknown"
        number = f"{line['value']:+.{digits}f}"
        rows.append([*(str(line[name]) for name in names), number, interval, line["flag"]])
    header = [job.settings.target if name == "label" else name for name in names]
    n, count = len(table), "" if job.closed else f", {estimate.n_evaluations:,} evaluations"
    which = f"The {min(most, n)} lowest of {n:,}" if most < n else f"All {n}"
    title = f"{which} {estimate.notion.name} values ({job.metric}){count}"
    if len(flagged) > FLAGGED:
        title += f", then {FLAGGED} of {len(flagged):,} others that are flagged"
    elif len(flagged):
        title += f", then {len(flagged)} more that {'is' if len(flagged) == 1 else 'are'} flagged"
    show_table(screen, [*header, "value", "95% interval", "flag"], rows, title)


def _doubts(result: Result, *, reread: bool) -> list[str]:
    """Why not to rely on the values yet."""
    from databanzhaf.pipeline.notes import (
        in_clusters,
        learns_nothing,
        no_better_than_guessing,
        one_class,
    )
    from databanzhaf.pipeline.plan import LOW_STABILITY
    from databanzhaf.report.content import unsteady

    estimate = result.estimate
    doubts = no_better_than_guessing(result.record.scores, result.job.who)
    if result.job.classifies and result.job.who == "rows":
        doubts += one_class(result.job.labels, result.suspects, result.job.metric)
    if unknown := int(np.isinf(estimate.std_errors).sum()):
        doubts.append(
            f"{unknown:,} of {len(estimate.values):,} {result.job.who} have no interval yet, since "
            "too few evaluations include them. Raise --budget; nothing is trained twice."
        )
    exact = estimate.estimator.name == "exact" or result.evaluations is None
    if not exact and (count := estimate.n_evaluations) < FEW:
        few = "One evaluation is" if count == 1 else f"{count} evaluations are"
        how = "Raise --budget to some thousands; nothing is trained twice."
        if _stops_early(result):
            how = "Ask for more by --until, or leave it out; nothing is trained twice."
        doubts.append(f"{few} too few for reliable values. {how}")
    if result.kept > estimate.n_evaluations:
        doubts.append(
            f"The ledger holds {result.kept:,} evaluations; these values use "
            f"{estimate.n_evaluations:,}, as --budget and --repeats ask."
        )
    if not reread:
        doubts += _what_became_of_until(result)
    elif (then := result.record.evaluations) is not None and then < estimate.n_evaluations:
        doubts.append(
            f"These values use all {estimate.n_evaluations:,} evaluations in the ledger; "
            f"values.csv has those of the last command, from {then:,}."
        )
    if not learns_nothing(result.record.scores):  # then no budget settles the ranking
        doubts += unsteady(result.trust, result.job.who)
        if (result.trust.stability or 1.0) < LOW_STABILITY and result.job.shown is None:
            doubts += in_clusters(result.job.dataset, result.job.settings)
    return [*doubts, *result.job.continued(result.evaluations)]


def _stops_early(result: Result) -> bool:
    """Whether --until stopped the run: a whole unit of its design is missing, such as a permutation
    or a coalition of each fold.
    """
    settings, made = result.job.settings, result.evaluations
    if settings.until is None or made is None:
        return False
    return len(made) + made.design.unit <= min(settings.budget, made.design.size or np.inf)


def _what_became_of_until(result: Result) -> list[str]:
    settings = result.job.settings
    if settings.until is None or result.evaluations is None:
        return []
    if _stops_early(result):
        reached = f"{len(result.evaluations):,} of {settings.budget:,} coalitions"
        return [f"--until {settings.until} stopped the run after {reached}."]
    return [f"--until {settings.until} was not met within --budget {settings.budget:,}."]


def _verdict(result: Result) -> str:
    from databanzhaf.pipeline.notes import learns_nothing
    from databanzhaf.report.content import REASONS, harm, none_suspect

    job, suspects, n = result.job, result.suspects, len(result.table)
    who, flag = job.who, job.settings.flag
    if suspects is None:
        return (
            f"No {who} are flagged: this run has no standard errors. Read the lowest values first, "
            "or flag with --flag lowest:0.1."
        )
    if not len(suspects):
        hopeless = learns_nothing(result.record.scores)
        return none_suspect(result.estimate, who, flag, hopeless=hopeless)
    verb, them = ("is", "it") if len(suspects) == 1 else ("are", "them")
    rule = f"flagged by {flag}"
    if flag.beyond_chance:
        counted = ", judged by these validation rows"
        if result.estimate.population is not None:
            counted = ", also if other rows had judged"
        rule = f"below zero beyond chance{counted}: {harm(result.estimate, them)}"
    count = f"{len(suspects):,} of {n:,} {who}"
    return f"{count} {verb} {rule}. Begin with the lowest. {REASONS[who]}"


def _other_verdicts(result: Result) -> list[str]:
    """For each further notion, whom it flags and of whom it knows nothing yet."""
    said, who = [], result.job.who
    for estimate, table in result.others.values():
        flagged = int((table["flag"] == "suspect").sum())
        unknown = int(np.isinf(estimate.std_errors).sum())
        count = f"{flagged:,} of {len(table):,} {who}" if flagged else f"no {who}"
        line = f"By {estimate.notion.name} values {count} {'is' if flagged == 1 else 'are'} flagged"
        if unknown:
            line += f", and {unknown:,} have no interval yet: raise --budget"
        said.append(f"{line}.")
    return said


def show_table(
    screen: Screen, header: list[str], rows: list[list[Any]], title: str | None = None
) -> None:
    from rich.table import Table
    from rich.text import Text

    def cell(thing: Any) -> Text:
        return Text(printable(str(thing).replace("\n", "\\n").replace("\t", "\\t")))

    if title is not None:  # as a line of its own: rich would fold it to the table's width
        screen.print(cell(title))
    table = Table()
    for number, name in enumerate(header):
        table.add_column(cell(name), justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*map(cell, row))
    screen.print(table)


def decimals(number: float | None, digits: int) -> str:
    return "?" if number is None else f"{number:.{digits}f}"


def as_power(log10: float) -> str:
    return f"{10**log10:.4g}" if abs(log10) < 15 else f"10^{log10:,.1f}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.1f} s"


def in_bytes(number: float | None) -> str:
    if number is None:
        return "?"
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number >= 2**power:
            return f"{number / 2**power:,.1f} {unit}"
    return f"{number:,.0f} bytes"
