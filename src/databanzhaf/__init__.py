"""Robust data valuation: which training rows help, which hurt, and how sure are you?"""

from typing import TYPE_CHECKING, Any

from databanzhaf import (
    applications,
    chance,
    datasets,
    designs,
    estimators,
    evaluators,
    games,
    ledger,
    ranking,
    theory,
    until,
)
from databanzhaf._version import __version__
from databanzhaf.attribution import Attribution, attribute
from databanzhaf.data import Dataset
from databanzhaf.errors import (
    BackendUnavailable,
    DatabanzhafError,
    DatabanzhafWarning,
    DesignMismatch,
    EvaluationFailed,
    InvalidInput,
    LedgerBusy,
    LedgerFailed,
    LedgerMismatch,
)
from databanzhaf.estimate import Estimate
from databanzhaf.evaluations import Evaluations
from databanzhaf.ledger import Ledger
from databanzhaf.notions import (
    Banzhaf,
    Beta,
    LeastCore,
    LeaveOneOut,
    Semivalue,
    Shapley,
    WeightedBanzhaf,
)
from databanzhaf.run import estimate, value

if TYPE_CHECKING:
    from databanzhaf.finder import mislabels
    from databanzhaf.labels import Mislabels
    from databanzhaf.valuator import DataBanzhaf

__all__ = [
    "Attribution",
    "BackendUnavailable",
    "Banzhaf",
    "Beta",
    "DataBanzhaf",
    "DatabanzhafError",
    "DatabanzhafWarning",
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
    "Mislabels",
    "Semivalue",
    "Shapley",
    "WeightedBanzhaf",
    "__version__",
    "applications",
    "attribute",
    "chance",
    "datasets",
    "designs",
    "estimate",
    "estimators",
    "evaluators",
    "games",
    "ledger",
    "mislabels",
    "ranking",
    "theory",
    "until",
    "value",
]


def __getattr__(name: str) -> Any:
    """What needs scikit-learn, which takes longer to import than all the rest, comes when it is
    asked for.
    """
    if name == "DataBanzhaf":
        from databanzhaf.valuator import DataBanzhaf

        return DataBanzhaf
    if name == "mislabels":
        from databanzhaf.finder import mislabels

        return mislabels
    if name == "Mislabels":
        from databanzhaf.labels import Mislabels

        return Mislabels
    raise AttributeError(f"module 'databanzhaf' has no attribute {name!r}")
