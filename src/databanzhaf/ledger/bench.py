"""What the judging rows say of the models in a ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from databanzhaf.ledger.ledger import Ledger
from databanzhaf.metrics import kept_metric
from databanzhaf.protocols import Float32Array, Game, IntArray, JudgedGame
from databanzhaf.verdicts import Jury

# Outcomes that are scored at a time: a few MiB.
CHUNK = 256


class Bench:
    """Where a jury sits: its rows' scores of every evaluation, (total, repeats, judges)."""

    def __init__(
        self, jury: Jury, verdicts: Callable[[Sequence[bytes]], Any], total: int, repeats: int
    ) -> None:
        self.jury, self._verdicts, self._held = jury, verdicts, jury.held
        self.scores: Float32Array = np.full((total, repeats, len(self._held)), np.nan, np.float32)

    def hear(self, indices: IntArray, repeats: IntArray, outcomes: Sequence[bytes]) -> None:
        """Take down what the rows say of some evaluations."""
        for low in range(0, len(outcomes), CHUNK):
            part = slice(low, low + CHUNK)
            said = self._verdicts(outcomes[part])
            self.scores[indices[part], repeats[part]] = said[:, self._held]


def seated(
    game: Game | None, ledger: Ledger, total: int, repeats: int, *, whole: bool = False
) -> Bench | None:
    """The bench of a ledger that keeps outcomes, with what it holds; None where what each
    row says is unknown. With `whole` it holds the scores of all judging rows.

    Without the game, outcomes of rows that judge each other say it themselves.
    """
    judged = isinstance(game, JudgedGame) and game.jury is not None
    unnamed = game is None and ledger.game.get("judged") == "across"
    if ledger.keep != "outcomes" or not (judged or unnamed):
        return None
    chunks = ledger.outcomes()
    if isinstance(game, JudgedGame) and game.jury is not None:
        jury = replace(game.jury, whole=whole)
        bench = Bench(jury, game.verdicts, total, repeats)
    else:
        metric = kept_metric(ledger.game["metric"])
        judges = metric.scores(chunks[0][2][:1]).shape[1]
        jury = Jury(np.full(judges, 1 / judges), across=True)
        bench = Bench(jury, metric.scores, total, repeats)
    for indices, runs, outcomes in chunks:
        asked = np.flatnonzero((indices < total) & (runs < repeats))
        bench.hear(indices[asked], runs[asked], [outcomes[place] for place in asked])
    return bench
