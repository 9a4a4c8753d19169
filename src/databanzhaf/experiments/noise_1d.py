"""Appendix, one-dimensional regression: the law of the trained parameter and of the validation
loss, simulated and derived.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

PAPER_SIMULATIONS = 200_000
ROWS, VALIDATION = 12, 8
SIGMA, RATE = 1.0, 0.02
STEPS = (0, 1, 2, 5, 10, 20)


def run(setting: Setting) -> Outcome:
    rng = np.random.default_rng([setting.seed, 29])
    x, x_val = rng.normal(size=ROWS), rng.normal(size=VALIDATION)
    y, y_val = 1.5 * x + rng.normal(0, 0.5, ROWS), 1.5 * x_val + rng.normal(0, 0.5, VALIDATION)
    simulations = setting.count(PAPER_SIMULATIONS, least=20_000)
    start = rng.normal(0, SIGMA, simulations)
    rows, losses, laws = [], {}, {}
    for steps in STEPS:
        theta = descend(start, x, y, steps)
        loss = ((np.outer(theta, x_val) - y_val) ** 2).sum(axis=1)
        losses[steps] = loss
        laws[steps] = law(x, y, x_val, y_val, steps)
        mean, variance, loss_mean, loss_variance = derived(x, y, x_val, y_val, steps)
        independent = independent_variance(x_val, y_val, mean, variance)
        rows.append(
            {
                "steps": steps,
                "theta mean, simulated": theta.mean(),
                "theta mean, derived": mean,
                "theta variance, simulated": theta.var(ddof=1),
                "theta variance, derived": variance,
                "loss mean, simulated": loss.mean(),
                "loss mean, derived": loss_mean,
                "loss variance, simulated": loss.var(ddof=1),
                "loss variance, derived": loss_variance,
                "loss variance, if the rows were independent": independent,
            }
        )
    table = pd.DataFrame(rows)
    gap = max(
        float(np.abs(table["theta mean, simulated"] - table["theta mean, derived"]).max()), 0.0
    )
    ratio = table["theta variance, simulated"] / table["theta variance, derived"]
    loss_ratio = (
        table["loss variance, simulated"] / table["loss variance, if the rows were independent"]
    )
    mean_ratio = table["loss mean, simulated"] / table["loss mean, derived"]
    own_ratio = table["loss variance, simulated"] / table["loss variance, derived"]
    return Outcome(
        "One-dimensional regression: the noise, derived and simulated",
        "The parameter of y = theta x after T steps of gradient descent from a Gaussian start is "
        "Gaussian; the paper derives its mean and variance, and "
        "the law of the validation loss. Here both are simulated.",
        table,
        lambda figure: _draw(figure, losses, laws),
        f"{simulations:,} starts, {ROWS} training and {VALIDATION} validation rows",
        (
            text("noise_1d_differs"),
            "The paper calls the law of the loss intractable. With one theta it is that of a "
            "(theta - b/a)^2 plus a constant (see `derived` in the code for a and b): the thin "
            "lines.",
            "The paper's rows are not published; learning rate 0.02, sigma 1.",
        ),
        (
            Claim(
                "Regression: E[theta_T] = f/g (1 - (1 - eta g)^T)",
                "derived",
                f"largest deviation {gap:.2e} of {simulations:,} simulations",
                gap < 5 * SIGMA / np.sqrt(simulations),
            ),
            Claim(
                "Regression: Var(theta_T) = sigma^2 (1 - eta g)^(2T)",
                "derived",
                f"simulated / derived: {ratio.min():.3f} to {ratio.max():.3f}",
                bool((abs(ratio - 1) < 0.05).all()),
            ),
            Claim(
                "Regression: the validation loss is a sum of chi-squared variables, one for each "
                "row",
                "law given",
                f"as independent terms, simulated / derived: mean {mean_ratio.min():.3f} to "
                f"{mean_ratio.max():.3f}, variance {loss_ratio.min():.1f} to "
                f"{loss_ratio.max():.1f}",
                bool((abs(mean_ratio - 1) < 0.02).all() and (abs(loss_ratio - 1) < 0.1).all()),
            ),
            Claim(
                "Regression: is the validation loss one shifted non-central chi-squared variable, "
                "since all rows share one theta?",
                "not asked",
                f"simulated / derived: mean {mean_ratio.min():.3f} to {mean_ratio.max():.3f}, "
                f"variance {own_ratio.min():.3f} to {own_ratio.max():.3f}",
                bool((abs(mean_ratio - 1) < 0.02).all() and (abs(own_ratio - 1) < 0.1).all()),
                asked_by_paper=False,
            ),
        ),
        scaled=f"of {PAPER_SIMULATIONS:,} simulations, our number, was asked for; the line "
        "`samples` says what was taken",
    )


def descend(start: Any, x: Any, y: Any, steps: int) -> Any:
    theta = start.copy()
    for _ in range(steps):
        theta = theta - RATE * ((x @ x) * theta - x @ y)
    return theta


def derived(
    x: Any, y: Any, x_val: Any, y_val: Any, steps: int
) -> tuple[float, float, float, float]:
    """(mean and variance of theta, mean and variance of the validation loss).

    The loss is a theta^2 - 2 b theta + c with a = sum x^2, b = sum x y, c = sum y^2 over the
    validation rows; for a Gaussian theta of mean mu and variance v its mean is a (mu^2 + v) - 2 b
    mu + c and its variance 2 a^2 v^2 + 4 v (a mu - b)^2.
    """
    g, f = float(x @ x), float(x @ y)
    mean = f / g * (1 - (1 - RATE * g) ** steps)
    variance = SIGMA**2 * (1 - RATE * g) ** (2 * steps)
    a, b, c = float(x_val @ x_val), float(x_val @ y_val), float(y_val @ y_val)
    return (
        mean,
        variance,
        a * (mean**2 + variance) - 2 * b * mean + c,
        2 * a**2 * variance**2 + 4 * variance * (a * mean - b) ** 2,
    )


def independent_variance(x_val: Any, y_val: Any, mean: float, variance: float) -> float:
    """Variance of the sum if each row had a theta of its own: that of v x^2 chi'^2(1, lambda) is
    v^2 x^4 (2 + 4 lambda).
    """
    scale = variance * x_val**2
    return float((scale**2 * (2 + 4 * (x_val * mean - y_val) ** 2 / scale)).sum())


def law(x: Any, y: Any, x_val: Any, y_val: Any, steps: int) -> Any:
    """The law of the validation loss: a (theta - b/a)^2 + c - b^2/a, with a, b and c as in
    `derived`, is a shifted non-central chi-squared.
    """
    from scipy.stats import ncx2

    mean, variance, _, _ = derived(x, y, x_val, y_val, steps)
    a, b, c = float(x_val @ x_val), float(x_val @ y_val), float(y_val @ y_val)
    return ncx2(1, (mean - b / a) ** 2 / variance, loc=c - b**2 / a, scale=a * variance)


def _draw(figure: Any, losses: dict[int, Any], laws: dict[int, Any]) -> None:
    ax = figure.subplots()
    edges = np.geomspace(losses[10].min(), losses[0].max(), 120)
    for steps in (0, 2, 5, 10):
        counts, _ = np.histogram(losses[steps], edges)
        line = ax.stairs(counts / np.diff(edges) / len(losses[steps]), edges, label=f"T = {steps}")
        middle = np.sqrt(edges[1:] * edges[:-1])
        ax.plot(middle, laws[steps].pdf(middle), color=line.get_edgecolor(), linewidth=0.6)
    ax.plot([], [], color="black", linewidth=0.6, label="derived")
    ax.set_ylim(bottom=1e-6)
    ax.set(xscale="log", yscale="log", xlabel="validation loss", ylabel="density")
    ax.legend()
    ax.grid(alpha=0.3)
