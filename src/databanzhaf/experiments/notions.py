"""The paper's seven notions, under the names of its tables."""

from __future__ import annotations

from typing import Final

import databanzhaf as db

NOTIONS: Final = {
    "banzhaf": db.Banzhaf(),
    "loo": db.LeaveOneOut(),
    "beta_16_1": db.Beta(16, 1),
    "beta_4_1": db.Beta(4, 1),
    "shapley": db.Shapley(),
    "beta_1_4": db.Beta(1, 4),
    "beta_1_16": db.Beta(1, 16),
}
LABELS: Final = {
    "banzhaf": "Banzhaf",
    "loo": "LOO",
    "beta_16_1": "Beta(16, 1)",
    "beta_4_1": "Beta(4, 1)",
    "shapley": "Shapley",
    "beta_1_4": "Beta(1, 4)",
    "beta_1_16": "Beta(1, 16)",
    "least_core": "least core",
    "uniform": "uniform",
}
COLOURS: Final = {
    "banzhaf": "tab:red",
    "loo": "tab:gray",
    "beta_16_1": "tab:green",
    "beta_4_1": "tab:olive",
    "shapley": "tab:blue",
    "beta_1_4": "tab:cyan",
    "beta_1_16": "tab:purple",
    "least_core": "tab:orange",
}
