"""Robust data valuation: which training rows help, which hurt, and how sure are you?"""

from databanzhaf import applications, chance, datasets, designs, estimators, evaluators, games, ranking, theory, until
from databanzhaf._version import __version__
from databanzhaf.data import Dataset
from databanzhaf.errors import (
    BackendUnavailable,
    DatabanzhafError,
    DesignMismatch,
    EvaluationFailed,
    InvalidInput,
    LedgerBusy,
    LedgerFailed,
    LedgerMismatch,
)
from databanzhaf.ledger import Ledger
from databanzhaf.notions import Banzhaf, Beta, LeastCore, LeaveOneOut, Semivalue, Shapley, WeightedBanzhaf
from databanzhaf.run import estimate, value
from databanzhaf.types import Estimate, Evaluations

__all__ = [
    "BackendUnavailable",
    "Banzhaf",
    "Beta",
    "DatabanzhafError",
    "Dataset",
    "DesignMismatch",
    "Estimate",
    "EvaluationFailed",
    "Evaluations",
    "InvalidInput",
    "LeastCore",
    "LeaveOneOut",
    "Ledger",
    "LedgerBusy",
    "LedgerFailed",
    "LedgerMismatch",
    "Semivalue",
    "Shapley",
    "WeightedBanzhaf",
    "__version__",
    "applications",
    "chance",
    "datasets",
    "designs",
    "estimate",
    "estimators",
    "evaluators",
    "games",
    "ranking",
    "theory",
    "until",
    "value",
]
