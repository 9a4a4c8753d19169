"""What a person would try first to find wrong labels: a score for each training row, low where the
label looks wrong.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import protocol
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import Setting

FOLDS, NEIGHBOURS = 10, 5
NAMES: Final = {
    "cv_logistic": "10-fold logistic",
    "cv_forest": "10-fold forest",
    "cv_network": "10-fold network",
    "forest_on_validation": "forest on validation",
    "forest_oob": "forest out of bag",
    "knn_shapley": "kNN-Shapley",
}


def scores(draw: Draw, setting: Setting) -> dict[str, NDArray[np.float64]]:
    """All of them; low means suspect."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    X, X_val = (part.reshape(len(part), -1) for part in (draw.X, draw.X_val))
    y = draw.y
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=setting.seed)
    forest = RandomForestClassifier(100, random_state=setting.seed, n_jobs=1)

    def own(probabilities: Any, classes: Any) -> NDArray[np.float64]:
        return np.asarray(
            probabilities[np.arange(len(y)), np.searchsorted(classes, y)], dtype=np.float64
        )

    classes = np.unique(y)
    logistic = cross_val_predict(
        LogisticRegression(max_iter=2000), X, y, cv=folds, method="predict_proba"
    )
    outside = RandomForestClassifier(100, random_state=setting.seed, n_jobs=1, oob_score=True).fit(
        X, y
    )
    judge = RandomForestClassifier(100, random_state=setting.seed, n_jobs=1).fit(X_val, draw.y_val)
    return {
        "cv_logistic": own(logistic, classes),
        "cv_forest": own(
            cross_val_predict(forest, X, y, cv=folds, method="predict_proba"), classes
        ),
        "cv_network": _network(draw, setting, folds),
        "forest_on_validation": own(judge.predict_proba(X), judge.classes_),
        "forest_oob": own(outside.oob_decision_function_, outside.classes_),
        "knn_shapley": knn_shapley(X, y, X_val, draw.y_val, NEIGHBOURS),
    }


def _network(draw: Draw, setting: Setting, folds: Any) -> NDArray[np.float64]:
    """Mean probability of a row's own label by networks that were trained on the other
    nine folds.
    """
    coalitions = np.ones((FOLDS, len(draw.y)), dtype=np.bool_)
    for fold, (_, held) in enumerate(folds.split(np.zeros(len(draw.y)), draw.y)):
        coalitions[fold, held] = False
    game = protocol.network(
        draw.judged_by_validation(),
        draw.name,
        setting,
        loss="cross_entropy",
        metric="probability",
        metric_at="last",
        compiles=False,
    )
    trained = game.train(
        coalitions,
        db.chance.keys(setting.seed, db.chance.TRAINING, np.arange(FOLDS)),
        unseen=True,
    )
    return np.asarray(np.nanmean(game.own(trained.unseen), axis=0))


def knn_shapley(X: Any, y: Any, X_val: Any, y_val: Any, k: int) -> NDArray[np.float64]:
    r"""Exact Shapley values of a k-nearest-neighbour classifier (Jia et al. 2019), mean over the
    validation rows.

    With training rows by distance, s_n = 1[y_n = y] / max(n, k) * min(n, k) / k ... downwards s_i =
    s_{i+1} + (1[y_i = y] - 1[y_{i+1} = y]) / k * min(k, i) / i. U(S) is the share, out of k, of the
    nearest min(k, |S|) rows that have the right label.
    """
    n = len(y)
    total = np.zeros(n)
    number = np.arange(1, n)
    step = np.minimum(k, number) / number / k
    for row, label in zip(X_val, y_val, strict=True):
        order = np.argsort(((X - row) ** 2).sum(axis=1), kind="stable")
        right = (y[order] == label).astype(np.float64)
        values = np.empty(n)
        values[-1] = right[-1] * min(k, n) / (n * k)
        values[:-1] = values[-1] + np.cumsum(((right[:-1] - right[1:]) * step)[::-1])[::-1]
        total[order] += values
    return total / len(y_val)
