"""Estimate → one HTML file that a person can read."""

from databanzhaf.report.content import Content, Series, Table, describe
from databanzhaf.report.page import render

__all__ = ["Content", "Series", "Table", "describe", "render"]
