"""Estimators: evaluations → Estimate. Each says what it reads and gives, and refuses the rest."""

from databanzhaf.estimators.closed_form import ClosedForm
from databanzhaf.estimators.exact import Exact
from databanzhaf.estimators.group_testing import GroupTesting
from databanzhaf.estimators.least_core import LeastCore
from databanzhaf.estimators.leave_one_out import LeaveOneOut
from databanzhaf.estimators.marginal import Marginal
from databanzhaf.estimators.permutation import Permutation
from databanzhaf.estimators.regression import Regression
from databanzhaf.estimators.reuse import Reuse
from databanzhaf.estimators.size_regression import SizeRegression

__all__ = [
    "ClosedForm",
    "Exact",
    "GroupTesting",
    "LeastCore",
    "LeaveOneOut",
    "Marginal",
    "Permutation",
    "Regression",
    "Reuse",
    "SizeRegression",
]
