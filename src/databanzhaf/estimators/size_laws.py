r"""By which law to draw the sizes of coalitions, so that one run serves several semivalues.

With sizes drawn by q, and uniform coalitions of each size, a semivalue whose size law is
:math:`\pi` is the mean of U(S) times

.. math:: z_i = \begin{cases} a_s = \frac{n}{s} \frac{\pi_{s-1}}{q_s} & i \in S, \\
    -b_s = -\frac{n}{n - s} \frac{\pi_s}{q_s} & i \notin S, \end{cases} \qquad s = |S|.

If what is left of U after a fit varies as much at every size, the variance of that mean, summed
over the players, is proportional to

.. math:: \sum_s \frac{v_s}{q_s}, \qquad v_s = \frac{\pi_{s-1}^2}{s} + \frac{\pi_s^2}{n - s},

and smallest, :math:`(\sum_s \sqrt{v_s})^2`, for :math:`q_s \propto \sqrt{v_s}`: a law of its own
for each semivalue. But models that have seen little vary more, by an amount that is unknown
beforehand. So every semivalue counts twice: as if the variance were the same at every size, and as
if it fell by :math:`1 / (s + 1)`. The law is the one whose largest ratio to the smallest variances
of all these is as small as it can be: at most 1.2 for one semivalue, 2.2 for two, since half of the
coalitions can be drawn for each, and 3.5 for Banzhaf, Shapley, Beta(4, 1), Beta(1, 4), Beta(16, 1)
and Beta(1, 16) together, for 20 to 2,000 players.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from databanzhaf.errors import DesignMismatch
from databanzhaf.notions import Shapley, SizeWeighted
from databanzhaf.protocols import FloatArray

# Every size has at least this share of what the Shapley value's own law gives it, so that every
# semivalue can be read; it costs the others 2.5% of precision at most.
FLOOR = 0.05
# No player and all of them are one coalition each, which a value is compared with as a whole: drawn
# too rarely, the curve of a fit does not know them. Each has up to this share.
ENDS = 0.01
# A law is stored as whole numbers with about this sum.
UNITS = 2**30
_STEPS = 500
# Sizes that leave a notion less than this share of the coalitions do not identify it.
LEAST_EFFICIENT = 1e-3


def burden(notion: SizeWeighted, n: int, *, falling: bool = False) -> FloatArray:
    r"""v_s for s = 0..n, with a variance that is the same at every size or falls, scaled so that
    :math:`\sum_s \sqrt{v_s} = 1`.
    """
    law = notion.weights(n)
    size = np.arange(1, n + 1)
    v = np.zeros(n + 1)
    v[1:] += law**2 / size
    v[:-1] += law**2 / size[::-1]
    if falling:
        v /= np.arange(1, n + 2)
    return np.asarray(v / np.sqrt(v).sum() ** 2)


def efficiency(notion: SizeWeighted, law: FloatArray) -> float:
    """The share of coalitions that would be needed if sizes were drawn for this notion alone: 1 if
    they were, 0 if a size that it needs is never drawn.
    """
    v = burden(notion, len(law) - 1)
    if (law[v > 0] == 0).any():
        return 0.0
    ratio = np.divide(v, law, out=np.zeros_like(v), where=v > 0)
    return float(1 / ratio.sum())


def identified(notion: SizeWeighted, law: FloatArray) -> float:
    """`efficiency`, if the notion can be estimated at all."""
    share = efficiency(notion, law)
    if share < LEAST_EFFICIENT:
        raise DesignMismatch(
            f"the sizes of this run's coalitions must include those that {notion.name} values need",
            got=f"{share:.2g} of the coalitions that a run of their own would have",
            remedy="Make a new run for this notion, with a ledger of its own, or name it together "
            "with the others.",
        )
    return share


def shares(notions: Sequence[SizeWeighted], n: int) -> tuple[int, ...]:
    """The law for these notions, as `designs.Sized` takes it."""
    ordered = sorted(notions, key=lambda notion: notion.name)  # whoever is named first
    burdens = np.stack(
        [burden(notion, n, falling=falling) for notion in ordered for falling in (False, True)]
    )
    importance = np.full(len(burdens), 1 / len(burdens))
    for _ in range(_STEPS):
        law = np.sqrt(importance @ burdens)
        law /= law.sum()
        cost = np.divide(burdens, law, out=np.zeros_like(burdens), where=burdens > 0).sum(axis=1)
        importance *= np.sqrt(cost)
        importance /= importance.sum()
    law = np.maximum(law, FLOOR * np.sqrt(burden(Shapley(), n)))
    for end, own in ((0, 0), (n, n - 1)):
        most = max(float(notion.weights(n)[own]) for notion in ordered)
        law[end] = max(law[end], min(2 * most, ENDS))
    # Rounded to a grid much coarser than the error of logarithms, which may differ by platform.
    whole = np.maximum(np.round(law / law.sum() * UNITS), 1)
    return tuple(whole.astype(np.int64).tolist())
