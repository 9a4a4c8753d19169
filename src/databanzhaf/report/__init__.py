"""Result → one HTML file that a person can read."""

from databanzhaf.report.build import write_report

__all__ = ["write_report"]
