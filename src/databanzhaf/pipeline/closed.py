"""Nearest neighbours: when their values are known in closed form, so that nothing is trained."""

from __future__ import annotations

from pathlib import Path

from databanzhaf.errors import InvalidInput, LedgerMismatch
from databanzhaf.ledger import Ledger
from databanzhaf.notions import SizeWeighted, each_of
from databanzhaf.pipeline.settings import Settings

ESTIMATOR = "closed_form"


def is_asked(settings: Settings, classifies: bool) -> bool:
    """Whether the values of these settings are a closed form; raises where --estimator asks for one
    and there is none.
    """
    what = obstacle(settings, classifies)
    if settings.estimator == ESTIMATOR and what is not None:
        raise InvalidInput(
            "`estimator` closed_form needs --model knn, a classification, rows as players, "
            "semivalues and the metric probability",
            got=what,
            remedy="Leave --estimator out to train models.",
        )
    return settings.estimator in ("auto", ESTIMATOR) and what is None


def obstacle(settings: Settings, classifies: bool) -> str | None:
    """The setting for which models must be trained; None if there is none."""
    others = [each.name for each in each_of(settings.notion) if not isinstance(each, SizeWeighted)]
    found = {
        f"--model {settings.model}": settings.model != "knn",
        "a regression": not classifies,
        "--groups": settings.groups is not None,
        "--clusters": settings.clusters is not None,
        f"--notion {', '.join(others)}": bool(others),
        f"--metric {settings.metric}": settings.metric not in (None, "probability"),
        f"--until {settings.until}": settings.until is not None,
        f"--cluster {settings.cluster}": settings.cluster is not None,
    }
    return next((name for name, stands in found.items() if stands), None)


def check_folder(out: Path) -> None:
    """Refuse a folder with trainings: its ledger would stand beside values that are not its own."""
    ledger = out / "run.db"
    if not ledger.exists():
        return
    with Ledger(ledger) as store:
        if store.is_new:
            return
    raise LedgerMismatch(
        f"`{ledger}` holds models that were trained, and these values are a closed form that "
        "trains none",
        remedy="Give another --out, or repeat the command that made the folder.",
    )


def refuse_shard() -> None:
    """There is nothing to share among machines."""
    raise InvalidInput(
        "--shard shares trainings, and the values of nearest neighbours are a closed form that "
        "needs none",
        got="--model knn",
        remedy="Leave --shard out, or train models with --estimator regression.",
    )
