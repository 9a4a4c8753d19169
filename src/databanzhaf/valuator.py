"""DataBanzhaf: the scikit-learn face of `value`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted, validate_data

from databanzhaf.applications import flagged, weights
from databanzhaf.data import check_one_order, check_unmasked
from databanzhaf.diagnostics import split_half
from databanzhaf.errors import InvalidInput, check_between, check_count
from databanzhaf.estimate import Estimate
from databanzhaf.frames import as_array, as_pandas, check_cells, check_fetched, check_no_dict
from databanzhaf.models import is_classification
from databanzhaf.notions import Together, named
from databanzhaf.pipeline.rows import Model, make_ready
from databanzhaf.protocols import FloatArray, IntArray, Notion
from databanzhaf.run import finish

if TYPE_CHECKING:
    from databanzhaf.until import Condition


class DataBanzhaf(BaseEstimator):  # type: ignore[misc]
    """Values of training rows, as a scikit-learn estimator.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, name, or function, optional
        Names are "forest", "mlp", "logistic", "linear", "boosting" and "knn".
        A function makes a torch module (or a scikit-learn estimator); it takes nothing, or
        (columns, outputs). "forest" by default. For names and modules mixed columns are encoded:
        dates become days; for all but "forest" numbers are scaled, gaps filled with the median and
        categories get columns of their own. An estimator of your own gets X as it is.
    notion : Notion or str
        ``Shapley()`` or "shapley", "beta:16,1", "loo", "least-core", ...
    budget, seed, until, ledger, progress
        As for `value`; the seed also decides which rows `validation_fraction` holds out.
    repeats : int, optional
        Trainings of each coalition: one, or, where every coalition is evaluated (few groups), as
        many as the budget pays for.
    metric : str or scorer, optional
        "probability" by default for classes, "r2" for numbers.
    validation_fraction : float, optional
        Share of the rows (of each class) that is held out for validation when `fit` is given no
        validation rows. By default none is: rows are judged by models that have not seen them, and
        all get values.
    groups : array (rows,), optional, passed to `fit`
        Value groups of rows; then each row has its group's value.
    n_jobs : int, optional
        Processes for scikit-learn estimators, threads for trees and networks; -1 is one for each
        core. Values do not depend on it.
    device : "auto", "cpu" or "cuda"

    Attributes
    ----------
    values_, std_errors_ : float64 array (rows,)
        One for each row of X; NaN for rows that were held out. The standard errors count which
        rows judged, where that is known.
    estimate_ : Estimate
        Of the players: the rows that were not held out (with their pandas index), or the groups.
    held_out_ : bool array (rows,)
    game_ : the game that was played
    notes_ : tuple of str
        What to know about the columns: which are left out, which are read as text.

    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> valuator = DataBanzhaf("logistic", budget=300).fit(X, y)
    >>> len(valuator.values_) == len(y)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        notion: Notion | str = "banzhaf",
        budget: int = 5000,
        repeats: int | None = None,
        metric: Any = None,
        validation_fraction: float | None = None,
        until: Condition | None = None,
        ledger: str | Path | None = None,
        n_jobs: int | None = 1,
        device: str = "auto",
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.estimator = estimator
        self.notion = notion
        self.budget = budget
        self.repeats = repeats
        self.metric = metric
        self.validation_fraction = validation_fraction
        self.until = until
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.device = device
        self.seed = seed
        self.progress = progress

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None, groups: Any = None) -> Self:
        """Value the rows of X by validation rows, by a share of X that is held out, or by each
        other.
        """
        X, y, X_val, y_val, index = self._arguments(X, y, X_val, y_val, groups)
        own = self._takes_rows_as_they_are()
        ready = make_ready(
            X if own else _table(X),
            y,
            self._model(),
            classifies=self._classifies(y),
            validation=None if X_val is None else (X_val if own else _table(X_val), y_val),
            fraction=None
            if self.validation_fraction is None
            else check_between("validation_fraction", self.validation_fraction, 0, 1, "Try 0.3."),
            seed=self.seed,
            groups=groups,
            index=index,
        )
        self.held_out_, self.game_, self.notes_ = ready.held_out, ready.game, ready.notes
        finished = finish(
            ready.game,
            self._notion(),
            budget=self.budget,
            repeats=self.repeats,
            seed=self.seed,
            ledger=self.ledger,
            evaluator=ready.evaluator,
            until=self.until,
            progress=self.progress,
        )
        assert finished.evaluations is not None  # no name stands for a game in closed form
        self.estimate_: Estimate = finished.estimate
        self._evaluations = finished.evaluations
        train = ~self.held_out_
        player = np.arange(int(train.sum()))
        if groups is not None:
            player = np.unique(np.asarray(groups)[train], return_inverse=True)[1]
        self._player_of_row = np.full(len(train), -1, dtype=np.int64)
        self._player_of_row[train] = player
        self.values_, self.std_errors_ = (np.full(len(train), np.nan) for _ in range(2))
        self.values_[train] = self.estimate_.values[player]
        self.std_errors_[train] = self.estimate_.errors.std_errors[player]
        return self

    def _arguments(self, X: Any, y: Any, X_val: Any, y_val: Any, groups: Any) -> tuple[Any, ...]:
        """Checked, with the index of the rows if they have one."""
        # A torch class makes modules; any other class lacks its brackets.
        if isinstance(self.estimator, type) and not hasattr(self.estimator, "named_parameters"):
            raise InvalidInput(
                "`estimator` must be an instance",
                got=f"the class {self.estimator.__name__}",
                remedy="Add the brackets.",
            )
        for name, part in (("X", X), ("X_val", X_val), ("y", y), ("y_val", y_val)):
            check_unmasked(name, part)
            check_no_dict(name, part)
            check_fetched(name, part)
        check_fetched("groups", groups)
        X, X_val = self._as_table("X", X), self._as_table("X_val", X_val)
        if hasattr(X, "iloc") and not hasattr(X, "columns") and not _are_texts(X):
            raise InvalidInput(
                "`X` must be a table, rows by columns",
                got="one column",
                remedy="Pass X.to_frame().",
            )
        check_one_order(X, y)
        check_one_order(X_val, y_val, ("X_val", "y_val"))
        check_one_order(X if hasattr(X, "iloc") else y, groups, ("X", "groups"))
        index = X.index if hasattr(X, "iloc") else y.index if hasattr(y, "iloc") else None
        X, y = self._checked(X, y, reset=True)
        if (X_val is None) != (y_val is None):
            raise InvalidInput(
                "`X_val` and `y_val` belong together",
                got="one of them",
                remedy="Pass both, or none: then the rows judge each other.",
            )
        if groups is not None and np.shape(groups) != y.shape:
            raise InvalidInput(
                f"`groups` must name a group for each of the {len(y)} rows of X",
                got=f"shape {np.shape(groups)}",
                remedy="Pass one group per row.",
            )
        if X_val is not None:
            X_val, y_val = self._checked(X_val, y_val, reset=False)
        return X, y, X_val, y_val, index

    def _model(self) -> Model:
        n_jobs = 1 if self.n_jobs is None else self.n_jobs
        if n_jobs != -1:
            check_count("n_jobs", n_jobs)
        model = "forest" if self.estimator is None else self.estimator
        return Model(model, self.metric, n_jobs, self.device)

    def _notion(self) -> Notion:
        if isinstance(self.notion, (list, tuple, Together)):
            raise InvalidInput(
                "DataBanzhaf gives the values of one notion",
                got="several",
                remedy="Use db.value(game, [...]) for several, or fit once for each.",
            )
        return named(self.notion) if isinstance(self.notion, str) else self.notion

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        """scikit-learn's own checks for arrays; tables keep their columns' kinds."""
        if y is None:
            raise InvalidInput(
                "DataBanzhaf requires y to be passed, but the target y is None",
                remedy="Pass one label for each row.",
            )
        texts = _are_texts(X)
        if texts or hasattr(X, "iloc"):
            from sklearn.utils import check_consistent_length

            validate_data(self, X, reset=reset, skip_check_array=True)
            check_consistent_length(X, y)
            return np.asarray(X, dtype=object) if texts else X, _labels(y)
        takes_nan = not self._takes_rows_as_they_are() or self.estimator is None
        X, y = validate_data(
            self,
            X,
            y,
            reset=reset,
            accept_sparse="csr",
            ensure_all_finite="allow-nan" if takes_nan or _allows_nan(self.estimator) else True,
        )
        return X, _labels(y)

    def _as_table(self, name: str, X: Any) -> Any:
        """Another package's table as that of pandas, and a list of texts as a table of one column;
        an estimator of the user's own gets the list itself.
        """
        X = as_pandas(name, X)
        if _are_texts(X) and not self._takes_rows_as_they_are():
            import pandas as pd

            return pd.DataFrame({"text": X})
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            check_cells(name, X)
        return X

    def _takes_rows_as_they_are(self) -> bool:
        return hasattr(self.estimator, "fit")

    def _classifies(self, y: Any) -> bool:
        if self._takes_rows_as_they_are():
            return bool(is_classifier(self.estimator)) or not is_regressor(self.estimator)
        return is_classification(y)

    def suspects(self, rule: str | None = None, **options: float) -> IntArray:
        """Positions in X of rows that are likely mislabeled, lowest value first; the rules are
        those of `applications.flagged`.

        By default those below zero beyond chance, at a false discovery rate of 5%.
        """
        check_is_fitted(self)
        if rule is None and not options:
            options = {"fdr": 0.05}
        players = flagged(self.estimate_, rule, **options)
        order = {player: place for place, player in enumerate(players.tolist())}
        rows = [row for row, player in enumerate(self._player_of_row.tolist()) if player in order]
        return np.array(
            sorted(rows, key=lambda row: order[int(self._player_of_row[row])]), dtype=np.int64
        )

    def sample_weight(self) -> FloatArray:
        """Values scaled to [0, 1], one for each row of X, for ``fit(X, y, sample_weight=...)``; the
        mean for rows that were held out.
        """
        check_is_fitted(self)
        scaled = weights(self.estimate_)
        out = np.full(len(self._player_of_row), scaled.mean())
        known = self._player_of_row >= 0
        out[known] = scaled[self._player_of_row[known]]
        return out

    def score(self, X: Any = None, y: Any = None) -> float:
        """How reproducible the ranking is: Spearman between the values from one half of the
        evaluations and from the other.

        The rows of X are not looked at; they are there for GridSearchCV, which can so find the
        budget that is enough.
        """
        check_is_fitted(self)
        if X is not None:
            validate_data(self, self._as_table("X", X), reset=False, skip_check_array=True)
        return split_half(self._evaluations, self._notion(), self.estimate_.estimator)

    def _html_repr(self) -> str:
        """In a notebook: the values once they are there, scikit-learn's diagram before."""
        if hasattr(self, "estimate_"):
            return self.estimate_._repr_html_()
        return str(super()._html_repr())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = not self._takes_rows_as_they_are() or _allows_nan(
            self.estimator
        )
        return tags


