"""Rank stability under the noise of gradient descent with randomized smoothing."""

from __future__ import annotations

from databanzhaf.experiments import stability_runs
from databanzhaf.experiments.outcome import Outcome
from databanzhaf.experiments.setting import Setting

# The learning rates of the two networks.
RATES = {"cpu": 1e-2, "cifar10": 1e-3}


def run(setting: Setting) -> Outcome:
    return stability_runs.outcome(
        setting,
        "rank_stability_smoothing",
        "Rank stability under randomized smoothing",
        "As rank stability, but the gradient is taken of all rows at a point moved by Gaussian noise, one draw (l = 1), of radius alpha = the learning rate.",
        (
            "The paper sums the loss over the rows and gives neither the steps nor a learning rate for that; here the smoothed gradient of all rows is fed to Adam, with the learning rate and the "
            "epochs of the other experiments. Random initial weights are noise too.",
        ),
        lambda name: {"batch_size": None, "smoothing": (1, RATES[name])},
    )
