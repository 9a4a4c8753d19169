"""What a watch costs a run: the same run with and without a page that asks, in alternation.

The client asks as the page does, every two seconds. The run uses all cores, so that all that the
watch takes is taken from it.

    python benchmarks/live.py [EVALUATIONS] [ROUNDS]
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from record import record, table

from databanzhaf.protocols import FloatArray

ROWS, COLUMNS = 400, 6
SHELL = [sys.executable, "-m", "databanzhaf"]


def draw(path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, COLUMNS))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=ROWS) / 2 > 0, "yes", "no")
    pd.DataFrame(X, columns=list("abcdef")).assign(y=y).to_csv(path, index=False)


def run(data: Path, folder: Path, evaluations: int) -> tuple[float, float]:
    """Seconds of the run itself, without imports, and of processor of the whole command, which
    depend less on what else the machine does.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["value", str(data), "--target", "y", "--budget", str(evaluations), "--quiet"]
    subprocess.run([*SHELL, *words, "--out", str(folder)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return float(json.loads((folder / "run.json").read_text())["seconds"]), busy


@contextmanager
def watched(folder: Path) -> Iterator[list[float]]:
    """A watch that is asked every two seconds. The list gets the seconds of processor that it has
    taken since it waits for the run, before each question until the run is finished.
    """
    took: list[float] = []
    process = subprocess.Popen([*SHELL, "watch", str(folder)], stdout=subprocess.PIPE, text=True)
    lines = iter(process.stdout.readline, "")  # type: ignore[union-attr]
    address = next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
    over = threading.Event()

    def ask() -> None:
        before = processor(process.pid)
        while not over.is_set():
            now = processor(process.pid)
            state = json.load(urllib.request.urlopen(f"{address}data"))
            if state["stage"] != "finished":
                took.append(now - before)
            over.wait(2.0)

    client = threading.Thread(target=ask)
    client.start()
    try:
        yield took
    finally:
        over.set()
        client.join()
        process.kill()
        process.communicate()


def processor(pid: int) -> float:
    """Seconds of processor that a process has taken, as Linux counts them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(ratios: FloatArray) -> str:
    return f"{np.median(ratios):.3f} ({ratios.min():.3f} to {ratios.max():.3f})"


def main(evaluations: int, rounds: int) -> None:
    alone, seen, share = [], [], []
    with TemporaryDirectory() as place:
        data = Path(place) / "table.csv"
        draw(data)
        run(data, Path(place) / "warm", 500)
        for turn in range(rounds):
            for with_watch in (False, True) if turn % 2 == 0 else (True, False):
                folder = Path(place) / f"{turn}-{with_watch}"
                if not with_watch:
                    alone.append(run(data, folder, evaluations))
                    continue
                with watched(folder) as took:
                    seen.append(run(data, folder, evaluations))
                share.append(took[-1] / seen[-1][0])
    (without, quiet), (watch, busy) = np.array(alone).T, np.array(seen).T
    walls, processors = watch / without, busy / quiet
    rows = [
        [
            f"{evaluations:,}",
            f"{rounds}",
            f"{np.median(without):.1f}",
            f"{np.median(watch):.1f}",
            spread(walls),
            spread(processors),
            f"{np.median(share):.1%}",
        ]
    ]
    head = [
        "evaluations",
        "pairs",
        "seconds alone",
        "seconds watched",
        "ratio, median (range)",
        "ratio of the run's processor time",
        "processor time of the watch, of one core",
    ]
    note = (
        f"{ROWS} rows, the default forest on all cores, `databanzhaf watch` asked every two "
        "seconds. The processor time of the watch includes reading the table and the first values, "
        "once for each run. Other work on the machine spreads the ratios; the time of the watch, "
        "divided by the cores, is what it can take from a run."
    )
    record("Watching a run", f"{table(head, rows)}\n\n{note}")


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*[*given, *(20_000, 5)[len(given) :]])
