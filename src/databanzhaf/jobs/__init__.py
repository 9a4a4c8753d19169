"""The main job: from a table in a file to values in a file."""

from databanzhaf.jobs.outputs import flagged, values_table, write_text
from databanzhaf.jobs.preparing import Job, prepare
from databanzhaf.jobs.reporting import write_report
from databanzhaf.jobs.running import bytes_of_a_prediction, keeps_predictions, reread, run
from databanzhaf.jobs.settings import Settings

__all__ = [
    "Job",
    "Settings",
    "bytes_of_a_prediction",
    "flagged",
    "keeps_predictions",
    "prepare",
    "reread",
    "run",
    "values_table",
    "write_report",
    "write_text",
]
