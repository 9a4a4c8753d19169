"""Games of rows that judge each other, whose values are known."""

import itertools

import numpy as np

from databanzhaf.games import Judged
from databanzhaf.metrics import pack_classes

STEPS = 32_766


class Toy(Judged):
    """Row j gives a model of the coalition S the score `table[j](S)`; scores are probabilities in
    whole steps, so that nothing is rounded when they are kept.
    """

    stochastic, call_size, players = False, None, None
    classifies, classes, metric = True, np.array([0, 1]), "probability"

    def __init__(self, dataset, score, name="toy", metric="probability"):
        self.dataset, self._score, self.name, self.metric = dataset, score, name, metric

    @property
    def n_players(self):
        return self.dataset.n_players

    def fingerprint(self):
        return {"game": self.name, **self._judged(), "metric": self.metric}

    def said(self, coalitions):
        """(m, judges), in whole steps."""
        return np.rint(self._score(np.asarray(coalitions, bool)) * STEPS) / STEPS

    def outcomes(self, coalitions, keys):
        judging = self.dataset.judging(coalitions)
        said = self.said(self.dataset.members(coalitions))
        return [
            pack_classes(own, own > 0.5, judges) for own, judges in zip(said, judging, strict=True)
        ]

    def verdicts(self, outcomes):
        return self._row_metric.scores(outcomes)

    def score(self, outcome):
        return self._mean_verdict(outcome)

    def utility(self, coalitions, keys):
        return np.array([self.score(each) for each in self.outcomes(coalitions, keys)])


def true_values(said, n, weights, p=0.5):
    """The estimand by brute force: player i's (weighted) Banzhaf value in the game without row j
    that row j judges, averaged over the rows j other than i.
    """
    coalitions = np.array(list(itertools.product([False, True], repeat=n)))
    chance = np.prod(np.where(coalitions, p, 1 - p), axis=1)
    scores = said(coalitions)
    values = np.zeros(n)
    for i, j in itertools.permutations(range(n), 2):
        without = ~coalitions[:, j]
        means = [
            np.average(scores[rows, j], weights=chance[rows])
            for rows in (without & coalitions[:, i], without & ~coalitions[:, i])
        ]
        values[i] += weights[j] * (means[0] - means[1])
    return values
