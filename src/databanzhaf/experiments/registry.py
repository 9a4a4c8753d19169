"""Experiments by name, and the page that sums them up."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any, Final

import pandas as pd

import databanzhaf as db
from databanzhaf.experiments.outcome import as_markdown, write
from databanzhaf.experiments.setting import Setting

# In the order of the paper; what each shows.
NAMES: Final = {
    "margins": "Theorems 1 and 2: safety margin and Lipschitz constant",
    "instability": "Box plots (a)-(c): values of 20 CIFAR10 images over five trainings",
    "top_bottom": "Top-k and bottom-k: rows that stay in the top and bottom k% over five runs",
    "convergence_exact": "Convergence (a): maximum sample reuse against simple Monte Carlo",
    "convergence_ranking": "Convergence (b): relative Spearman index on MNIST",
    "rank_stability": "Rank stability: Spearman to the reference over k repeats",
    "rank_stability_tiny": "Appendix: exact values of ten points under Gaussian noise",
    "rank_stability_smoothing": "Appendix: gradient descent with randomized smoothing",
    "weighted_training": "Table 1: accuracy of networks trained with values as weights",
    "mislabel_detection": "Table 2: F1 of flagging the lowest 10%",
    "sample_bounds": "Theorems 3 to 6: errors against bounds",
    "noise_1d": "Appendix: noise of one-dimensional regression",
}


def reproduce(name: str, setting: Setting) -> Path:
    """Run one experiment, or go on with it, and write its files; returns its page."""
    if name not in NAMES:
        raise db.InvalidInput(
            f"`name` must be all or one of {', '.join(NAMES)}; got {name!r}. `databanzhaf reproduce --list` says what each is."
        )
    try:
        module: Any = importlib.import_module(f"databanzhaf.experiments.{name}")
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise db.BackendUnavailable(
            f"this experiment needs {error.name}, which is not installed. Run: pip install 'databanzhaf[paper]'"
        ) from error
    start = time.perf_counter()
    outcome = module.run(setting)
    return write(name, outcome, setting, time.perf_counter() - start)


def summarise(out: Path) -> Path:
    """One page with every claim that the experiments in `out` have looked at."""
    rows = []
    for name in NAMES:
        path = out / f"{name}.claims.json"
        if not path.is_file():
            continue
        found = json.loads(path.read_text(encoding="utf-8"))
        for claim in found["claims"]:
            holds = {True: "yes", False: "**no**", None: "cannot tell"}[claim["holds"]]
            rows.append([claim["claim"], claim["paper"], claim["ours"], holds, f"[{name}]({name}.md) at scale {found['scale']:g}"])
    table = pd.DataFrame(rows, columns=["claim", "paper", "ours", "holds here", "from"])
    counts = {word: sum(word in row[3] for row in rows) for word in ("yes", "no", "cannot tell")}
    page = out / "summary.md"
    text = [
        "# The paper's claims, and our numbers",
        f"Of {len(rows)} claims {counts['yes']} hold here, {counts['no']} do not, and {counts['cannot tell']} cannot be told from these runs. Each line is written "
        "by the experiment that it comes from; its page says how it was run and what differs from the paper.",
        as_markdown(table),
    ]
    page.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    return page
