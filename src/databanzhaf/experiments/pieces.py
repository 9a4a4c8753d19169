"""Evaluations that grow piece by piece: small files beside the pages, from which a run continues.

Coalitions and trainings are functions of (seed, index, repeat), so a piece needs utilities only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

import databanzhaf as db
from databanzhaf.experiments.setting import Setting
from databanzhaf.files import replacing

_EVERY = 120.0  # seconds


def path(setting: Setting, parts: tuple[object, ...]) -> Path:
    return setting.out / "evaluations" / f"{setting.ledger(*parts).stem}.npz"


def read(file: Path) -> dict[str, Any] | None:
    """`utilities`, with NaN for what is missing, `work` by machine, and the `design`, `data` and
    `training` (which the oldest do not have) that they belong to; None where no file is.
    """
    if not file.is_file():
        return None
    try:
        with np.load(file) as archive:
            about = json.loads(str(archive["about"]))
            found = {"utilities": archive["utilities"], **about}
        parts = {"utilities", "work", "design", "data"}
        if set(found) - {"training"} != parts or found["utilities"].ndim != 2:
            raise ValueError("another form")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise db.InvalidInput(
            f"`{file}` must hold the evaluations of a run",
            got=str(error),
            remedy="Restore it, or remove it to begin without them.",
        ) from error
    return found


@contextmanager
def kept_meanwhile(keep: Callable[[], None]) -> Iterator[None]:
    """Call `keep` every two minutes and at the end, in a thread of its own: a second Ctrl-C, which
    interrupts whatever this thread does, does not interrupt it, and kill -9 costs two minutes.
    """
    over, failed = Event(), []

    def work() -> None:
        try:
            while not over.wait(_EVERY):
                keep()
            keep()
        except db.DatabanzhafError as error:
            failed.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if failed:
        raise failed[0]


def write(
    file: Path, ledger: db.Ledger, work: dict[str, list[float]], repeats: int | None = None
) -> None:
    """What the ledger holds of the first repeats, by default of all, if that is more than the file
    has.
    """
    if ledger.is_new or ledger.count() <= count(file):
        return
    utilities = ledger.utilities()[:, :repeats]
    known = np.count_nonzero(~np.isnan(utilities))
    if known <= count(file):
        return
    share = known / ledger.count()
    # Of several machines, rounded so that they add up.
    trained = np.cumsum([0, *(count for count, _ in work.values())]) * share
    counts = np.diff(np.rint(trained)).astype(int).tolist()
    about = {
        "work": {
            machine: [count, share * spent]
            for count, (machine, (_, spent)) in zip(counts, work.items(), strict=True)
        },
        "design": ledger.design,
        "data": ledger.game["data"],
        "training": _training(ledger.game),
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary, temporary.open("xb") as stream:
        np.savez_compressed(stream, utilities=utilities, about=np.array(json.dumps(about)))


def _training(game: dict[str, str]) -> str:
    """A digest of how models are trained and scored."""
    # The digest of a function that makes a module is another for each version of Python.
    facts = {name: fact for name, fact in game.items() if name not in ("data", "module")}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def count(file: Path) -> int:
    """Evaluations in a file; none where no file is."""
    piece = read(file)
    return 0 if piece is None else int(np.count_nonzero(~np.isnan(piece["utilities"])))


def whole_repeats(file: Path) -> int:
    """Repeats that are there for every coalition, from the first one on."""
    piece = read(file)
    return (
        0 if piece is None else int(np.cumprod(np.isfinite(piece["utilities"]).all(axis=0)).sum())
    )


def restore(file: Path, piece: dict[str, Any], ledger: db.Ledger, game: Any, seed: int) -> None:
    """Put a piece into a new ledger."""
    fingerprint = game.fingerprint()
    if fingerprint["data"] != piece["data"]:
        raise db.InvalidInput(
            f"`{file}` must belong to the data of this run",
            got="evaluations of other data",
            remedy="Use the data that docs/paper.md describes, or give another `--out`.",
        )
    if piece.get("training", _training(fingerprint)) != _training(fingerprint):
        raise db.InvalidInput(
            f"`{file}` must belong to the training of this run",
            got="evaluations of models that were trained or scored in another way",
            remedy="Give another `--out`, or remove the file to begin without it.",
        )
    ledger.bind(fingerprint, piece["design"], seed=seed, stochastic=True)
    indices, repeats = np.nonzero(~np.isnan(piece["utilities"]))
    seconds = sum(spent for _, spent in piece["work"].values()) / max(1, len(indices))
    ledger.append(
        indices, repeats, piece["utilities"][indices, repeats], np.full(len(indices), seconds)
    )
