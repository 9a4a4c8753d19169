"""Rank stability under the noise of gradient descent with randomized smoothing."""

from __future__ import annotations

from databanzhaf.experiments import stability_runs
from databanzhaf.experiments.outcome import Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

# The learning rates of the two networks.
RATES = {"cpu": 1e-2, "cifar10": 1e-3}


def run(setting: Setting) -> Outcome:
    return stability_runs.outcome(
        setting,
        "rank_stability_smoothing",
        "Rank stability under randomized smoothing",
        "As rank stability, but the gradient is taken of all rows at a point moved by Gaussian "
        "noise, one draw (l = 1), of radius alpha = the learning rate.",
        (text("rank_stability_smoothing_differs"),),
        lambda name: {"batch_size": None, "smoothing": (1, RATES[name])},
    )
