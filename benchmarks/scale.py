"""How time and memory grow with players (n) and coalitions (m): a free utility, so that what is
measured is the library; and a real learner on a million rows in a thousand groups.

    python benchmarks/scale.py
    python benchmarks/scale.py grid
    python benchmarks/scale.py forest
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np

SIZES = (10**3, 10**4, 10**5, 10**6)
# Larger ones take more than half an hour.
MOST_CELLS = 10**11
WANTED = (10**6, 10**4)
ROWS, COLUMNS, GROUPS = 10**6, 20, 1000


def child(kind, *numbers):
    """One run, in this process: seconds, and of the forest what its values say."""
    import databanzhaf as db

    if kind == "free":
        n, m = map(int, numbers)
        game = db.games.Function(n, lambda inside: inside.sum(axis=1) / n, name="share")
        how = {"budget": m, "estimator": "reuse"}
    else:
        rows, budget, sampled = map(int, numbers)
        game, how = of_groups(db, rows, sampled), {"budget": budget, "estimator": "reuse"}
    start = time.perf_counter()
    estimate = db.value(game, **how)
    seconds = time.perf_counter() - start
    assert np.isfinite(estimate.std_errors).all()
    said = {"seconds": seconds}
    if kind == "forest":
        bad = np.arange(GROUPS) % 10 == 0
        lowest = estimate.ranking()[: bad.sum()]
        said["found"] = float(bad[lowest].mean())
    return said


def of_groups(db, rows, sampled):
    """Rows in a thousand groups; in every tenth group half of the labels are wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + 2000, COLUMNS)).astype(np.float32)
    y = (X[:, :4].sum(axis=1) + rng.normal(size=len(X)) > 0).astype(int)
    groups = np.arange(rows) % GROUPS
    wrong = (groups % 10 == 0) & (rng.random(rows) < 0.5)
    labels = np.where(wrong, 1 - y[:rows], y[:rows])
    data = db.Dataset(X[:rows], labels, X[rows:], y[rows:], groups=groups)
    return db.games.Forest(data, max_samples=sampled or None)


def fresh(*arguments):
    """A child of its own: what it says, and its peak in GiB."""
    command = [sys.executable, __file__, "child", *map(str, arguments)]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said = json.loads(started.stdout.read())
    _, status, used = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    return {**said, "peak": used.ru_maxrss / 2**20}


def grid():
    from record import table

    found = {}
    for n, m in product(SIZES, SIZES):
        if n * m <= MOST_CELLS:
            found[n, m] = fresh("free", n, m)
            print(n, m, found[n, m], file=sys.stderr, flush=True)

    def cell(n, m):
        run = found.get((n, m))
        return "" if run is None else f"{run['seconds']:,.2f} s, {run['peak']:.2f} GiB"

    lines = [[f"{n:,}", *(cell(n, m) for m in SIZES)] for n in SIZES]
    wanted = found[WANTED]
    met = "met" if wanted["seconds"] < 600 and wanted["peak"] < 2 else "missed"
    along = [
        [
            what,
            f"{growth(found, axis, measure):.2f}",
        ]
        for what, axis, measure in (
            ("seconds with n, at the largest m of each pair", 0, "seconds"),
            ("seconds with m, at the largest n of each pair", 1, "seconds"),
            ("GiB with n", 0, "peak"),
            ("GiB with m", 1, "peak"),
        )
    ]
    return "\n\n".join(
        [
            table(["players", *(f"{m:,} coalitions" for m in SIZES)], lines),
            "Values with standard errors by `reuse` from a utility that costs nothing (the share "
            "of players inside), each run in a process of its own, without a ledger's file. Empty: "
            f"more than {MOST_CELLS:,} cells.",
            table(
                ["", "wanted", "measured", ""],
                [[f"{WANTED[0]:,} players, {WANTED[1]:,} coalitions", "10 minutes, 2 GiB",
                  cell(*WANTED), met]],
            ),
            table(["growth exponent", "between the two largest sizes"], along),
            "An exponent of 1: ten times as many take ten times as long.",
        ]
    )  # fmt: skip


def growth(found, axis, measure):
    """log10 of the ratio between the two largest sizes along an axis, at the largest other size
    that has both.
    """
    for other in reversed(SIZES):
        pair = [(size, other) if axis == 0 else (other, size) for size in SIZES]
        there = [found[place][measure] for place in pair if place in found]
        if len(there) == len(SIZES):
            return np.log10(there[-1] / there[-2])
    return float("nan")


def forest():
    from record import table

    lines = []
    for rows, budget, sampled in ((10**5, 200, 0), (10**6, 30, 0), (10**6, 2000, 10_000)):
        run = fresh("forest", rows, budget, sampled)
        print(rows, budget, sampled, run, file=sys.stderr, flush=True)
        lines.append(
            [f"{rows:,}", f"{budget:,}", f"{sampled:,}" if sampled else "all",
             f"{run['seconds']:,.0f}", f"{run['seconds'] / budget:.2f}", f"{run['peak']:.2f}",
             f"{run['found']:.2f}"]
        )  # fmt: skip
    head = ["rows", "coalitions", "rows of a tree", "seconds", "a coalition", "GiB", "found"]
    return (
        f"{table(head, lines)}\n\nForests of 20 trees on rows in {GROUPS:,} groups, {COLUMNS} "
        "columns, all cores. In every tenth group half of the labels are wrong. Found: share of "
        "these groups among as many lowest values (0.1 by chance)."
    )


PARTS = {"grid": grid, "forest": forest}


def main(parts):
    from record import record

    for part in parts or PARTS:
        record(f"Scale: {part}", PARTS[part]())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(child(*sys.argv[2:])))
    else:
        main(sys.argv[1:])
