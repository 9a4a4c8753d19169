"""What one trained model answers on the validation rows, as scikit-learn's scorers want it."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

_FIELDS = ("predict", "predict_proba", "decision_function")


def _has(response: str) -> Callable[[Any], bool]:
    return lambda self: response in self._responses


class Answers(BaseEstimator):  # type: ignore[misc]
    """Stands in for a fitted model: it only knows the validation rows.

    `responses` maps "predict", "predict_proba" and "decision_function" to arrays, or to functions
    that compute them when they are first asked for. Probabilities have one column for each class of
    the dataset.
    """

    def __init__(self, responses: dict[str, Any]) -> None:
        self._responses = responses

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _answer(self, response: str) -> Any:
        if callable(self._responses[response]):
            self._responses[response] = self._responses[response]()
        return self._responses[response]

    def predict(self, X: Any) -> Any:
        return self._answer("predict")

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        return self._answer("predict_proba")

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        return self._answer("decision_function")

    def pack(self) -> bytes:
        """All answers as bytes: the arrays of `_FIELDS` in turn as `np.save` writes them, an empty
        one where there is none.
        """
        parts = []
        for name in _FIELDS:
            array = np.asarray(self._answer(name) if name in self._responses else np.empty(0))
            array = self._encode(array) if name == "predict" else array
            if array.dtype.hasobject:  # its bytes are addresses
                raise ValueError("Object arrays cannot be kept. Return numbers.")
            by_column = bool(array.flags.f_contiguous and not array.flags.c_contiguous)
            parts += [_header(array.dtype, array.shape, by_column), array.tobytes("A")]
        return b"".join(parts)

    def _encode(self, predictions: Any) -> Any:
        return predictions


class ClassifierAnswers(ClassifierMixin, Answers):  # type: ignore[misc]
    def __init__(self, responses: dict[str, Any], classes: Any) -> None:
        super().__init__(responses)
        self.classes_ = classes

    def _encode(self, predictions: Any) -> Any:
        return np.searchsorted(self.classes_, predictions).astype(np.int32)


class RegressorAnswers(RegressorMixin, Answers):  # type: ignore[misc]
    pass


# `np.save` and `np.load` take 20 and 60 microseconds an array, most of it for a header that is the
# same for all models of a run: without this cache they took longer than the training of a network.
@lru_cache(maxsize=64)
def _header(dtype: Any, shape: tuple[int, ...], by_column: bool) -> bytes:
    """What `np.save` writes before an array."""
    file = io.BytesIO()
    described = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": by_column,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(file, described)
    return file.getvalue()


@lru_cache(maxsize=64)
def _described(header: bytes) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, whether by column, and dtype."""
    file = io.BytesIO(header)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("not the header of an array")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    return shape, bool(by_column), dtype


def _header_end(packed: bytes, place: int) -> int:
    return place + 10 + int.from_bytes(packed[place + 8 : place + 10], "little")


def _array_at(packed: bytes, place: int) -> tuple[Any, int]:
    """The array that begins at a place, and the place behind it."""
    start = _header_end(packed, place)
    shape, by_column, dtype = _described(packed[place:start])
    count = math.prod(shape)
    flat = np.frombuffer(packed, dtype, count, offset=start)
    # A copy: models of a metric of the user's may write to it, as they could to a loaded one.
    array = flat.reshape(shape, order="F" if by_column else "C").copy(order="A")
    return array, start + count * dtype.itemsize


def unpack(outcome: bytes, classes: Any) -> Answers:
    """The answers that `pack` packed; `classes` is None for a regressor."""
    arrays, place = {}, 0
    for name in _FIELDS:
        arrays[name], place = _array_at(outcome, place)
    return _answers({name: array for name, array in arrays.items() if array.size}, classes)


def _answers(responses: dict[str, Any], classes: Any) -> Answers:
    if classes is None:
        return RegressorAnswers(responses)
    numbers = responses["predict"]
    # Texts of many models take much memory, and few scores need them.
    return ClassifierAnswers({**responses, "predict": lambda: classes[numbers]}, classes)


def unpack_many(outcomes: Sequence[bytes], classes: Any) -> Answers | None:
    """What `unpack` says of each outcome, in one: arrays are (models, ...). None where outcomes
    differ in form.
    """
    if not outcomes or len({len(outcome) for outcome in outcomes}) > 1:
        return None
    together = np.frombuffer(b"".join(outcomes), np.uint8).reshape(len(outcomes), -1)
    responses, place = {}, 0
    for name in _FIELDS:
        start = _header_end(outcomes[0], place)
        shape, by_column, dtype = _described(outcomes[0][place:start])
        if by_column or (together[:, place:start] != together[0, place:start]).any():
            return None
        place = start + math.prod(shape) * dtype.itemsize
        if math.prod(shape):
            numbers = np.ascontiguousarray(together[:, start:place]).view(dtype)
            responses[name] = numbers.reshape(len(outcomes), *shape)
    return _answers(responses, classes)


def constant_class(
    label: Any, classes: Any, n_rows: int, responses: tuple[str, ...]
) -> ClassifierAnswers:
    """The model that always says `label`, with certainty."""
    one_hot = np.zeros((n_rows, len(classes)))
    one_hot[:, np.searchsorted(classes, label)] = 1.0
    decision = 2 * one_hot - 1
    made = {
        "predict": np.full(n_rows, label, dtype=classes.dtype),
        "predict_proba": one_hot,
        "decision_function": decision[:, 1] if len(classes) == 2 else decision,
    }
    return ClassifierAnswers({name: made[name] for name in responses}, classes)


def fitted_classifier(
    model: Any,
    classes: Any,
    X_val: Callable[[], Any],
    responses: tuple[str, ...],
    labels: Any = None,
) -> ClassifierAnswers:
    """A fitted model's answers, its columns laid out for all classes of the dataset. `X_val` makes
    the rows that it may change.

    `labels` are those that the model knows as 0, 1, ...; by default it knows them by their names.
    """
    columns = np.searchsorted(classes, model.classes_ if labels is None else labels)

    def predictions() -> Any:
        predicted = np.asarray(model.predict(X_val()))
        return predicted if labels is None else labels[predicted]

    def probabilities() -> Any:
        found = np.asarray(model.predict_proba(X_val()), dtype=np.float64)
        if found.shape[1] == len(
            classes
        ):  # a network has an output for every class, also for those that it did not see
            return found
        out = np.zeros((len(found), len(classes)))
        out[:, columns] = found
        return out

    def decisions() -> Any:
        decision = np.asarray(model.decision_function(X_val()), dtype=np.float64)
        if len(columns) == len(classes):
            return decision
        if decision.ndim == 1:
            decision = np.column_stack([-decision, decision])
        # A class that the coalition lacks ranks below all others.
        out = np.repeat(decision.min(axis=1, keepdims=True) - 1, len(classes), axis=1)
        out[:, columns] = decision
        return out

    made = {"predict": predictions, "predict_proba": probabilities, "decision_function": decisions}
    return ClassifierAnswers({name: made[name] for name in responses}, classes)
