"""What cleanlab makes of the probabilities of a cross-validated forest: for each pair of labels and
probabilities in a file, the values of its rows (low is suspect). Runs in an environment of its own,
which `make .venv-compared/.ready` makes.

    python baseline_mislabels.py GIVEN.npz VALUES.npz
"""

import sys
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from cleanlab.filter import find_label_issues  # noqa: E402
from cleanlab.rank import get_label_quality_scores  # noqa: E402


def filtered(labels, probabilities):
    """The rows that its filter finds, then the others, each part by label quality."""
    issues = find_label_issues(labels, probabilities, n_jobs=1)
    return get_label_quality_scores(labels, probabilities) - issues


def adjusted(labels, probabilities):
    return get_label_quality_scores(labels, probabilities, adjust_pred_probs=True)


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    values = {}
    for place in range(len(given.files) // 2):
        labels, probabilities = given[f"labels {place}"], given[f"probabilities {place}"]
        for method in (filtered, adjusted):
            values[f"{method.__name__} {place}"] = method(labels, probabilities)
    np.savez(sys.argv[2], **values)
