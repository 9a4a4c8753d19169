"""Pictures and small tables for notebooks, from plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput
from databanzhaf.protocols import BoolArray, FloatArray

if TYPE_CHECKING:
    from databanzhaf.diagnostics import Checkpoint


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise BackendUnavailable.missing("plots need", "matplotlib", "plots") from error
    return ax if ax is not None else plt.subplots(figsize=size, layout="constrained")[1]


def values(
    value: FloatArray, low: FloatArray, high: FloatArray, suspect: BoolArray, notion: str, ax: Any
) -> Any:
    """All values in increasing order, with a band; suspects are crosses."""
    ax = _axes(ax, (8, 4))
    place = np.arange(1, len(value) + 1)
    if np.isfinite(low).all() and np.isfinite(high).all():
        ax.fill_between(place, low, high, alpha=0.3, linewidth=0, label="95% interval")
    ax.plot(place[~suspect], value[~suspect], ".", markersize=4, label="value")
    if suspect.any():
        crosses = {"color": "tab:red", "markersize": 5, "label": "below zero beyond chance"}
        ax.plot(place[suspect], value[suspect], "x", **crosses)
    ax.axhline(0, color="gray", linewidth=0.8)
    ax.set(xlabel="players, lowest value first", ylabel=f"{notion} value")
    ax.legend()
    return ax


def intervals(
    names: Sequence[str], value: FloatArray, half: FloatArray, notion: str, ax: Any
) -> Any:
    """Values by name, each with half its interval to both sides."""
    ax = _axes(ax, (6, 0.8 + 0.26 * len(value)))
    place = np.arange(len(value))
    ax.errorbar(value, place, xerr=half, fmt="o", markersize=4, capsize=2)
    ax.set_yticks(place, [name.replace("$", r"\$") for name in names])
    ax.invert_yaxis()
    ax.axvline(0, color="gray", linewidth=0.8)
    ax.set(xlabel=f"{notion} value, 95% interval")
    return ax


def convergence(checkpoints: Sequence[Checkpoint], ax: Any) -> Any:
    """Rank stability and median standard error over a run."""
    if len(checkpoints) < 2:
        raise InvalidInput(
            "a convergence needs two checkpoints or more",
            got=str(len(checkpoints)),
            remedy="Raise the budget above 125 coalitions.",
        )
    ax = _axes(ax, (8, 4))
    counts = [each.estimate.n_evaluations for each in checkpoints]
    agreement = [each.stability for each in checkpoints]
    ax.plot(counts, agreement, "o-", markersize=3, label="rank stability")
    ax.set(xlabel="evaluations", ylabel="rank stability", xscale="log")
    right = ax.twinx()
    errors = [np.median(each.estimate.std_errors) for each in checkpoints]
    right.plot(counts, errors, "s:", color="tab:red", markersize=3, label="median standard error")
    right.set(ylabel="median standard error", ylim=(0, None))
    lines = [*ax.get_lines(), *right.get_lines()]
    ax.legend(lines, [line.get_label() for line in lines], loc="lower right")
    return ax


def small_table(title: str, rows: Sequence[Sequence[str] | None]) -> str:
    """Players with value, interval and flag as HTML; None stands for those left out between."""
    from html import escape

    def line(cells: Sequence[str] | None) -> str:
        if cells is None:
            return '<tr><td colspan="4" style="text-align:center">…</td></tr>'
        return "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>"

    columns = "".join(f"<th>{name}</th>" for name in ("player", "value", "95% interval", "flag"))
    head, body = f"<thead><tr>{columns}</tr></thead>", "".join(map(line, rows))
    return f"<div><p>{escape(title)}</p><table>{head}<tbody>{body}</tbody></table></div>"
