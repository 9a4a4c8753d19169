"""Datasets: the paper's thirteen, and a small table of our own."""

from databanzhaf.datasets.catalogue import load, names
from databanzhaf.datasets.source import Source
from databanzhaf.datasets.suppliers import flipped_suppliers, path

__all__ = ["Source", "flipped_suppliers", "load", "names", "path"]
