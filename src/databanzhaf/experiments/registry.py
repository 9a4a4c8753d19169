"""Experiments by name, and the page that sums them up."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd

import databanzhaf as db
from databanzhaf.experiments.outcome import VERDICTS, as_markdown, read_json, write
from databanzhaf.experiments.setting import FURTHER, Setting
from databanzhaf.experiments.texts import text
from databanzhaf.files import write_text

# In the order of the paper; what each shows.
NAMES: Final = {
    "margins": "Theorems 1 and 2: safety margin; and the Lipschitz constant",
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


# Those that value datasets by name.
CHOOSING: Final = (
    "rank_stability",
    "rank_stability_smoothing",
    "weighted_training",
    "mislabel_detection",
)


def reproduce(name: str, setting: Setting) -> Path:
    """Run one experiment, or go on with it, and write its files; returns its page."""
    if name not in NAMES:
        raise db.InvalidInput(
            f"`name` must be all or one of {', '.join(NAMES)}",
            got=repr(name),
            remedy="`databanzhaf reproduce --list` says what each is.",
        )
    try:
        module: Any = importlib.import_module(f"databanzhaf.experiments.{name}")
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise db.BackendUnavailable.missing(
            "this experiment needs", str(error.name or error), "paper"
        ) from error
    if setting.datasets is not None and name not in CHOOSING:
        raise db.InvalidInput(
            f"{name} has no datasets to choose",
            got="--datasets",
            remedy=f"Leave it out; {', '.join(CHOOSING)} take it.",
        )
    with _told(setting.out):
        setting.out.mkdir(parents=True, exist_ok=True)
        write_text(
            setting.out / f".{name}.trial", ""
        )  # a folder that cannot be written to is noticed before the work
        (setting.out / f".{name}.trial").unlink(missing_ok=True)
        start = time.perf_counter()
        outcome = module.run(setting)
        return write(name, outcome, setting, time.perf_counter() - start)


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """Errors of files in the words of this command."""
    try:
        yield
    except (db.LedgerMismatch, db.LedgerFailed) as error:
        remedy = "Delete that file if it is not needed, or give another --out."
        raise error.with_remedy(remedy) from error
    except OSError as error:
        place = Path(str(error.filename)) if error.filename else out
        if place.resolve().is_relative_to(out.resolve()):
            raise db.LedgerFailed(
                f"`{error.filename2 or out}` cannot be written to ({error.strerror or error})",
                remedy="Check the folder and the free disk space.",
            ) from error
        raise db.InvalidInput(
            f"`{place}` cannot be read ({error.strerror or error})", remedy="Check its permissions."
        ) from error


def verdicts(page: Path) -> str:
    """What became of the paper's claims on one page, in a few words."""
    claims = [
        claim["holds"]
        for claim in read_json(page.with_suffix(".claims.json"))["claims"]
        if claim["asked_by_paper"]
    ]
    return "the paper's claims: " + ", ".join(
        f"{claims.count(holds)} {what}" for holds, what in VERDICTS.items() if holds in claims
    )


def summarise(out: Path) -> Path:
    """One page with every claim that the experiments in `out` have looked at."""
    claims: list[list[str]] = []
    questions: list[list[str]] = []
    counts = {True: 0, False: 0, None: 0}
    for name in NAMES:
        path = out / f"{name}.claims.json"
        if not path.is_file():
            continue
        found = read_json(path)
        try:
            for claim in found["claims"]:
                holds = "**no**" if claim["holds"] is False else VERDICTS[claim["holds"]]
                row = [claim["claim"], claim["paper"], claim["ours"], holds, _origin(name, found)]
                (claims if claim["asked_by_paper"] else questions).append(row)
                counts[claim["holds"]] += claim["asked_by_paper"]
        except (
            LookupError,
            TypeError,
            ValueError,
        ) as error:  # a file that is not ours, or of another version
            raise db.LedgerFailed(
                f"`{path}` is damaged",
                remedy=f"Run `databanzhaf reproduce {name}` again, or delete it.",
            ) from error
    page = out / "summary.md"
    parts = [
        "# The paper's claims, and our numbers",
        text(
            "summary_head",
            claims=len(claims),
            true=counts[True],
            false=counts[False],
            none=counts[None],
        ),
        as_markdown(pd.DataFrame(claims, columns=["claim", "paper", "ours", "holds here", "from"])),
    ]
    if questions:
        parts += [
            "## Questions that the paper does not ask",
            as_markdown(
                pd.DataFrame(questions, columns=["question", "paper", "ours", "yes or no", "from"])
            ),
        ]
    with _told(out):
        write_text(page, "\n\n".join(parts) + "\n")
    return page


def _origin(name: str, found: dict[str, Any]) -> str:
    sets = found.get("datasets")
    images = (
        f" (networks on images: image-scale {found['image_scale']:g})"
        if "image_scale" in found
        else ""
    )
    draws = found.get("draws", 1)
    return (
        f"[{name}]({name}.md) at scale {found['scale']:g}{images}, seed {found.get('seed', 0)}"
        + (f", {sets} dataset{'s' * (sets > 1)}" if sets else "")
        + (
            f", up to {draws} draws of the data, further ones at a scale of "
            f"{min(FURTHER, found['scale']):g}"
            if draws > 1
            else ""
        )
    )
