"""Box plots (a)-(c): leave-one-out, Shapley and Banzhaf values of 20 CIFAR10 images over five
trainings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from databanzhaf.experiments import image_runs, protocol
from databanzhaf.experiments.image_runs import NOTIONS, Images
from databanzhaf.experiments.notions import LABELS
from databanzhaf.experiments.outcome import Claim, Outcome
from databanzhaf.experiments.setting import Setting
from databanzhaf.experiments.texts import text

PAPER = {"loo": 0.001, "shapley": 0.038, "banzhaf": 0.856}
SHOWN, WRONG = 20, 5


def run(setting: Setting) -> Outcome:
    images = image_runs.value_images(setting)
    rng = np.random.default_rng([setting.seed, 41])
    wrong, right = np.flatnonzero(images.draw.flipped), np.flatnonzero(~images.draw.flipped)
    shown = np.concatenate(
        [rng.choice(wrong, WRONG, replace=False), rng.choice(right, SHOWN - WRONG, replace=False)]
    )
    table = pd.DataFrame(
        [
            {
                "notion": name,
                "image": image,
                "mislabeled": wrong_label,
                "in_the_figure": image in shown,
                **{
                    f"run_{run + 1}": value
                    for run, value in enumerate(images.values[name][:, image])
                },
            }
            for name in NOTIONS
            for image, wrong_label in enumerate(images.draw.flipped)
        ]
    )
    found = {name: images.agreement(name) for name in NOTIONS}
    projected = (
        ("",) if setting.small or images.as_many_as_the_paper("banzhaf") else _projection(images)
    )
    far = found["banzhaf"] > max(found["loo"], found["shapley"]) + 0.2
    claims = [
        Claim(
            f"Average Spearman between runs, {LABELS[name]}",
            f"{PAPER[name]:.3f}",
            f"{found[name]:.3f}" + (projected[0] if name == "banzhaf" else ""),
            None if setting.small else _as_in_the_paper(name, found[name], images),
        )
        for name in NOTIONS
    ]
    claims.append(
        Claim(
            "Banzhaf's ranking is far more stable than the other two (by 0.2)",
            "0.856 against 0.038 and 0.001",
            " / ".join(f"{LABELS[n]} {found[n]:.3f}" for n in NOTIONS),
            # More coalitions would raise every index: where another is near 1, no lead is left.
            True
            if far and not setting.small
            else False
            if images.as_many_as_the_paper() or max(found["loo"], found["shapley"]) > 0.8
            else None,
        )
    )
    claims.append(
        Claim(
            "Do Banzhaf rankings agree (0.5) between runs that share no coalition?",
            "not asked",
            f"{images.agreement_apart():.3f}, from half of the coalitions for each run",
            images.agreement_apart() > 0.5 if images.as_many_as_the_paper("banzhaf") else None,
            asked_by_paper=False,
        )
    )
    ways = image_runs.other_ways(setting)
    if len(ways) > 1:
        claims.append(_could_explain(ways, setting))
    return Outcome(
        "Values of CIFAR10 images over five trainings",
        text("instability_what", shown=SHOWN, y=f"{len(images.draw.y):,}", wrong=WRONG),
        table,
        lambda figure: _draw(figure, images, shown, found),
        "; ".join(
            f"{LABELS[name]} {images.coalitions[name]:,} evaluations for each of "
            f"{image_runs.SEEDS} runs"
            for name in NOTIONS
        ),
        image_runs.differs(setting),
        tuple(claims),
        pd.DataFrame(
            [
                {
                    "notion": LABELS[name],
                    "Spearman between runs, paper": PAPER[name],
                    "ours": found[name],
                }
                for name in NOTIONS
            ]
        ),
        notes=(
            text(
                "instability_shared_coalitions", agreement_apart=f"{images.agreement_apart():.3f}"
            ),
            *projected[1:],
            *_twenty(images),
        ),
        size=(12.0, 4.2),
        hardware=images.hardware,
        data=(protocol.origin("cifar10_images"),),
    )


def _as_in_the_paper(name: str, found: float, images: Images) -> bool | None:
    """Fewer samples than the paper's give a lower index: they can neither refute a high one nor
    confirm a low one.
    """
    enough = images.as_many_as_the_paper(name)
    if name == "banzhaf":
        return True if found > PAPER[name] - 0.1 else False if enough else None
    return False if found > PAPER[name] + 0.1 else True if enough else None


def _could_explain(ways: dict[str, Images], setting: Setting) -> Claim:
    """Whether what the paper leaves open could bring Banzhaf's index near the paper's: other ways
    with fewer coalitions, projected to the paper's number.
    """
    later = {name: way.projected(image_runs.SAMPLES) for name, way in ways.items()}
    near = max(high for _, _, high in later.values()) > PAPER["banzhaf"] - 0.1
    return Claim(
        "Could another number of epochs, or of held-out images, explain Banzhaf's index?",
        "not asked",
        "; ".join(
            f"{name}: {way.agreement('banzhaf'):.3f}, projected {later[name][0]:.2f} "
            f"({later[name][1]:.2f} to {later[name][2]:.2f})"
            for name, way in ways.items()
        )
        + f"; each from {ways['as here'].coalitions['banzhaf']:,} coalitions, trained "
        f"{len(ways['as here'].values['banzhaf'])} times",
        None if setting.small else near,
        asked_by_paper=False,
    )


def _twenty(images: Images) -> tuple[str, ...]:
    """Banzhaf's index over as few images as the figure shows, of which a quarter are mislabeled."""
    rng = np.random.default_rng(0)
    wrong, right = np.flatnonzero(images.draw.flipped), np.flatnonzero(~images.draw.flipped)
    found = []
    for _ in range(200):
        few = [
            rng.choice(wrong, WRONG, replace=False),
            rng.choice(right, SHOWN - WRONG, replace=False),
        ]
        found.append(images.of(np.concatenate(few)).agreement("banzhaf"))
    low, high = np.quantile(found, (0.025, 0.975))
    return (
        text(
            "instability_twenty",
            shown=SHOWN,
            wrong=WRONG,
            mean=f"{np.mean(found):.3f}",
            low=f"{low:.2f}",
            high=f"{high:.2f}",
        ),
    )


def _projection(images: Images) -> tuple[str, ...]:
    """What the paper's number of coalitions would give: in short, for the claim, and in a note;
    empty where nothing varies.
    """
    expected, low, high = images.projected(image_runs.SAMPLES)
    if not np.isfinite([expected, low, high]).all():
        return ("",)
    return (
        f"; {expected:.2f} projected to the paper's coalitions (Pearson's; 95% interval {low:.2f} "
        f"to {high:.2f})",
        text(
            "instability_projection",
            samples=f"{image_runs.SAMPLES:,}",
            expected=f"{expected:.2f}",
            low=f"{low:.2f}",
            high=f"{high:.2f}",
        ),
    )


def _draw(figure: Any, images: Images, shown: Any, found: dict[str, float]) -> None:
    for ax, name in zip(figure.subplots(1, 3), NOTIONS, strict=True):
        order = shown[np.argsort(images.values[name][:, shown].mean(axis=0))]
        boxes = ax.boxplot(
            [images.values[name][:, image] for image in order], patch_artist=True, widths=0.6
        )
        for image, box in zip(order, boxes["boxes"], strict=True):
            box.set_facecolor("tab:red" if images.draw.flipped[image] else "tab:green")
        ax.set_title(f"{LABELS[name]}: SP = {found[name]:.3f}")
        ax.set_xticks([])
        ax.set(xlabel="images (red: mislabeled)", ylabel="value")
