"""A ledger → files for other tools: a table of its evaluations, and arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from databanzhaf import designs
from databanzhaf.errors import BackendUnavailable, InvalidInput, LedgerFailed, check_path
from databanzhaf.evaluations import Evaluations
from databanzhaf.files import written
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.reading import read_evaluations
from databanzhaf.ledger.storage import existing
from databanzhaf.protocols import Game

_TABLE, _MASKS, _UTILITIES = "evaluations.parquet", "masks.npy", "utilities.npy"
_INDICES, _PLAYERS = "indices.npy", "players.json"
_Writer = Callable[[BinaryIO], object]


@dataclass(frozen=True)
class Exported:
    """What `export` wrote.

    Attributes
    ----------
    files : tuple of Path
    evaluations : int
        Rows of evaluations.parquet.
    coalitions, players : int
        The shape of masks.npy; 0 where it could not be written.
    note : str
        Why it could not be written; else empty.
    """

    files: tuple[Path, ...]
    evaluations: int
    coalitions: int
    players: int
    note: str


def export(path: str | Path, folder: str | Path, game: Game | None = None) -> Exported:
    """Write a ledger's evaluations to files that other tools read.

    ``evaluations.parquet`` has every evaluation (idx, rep, utility, seconds). The coalitions that
    have all their repeats are also arrays, of which row j belongs to ``indices[j]``: ``masks.npy``,
    bool (m, n), and ``utilities.npy``, float64 (m,) or (m, repeats), as estimators read them: where
    rows judge each other, the utilities follow from the outcomes. ``players.json`` has the names of
    the players, if they have names.

    Parameters
    ----------
    path : path
        The ledger; its design makes the coalitions again.
    folder : path
        It is made if it is not there. Files in it are not overwritten.
    game : optional
        The same game with another metric, as for `databanzhaf.estimate`.
    """
    source, out = existing(path), _made(folder)
    with Ledger(source) as ledger, ExitStack() as stack:
        if ledger.is_new:
            raise InvalidInput(
                f"`{source}` holds no evaluations yet", remedy="Export when its run has begun."
            )
        table = _table(ledger)
        evaluations, note = _coalitions(ledger, game)
        writers: dict[str, _Writer] = {_TABLE: lambda file: table.to_parquet(file, index=False)}
        if evaluations is not None:
            writers.update(_arrays(evaluations))
        if ledger.players is not None:
            names = json.dumps([_plain(name) for name in ledger.players], ensure_ascii=False)
            writers[_PLAYERS] = lambda file: file.write(f"{names}\n".encode())
        for name, write in writers.items():  # they take their places when all are written
            temporary = stack.enter_context(written(_free(out / name)))
            with temporary.open("xb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
    shape = (0, 0) if evaluations is None else (len(evaluations), evaluations.n_players)
    return Exported(tuple(out / name for name in writers), len(table), *shape, note)


def _made(folder: str | Path) -> Path:
    check_path(folder)
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerFailed(
            f"the folder `{out}` cannot be made ({error.strerror})", remedy="Give another one."
        ) from error
    for name in (_TABLE, _MASKS, _UTILITIES, _INDICES, _PLAYERS):
        _free(out / name)
    return out


def _free(file: Path) -> Path:
    """The path of a file that is not there: files of two ledgers must not stand together."""
    if os.path.lexists(file):
        raise InvalidInput(
            f"`{file}` already exists", remedy="Give another folder, or remove its old files."
        )
    return file


def _table(ledger: Ledger) -> Any:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise BackendUnavailable.missing("writing Parquet needs", "pyarrow", "parquet") from error
    import pandas as pd

    names = ("idx", "rep", "utility", "seconds")
    table = pd.DataFrame(dict(zip(names, ledger.evaluations(), strict=True)))
    return table.sort_values(["idx", "rep"], ignore_index=True)


def _coalitions(ledger: Ledger, game: Game | None) -> tuple[Evaluations | None, str]:
    """The coalitions with their utilities; None and why, where the ledger alone does not give
    them.
    """
    try:
        designs.restore(ledger.design)
        return read_evaluations(ledger, game), ""
    except InvalidInput as error:
        why = f"{error.rule}. {error.remedy}"
        if ledger.design.get("design") == "Committee":
            why = (
                "this is a run of mislabels, whose coalitions follow from the labels and from what "
                "its earlier models said, not from its ledger alone."
            )
        return None, f"{_MASKS}, {_UTILITIES} and {_INDICES} were not written: {why}"


def _arrays(evaluations: Evaluations) -> dict[str, _Writer]:
    utilities = evaluations.utilities
    numbers = utilities[:, 0] if evaluations.n_repeats == 1 else utilities
    return {
        _MASKS: partial(_write_masks, evaluations),
        _UTILITIES: lambda file: np.save(file, numbers),
        _INDICES: lambda file: np.save(file, evaluations.indices),
    }


def _write_masks(evaluations: Evaluations, file: BinaryIO) -> None:
    """Block by block, so that memory does not grow with the run. A memory map would end the process
    by a signal where the disk is full.
    """
    shape = len(evaluations), evaluations.n_players
    header = {"descr": "|b1", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for _, coalitions in evaluations.blocks():
        file.write(np.ascontiguousarray(coalitions, dtype=np.bool_).tobytes())


def _plain(name: Any) -> Any:
    if isinstance(name, tuple):  # of an index with several levels
        return [_plain(part) for part in name]
    plain = name.item() if isinstance(name, np.generic) else name
    return plain if isinstance(plain, (bool, int, str)) else str(plain)
