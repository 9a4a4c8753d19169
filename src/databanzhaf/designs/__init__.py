"""Designs: index → coalition."""

from databanzhaf.designs.anchored import Anchored
from databanzhaf.designs.coin import Coin
from databanzhaf.designs.complementary import Complementary
from databanzhaf.designs.exhaustive import Exhaustive
from databanzhaf.designs.folds import Folds
from databanzhaf.designs.group_testing import GroupTesting
from databanzhaf.designs.leave_one_out import LeaveOneOut
from databanzhaf.designs.paired import Paired
from databanzhaf.designs.permutation import Permutation
from databanzhaf.designs.sized import Sized
from databanzhaf.designs.storing import describe, restore

__all__ = [
    "Anchored",
    "Coin",
    "Complementary",
    "Exhaustive",
    "Folds",
    "GroupTesting",
    "LeaveOneOut",
    "Paired",
    "Permutation",
    "Sized",
    "describe",
    "restore",
]
