"""The durable store of evaluations."""

from databanzhaf.ledger.bench import seated
from databanzhaf.ledger.checking import Checked, check
from databanzhaf.ledger.coverage import Coverage, spelled
from databanzhaf.ledger.exporting import Exported, export
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.merging import Merged, merge
from databanzhaf.ledger.reading import read_evaluations
from databanzhaf.ledger.repairing import Repaired, repair

__all__ = [
    "Checked",
    "Coverage",
    "Exported",
    "Ledger",
    "Merged",
    "Repaired",
    "check",
    "export",
    "merge",
    "read_evaluations",
    "repair",
    "seated",
    "spelled",
]
