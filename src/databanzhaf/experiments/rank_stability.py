"""Rank stability under the noise of SGD: Spearman to the reference over k repeats."""

from __future__ import annotations

from databanzhaf.experiments import stability_runs
from databanzhaf.experiments.outcome import Outcome
from databanzhaf.experiments.setting import Setting


def run(setting: Setting) -> Outcome:
    return stability_runs.outcome(
        setting,
        "rank_stability",
        "Rank stability under the noise of training",
        "Each coalition is trained k times and the scores are averaged; Spearman between the "
        "values from that and the reference's. The larger k, the less noise.",
        (),
        lambda name: {},
    )
