"""A game that trains a scikit-learn estimator on each coalition's rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf import chance
from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, short
from databanzhaf.fingerprint import captured, describe
from databanzhaf.games.generators import seeded_generators
from databanzhaf.games.judging import Judged
from databanzhaf.games.open_parameters import (
    comes_from,
    open_splitters,
    open_states,
    open_threads,
)
from databanzhaf.protocols import BoolArray, FloatArray, KeyArray, Labels

if TYPE_CHECKING:
    from databanzhaf.games.predictions import Answers


class Learner(Judged):
    """U(S) is the validation score of `estimator` trained on the rows of S.

    Parameters
    ----------
    estimator : scikit-learn classifier, regressor or Pipeline
        Cloned for each training. Every `random_state` that is None is set from the evaluation's
        key; a number that you chose stays, and then the trainings carry no noise from it. A
        booster of LightGBM or XGBoost gets one thread unless you chose a number: models run side by
        side (`evaluators.Processes`).
    dataset : Dataset
    metric : str or callable, optional
        "probability" (mean predicted probability of the true class, in [0, 1]),
        "balanced_probability" (each class counts the same), a scikit-learn scorer's name, or a
        scorer: ``scorer(model, X_val, y_val) -> float``, where `model` answers for the validation
        rows only. By default "probability" for a classifier and "r2" for a
        regressor.
    stochastic : bool, optional
        Whether a second training of one coalition may differ; by default, whether some
        `random_state` is None (or the estimator is skorch's). The global generators of NumPy and
        torch are set from the key for each training, and put back.

    An empty coalition predicts the majority class of all training labels (their mean for a
    regressor); a coalition of one class predicts that class.
    """

    classifies: bool
    call_size = 1
    _bytes_of_a_number = 8

    def __init__(
        self,
        estimator: Any,
        dataset: Dataset,
        metric: str | Callable[..., float] | None = None,
        *,
        stochastic: bool | None = None,
    ) -> None:
        from sklearn.base import is_classifier, is_regressor
        from sklearn.metrics import get_scorer, get_scorer_names

        if not isinstance(dataset, Dataset):
            raise InvalidInput(
                "`dataset` must be a databanzhaf.Dataset",
                got=f"{type(dataset).__name__}",
                remedy="Pass Dataset(X, y).",
            )
        usable = (
            hasattr(estimator, "fit")
            and hasattr(estimator, "get_params")
            and not isinstance(estimator, type)
        )
        if not usable or not (is_classifier(estimator) or is_regressor(estimator)):
            raise InvalidInput(
                "`estimator` must be a scikit-learn classifier or regressor, an instance",
                got=short(estimator),
                remedy="Torch modules go to games.Module."
                if hasattr(estimator, "named_parameters")
                else "Try LogisticRegression().",
            )
        self.estimator = estimator
        self.dataset = dataset
        self.classifies = bool(is_classifier(estimator))
        self.metric = metric if metric is not None else "probability" if self.classifies else "r2"
        if self.metric in ("probability", "balanced_probability"):
            if not self.classifies:
                raise InvalidInput(
                    f'"{self.metric}" is for classifiers; {_name(estimator)} is a regressor',
                    remedy='Use metric="r2".',
                )
            if not hasattr(estimator, "predict_proba"):
                raise InvalidInput(
                    f'"{self.metric}" needs `predict_proba`, which {_name(estimator)} lacks',
                    remedy='Use metric="accuracy".',
                )
            balanced = self.metric == "balanced_probability"
            self._scorer: Callable[..., Any] = self._balanced if balanced else _probability
        elif isinstance(self.metric, str):
            if self.metric not in get_scorer_names():
                raise InvalidInput(
                    '`metric` must be "probability", the name of a scikit-learn scorer or a '
                    "callable",
                    got=short(self.metric),
                    remedy="See sklearn.metrics.get_scorer_names().",
                )
            self._scorer = (
                _log_loss(self.classes)
                if self.metric == "neg_log_loss" and self.classifies
                else get_scorer(self.metric)
            )
        else:
            if not callable(self.metric):
                raise InvalidInput(
                    "`metric` must be a name or a scorer",
                    got=short(self.metric),
                    remedy='Try "accuracy".',
                )
            if _parameters(self.metric)[:1] == ["y_true"]:
                raise InvalidInput(
                    "`metric` must be a scorer, called with a model, X and y",
                    got="a metric of labels and predictions",
                    remedy="Wrap it: sklearn.metrics.make_scorer(metric).",
                )
            self._scorer = self.metric
        self._open_states = open_states(estimator)
        self._open_splitters = open_splitters(estimator)
        self._open_threads = open_threads(estimator)
        noisy = bool(self._open_states or self._open_splitters) or comes_from(estimator, "skorch")
        self.stochastic = noisy if stochastic is None else stochastic
        if self.classifies and not np.isin(dataset.y_val, dataset.y).any():
            raise InvalidInput(
                "`y` and `y_val` must share classes",
                got=f"{np.unique(dataset.y)[:3].tolist()} and "
                f"{np.unique(dataset.y_val)[:3].tolist()}",
                remedy="Encode both the same way.",
            )
        if not self.classifies and dataset.y.dtype.kind not in "biuf":
            raise InvalidInput(
                "a regressor needs numbers as labels",
                got=f"{dataset.y.dtype}",
                remedy="Use a classifier, or convert `y`.",
            )
        self._check_jury()

    @property
    def n_players(self) -> int:
        return self.dataset.n_players

    @property
    def players(self) -> Labels | None:
        return self.dataset.players

    @cached_property
    def classes(self) -> Any:
        """All classes of the training and validation labels, sorted; None for a regressor."""
        return (
            np.unique(np.concatenate([self.dataset.y, self.dataset.y_val]))
            if self.classifies
            else None
        )

    @cached_property
    def _responses(self) -> tuple[str, ...]:
        kinds = ("predict_proba", "decision_function") if self.classifies else ()
        return ("predict", *(kind for kind in kinds if hasattr(self.estimator, kind)))

    def answers(self, coalition: BoolArray, key: np.uint64) -> Answers:
        """Train on one coalition; what the model says on the validation rows."""
        from databanzhaf.games import predictions as made

        rows, n_val = self.dataset.rows(coalition), len(self.dataset.y_val)
        if not self.classifies:
            if not len(rows):
                return made.RegressorAnswers(
                    {"predict": np.full(n_val, float(np.mean(self.dataset.y)))}
                )
            model = self._fit(rows, key)
            return made.RegressorAnswers({"predict": lambda: _flat(model.predict(self._X_val()))})
        labels, counts = np.unique(
            self.dataset.y[rows] if len(rows) else self.dataset.y, return_counts=True
        )
        if not len(rows) or len(labels) == 1:
            return made.constant_class(
                labels[counts.argmax()], self.classes, n_val, self._responses
            )
        model = self._fit(rows, key)
        known = labels if self._wants_numbers else None
        return made.fitted_classifier(model, self.classes, self._X_val, self._responses, known)

    @cached_property
    def _wants_numbers(self) -> bool:
        """XGBoost takes no labels but 0, 1, ... without a gap, which a coalition need not have."""
        return self.classifies and comes_from(self.estimator, "xgboost")

    @cached_property
    def _is_skorch(self) -> bool:
        return comes_from(self.estimator, "skorch")

    def _X_val(self) -> Any:
        """A copy of the validation rows, which a model may change (``StandardScaler(copy=False)``
        does).
        """
        own = self.dataset.X_val.copy()
        return _single(own) if self._is_skorch else own

    @cached_property
    def _wants_columns(self) -> bool:
        """Whether a skorch regressor's module answers with one column: its targets must be one too,
        or the loss would pair all rows.
        """
        if self.classifies or not self._is_skorch:
            return False
        from sklearn.base import clone

        net, X = clone(self.estimator), self._X_val()[:1]
        with seeded_generators(np.uint64(0)):
            while hasattr(net, "steps"):
                X = _single(net[:-1].fit(_single(self.dataset.X), self.dataset.y).transform(X))
                net = net.steps[-1][1]
            return bool(np.ndim(net.initialize().predict(X)) == 2)

    def _fit(self, rows: Any, key: np.uint64) -> Any:
        from sklearn.base import clone

        model = clone(self.estimator).set_params(**dict.fromkeys(self._open_threads, 1))
        X, y = self.dataset.take(rows)
        if self._wants_numbers:
            y = np.unique(y, return_inverse=True)[1]
        if self._is_skorch:  # torch's numbers are of single precision
            X = _single(X)
            y = y if self.classifies else y.astype(np.float32)
        if self._wants_columns:
            y = y[:, None]
        names = [*self._open_states, *self._open_splitters]
        seeds = (chance.words(np.array([key], np.uint64), len(names))[0] >> np.uint64(33)).tolist()
        for name, seed in zip(names, seeds, strict=True):
            if name in self._open_states:
                model.set_params(**{name: seed})
            else:
                model.get_params()[name].random_state = seed
        return model.fit(X, y)

    def utility(self, coalitions: BoolArray, keys: KeyArray) -> FloatArray:
        if self._across:
            kept = self.outcomes(coalitions, keys)
            return np.array([self.score(outcome) for outcome in kept], dtype=np.float64)
        return np.array(
            [self._play(*pair, self._score) for pair in zip(coalitions, keys, strict=True)],
            dtype=np.float64,
        )

    def outcomes(self, coalitions: BoolArray, keys: KeyArray) -> list[bytes]:
        judging = self.dataset.judging(coalitions)
        return [
            self._play(coalition, key, partial(self._packed, judging=own))
            for coalition, key, own in zip(coalitions, keys, judging, strict=True)
        ]

    def _play(self, coalition: BoolArray, key: np.uint64, read: Callable[[Answers], Any]) -> Any:
        """Train, predict and read the answers; whatever draws from a global generator meanwhile
        draws from the key.
        """
        with seeded_generators(key):
            return read(self.answers(coalition, key))

    def score(self, outcome: bytes) -> float:
        from databanzhaf.games.predictions import unpack

        if self._across:
            return self._mean_verdict(outcome)
        return self._score(unpack(outcome, self.classes))

    def _score(self, answers: Answers) -> float:
        # A metric may draw too (a bootstrap): the same numbers for all models, since a kept outcome
        # has no key.
        with seeded_generators(np.uint64(0)):
            score = np.asarray(
                self._scorer(answers, self.dataset.X_val.copy(), self.dataset.y_val.copy())
            )
        if score.size != 1 or score.dtype.kind not in "biuf":
            raise InvalidInput(
                "a metric must return one real number",
                got=f"{score.dtype} of shape {score.shape}",
                remedy="Change the scorer.",
            )
        return float(score.item())

    def _balanced(self, model: Any, X_val: Any, y_val: Any) -> float:
        """Mean predicted probability of the true class, each class counted the same."""
        assert self._row_metric is not None
        own, _ = self._said(model)
        return float(self._row_metric.weights(y_val) @ own)

    def fingerprint(self) -> dict[str, str]:
        metric = self.metric if isinstance(self.metric, str) else describe(self.metric)
        # Nested estimators' parameters stand in the list themselves, so that an estimator is its
        # class.
        flat = {
            f"estimator.{name}": describe(_outline(value))
            for name, value in sorted(self.estimator.get_params().items())
        }
        kind = describe(type(self.estimator))
        return {
            "game": "learner",
            "data": self.dataset.fingerprint(),
            "estimator": kind,
            **flat,
            **self._judged(),
            "metric": metric,
        }

    @property
    def captured(self) -> tuple[str, ...]:
        """Names of the variables that the metric captures and that the fingerprint cannot see."""
        return () if isinstance(self.metric, str) else captured(self.metric)

    def __repr__(self) -> str:
        return f"Learner({self.estimator!r}, {self.dataset!r}, metric={self.metric!r})"


def _probability(model: Any, X_val: Any, y_val: Any) -> float:
    """Mean predicted probability of the true class."""
    columns = np.searchsorted(model.classes_, y_val)
    return float(model.predict_proba(X_val)[np.arange(len(columns)), columns].mean())


def _log_loss(classes: Any) -> Callable[..., Any]:
    """scikit-learn's, for validation rows that lack a class too."""
    from sklearn.metrics import log_loss, make_scorer

    scorer: Callable[..., Any] = make_scorer(
        log_loss, greater_is_better=False, response_method="predict_proba", labels=classes
    )
    return scorer


def _flat(predictions: Any) -> Any:
    column = np.asarray(predictions)
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


def _single(table: Any) -> Any:
    return table.astype(np.float32) if getattr(table, "dtype", None) == np.float64 else table


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except ValueError:  # a builtin without a signature
        return []


def _outline(value: Any) -> Any:
    """A parameter with every estimator in it replaced by its class."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value)
    if isinstance(value, (list, tuple)):
        return [_outline(part) for part in value]
    return value


def _name(estimator: Any) -> str:
    return type(estimator).__name__
