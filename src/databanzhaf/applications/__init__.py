"""Applications: estimate → decision."""

from databanzhaf.applications.curves import Curve, addition_curve, removal_curve
from databanzhaf.applications.detection import DetectionScores, detection_scores, flagged
from databanzhaf.applications.weighting import weights

__all__ = [
    "Curve",
    "DetectionScores",
    "addition_curve",
    "detection_scores",
    "flagged",
    "removal_curve",
    "weights",
]
