"""Games: coalitions → utility."""

from databanzhaf.games.boosting import Boosting
from databanzhaf.games.forest import Forest
from databanzhaf.games.function import Function
from databanzhaf.games.judging import Judged
from databanzhaf.games.learner import Learner
from databanzhaf.games.module import Module
from databanzhaf.games.neighbors import Neighbors
from databanzhaf.games.network import Network
from databanzhaf.games.table import Table

__all__ = [
    "Boosting",
    "Forest",
    "Function",
    "Judged",
    "Learner",
    "Module",
    "Neighbors",
    "Network",
    "Table",
]
