"""The command `databanzhaf watch`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databanzhaf.cli.signals import one_sentence
from databanzhaf.cli.text import Screen


def watch(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of a `databanzhaf value` or `databanzhaf mislabels` run, or its run.db.",
            show_default=False,
        ),
    ],
    port: Annotated[
        int | None, typer.Option(help="Port of the page on 127.0.0.1; a free one by default.")
    ] = None,
) -> None:
    """Show a run in a browser while another process makes it: progress, time left, and the values
    so far. Nothing is trained or written.
    """
    with one_sentence("Stopped watching. The run is not affected."):
        from databanzhaf.errors import check_count
        from databanzhaf.live import Server, Watch, find

        place = find(run)
        with Server(Watch(place), check_count("port", port or 0, 1024 * bool(port), 65535)) as made:
            screen = Screen()
            if not place.ledger.exists():
                screen.print(f"There is no run in {place.shown} yet; the page waits for it.")
            screen.print(f"Open {made.address} in a browser. Ctrl-C ends it.", soft_wrap=True)
            made.serve_forever()
