"""A game that grows a forest on each coalition's rows, thousands at a time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, check_between, check_count, short
from databanzhaf.games.tree_game import MOST_TREES, NO_LIMIT, TreeGame, check_choice
from databanzhaf.kernels.trees import Trees
from databanzhaf.protocols import BoolArray, KeyArray


class Forest(TreeGame):
    """U(S) is the validation score of a forest grown on the rows of S.

    Parameters
    ----------
    dataset : Dataset
        Numbers, in which NaN is a missing value and needs no imputation, and columns of pandas'
        `category` type. Labels of any kind for a classification, numbers for a regression.
    trees : int
    splits : "random" or "best"
        "random" grows extremely randomised trees (Geurts et al. 2006): each column tried is cut at
        one random point between the smallest and the largest value of the node, and every tree
        sees all rows. "best" grows a random forest (Breiman 2001): each column tried is cut at its
        best point, and every tree sees as many rows as there are, drawn with replacement.
    max_features : "sqrt", "log2", int, float or None
        Columns tried at each node: by a rule, a number, a share of them, or all. Columns that are
        constant in the node do not count.
    max_depth, min_samples_leaf : int
        Limits of each tree; by default a tree grows until its leaves are of one label.
    max_samples : int, float or None
        Rows that each tree sees at most: a number, a share of the coalition, or all.
    loss : "gini" or "squared"
        "squared" makes it a regression.
    metric : str, optional
        As for `Network`: "probability" (the default), "accuracy", "log_loss"; for a regression "r2"
        (the default) or "mse"; or the name of a scikit-learn scorer.
    threads : int, optional
        By default one for each core. Values do not depend on it.

    A column's values are put into 255 bins at most, where the training rows reach each 255th part;
    fewer distinct values keep a bin each. The bins are a property of the dataset: they are made
    once, from all training rows, and serve every coalition. A missing value goes left or right by
    chance at each split that is tried, and so learns where it belongs; where no row of the node has
    a gap, it goes with the larger side. Categories are put in a random order at each split and cut
    like numbers, up to 65,535 of them, without columns of their own. Targets of a regression are
    rounded to 2^-42 of the largest distance from their median; a target a million times farther
    away than three quarters of the rows counts as that far.

    Chance is a function of (seed, index, repeat, tree), so the utilities are the same bits for any
    number of threads, any batch size and after any restart. Memory grows with threads, not with
    models. An empty coalition predicts the majority class, or the mean.
    """

    def __init__(
        self,
        dataset: Dataset,
        trees: int = 20,
        *,
        splits: str = "random",
        max_features: str | float | None = "sqrt",
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        max_samples: float | None = None,
        loss: str = "gini",
        metric: str | None = None,
        threads: int | None = None,
    ) -> None:
        self._check(dataset, loss, metric, threads)
        check_choice("splits", splits, ("random", "best"))
        if max_depth is not None:
            check_count("max_depth", max_depth)
        self.trees = Trees(
            trees=check_count("trees", trees, maximum=MOST_TREES),
            best=splits == "best",
            columns_tried=_columns_tried(max_features, dataset.X.shape[1]),
            max_depth=NO_LIMIT if max_depth is None else min(int(max_depth), NO_LIMIT),
            min_samples_leaf=min(check_count("min_samples_leaf", min_samples_leaf), NO_LIMIT),
            share_of_rows=_share(max_samples),
            most_rows=_most(max_samples),
        )
        _ = self.table  # refuse now what the first evaluation would

    @property
    def _coding(self) -> dict[str, Any]:
        return {"categories": True, "spread": not self.trees.best}

    @property
    def _seconds(self) -> float:
        rows = min(self.dataset.n_rows, self.trees.most_rows)
        return 1e-7 * self.trees.trees * (rows + len(self.dataset.y_val))

    def _grow(self, members: BoolArray, keys: KeyArray, unseen: bool) -> tuple[Any, Any]:
        from databanzhaf.kernels import forest

        return forest.grow(
            self.trees, self.table, members, keys, unseen=unseen, threads=self.threads
        )

    def fingerprint(self) -> dict[str, str]:
        return {
            "game": "forest",
            "data": self.dataset.fingerprint(),
            **{f"forest.{name}": str(value) for name, value in asdict(self.trees).items()},
            "forest.loss": self.loss,
            **self._judged(),
            "metric": self.metric,
        }

    def __repr__(self) -> str:
        return f"Forest({self.trees.trees} trees, {self.dataset!r}, metric={self.metric!r})"


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _columns_tried(max_features: Any, n_columns: int) -> int:
    if max_features is None:
        return n_columns
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        rule = np.sqrt if max_features == "sqrt" else np.log2
        return max(1, int(rule(n_columns)))
    if _is_whole(max_features) and 1 <= max_features <= n_columns:
        return int(max_features)
    if isinstance(max_features, (float, np.floating)) and 0 < max_features <= 1:
        return max(1, int(max_features * n_columns))
    raise InvalidInput(
        f'`max_features` must be "sqrt", "log2", None, a whole number from 1 to {n_columns} (the '
        "columns) or a share above 0 and up to 1.0",
        got=short(max_features),
        remedy='Try "sqrt".',
    )


def _share(max_samples: Any) -> float:
    """The share of a coalition's rows that each tree sees."""
    if max_samples is None or _is_whole(max_samples):
        return 1.0
    if isinstance(max_samples, (float, np.floating)) and max_samples == 1:
        return 1.0
    return check_between(
        "max_samples", max_samples, 0, 1, "Pass a share of the rows, or a whole number of them."
    )


def _most(max_samples: Any) -> int:
    """The largest number of rows that each tree sees."""
    whole = check_count("max_samples", max_samples) if _is_whole(max_samples) else NO_LIMIT
    return min(whole, NO_LIMIT)
