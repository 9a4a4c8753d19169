"""Which labels are wrong: every row judged by models that have not seen it."""

from databanzhaf.labels.case import Case, prepare
from databanzhaf.labels.judging import bind, judge
from databanzhaf.labels.result import Mislabels

__all__ = ["Case", "Mislabels", "bind", "judge", "prepare"]
