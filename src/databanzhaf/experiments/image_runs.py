"""Values of CIFAR10 images over five trainings, shared by the box plots and the top-k figure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

import databanzhaf as db
from databanzhaf.experiments import ledgers, pieces, protocol
from databanzhaf.experiments.protocol import Draw
from databanzhaf.experiments.setting import Setting

SAMPLES, SEEDS, EPOCHS = 50_000, 5, 10
NOTIONS = ("loo", "shapley", "banzhaf")
# What the paper leaves open, done in other ways, with fewer coalitions and trainings.
OTHER_WAYS: dict[str, dict[str, int]] = {
    "3 epochs": {"epochs": 3},
    "30 epochs": {"epochs": 30},
    "60 epochs": {"epochs": 60},
    "500 held-out images": {"held_out": 500},
}
OTHER_SAMPLES, OTHER_SEEDS = 5_000, 3


@dataclass(frozen=True, eq=False)
class Images:
    """Values of each notion, one vector for each of five trainings: (5, n)."""

    draw: Draw
    values: dict[str, NDArray[np.float64]]
    coalitions: dict[str, int]
    # Banzhaf values from the first half of the coalitions, and from the second.
    halves: tuple[NDArray[np.float64], NDArray[np.float64]]
    hardware: str

    def of(self, images: NDArray[np.int64]) -> Images:
        """The same, of some images."""
        return replace(
            self,
            values={name: found[:, images] for name, found in self.values.items()},
            halves=(self.halves[0][:, images], self.halves[1][:, images]),
        )

    def agreement(self, notion: str) -> float:
        """Average Spearman between the runs, which share their coalitions."""
        return _mean_spearman(combinations(self.values[notion], 2))

    def as_many_as_the_paper(self, *names: str) -> bool:
        """Whether these notions, or all, have the paper's number of coalitions. Fewer leave more of
        the training noise in the values: they can neither refute stability nor confirm instability.
        """
        found = min(self.coalitions[name] for name in names or NOTIONS)
        return found >= SAMPLES - len(self.draw.y)  # permutations and leave-one-out are whole

    def projected(self, count: int) -> tuple[float, float, float]:
        """The correlation between runs that `count` coalitions would give for Banzhaf, and a 95%
        interval (bootstrap over the images).
        """
        whole = self.values["banzhaf"]
        images = np.arange(whole.shape[1])
        rng = np.random.default_rng(0)
        again = [
            project(
                whole,
                self.halves,
                self.coalitions["banzhaf"],
                count,
                rng.choice(images, len(images)),
            )
            for _ in range(200)
        ]
        low, high = np.quantile(again, (0.025, 0.975))
        return (
            project(whole, self.halves, self.coalitions["banzhaf"], count, images),
            float(low),
            float(high),
        )

    def agreement_apart(self) -> float:
        """Average Spearman between Banzhaf values of runs that share no coalition, from half of the
        coalitions each.
        """
        first, second = self.halves
        return _mean_spearman((first[a], second[b]) for a, b in permutations(range(len(first)), 2))


def project(
    whole: NDArray[np.float64],
    halves: tuple[NDArray[np.float64], NDArray[np.float64]],
    now: int,
    later: int,
    images: NDArray[np.int64],
) -> float:
    """The correlation between runs at `later` coalitions, from runs (a line each) of `now`: an
    image's estimate is its value, plus what was by chance sampled with it (shared by the runs),
    plus training noise; the last two shrink with the number of coalitions.

    Runs that share no coalition have the values alone in common, and so give their variance. NaN
    where nothing varies.
    """
    runs = range(len(whole))
    between = np.cov(np.concatenate([whole, *halves])[:, images])
    own, first, second = (range(part * len(whole), (part + 1) * len(whole)) for part in range(3))
    true = float(np.mean([between[first[a], second[b]] for a, b in permutations(runs, 2)]))
    shared = float(np.mean([between[own[a], own[b]] for a, b in combinations(runs, 2)]))
    total = float(np.mean([between[a, a] for a in own]))
    # Variances, of which estimates may be negative.
    values = max(true, 0.0)
    sampled, trained = max(shared - values, 0.0), max(total - shared, 0.0)
    common = values + sampled * now / later
    everything = common + trained * now / later
    return common / everything if everything > 0 else np.nan


def _mean_spearman(pairs: Iterable[tuple[Any, Any]]) -> float:
    return float(np.mean([np.nan_to_num(db.ranking.spearman(a, b)) for a, b in pairs]))


def rows(setting: Setting) -> int:
    return 50 if setting.small else 2000


def value_images(setting: Setting) -> Images:
    n = rows(setting)
    data, game = _game(setting)
    count = _count(setting, SAMPLES)
    values, used = {}, {}
    # Leave-one-out spends what the others spend on repeats of its n + 1 coalitions, as the paper
    # aligns them.
    again = max(1, count // (n + 1))
    if not setting.on_gpu:  # where one repeat takes hours, those that are kept are taken
        kept = pieces.whole_repeats(pieces.path(setting, ("cifar10", n, "loo")))
        again = min(again, max(1, kept // SEEDS))
    plans = {
        "banzhaf": (db.Banzhaf(), "reuse", count, SEEDS),
        "shapley": (db.Shapley(), "permutation", max(count, n + 1), SEEDS),
        "loo": (db.LeaveOneOut(), "leave_one_out", n + 1, SEEDS * again),
    }
    for name, (notion, estimator, budget, repeats) in plans.items():
        found = ledgers.value(
            setting,
            ("cifar10", n, name),
            game,
            notion,
            piecewise=True,
            estimator=estimator,
            budget=budget,
            repeats=repeats,
        )
        values[name] = found.values_by_repeat.reshape(SEEDS, -1, n).mean(axis=1)
        used[name] = found.n_evaluations // SEEDS
    whole = ledgers.evaluations(setting, ("cifar10", n, "banzhaf"), count, SEEDS)
    return Images(
        data,
        values,
        used,
        _halves(whole),
        ledgers.machines(ledgers.work(setting, [("cifar10", n, name) for name in plans])),
    )


def other_ways(setting: Setting) -> dict[str, Images]:
    """Banzhaf values from a part of the coalitions: as in `value_images`, which comes first, and in
    `OTHER_WAYS`. Without a GPU, those of them whose evaluations are kept.
    """
    n = rows(setting)
    count, seeds = _count(setting, OTHER_SAMPLES), min(SEEDS, OTHER_SEEDS)
    found = {}
    for name, how in {"as here": {}, **OTHER_WAYS}.items():
        parts = ("cifar10", n, "-".join(["banzhaf", *(f"{k}-{v}" for k, v in how.items())]))
        data, game = _game(setting, **how)
        if how:
            kept = pieces.whole_repeats(pieces.path(setting, parts)) >= seeds
            if not (setting.on_gpu or setting.small or kept):
                continue
            ledgers.value(
                setting,
                parts,
                game,
                db.Banzhaf(),
                piecewise=True,
                estimator="reuse",
                budget=count,
                repeats=seeds,
            )
        taken = ledgers.evaluations(setting, parts, count, seeds)
        values = db.estimate(taken, db.Banzhaf(), estimator="reuse").values_by_repeat
        found[name] = Images(data, {"banzhaf": values}, {"banzhaf": count}, _halves(taken), "")
    return found


def _game(
    setting: Setting, epochs: int | None = None, held_out: int | None = None
) -> tuple[Draw, db.games.Module]:
    data = protocol.draw("cifar10_images", 0, setting, rows=rows(setting))
    fewer = replace(data, X_test=data.X_test[:held_out], y_test=data.y_test[:held_out])
    how: dict[str, Any] = {
        "batch_size": 32,
        "learning_rate": 1e-3,
        "epochs": epochs or EPOCHS,
        "metric": "accuracy",
        "device": setting.device,
    }
    return data, db.games.Module(protocol.small_cnn, fewer.judged_by_images(setting), **how)


def _count(setting: Setting, paper: int) -> int:
    """How many coalitions of a full-size run to take."""
    scale = min(setting.scale, setting.image_scale)
    return 80 if setting.small else max(200, round(scale * paper))


def _halves(whole: db.Evaluations) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    parts = ledgers.halves(whole)
    assert parts is not None  # there are 80 coalitions or more
    first, second = (
        db.estimate(part, db.Banzhaf(), estimator="reuse").values_by_repeat for part in parts
    )
    return first, second


def differs(setting: Setting) -> tuple[str, ...]:
    small = (
        (
            f"Without a GPU, at this scale: {rows(setting)} images instead of 2,000. This only "
            "shows that the experiment runs.",
        )
        if setting.small
        else ()
    )
    return (
        *small,
        f"The text gives no number of epochs ({EPOCHS} here) and no size of the held-out set "
        f"({protocol.held_out_images(setting):,} here).",
        f"The paper takes {SAMPLES:,} samples for each notion; the line `samples` says how many "
        "were taken here. The noise of training shrinks as they grow: with fewer, every notion "
        "agrees less between runs.",
    )
