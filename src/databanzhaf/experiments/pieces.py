"""Evaluations that grow piece by piece: small files beside the pages, from which a run continues.

Coalitions and trainings are functions of (seed, index, repeat), so a piece needs utilities only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import databanzhaf as db
from databanzhaf.experiments.setting import Setting
from databanzhaf.files import replacing


def path(setting: Setting, parts: tuple[object, ...]) -> Path:
    return setting.out / "evaluations" / f"{setting.ledger(*parts).stem}.npz"


def read(file: Path) -> dict[str, Any] | None:
    """`utilities`, with NaN for what is missing, `work` by machine, and the `design` and `data`
    that they belong to; None where no file is.
    """
    if not file.is_file():
        return None
    try:
        with np.load(file) as archive:
            about = json.loads(str(archive["about"]))
            found = {"utilities": archive["utilities"], **about}
        if set(found) != {"utilities", "work", "design", "data"} or found["utilities"].ndim != 2:
            raise ValueError("another form")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise db.InvalidInput(
            f"`{file}` must hold the evaluations of a run",
            got=str(error),
            remedy="Restore it, or remove it to begin without them.",
        ) from error
    return found


def write(file: Path, ledger: db.Ledger, work: dict[str, list[float]]) -> None:
    """Everything that the ledger holds."""
    about = {"work": work, "design": ledger.design, "data": ledger.game["data"]}
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary, temporary.open("xb") as stream:
        np.savez_compressed(stream, utilities=ledger.utilities(), about=np.array(json.dumps(about)))


def restore(file: Path, piece: dict[str, Any], ledger: db.Ledger, game: Any, seed: int) -> None:
    """Put a piece into a new ledger."""
    fingerprint = game.fingerprint()
    if fingerprint["data"] != piece["data"]:
        raise db.InvalidInput(
            f"`{file}` must belong to the data of this run",
            got="evaluations of other data",
            remedy="Use the data that docs/paper.md describes, or give another `--out`.",
        )
    ledger.bind(fingerprint, piece["design"], seed=seed, stochastic=True)
    indices, repeats = np.nonzero(~np.isnan(piece["utilities"]))
    seconds = sum(spent for _, spent in piece["work"].values()) / max(1, len(indices))
    ledger.append(
        indices, repeats, piece["utilities"][indices, repeats], np.full(len(indices), seconds)
    )
