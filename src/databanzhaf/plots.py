"""Pictures of an estimate for notebooks, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput, check_count

if TYPE_CHECKING:
    from databanzhaf.types import Checkpoint, Estimate


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise BackendUnavailable.missing("plots need", "matplotlib", "report") from error
    return ax if ax is not None else plt.subplots(figsize=size, layout="constrained")[1]


def plot_values(estimate: Estimate, ax: Any = None) -> Any:
    """All values, lowest first, with a 95% band; those below zero beyond chance are crosses."""
    from databanzhaf.applications import mislabels

    ax = _axes(ax, (8, 4))
    order = estimate.ranking()
    place = np.arange(1, len(order) + 1)
    low, high = estimate.interval(0.95)
    if np.isfinite(low).all() and np.isfinite(high).all():
        ax.fill_between(place, low[order], high[order], alpha=0.3, linewidth=0, label="95% interval")
    known = not np.isnan(estimate.std_errors).any()
    suspect = np.isin(order, mislabels(estimate, fdr=0.05)) if known else np.zeros(len(order), dtype=np.bool_)
    ax.plot(place[~suspect], estimate.values[order][~suspect], ".", markersize=4, label="value")
    if suspect.any():
        ax.plot(place[suspect], estimate.values[order][suspect], "x", color="tab:red", markersize=5, label="below zero beyond chance")
    ax.axhline(0, color="gray", linewidth=0.8)
    ax.set(xlabel="players, lowest value first", ylabel=f"{estimate.notion} value")
    ax.legend()
    return ax


def plot_intervals(estimate: Estimate, count: int = 20, ax: Any = None) -> Any:
    """The `count` lowest values with their 95% intervals, by name."""
    check_count("count", count)
    order = estimate.ranking()[:count]
    ax = _axes(ax, (6, 0.8 + 0.26 * len(order)))
    low, high = estimate.interval(0.95)
    half = np.nan_to_num((high - low)[order] / 2, nan=0.0, posinf=0.0)
    names = range(len(estimate.values)) if estimate.players is None else estimate.players
    ax.errorbar(estimate.values[order], np.arange(len(order)), xerr=half, fmt="o", markersize=4, capsize=2)
    ax.set_yticks(np.arange(len(order)), [str(names[int(player)]).replace("$", r"\$") for player in order])
    ax.invert_yaxis()
    ax.axvline(0, color="gray", linewidth=0.8)
    ax.set(xlabel=f"{estimate.notion} value, 95% interval")
    return ax


def plot_convergence(checkpoints: list[Checkpoint], ax: Any = None) -> Any:
    """Rank stability and median standard error over a run."""
    if len(checkpoints) < 2:
        raise InvalidInput(f"a convergence needs two checkpoints or more; got {len(checkpoints)}. Raise the budget above 125 coalitions.")
    ax = _axes(ax, (8, 4))
    counts = [each.estimate.n_evaluations for each in checkpoints]
    ax.plot(counts, [each.stability for each in checkpoints], "o-", markersize=3, label="rank stability")
    ax.set(xlabel="evaluations", ylabel="rank stability", xscale="log")
    right = ax.twinx()
    errors = [np.median(each.estimate.std_errors) for each in checkpoints]
    right.plot(counts, errors, "s:", color="tab:red", markersize=3, label="median standard error")
    right.set(ylabel="median standard error", ylim=(0, None))
    lines = [*ax.get_lines(), *right.get_lines()]
    ax.legend(lines, [line.get_label() for line in lines], loc="lower right")
    return ax


def small_html(estimate: Estimate, rows: int = 5) -> str:
    """The lowest and highest values with their intervals, as a small table."""
    from html import escape

    from databanzhaf.applications import mislabels

    order = estimate.ranking().tolist()
    shown = order if len(order) <= 2 * rows else [*order[:rows], None, *order[-rows:]]
    names = range(len(order)) if estimate.players is None else estimate.players
    low, high = estimate.interval(0.95)
    digits = estimate.digits()
    known = not np.isnan(estimate.std_errors).any()
    suspects = set(mislabels(estimate, fdr=0.05).tolist()) if known else set()
    lines = []
    for player in shown:
        if player is None:
            lines.append('<tr><td colspan="4" style="text-align:center">…</td></tr>')
            continue
        interval = f"{low[player]:+.{digits}f} to {high[player]:+.{digits}f}" if known else "unknown"
        flag = "suspect" if player in suspects else ""
        cells = (str(names[player])[:80], f"{estimate.values[player]:+.{digits}f}", interval, flag)
        lines.append("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>")
    head = f"{estimate.notion} values of {len(order):,} players by {estimate.estimator}, {estimate.n_evaluations:,} evaluations"
    found = f"; {len(suspects):,} below zero beyond chance" if known else ""
    columns = "".join(f"<th>{name}</th>" for name in ("player", "value", "95% interval", "flag"))
    return f"<div><p>{escape(head + found)}</p><table><thead><tr>{columns}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
