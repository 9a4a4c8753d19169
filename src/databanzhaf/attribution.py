r"""What each player does to the prediction for each judging row: a datamodel from the trainings
that valued the players.

:math:`A_{ij}` is the value of player i if row j judged alone. It is computed for some judging rows
at a time, so that no matrix of all of them has to fit into memory.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from databanzhaf.designs import Coin, Complementary
from databanzhaf.errors import BackendUnavailable, InvalidInput, check_count
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import BLOCK_CELLS, Evaluations
from databanzhaf.files import replacing
from databanzhaf.ledger import Ledger, read_evaluations
from databanzhaf.notions import SizeWeighted, Together
from databanzhaf.population import by_row, differences, of_halves, shares, some_judges
from databanzhaf.protocols import (
    BoolArray,
    Estimator,
    FloatArray,
    Game,
    IntArray,
    JudgedGame,
    Notion,
)
from databanzhaf.run import estimate as estimated
from databanzhaf.verdicts import Verdicts


@dataclass(frozen=True, eq=False)
class Attribution:
    r"""Players x judging rows: :math:`A_{ij}`, with standard errors.

    The weighted sum of a player's effects over the judging rows is its value, exactly:
    :math:`\sum_j w_j A_{ij} = \phi_i`. Where rows judge each other, no player judges itself: its
    effect on rows of its own is NaN and does not count.

    Attributes
    ----------
    estimate : Estimate
        The values.
    owner : int64 array or None
        The player that each judging row is of; None with validation rows.
    """

    estimate: Estimate
    owner: IntArray | None
    evaluations: Evaluations

    @property
    def weights(self) -> FloatArray:
        """How much each judging row counts, float64 (judges,); they sum to 1."""
        return self._verdicts.weights

    @property
    def shape(self) -> tuple[int, int]:
        """Players and judging rows."""
        return len(self.estimate.values), len(self.weights)

    def on(self, judge: int) -> tuple[FloatArray, FloatArray]:
        """What each player does to one judging row, and its standard error, each float64 (n,).
        Above zero the player makes the row's score better.
        """
        n_judges = self.shape[1]
        if not isinstance(judge, (int, np.integer)) or not -n_judges <= judge < n_judges:
            raise InvalidInput(
                f"`judge` must be the place of a judging row, from 0 to {n_judges - 1}",
                got=repr(judge)[:80],
                remedy="Count the judging rows from 0.",
            )
        which = np.arange(n_judges) == judge % n_judges
        effects, errors = self.some(which)
        return effects[:, 0], errors[:, 0]

    def blocks(self, judges: int | None = None) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """All effects, for some judging rows at a time: which rows, effects and standard errors
        (n, rows).
        """
        n, total = self.shape
        step = max(1, BLOCK_CELLS // n) if judges is None else check_count("judges", judges)
        for low in range(0, total, step):
            rows = slice(low, min(low + step, total))
            which = np.zeros(total, dtype=np.bool_)
            which[rows] = True
            yield rows, *self.some(which)

    def matrix(self) -> FloatArray:
        """All effects at once, float64 (n, judges)."""
        out = np.empty(self.shape)
        for rows, effects, _ in self.blocks():
            out[:, rows] = effects
        return out

    def save(self, path: str | Path) -> Path:
        """Write effects and standard errors to a file, block by block.

        ".npz" has `effects` and `std_errors` (judges, players), `values`, `weights` and `players`;
        ".parquet" one line for each player and judging row: `player`, `judge`, `effect`,
        `std_error` (needs the extra `parquet`).
        """
        file = Path(path)
        writers = {".npz": self._save_arrays, ".parquet": self._save_lines}
        if file.suffix not in writers:
            raise InvalidInput(
                "the file must end in .npz or .parquet", got=file.name, remedy="Rename it."
            )
        with replacing(file) as temporary:
            writers[file.suffix](temporary)
        return file

    @property
    def _verdicts(self) -> Verdicts:
        assert self.evaluations.verdicts is not None
        return self.evaluations.verdicts

    @property
    def _by_coins(self) -> bool:
        return isinstance(self.evaluations.design, (Coin, Complementary))

    def some(self, which: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Effects on some judging rows, bool (judges,), and their standard errors."""
        players = np.arange(len(self.estimate.values))
        some = self._verdicts.judged_by(which)
        if self._by_coins:
            effects, errors = differences(self.evaluations, some, players)
            shift, spread = self._shift
            effects = effects + shift[:, None] * spread[which]
        else:
            effects = by_row(self.evaluations, self.estimate, which)
            errors = np.repeat(self._errors[:, None], effects.shape[1], axis=1)
        if self.owner is not None:
            itself = self.owner[which], np.arange(effects.shape[1])
            effects[itself] = errors[itself] = np.nan
        return effects, errors

    @cached_property
    def _shift(self) -> tuple[FloatArray, FloatArray]:
        """An estimator that adjusts values adjusts them for the jury as a whole. What that adds to
        a player's value is shared out among its effects in proportion to their standard errors, so
        to the spread of each row's scores: for each player the part for a unit of spread, and the
        spreads.
        """
        n, m = len(self.estimate.values), len(self.evaluations)
        inside, count = np.zeros(n), np.zeros(n)
        by_judge, squares, whole = *np.zeros((2, len(self.weights))), 0.0
        for rows, said in self._verdicts.blocks_by_judge():
            joined = self.evaluations.design.coalitions(self.evaluations.indices[rows])
            utility = said @ self.weights
            inside += utility @ joined
            count += joined.sum(axis=0)
            by_judge += said.sum(axis=0)
            squares += np.einsum("ij,ij->j", said, said)
            whole += utility.sum()
        spread = np.sqrt(np.maximum(squares - by_judge**2 / m, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            total = inside / count - (whole - inside) / (m - count)
            counted = np.full(n, self.weights @ spread)
            if self.owner is not None:
                # A row does not judge models of coalitions that its player is in.
                np.subtract.at(counted, self.owner, self.weights * spread)
                own = np.bincount(self.owner, self.weights * by_judge, minlength=n)
                total += own / (m - count)
            missing = np.where((count > 0) & (count < m), self.estimate.values - total, 0.0)
        # What is left of a difference of equal numbers is no spread.
        counted[counted < 1e-12 * (self.weights @ spread)] = 0.0
        return shares(missing, counted), spread

    @cached_property
    def _errors(self) -> FloatArray:
        """Of each player's effects: those of all judging rows together tell them, few would not."""
        return of_halves(self.evaluations, self.estimate, some_judges(len(self.weights)))

    def _names(self) -> Any:
        players = self.estimate.players
        return np.arange(self.shape[0]) if players is None else np.asarray(list(players))

    def _save_arrays(self, path: Path) -> None:
        """A .npz whose large arrays are never whole in memory: each is written to a file of its own
        first.
        """
        n, judges = self.shape
        header = {"descr": "<f8", "fortran_order": False, "shape": (judges, n)}
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            names = ("effects.npy", "std_errors.npy")
            files = [(Path(folder) / name).open("wb") for name in names]
            try:
                for file in files:
                    np.lib.format.write_array_header_1_0(file, header)
                for _, *both in self.blocks():
                    for file, part in zip(files, both, strict=True):
                        file.write(np.ascontiguousarray(part.T, dtype="<f8").tobytes())
            finally:
                for file in files:
                    file.close()
            with zipfile.ZipFile(path, "w") as archive:
                for name in names:
                    archive.write(Path(folder) / name, name)
                about = json.dumps({"notion": self.estimate.notion.name})
                small = {
                    "values": self.estimate.values,
                    "weights": self.weights,
                    "players": self._names(),
                    "about": np.array(about),
                }
                for name, array in small.items():
                    with archive.open(f"{name}.npy", "w") as stream:
                        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=False)

    def _save_lines(self, path: Path) -> None:
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter
        except ImportError as error:
            raise BackendUnavailable.missing("Parquet needs", "pyarrow", "parquet") from error
        n, names = self.shape[0], self._names()
        writer = None
        try:
            for rows, effects, errors in self.blocks():
                count = effects.shape[1]
                columns = {
                    "player": np.tile(names, count),
                    "judge": np.repeat(np.arange(rows.start, rows.stop), n),
                    "effect": effects.T.ravel(),
                    "std_error": errors.T.ravel(),
                }
                table = pa.table(columns)
                writer = writer or ParquetWriter(path, table.schema)
                writer.write_table(table)
        finally:
            if writer is not None:
                writer.close()


def attribute(
    source: str | Path | Ledger | Evaluations,
    notion: Notion | None = None,
    *,
    game: Game | None = None,
    estimator: str | Estimator = "auto",
) -> Attribution:
    """What each player does to the prediction for each judging row, from the outcomes that a run
    kept; nothing is trained.

    Parameters
    ----------
    source : ledger's path, Ledger or Evaluations
        Its run must have kept outcomes: ``ledger=db.Ledger(path, keep="outcomes")``.
    notion, estimator : optional
        As for `estimate`; a semivalue.
    game : optional
        The game of the run. It knows what validation rows say of kept outcomes; where rows judge
        each other the outcomes say it themselves.

    Examples
    --------
    >>> import databanzhaf as db
    >>> X, y = np.arange(30.0)[:, None], np.arange(30) // 15
    >>> game, ledger = db.games.Forest(db.Dataset(X, y), trees=2), db.Ledger()
    >>> estimate = db.value(game, budget=200, ledger=ledger)
    >>> effects = attribute(ledger).matrix()
    >>> bool(np.allclose(np.nansum(effects, axis=1) / 30, estimate.values))
    True
    """
    if isinstance(notion, (list, tuple, Together)):
        raise InvalidInput(
            "effects on single rows are those of one notion",
            got="several",
            remedy="Call attribute once for each.",
        )
    evaluations = read_evaluations(source, game, whole_jury=True)
    _check(evaluations, game)
    return attribution_of(evaluations, estimated(evaluations, notion, estimator=estimator), game)


def attribution_of(evaluations: Evaluations, estimate: Estimate, game: Game | None) -> Attribution:
    """The attribution of values that are there; the evaluations must have the whole jury."""
    _check(evaluations, game)
    if not isinstance(estimate.notion, SizeWeighted):
        raise InvalidInput(
            "effects on single rows are known for semivalues",
            got=estimate.notion.name,
            remedy="Use Banzhaf().",
        )
    return Attribution(estimate, _owner(evaluations, game), evaluations)


def _check(evaluations: Evaluations, game: Game | None) -> None:
    """Refuse evaluations that do not know what each row says of each model."""
    if evaluations.verdicts is None:
        if isinstance(game, JudgedGame) and game.jury is None:
            raise InvalidInput(
                "effects on single rows need a metric that is a mean over rows",
                got=game.fingerprint().get("metric", "another one"),
                remedy='Pass the game with metric="probability" (or "mse").',
            )
        raise InvalidInput(
            "effects on single rows need what each row says of each model",
            got="a run that kept utilities only" if game is not None else "a run without its game",
            remedy='Pass game=...; the run needs ledger=db.Ledger(path, keep="outcomes") (in the '
            "shell --keep predictions).",
        )
    if hasattr(evaluations.design, "judge_folds"):
        raise InvalidInput(
            "effects on single rows need a run for Banzhaf values alone, or validation rows",
            got="a run for other notions in which rows judge each other in folds",
            remedy="Make another run, for Banzhaf values or with validation rows.",
        )


def _owner(evaluations: Evaluations, game: Game | None) -> IntArray | None:
    """The player that each judging row is of, where they are training rows."""
    verdicts = evaluations.verdicts
    assert verdicts is not None
    if verdicts.outside is None:
        return None
    n, judges = evaluations.n_players, len(verdicts.weights)
    dataset = getattr(game, "dataset", None)
    if dataset is None:
        if judges != n:
            raise InvalidInput(
                "which rows judge must be known",
                got=f"{judges:,} judging rows and {n:,} players",
                remedy="Pass game=..., the game of the run.",
            )
        return np.arange(n)
    return np.asarray(dataset.player_of_row[dataset.judges], dtype=np.int64)
