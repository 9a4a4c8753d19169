"""Values of one draw of a dataset, for the two tables: seven notions and our columns, five
trainings of each coalition.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import ledgers, protocol
from databanzhaf.experiments.notions import LABELS, NOTIONS
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import FURTHER, Setting
from databanzhaf.files import replacing

COALITIONS, REPEATS = 100_000, 5
# LeNet takes a hundred times as long as the other networks: it has fewer trainings for
# leave-one-out, and fewer coalitions for our columns.
LENET_LOO, LENET_OURS = 2, 800
FEATURES = 0.2  # of the coalitions, for the network on CIFAR10 features
WEIGHTED: Final = (0.05, 0.1, 0.2)
OURS: Final = {
    "banzhaf_plain": "Banzhaf, plain loss and probability",
    **{f"weighted_{p}": f"weighted Banzhaf, p = {p}" for p in WEIGHTED},
}
KNOWN: Final = (*protocol.IMAGES, *protocol.TABULAR)
COLUMNS: Final = (*NOTIONS, *OURS)
NAMES: Final = {**LABELS, **OURS}


@dataclass(frozen=True, eq=False)
class Valued:
    """Value vectors of one draw: for each column five, (5, n), one for each training; how many
    coalitions each took; whose work each ledger is.
    """

    draw: Draw
    values: dict[str, NDArray[np.float64]]
    coalitions: dict[str, int]
    work: dict[str, ledgers.Work]

    def vectors(self, column: str) -> list[db.Estimate]:
        """The estimate of each training alone."""
        return [as_estimate(values, column) for values in self.values[column]]


class _Named(NamedTuple):
    """What stands for the notion and the estimator of a column."""

    name: Any


def as_estimate(values: NDArray[np.float64], column: str) -> db.Estimate:
    """Numbers of one column as an estimate, of unknown error."""
    unknown = np.full(len(values), np.nan)
    named: Any = _Named(column)
    return db.Estimate(values, unknown, unknown, values[None], 0, named, named, None)


def datasets(setting: Setting) -> tuple[str, ...]:
    """As asked; by default all thirteen, on a machine without a GPU the tables only."""
    if setting.datasets is None and not setting.on_gpu:
        return protocol.TABULAR
    return setting.chosen(KNOWN)


def left_out(setting: Setting) -> list[str]:
    """Datasets that are missing here although no option leaves them out."""
    return (
        [name for name in KNOWN if name not in datasets(setting)]
        if setting.datasets is None
        else []
    )


def draws(setting: Setting, name: str) -> range:
    """Numbers of the draws; those that LeNet is trained on have one."""
    return range(1 if name in protocol.LENET else setting.n_draws)


def value_draw(
    name: str, number: int, setting: Setting, columns: Collection[str] = COLUMNS
) -> Valued:
    """Values of one draw by some columns, at least. They are kept in a file beside the ledgers, for
    both tables and for whatever is asked later.

    Only columns that are not yet in the file are evaluated.
    """
    data = protocol.draw(name, number, setting)
    scale = scale_of(name, number, setting)
    path = setting.ledger("values", name, f"draw{number}", f"{scale:g}").with_suffix(".npz")
    stamp = stamp_of(data, setting)
    values, coalitions, work = _read_values(path, stamp)
    missing = [column for column in columns if column not in values]
    if missing:
        more, counts, further_work = _evaluate(missing, number, setting, data, scale)
        values, coalitions, work = values | more, coalitions | counts, work | further_work
        arrays: dict[str, Any] = {f"values_{column}": found for column, found in values.items()}
        with replacing(path) as temporary:
            np.savez_compressed(
                temporary,
                about=json.dumps({"stamp": stamp, "coalitions": coalitions, "work": work}),
                **arrays,
            )
    return Valued(data, values, coalitions, work)


def stamp_of(data: Draw, setting: Setting) -> str:
    """Tells the data and the training of one draw from others."""
    game = protocol.network(data.judged_by_validation(), data.name, setting, compiles=False)
    # Without the digest of the function that makes a module, which is another for each version of
    # Python; its layers are there.
    facts = {name: fact for name, fact in game.fingerprint().items() if name != "module"}
    text = json.dumps([facts, data.judged_by_test().fingerprint()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# Values by column, the coalitions that each column took, whose work each ledger is.
Found = tuple[dict[str, NDArray[np.float64]], dict[str, int], dict[str, ledgers.Work]]


def _read_values(path: Path, stamp: str) -> Found:
    """What was kept; nothing where it is missing, damaged or of other data, since it can be made
    again.
    """
    try:
        with path.open("rb") as stream, np.load(stream) as found:
            about = json.loads(str(found["about"]))
            if about["stamp"] != stamp:
                return {}, {}, {}
            work = {ledger: ledgers.noted(each) for ledger, each in about["work"].items()}
            return (
                {column: found[f"values_{column}"] for column in about["coalitions"]},
                about["coalitions"],
                work,
            )
    except MemoryError:
        raise
    except Exception:  # whatever NumPy makes of a damaged archive
        return {}, {}, {}


def _evaluate(columns: list[str], number: int, setting: Setting, data: Draw, scale: float) -> Found:
    """Values by some columns, from the ledgers as far as they are there."""
    name, n = data.name, len(data.y)
    count = max(n, round(scale * COALITIONS))
    fewer = max(200, round(min(scale, FURTHER) * COALITIONS / (1 if number == 0 else 5)))
    if name in protocol.LENET:
        fewer = min(fewer, LENET_OURS)
    dataset = data.judged_by_validation()
    # Code is compiled for long runs only: it takes longer than a short one.
    compiles = setting.on_gpu and (count >= 50_000 or name in protocol.IMAGES)
    game = protocol.network(dataset, name, setting, compiles=compiles)
    values: dict[str, NDArray[np.float64]] = {}
    used: dict[str, int] = {}
    work: dict[str, ledgers.Work] = {}

    def go(column: str, game: Any, notion: Any, budget: int, estimator: str) -> None:
        if column not in columns:
            return
        # Shapley and all Betas are read from one run of permutations.
        parts = (name, f"draw{number}", "permutation" if estimator == "permutation" else column)
        # Leave-one-out trains on all rows each time: for LeNet that would take as long as all else
        # together.
        repeats = (
            min(REPEATS, LENET_LOO)
            if estimator == "leave_one_out" and name in protocol.LENET
            else REPEATS
        )
        seed = setting.seed + number
        how = replace(setting, progress=setting.progress and str(parts[-1]) not in work)
        found = ledgers.value(
            how,
            parts,
            game,
            notion,
            piecewise=name in protocol.LENET,
            estimator=estimator,
            budget=budget,
            repeats=repeats,
            seed=seed,
        )
        work[str(parts[-1])] = ledgers.work(setting, [parts])
        used[column] = found.n_evaluations // repeats
        values[column] = found.values_by_repeat

    for column, notion in NOTIONS.items():
        estimator = {"banzhaf": "reuse", "loo": "leave_one_out"}.get(column, "permutation")
        # Whole permutations, of n + 1 coalitions each.
        go(
            column,
            game,
            notion,
            max(count, n + 1) if estimator == "permutation" else count,
            estimator,
        )
    other = {"loss": "cross_entropy", "metric": "probability", "metric_at": "last"}
    plain = protocol.network(
        dataset, name, setting, **other, compiles=compiles and name in protocol.IMAGES
    )
    go("banzhaf_plain", plain, db.Banzhaf(), fewer, "reuse")
    for p in WEIGHTED:
        go(f"weighted_{p}", game, db.WeightedBanzhaf(p), fewer, "reuse")
    return values, used, work


def scale_of(name: str, number: int, setting: Setting) -> float:
    """The share of the paper's coalitions that a draw takes."""
    # LeNet takes a hundred times as long as the others, the network on image features ten times.
    # More coalitions for LeNet alone leave those of the features as they are.
    most = {
        **dict.fromkeys(protocol.LENET, setting.image_scale),
        "cifar10": max(min(FEATURES, 10 * setting.image_scale), setting.image_scale),
    }.get(name, 1.0)
    scale = min(setting.scale, most)
    return scale if number == 0 else min(scale, FURTHER)
