"""What games on a dataset share: who judges a model, what each judging row says, how it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf import chance, metrics
from databanzhaf.data import Dataset
from databanzhaf.errors import InvalidInput, short
from databanzhaf.protocols import BoolArray, FloatArray, IntArray
from databanzhaf.verdicts import Jury, Seating

if TYPE_CHECKING:
    from databanzhaf.games.predictions import Answers


# Juries in folds, where a coalition leaves no row outside.
FOLDS = 5
# Fewer groups than this: rows of each of them judge, instead of whole groups.
FEW_GROUPS = 20


class Judged:
    """A game whose models are judged by validation rows, or by the rows that they have not seen."""

    dataset: Dataset
    metric: Any
    if TYPE_CHECKING:

        @property
        def classifies(self) -> bool: ...
        @property
        def classes(self) -> Any: ...
        def score(self, outcome: bytes) -> float: ...

    # Bytes of a kept probability of one class.
    _bytes_of_a_number = 4

    @property
    def _across(self) -> bool:
        return self.dataset.judges is not None

    @cached_property
    def _row_metric(self) -> metrics.RowMetric | None:
        unit = 1.0 if self.classifies else float(self.dataset.y_val.std(dtype=np.float64)) or 1.0
        return metrics.row_metric(self.metric, classifies=self.classifies, unit=unit)

    @cached_property
    def jury(self) -> Jury | None:
        """The rows that judge; None if the metric is not a mean over rows."""
        metric = self._row_metric
        if metric is None:
            return None
        return Jury(metric.weights(self.dataset.y_val), self._across)

    @cached_property
    def seating(self) -> Seating | None:
        """How the jury is cut into folds, for designs that leave no row outside; None with
        validation rows. Where groups are few, or one of them has all rows of a class, rows of each
        of them judge in each fold: else such a class would be judged by models that have never
        seen it.
        """
        data = self.dataset
        if data.judges is None:
            return None
        none = np.empty(0, dtype=np.int64)
        few = data.n_players < min(FEW_GROUPS, data.n_rows)
        if few or (self.classifies and self._class_of_one_player()):
            rows = _dealt(data.player_of_row, data.y)
            return Seating(
                FOLDS, np.full(data.n_players, -1), rows[data.judges], rows, data.player_of_row
            )
        ordered = np.zeros(data.n_players)
        if data.n_players == data.n_rows:
            ordered = data.y[np.argsort(data.player_of_row)]
        folds = _dealt(ordered)
        judge_folds = folds[data.player_of_row[data.judges]]
        return Seating(int(folds.max()) + 1, folds, judge_folds, none, none)

    def _class_of_one_player(self) -> bool:
        """Whether one player has all rows, two or more, of a class."""
        players = self.dataset.player_of_row
        parts = (players[self.dataset.y == label] for label in np.unique(self.dataset.y))
        return any(len(part) > 1 and (part == part[0]).all() for part in parts)

    @property
    def outcome_bytes(self) -> int:
        """About what one model's kept answers take on disk."""
        judges = len(self.dataset.y_val)
        if self._across:
            return judges * (2 if self.classifies else 4)
        row = len(self.classes) * self._bytes_of_a_number + 4 if self.classifies else 8
        return judges * row + 400

    def verdicts(self, outcomes: Sequence[bytes]) -> FloatArray:
        """What each judging row says of each kept model, (models, judges); NaN where it does not
        judge.
        """
        from databanzhaf.games.predictions import unpack, unpack_many

        metric = self._row_metric
        assert metric is not None  # `jury` says so
        if self._across:
            return metric.scores(outcomes)
        together = unpack_many(outcomes, self.classes)
        if together is not None:
            parts = self._said(together)
        else:
            each = (self._said(unpack(outcome, self.classes)) for outcome in outcomes)
            parts = tuple(np.stack(part) for part in zip(*each, strict=True))
        return metric.of_classes(*parts) if self.classifies else metric.of_numbers(*parts)

    def scores(self, outcomes: Sequence[bytes]) -> FloatArray:
        """`score` for many outcomes: quick, to the same bits, where it is a plain mean over rows;
        quick, up to rounding, for F1 and the area under the ROC curve.
        """
        if self.classifies and not self._across and self.metric in ("f1", "f1_macro", "roc_auc"):
            return self._ranked_scores(outcomes)
        metric = self._row_metric
        if self._across or metric is None or metric.of not in ("probability", "hit"):
            return np.array([self.score(outcome) for outcome in outcomes])
        said = self.verdicts(outcomes)
        if metric.of == "hit" and metric.balanced:
            _, which = np.unique(self.dataset.y_val, return_inverse=True)
            recalls = [said[:, which == number].mean(axis=1) for number in range(which.max() + 1)]
            return np.asarray(np.mean(recalls, axis=0))
        if metric.balanced:
            return np.array([self.score(outcome) for outcome in outcomes])
        return np.asarray(said.mean(axis=1))

    def _ranked_scores(self, outcomes: Sequence[bytes]) -> FloatArray:
        from databanzhaf.games.predictions import unpack

        _, truth = np.unique(self.dataset.y_val, return_inverse=True)
        answers = [unpack(outcome, self.classes) for outcome in outcomes]
        if self.metric == "roc_auc" and (len(self.classes) != 2 or truth.max() != 1):
            return np.array([self.score(outcome) for outcome in outcomes])
        if self.metric == "roc_auc":
            said = np.stack([_scores_of_second_class(each) for each in answers])
            finite = np.isfinite(said).all(axis=1)
            return np.where(finite, metrics.auc_of_many(said, truth == 1), np.nan)
        said = np.stack([each.predict(None) for each in answers])
        number, predicted = (
            np.searchsorted(self.classes, each) for each in (self.dataset.y_val, said)
        )
        positive = None if self.metric == "f1_macro" else int(np.searchsorted(self.classes, 1))
        known = [np.isfinite(getattr(each, "predict_proba", _none)(None)).all() for each in answers]
        return np.where(known, metrics.f1_of_many(predicted, number, positive), np.nan)

    def guesses(self) -> FloatArray:
        """What each judging row says of a guess that knows the labels' shares, or their mean,
        alone.
        """
        assert self._row_metric is not None
        assert self.jury is not None
        return self._row_metric.guesses(self.dataset.y_val, self.jury.weights)

    def _said(self, answers: Answers) -> tuple[Any, ...]:
        """Of each judging row, the last axis: the probability of its own label and whether it is
        the one predicted; or the residual in units.
        """
        assert self._row_metric is not None
        if not self.classifies:
            residual = np.asarray(answers.predict(None), dtype=np.float64) - self.dataset.y_val
            return (residual / self._row_metric.unit,)
        hit = np.asarray(answers.predict(None) == self.dataset.y_val)
        if not hasattr(answers, "predict_proba"):
            return hit.astype(np.float64), hit
        own = np.searchsorted(self.classes, self.dataset.y_val)
        said = answers.predict_proba(None)[..., np.arange(len(own)), own]
        return np.ascontiguousarray(said), hit

    def _packed(self, answers: Answers, judging: BoolArray) -> bytes:
        """One model's answers, kept: all of them, or those of the rows that judge it."""
        if not self._across:
            return answers.pack()
        said = self._said(answers)
        if self.classifies:
            return metrics.pack_classes(said[0], said[1], judging)
        return metrics.pack_numbers(said[0], judging)

    def _mean_verdict(self, outcome: bytes) -> float:
        assert self.jury is not None
        scores = self.verdicts([outcome])[0]
        # A network that diverged predicts what is no number; a row that does not judge is none.
        judging = ~np.isnan(scores)
        if not np.isfinite(scores[judging]).all():
            return float("nan")
        return metrics.mean_score(scores, self.jury.weights)

    def _check_jury(self) -> None:
        """Rows that judge each other need a metric that each of them can give."""
        if self._across and self._row_metric is None:
            known = metrics.CLASS_METRICS if self.classifies else metrics.NUMBER_METRICS
            raise InvalidInput(
                "rows that judge each other need a metric that is a mean over rows: "
                f"{', '.join(known)}",
                got=short(self.metric),
                remedy="Choose one of them, or give validation rows (in the shell --validation or "
                "--validation-fraction).",
            )

    def _judged(self) -> dict[str, str]:
        """For the fingerprint."""
        return {"judged": "across"} if self._across else {}


def _scores_of_second_class(answers: Answers) -> FloatArray:
    """What scikit-learn ranks rows by: decisions, else probabilities."""
    if hasattr(answers, "decision_function"):
        return np.asarray(answers.decision_function(None), dtype=np.float64)
    return np.asarray(answers.predict_proba(None)[:, 1], dtype=np.float64)


def _none(X: Any) -> FloatArray:
    """The probabilities of a model that gives none."""
    return np.empty(0)


def _dealt(*columns: Any) -> IntArray:
    """A fold for each row: rows in the order of the columns, equal ones by chance, are dealt in
    turn, so that every fold has its share of every group and class.
    """
    luck = chance.uniform(chance.keys(0, chance.FOLDS, np.arange(len(columns[0]))), 1)[:, 0]
    numbers = [np.unique(column, return_inverse=True)[1] for column in columns]
    folds = np.empty(len(luck), dtype=np.int64)
    folds[np.lexsort((luck, *reversed(numbers)))] = np.arange(len(luck)) % FOLDS
    return folds
