"""Ledgers of one run → one ledger."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from databanzhaf.errors import DatabanzhafWarning, InvalidInput, LedgerMismatch, short
from databanzhaf.ledger import schema
from databanzhaf.ledger.coverage import Coverage
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.rows import Portion
from databanzhaf.ledger.storage import existing


@dataclass(frozen=True)
class Merged:
    """What `merge` did.

    Attributes
    ----------
    file : Path
        The ledger that has all evaluations now.
    files : int
        Ledgers that were read.
    added, known : int
        Evaluations that were added, and that were there already.
    coverage : Coverage
        What the ledger holds, and which indices are missing.
    """

    file: Path
    files: int
    added: int
    known: int
    coverage: Coverage


def merge(parts: Sequence[str | Path], into: str | Path) -> Merged:
    """Join ledgers of one run, such as those of its shards.

    The same evaluation in several parts is kept once if its utility, and its outcome where outcomes
    are kept, are the same to the bit; otherwise nothing more is added and the error names it. A
    merge may be repeated, and one that was stopped continues. A run may be writing to a part: what
    it has committed is read.

    Parameters
    ----------
    parts : sequence of paths
        At least one; none of them is changed.
    into : path
        A new file, or a ledger of the same run.
    """
    if isinstance(parts, (str, Path)) or not len(parts):
        raise InvalidInput(
            "`parts` must be the paths of one ledger or more",
            got=short(parts),
            remedy="Pass ['part-0/run.db', 'part-1/run.db'].",
        )
    paths = [existing(part) for part in parts]
    with Ledger(into) as ledger:
        if ledger.path is None:
            raise InvalidInput("`into` must be a path", got=short(into), remedy="Pass 'run.db'.")
        _check_apart(paths, ledger.path)
        facts, first = _agreed(paths)
        ledger.claim()
        if ledger.is_new:
            ledger.begin(facts)
        else:
            schema.check_same_run(ledger.facts, f"`{ledger.path}`", facts, f"`{first}`")
            for _ in ledger.portions():  # what it holds must be whole to be compared with
                pass
        added = known = 0
        for path in paths:
            with Ledger.looking(path) as part:
                if not part.is_new:  # its file may be another one by now
                    schema.check_same_run(facts, f"`{first}`", part.facts, f"`{path}`")
                for portion in part.portions():
                    new = _add(portion, path, ledger)
                    added, known = added + new, known + len(portion.indices) - new
        return Merged(ledger.path, len(paths), added, known, ledger.coverage())


def _check_apart(paths: list[Path], into: Path) -> None:
    if into.exists() and any(path.samefile(into) for path in paths):
        raise InvalidInput(
            "`into` must not be one of the ledgers that are merged",
            got=f"`{into}`",
            remedy="Give another file, or leave it out of the others.",
        )


def _agreed(paths: list[Path]) -> tuple[dict[str, str], Path]:
    """What the run of all these ledgers is, and the first that says so. One without evaluations
    belongs to no run.
    """
    first: tuple[dict[str, str], Path] | None = None
    versions: set[str] = set()
    for path in paths:
        with Ledger.looking(path) as part:
            if part.is_new:
                warnings.warn(
                    f"`{path}` holds no evaluations yet.", DatabanzhafWarning, stacklevel=3
                )
                continue
            part.check_checksums()
            facts, version = part.facts, part.library_version
        first = first or (facts, path)
        schema.check_same_run(first[0], f"`{first[1]}`", facts, f"`{path}`")
        if versions and version not in versions:
            warnings.warn(
                f"`{path}` was begun by databanzhaf {version}, and `{first[1]}` by "
                f"{', '.join(sorted(versions))}. The merged ledger names the version of the first.",
                DatabanzhafWarning,
                stacklevel=3,
            )
        versions.add(version)
    if first is None:
        raise InvalidInput(
            "at least one of the ledgers must hold evaluations",
            got=f"{len(paths):,} without",
            remedy="Merge when their runs have begun.",
        )
    return first


def _add(portion: Portion, path: Path, ledger: Ledger) -> int:
    """Add what the ledger does not hold yet, in one transaction; how many that were."""
    outcomes: Sequence[bytes | None] = portion.outcomes or [None] * len(portion.indices)
    held = ledger.held(portion.indices, portion.repeats)
    for place, there in enumerate(held):
        if there is not None and there != (portion.utilities[place], outcomes[place]):
            raise _conflict(portion, place, there[0], path, ledger)
    new = np.array([place for place, there in enumerate(held) if there is None], dtype=np.int64)
    if len(new):
        ledger.append(
            portion.indices[new],
            portion.repeats[new],
            portion.utilities[new],
            portion.seconds[new],
            None if portion.outcomes is None else [portion.outcomes[place] for place in new],
        )
    return len(new)


def _conflict(
    portion: Portion, place: int, there: float, path: Path, ledger: Ledger
) -> LedgerMismatch:
    here = float(portion.utilities[place])
    what = "utility" if here != there else "outcome"
    sides = f": {there!r} in the first, {here!r} in the second" if here != there else ""
    return LedgerMismatch(
        f"`{ledger.path}` and `{path}` have a different {what} for index "
        f"{portion.indices[place]:,}, repeat {portion.repeats[place]:,}{sides}",
        remedy=f"Leave `{path}` out: on its machine the run has other results. What was merged "
        "before is kept.",
    )
