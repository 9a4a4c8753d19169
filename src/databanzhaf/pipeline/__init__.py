"""The main job: settings → prepare → run → one Result."""

from databanzhaf.pipeline.explaining import Explainer, Explanation, explainer
from databanzhaf.pipeline.labelling import (
    LabelJob,
    LabelResult,
    LabelSettings,
    default_folder,
    prepare_labels,
    run_labels,
)
from databanzhaf.pipeline.outputs import check_not_input, table_name, write_table
from databanzhaf.pipeline.plan import forecast, make_plan
from databanzhaf.pipeline.preparing import Job, prepare
from databanzhaf.pipeline.record import Record
from databanzhaf.pipeline.rereading import reread
from databanzhaf.pipeline.result import Result
from databanzhaf.pipeline.running import add_curve, run, run_shard, worst_clusters
from databanzhaf.pipeline.settings import Flag, Settings

__all__ = [
    "Explainer",
    "Explanation",
    "Flag",
    "Job",
    "LabelJob",
    "LabelResult",
    "LabelSettings",
    "Record",
    "Result",
    "Settings",
    "add_curve",
    "check_not_input",
    "default_folder",
    "explainer",
    "forecast",
    "make_plan",
    "prepare",
    "prepare_labels",
    "reread",
    "run",
    "run_labels",
    "run_shard",
    "table_name",
    "worst_clusters",
    "write_table",
]
