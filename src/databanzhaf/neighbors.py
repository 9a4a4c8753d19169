"""Nearest neighbours that also work with fewer rows than neighbours, as small coalitions have."""

from __future__ import annotations

from typing import Any, Self

from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor


class FewNeighborsClassifier(KNeighborsClassifier):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Self:
        self.n_neighbors = min(self.n_neighbors, len(y))  # type: ignore[has-type]
        super().fit(X, y)
        return self


class FewNeighborsRegressor(KNeighborsRegressor):  # type: ignore[misc]
    def fit(self, X: Any, y: Any) -> Self:
        self.n_neighbors = min(self.n_neighbors, len(y))  # type: ignore[has-type]
        super().fit(X, y)
        return self
