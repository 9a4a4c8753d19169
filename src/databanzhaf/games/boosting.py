"""A game that boosts trees on each coalition's rows, many at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from databanzhaf.data import Dataset
from databanzhaf.errors import check_between, check_count
from databanzhaf.games.tree_game import MOST_TREES, NO_LIMIT, TreeGame
from databanzhaf.kernels.trees import Boosted
from databanzhaf.protocols import BoolArray, KeyArray

BINS = 64


class Boosting(TreeGame):
    """U(S) is the validation score of gradient-boosted trees grown on the rows of S.

    Parameters
    ----------
    dataset : Dataset
        Numbers, in which NaN is a missing value and needs no imputation; encode categories. Labels
        of any kind for a classification, numbers for a regression.
    trees : int
        Rounds: one tree each, or one for each of three classes or more.
    learning_rate : float
    max_leaves : int
        Of each tree. It grows at the leaf that gains most (Newton's step, as XGBoost and LightGBM
        take it).
    min_samples_leaf : int
    l2 : float
        Penalty on the leaves' steps.
    loss : "logistic" or "squared"
        "logistic" is softmax for three classes or more; "squared" makes it a regression.
    metric, threads
        As for `Forest`.

    A column's values are put into 64 bins at most; the bins are made once, from all training rows.
    A missing value goes to the side that gains more, and with the larger side where no row of the
    leaf has a gap. Targets of a regression are rounded as for `Forest`. There is no chance in it:
    each coalition has one model, and its utility is exact (`stochastic` is False). An empty
    coalition predicts the majority class, or the mean.
    """

    stochastic = False
    _losses = ("logistic",)

    def __init__(
        self,
        dataset: Dataset,
        trees: int = 50,
        *,
        learning_rate: float = 0.1,
        max_leaves: int = 8,
        min_samples_leaf: int = 5,
        l2: float = 0.0,
        loss: str = "logistic",
        metric: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._check(dataset, loss, metric, threads)
        self.boosted = Boosted(
            trees=check_count("trees", trees, maximum=MOST_TREES),
            learning_rate=check_between("learning_rate", learning_rate, 0, 2, "Try 0.1."),
            max_leaves=min(check_count("max_leaves", max_leaves, 2), max(2, dataset.n_rows)),
            min_samples_leaf=min(check_count("min_samples_leaf", min_samples_leaf), NO_LIMIT),
            l2=check_between("l2", l2, -1e-300, 1e300, "Try 1, or 0 for none."),
            bins=BINS,
        )
        _ = self.table  # refuse now what the first evaluation would

    @property
    def _coding(self) -> dict[str, Any]:
        return {"categories": False, "spread": False, "most": BINS}

    @property
    def _seconds(self) -> float:
        outputs = self.table.n_classes if self.table.n_classes > 2 else 1
        cells = len(self.table.codes) * (BINS * self.boosted.max_leaves + 2 * self.dataset.n_rows)
        return 2e-9 * self.boosted.trees * outputs * cells

    def _grow(self, members: BoolArray, keys: KeyArray, unseen: bool) -> tuple[Any, Any]:
        from databanzhaf.kernels import boosting

        return boosting.boost(
            self.boosted, self.table, members, unseen=unseen, threads=self.threads
        )

    def fingerprint(self) -> dict[str, str]:
        return {
            "game": "boosting",
            "data": self.dataset.fingerprint(),
            **{f"boosting.{name}": str(value) for name, value in asdict(self.boosted).items()},
            "boosting.loss": self.loss,
            **self._judged(),
            "metric": self.metric,
        }

    def __repr__(self) -> str:
        return f"Boosting({self.boosted.trees} trees, {self.dataset!r}, metric={self.metric!r})"
