"""The durable store of evaluations."""

from databanzhaf.ledger.bench import seated
from databanzhaf.ledger.ledger import Ledger
from databanzhaf.ledger.reading import read_evaluations

__all__ = ["Ledger", "read_evaluations", "seated"]
