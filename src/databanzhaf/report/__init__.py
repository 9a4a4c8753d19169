"""Result → one HTML file that a person can read."""

from databanzhaf.report.build import write_report
from databanzhaf.report.review_build import write_review

__all__ = ["write_report", "write_review"]
