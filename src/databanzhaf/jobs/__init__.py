"""The main job: from a table in a file to values in a file."""

from databanzhaf.jobs.outputs import as_csv, check_not_ours, flagged, values_table, write_text
from databanzhaf.jobs.preparing import Job, prepare
from databanzhaf.jobs.reporting import look, warnings_of, write_report
from databanzhaf.jobs.running import open_ledger, reread, run, write_curve
from databanzhaf.jobs.settings import Settings

__all__ = [
    "Job",
    "Settings",
    "as_csv",
    "check_not_ours",
    "flagged",
    "look",
    "open_ledger",
    "prepare",
    "reread",
    "run",
    "values_table",
    "warnings_of",
    "write_curve",
    "write_report",
    "write_text",
]
