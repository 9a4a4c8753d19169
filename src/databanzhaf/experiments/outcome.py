"""What an experiment found, and the files that tell it: CSV, PNG, SVG and a Markdown page."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

import databanzhaf as db
from databanzhaf.experiments import protocol
from databanzhaf.experiments.setting import Setting
from databanzhaf.files import replacing, write_text

# Which experiments an option matters to.
TABLES = ("weighted_training", "mislabel_detection")
IMAGES = (*TABLES, "instability", "top_bottom", "convergence_ranking")
TRAINING = (*IMAGES, "rank_stability", "rank_stability_smoothing")
# What `Claim.holds` means.
VERDICTS: Final = {True: "yes", False: "no", None: "undecided"}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, its number, ours, and whether ours bears it out (None: this run cannot
    tell); or a question that it does not ask.
    """

    claim: str
    paper: str
    ours: str
    holds: bool | None
    asked_by_paper: bool = True


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment found.

    `table` is all numbers (the CSV); `shown` the part for the page, by default all; `draw` fills a
    matplotlib figure of `size`.
    """

    title: str
    what: str
    table: pd.DataFrame
    draw: Any
    samples: str
    differs: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    shown: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()
    size: tuple[float, float] = (9.0, 4.0)
    data: tuple[str, ...] = field(default=())
    hardware: str = ""
    # How many datasets its claims are about; 0 for those that have none.
    datasets: int = 0
    # What `--scale` does.
    scaled: str = (
        "of the paper's number of coalitions was asked for; the line `samples` says what was taken"
    )


def write(name: str, outcome: Outcome, setting: Setting, seconds: float) -> Path:
    """All files of one experiment; returns the page."""
    out = setting.out
    write_text(
        out / f"{name}.csv",
        outcome.table.to_csv(index=False, float_format="%.6g", lineterminator="\n"),
    )
    _figure(outcome, out / name)
    claims = {
        "title": outcome.title,
        "scale": setting.scale,
        **(
            {"image_scale": setting.image_scale}
            if name in IMAGES
            and (setting.datasets is None or set(setting.datasets) & set(protocol.IMAGES))
            else {}
        ),
        **({"draws": setting.n_draws} if name in TABLES else {}),
        "seed": setting.seed,
        "datasets": outcome.datasets,
        "claims": [
            {**asdict(each), "holds": None if each.holds is None else bool(each.holds)}
            for each in outcome.claims
        ],
    }
    write_text(out / f"{name}.claims.json", json.dumps(claims, indent=1, ensure_ascii=False) + "\n")
    page = out / f"{name}.md"
    write_text(page, _page(name, outcome, setting, seconds))
    return page


def read_json(path: Path) -> dict[str, Any]:
    """What a small file holds; nothing where it is missing or damaged, since it can be
    made again.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _figure(outcome: Outcome, stem: Path) -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "databanzhaf", "svg.fonttype": "none"}):
        figure = Figure(figsize=outcome.size, layout="constrained")
        FigureCanvasAgg(figure)
        outcome.draw(figure)
        with replacing(stem.with_suffix(".svg")) as temporary:
            figure.savefig(temporary, metadata={"Date": None, "Creator": None})


def _page(name: str, outcome: Outcome, setting: Setting, seconds: float) -> str:
    shown = outcome.table if outcome.shown is None else outcome.shown
    facts = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": f"`{command(name, setting)}`",
        "scale": f"{setting.scale:g} {outcome.scaled}",
        "seed": str(setting.seed),
        "hardware": outcome.hardware or hardware(setting),
        "samples": outcome.samples,
        "time": f"{seconds:,.0f} s for this call"
        + ("; trainings that were there already took theirs before" if outcome.hardware else ""),
        "databanzhaf": db.__version__,
    }
    parts = [
        f"# {outcome.title}",
        outcome.what,
        f"![{outcome.title}]({name}.svg)",
        *outcome.notes,
        "## Numbers",
        as_markdown(shown),
        f"All numbers: [{name}.csv]({name}.csv).",
    ]
    for title, by_paper in (
        ("The paper's claims", True),
        ("Questions that the paper does not ask", False),
    ):
        if some := [claim for claim in outcome.claims if claim.asked_by_paper == by_paper]:
            names = ("claim", "holds here") if by_paper else ("question", "yes or no")
            parts += [f"## {title}", as_markdown(claims_table(some, *names))]
    parts += ["## How it was run", "\n".join(f"- {key}: {value}" for key, value in facts.items())]
    parts += ["\n".join(f"- data: {line}" for line in outcome.data)] if outcome.data else []
    if outcome.differs:
        parts += [
            "## What differs from the paper",
            "\n".join(f"- {line}" for line in outcome.differs),
        ]
    return "\n\n".join(parts) + "\n"


def claims_table(claims: list[Claim], claim: str, verdict: str) -> pd.DataFrame:
    return pd.DataFrame(
        [[each.claim, each.paper, each.ours, VERDICTS[each.holds]] for each in claims],
        columns=[claim, "paper", "ours", verdict],
    )


def command(name: str, setting: Setting) -> str:
    """The command that makes a page, with the options that matter to it."""
    words = [
        "databanzhaf",
        "reproduce",
        name,
        "--scale",
        f"{setting.scale:g}",
        "--seed",
        str(setting.seed),
    ]
    if name in TRAINING and setting.device != "auto":
        words += ["--device", setting.device]
    if setting.datasets is not None:
        words += ["--datasets", ",".join(setting.datasets)]
    if name in IMAGES and setting.image_scale != Setting.image_scale:
        words += ["--image-scale", f"{setting.image_scale:g}"]
    if name in TABLES and setting.draws is not None:
        words += ["--draws", str(setting.draws)]
    if name in TABLES and setting.jobs != 1:
        words += ["--jobs", str(setting.jobs)]
    return " ".join(words)


def hardware(setting: Setting) -> str:
    cpus = Path("/proc/cpuinfo")
    lines = cpus.read_text(encoding="utf-8").splitlines() if cpus.is_file() else []
    model = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
    text = f"{model}, {os.cpu_count()} cores"
    if setting.on_gpu:
        import torch

        text += f"; {torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    return text


def as_markdown(table: pd.DataFrame) -> str:
    def cell(value: Any) -> str:
        if isinstance(value, float):
            return "" if value != value else f"{value:.4g}"
        return str(value).replace("|", "\\|").replace("\n", " ")

    head = [str(name) for name in table.columns]
    lines = [
        head,
        ["---"] * len(head),
        *([cell(value) for value in row] for row in table.itertuples(index=False)),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
