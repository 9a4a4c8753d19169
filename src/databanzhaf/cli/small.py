"""The commands that read no table of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from databanzhaf.cli.options import AsJson
from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.streams import print_json
from databanzhaf.cli.text import Screen, as_power, show_table


def margin(
    n: Annotated[int, typer.Option("--n", help="Number of players.")] = 200,
    tau: Annotated[float, typer.Option(help="Difference between the values of two players.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show how much noise in the scores each notion's ranking survives: the paper's safety margin
    and Lipschitz constant.
    """
    with one_sentence():
        from databanzhaf import theory
        from databanzhaf.errors import check_between, check_count
        from databanzhaf.notions import named

        check_count("n", n, 2)
        check_between("tau", tau, 0, float("inf"), "Try 1.")
        names = ("loo", "beta:16,1", "beta:4,1", "shapley", "beta:1,4", "beta:1,16", "banzhaf")
        rows: list[dict[str, Any]] = [
            {
                "notion": named(name).name,
                "log10_safety_margin": theory.safety_margin(named(name), n, tau, log=True)
                / 2.302585092994046,
                "log10_lipschitz": theory.lipschitz(named(name), n, log=True) / 2.302585092994046,
            }
            for name in names
        ]
        if as_json:
            print_json({"n": n, "tau": tau, "notions": rows})
            return
        screen = Screen()
        cells = [
            [row["notion"], as_power(row["log10_safety_margin"]), as_power(row["log10_lipschitz"])]
            for row in rows
        ]
        show_table(
            screen,
            ["notion", "safety margin", "Lipschitz constant"],
            cells,
            f"n = {n:,}, tau = {tau:g}",
        )
        screen.print(
            "A larger margin and a smaller constant are better. The Banzhaf value is best of all "
            "semivalues in both."
        )
        screen.print(
            "Margins follow the paper's formula; the smallest noise that can tie a pair is 0.707 "
            "times as large, for every notion."
        )


def example(
    out: Annotated[Path, typer.Option(help="File to write.")] = Path("suppliers.csv"),
) -> None:
    """Write the small example table: 300 customers from six suppliers, one of whom delivers wrong
    labels.
    """
    with one_sentence():
        from databanzhaf.datasets import path
        from databanzhaf.errors import InvalidInput
        from databanzhaf.files import write_text

        if out.exists():
            raise InvalidInput(f"`{out}` already exists", remedy="Give another --out.")
        write_text(out, path("suppliers").read_text(encoding="utf-8"))
        Screen().print(
            f"Written: {out}. Try: databanzhaf mislabels {out} --target bought --id id --drop "
            "supplier",
            soft_wrap=True,
        )


def doctor(as_json: AsJson = False) -> None:
    """Show versions, devices and optional packages."""
    with one_sentence():
        from databanzhaf.cli.doctor import examine

        found = examine()
        if as_json:
            print_json(found)
            return
        screen = Screen()
        for title, part in found.items():
            show_table(screen, [title, ""], [[name, text] for name, text in part.items()])