def _are_texts(X: Any) -> bool:
    """Whether X is a list of texts; some may be missing."""
    if not (isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1):
        return False
    import pandas as pd

    others = [cell for cell in X if not isinstance(cell, str)]
    return len(others) < len(X) and all(pd.api.types.is_scalar(c) and pd.isna(c) for c in others)


def _allows_nan(estimator: Any) -> bool:
    from sklearn.utils import get_tags

    return hasattr(estimator, "fit") and bool(get_tags(estimator).input_tags.allow_nan)


def _labels(y: Any) -> Any:
    column = as_array("y", y)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InvalidInput(
            "`y` must be one label for each row",
            got=f"shape {column.shape}",
            remedy="Choose one column.",
        )
    import pandas as pd

    missing = np.asarray(pd.isna(column)) if column.dtype.kind in "Of" else np.zeros(1, np.bool_)
    if missing.any():
        raise InvalidInput(
            "`y` must have no missing label",
            got=f"NaN or None in row {np.flatnonzero(missing)[0]}",
            remedy="Drop or fill those rows.",
        )
    if column.dtype.kind == "O" and all(isinstance(label, str) for label in column.ravel()):
        return column.astype(str)
    if column.dtype.kind == "O" and any(isinstance(label, str) for label in column):
        raise InvalidInput(
            "`y` must be all texts or all numbers",
            got="a mixture",
            remedy="Convert with y.astype(str).",
        )
    return column


def _table(X: Any) -> Any:
    import pandas as pd

    if hasattr(X, "iloc"):
        return X
    return pd.DataFrame(
        X.toarray() if hasattr(X, "toarray") else X, columns=[f"x{i}" for i in range(X.shape[1])]
    )
