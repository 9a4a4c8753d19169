"""Which players hurt, by their values, and how well that finds wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from databanzhaf.applications.checks import check_estimate
from databanzhaf.errors import InvalidInput, check_between, short
from databanzhaf.estimate import Estimate
from databanzhaf.protocols import BoolArray, FloatArray, IntArray
from databanzhaf.ranking import among_lowest

FRACTION = 0.1


def flagged(
    estimate: Estimate,
    rule: str | None = None,
    *,
    fraction: float | None = None,
    threshold: float | None = None,
    fdr: float | None = None,
) -> IntArray:
    r"""The players with values so low that they are flagged, as player numbers, lowest value first.

    One rule decides; without any it is ``fraction=0.1``.

    Parameters
    ----------
    estimate : Estimate
    rule : "cluster", optional
        Two clusters of values, the lower one. They are the best of all,

        .. math:: \min_c \; \sum_{\phi_i \le c} (\phi_i - \bar\phi_{\le c})^2
            + \sum_{\phi_i > c} (\phi_i - \bar\phi_{> c})^2,

        with fewer players flagged where two splits are equally good, and none where all values
        are equal. There are always two clusters, also where nothing is wrong: look at the values.
    fraction : float
        The lowest `fraction` of the players: ``round(fraction * n)`` of them, at least one, equal
        values in the players' order. At 0.1 and n a multiple of 10 these are the paper's, the
        players below the 10th percentile (section "Noisy Label Detection").
    threshold : float
        All players with a value below it (by more than rounding, 1e-12).
    fdr : float
        False discovery rate: the players whose value is below 0 beyond chance, by Benjamini &
        Hochberg (1995),

        .. math:: p_{(k)} \le \frac{k}{n}\, \mathrm{fdr}, \qquad
            p_i = F_t(\hat\phi_i / \mathrm{se}_i; \nu_i),

        for the largest such k. On average at most that share of the flagged players has in truth a
        value of 0 or more, if errors of different players are independent or positively dependent.
        A standard error of 0 leaves no doubt (p is 0 below 0, else 1), an infinite one leaves
        nothing but doubt (p = 1); m coalitions never give less than 2^-m. With fewer than 200
        evaluations the level may be exceeded, since Student's law is trusted far in its tail. A
        wrong label that still helps is not found.

    >>> from databanzhaf import games, value
    >>> estimate = value(games.Function(4, lambda coalitions: coalitions @ [1.0, -3.0, 0.9, -1.0]))
    >>> flagged(estimate), flagged(estimate, threshold=0)
    (array([1]), array([1, 3]))
    >>> flagged(estimate, "cluster"), flagged(estimate, fdr=0.05)
    (array([1, 3]), array([1, 3]))
    """
    check_estimate(estimate)
    if rule is not None and not (isinstance(rule, str) and rule == "cluster"):
        raise InvalidInput(
            '`rule` must be "cluster"',
            got=short(rule),
            remedy="Give other rules by name: fraction=0.1, threshold=0 or fdr=0.05.",
        )
    asked = {"fraction": fraction, "threshold": threshold, "cluster": rule, "fdr": fdr}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(
            "one rule decides who is flagged",
            got=f"{' and '.join(given)}",
            remedy="Leave all but one out.",
        )
    order = estimate.ranking()
    if threshold is not None:
        limit = check_between("threshold", threshold, -np.inf, np.inf, "Try threshold=0.")
        return order[estimate.values[order] < limit - estimate.rounding()]
    if fdr is not None:
        level = check_between("fdr", fdr, 0, 1, "Try fdr=0.05.")
        _check_errors(estimate)
        return order[estimate.below_zero(level)[order]]
    if rule:
        return order[: _lower_cluster(estimate.values[order])]
    return order[: _count(fraction, len(order))]


def _count(fraction: float | None, n: int) -> int:
    """How many players a fraction is."""
    share = FRACTION if fraction is None else fraction
    return max(1, round(check_between("fraction", share, 0, 1, "Try fraction=0.1.") * n))


def _lower_cluster(values: FloatArray) -> int:
    r"""Size of the lower of the two best clusters of increasing values; 0 if all are equal.

    The best split leaves the least spread within, that is, the most between. With values centred at
    0 and S_k the sum of the k lowest, the spread between is n S_k^2 / (k (n - k)). Equal values are
    never split: between them the best place is an end.
    """
    n = len(values)
    sizes = np.flatnonzero(np.diff(values) > 0) + 1
    if not sizes.size:
        return 0
    centred = values - values.mean()
    centred /= np.abs(centred).max()
    between = np.cumsum(centred)[sizes - 1] ** 2 / (sizes * (n - sizes))
    # Equally good splits differ by rounding, about n * 1e-16 of the spread.
    return int(sizes[np.argmax(between >= between.max() * (1 - 1e-12))])


def _check_errors(estimate: Estimate) -> None:
    unknown = np.flatnonzero(np.isnan(estimate.p_values()))
    if unknown.size:
        raise InvalidInput(
            "`fdr` needs every player's standard error",
            got=f"{unknown.size} unknown (NaN), the first of player {unknown[0]}",
            remedy="Run value(game, repeats=2), or use another rule, such as fraction=0.1.",
        )


@dataclass(frozen=True)
class DetectionScores:
    """How well flagged players match the wrong ones; `auc` judges the whole ranking. NaN where a
    score is 0 / 0.
    """

    f1: float
    precision: float
    recall: float
    auc: float


def detection_scores(
    estimate: Estimate,
    truth: ArrayLike,
    *,
    flagged: ArrayLike | None = None,
    fraction: float | None = None,
) -> DetectionScores:
    r"""Precision, recall, F1 and AUC of finding the wrong labels by low values.

    .. math:: F_1 = \frac{2\,|\mathrm{flagged} \cap \mathrm{wrong}|}
        {|\mathrm{flagged}| + |\mathrm{wrong}|}, \qquad
        \mathrm{AUC} = P(\phi_{\mathrm{wrong}} < \phi_{\mathrm{right}}) + \tfrac12
        P(\phi_{\mathrm{wrong}} = \phi_{\mathrm{right}}).

    Parameters
    ----------
    estimate : Estimate
    truth : bool array (n,), or player numbers
        Who is in truth wrong.
    flagged : bool array (n,), or player numbers, optional
        By default the `fraction` with the lowest values; where equal values lie at its edge, who of
        them is in is left to chance, and the scores are expectations, so that they do not depend on
        the order of the rows.
    fraction : float, optional
        By default 0.1.

    >>> from databanzhaf import games, value
    >>> estimate = value(games.Function(4, lambda coalitions: coalitions @ [1.0, -3.0, 0.9, -1.0]))
    >>> detection_scores(estimate, [1, 2], fraction=0.5)
    DetectionScores(f1=0.5, precision=0.5, recall=0.5, auc=0.75)
    """
    from scipy.stats import rankdata

    n = len(check_estimate(estimate).values)
    wrong = _members("truth", truth, n)
    if flagged is not None and fraction is not None:
        raise InvalidInput(
            "`flagged` and `fraction` both say who is flagged",
            got="both",
            remedy="Leave one of them out.",
        )
    if flagged is None:
        found = among_lowest(estimate.values, _count(fraction, n))
    else:
        found = _members("flagged", flagged, n).astype(np.float64)
    hits, n_wrong, n_found = float(found[wrong].sum()), int(wrong.sum()), round(float(found.sum()))
    # Mann & Whitney: the ranks of the right ones count how many wrong ones each has below it.
    n_right = n - n_wrong
    below = float(rankdata(estimate.values)[~wrong].sum()) - n_right * (n_right + 1) / 2
    return DetectionScores(
        f1=_ratio(2 * hits, n_found + n_wrong),
        precision=_ratio(hits, n_found),
        recall=_ratio(hits, n_wrong),
        auc=_ratio(below, n_right * n_wrong),
    )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else float("nan")


def _members(name: str, players: ArrayLike, n: int) -> BoolArray:
    """Players given as bools or as numbers, bool (n,)."""
    given = np.asarray(players)
    if given.dtype == np.bool_ and given.shape == (n,):
        return given
    numbers = given.astype(np.int64) if given.size == 0 else given
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu"
    if (
        not whole
        or (numbers < 0).any()
        or (numbers >= n).any()
        or len(np.unique(numbers)) < len(numbers)
    ):
        raise InvalidInput(
            f"`{name}` must be bool of shape ({n},), or distinct player numbers from 0 to {n - 1}",
            got=f"{given.dtype} {given.shape}: {players!r:.60}",
            remedy=f"Turn 0 and 1 into bool with np.asarray({name}, dtype=bool).",
        )
    member = np.zeros(n, dtype=np.bool_)
    member[numbers] = True
    return member
