"""How fast and how good the forest engine is: forests of 20 trees, side by side with scikit-learn
one at a time, in one run.

Coalitions by a fair coin; both predict the validation rows and the rows outside the coalition.
Data: a folder with the paper's ten tables as .npz files (X, y); 200 validation rows, 10% of the
labels flipped; "generated" is scikit-learn's make_classification, 20 columns. The parts run alone,
too.

    python benchmarks/forests.py FOLDER
    python benchmarks/forests.py FOLDER speed
    python benchmarks/forests.py FOLDER boosting
    python benchmarks/forests.py FOLDER accuracy
    python benchmarks/forests.py FOLDER agreement
    python benchmarks/forests.py FOLDER memory
"""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from record import record, table
from sklearn.datasets import load_diabetes, load_digits, make_classification, make_friedman1
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

import databanzhaf as db

TEN = (
    "pol", "wind", "cpu", "2dplanes", "creditcard", "fraud", "vehicle", "apsfail", "click",
    "phoneme",
)  # fmt: skip
THEIRS = {
    ("random", "gini"): ExtraTreesClassifier,
    ("best", "gini"): RandomForestClassifier,
    ("random", "squared"): ExtraTreesRegressor,
    ("best", "squared"): RandomForestRegressor,
}


def rows_of(folder, name, n, seed=0, n_val=200, flips=0.1):
    if name == "generated":
        X, y = make_classification(n + n_val, 20, n_informative=8, flip_y=0.0, random_state=seed)
    else:
        stored = np.load(folder / f"{name}.npz")
        X, y = stored["X"].astype(np.float64), stored["y"].astype(int)
    rng = np.random.default_rng(seed)
    smaller = min(np.bincount(y))
    balanced = [rng.permutation(np.flatnonzero(y == label))[:smaller] for label in (0, 1)]
    order = rng.permutation(np.concatenate(balanced))
    n = min(n, len(order) - n_val)
    X, y = X[order[: n + n_val]], y[order[: n + n_val]].copy()
    flipped = rng.choice(n, round(flips * n), replace=False)
    y[flipped] = 1 - y[flipped]
    return db.Dataset(X[:n], y[:n], X[n:], y[n:])


def jobs(n, m, seed=0):
    return db.designs.Coin(n, seed).coalitions(np.arange(m)), db.chance.keys(
        seed, db.chance.TRAINING, np.arange(m)
    )


def one_at_a_time(make, data, coalitions):
    """Scores, as a user of scikit-learn would get them, with predictions for the rows outside."""
    scores = []
    for seed, member in enumerate(coalitions):
        model = make(20, max_features="sqrt", random_state=seed).fit(data.X[member], data.y[member])
        answer = getattr(model, "predict_proba", model.predict)
        answer(data.X[~member])
        answer(data.X_val)
        scores.append(model.score(data.X_val, data.y_val))
    return np.array(scores)


def seconds(run, repeats=2):
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def speed(folder):
    lines = []
    for name, n, m, theirs in (
        ("pol", 200, 1000, 50), ("wind", 200, 1000, 50), ("cpu", 200, 1000, 50),
        ("creditcard", 200, 1000, 50), ("generated", 200, 1000, 50), ("cpu", 2000, 100, 25),
        ("creditcard", 2000, 100, 25), ("generated", 2000, 100, 25),
        ("creditcard", 10_000, 20, 8), ("generated", 10_000, 20, 8),
    ):  # fmt: skip
        data = rows_of(folder, name, n)
        coalitions, keys = jobs(data.n_rows, m)
        one, two = (db.games.Forest(data, threads=threads) for threads in (1, 2))
        one.train(coalitions[:2], keys[:2], unseen=True)
        slow = theirs / seconds(
            lambda: one_at_a_time(ExtraTreesClassifier, data, coalitions[:theirs])  # noqa: B023
        )
        fast, both = (
            m / seconds(lambda: game.train(coalitions, keys, unseen=True))  # noqa: B023
            for game in (one, two)
        )
        lines.append(
            [name, f"{data.n_rows:,}", str(data.X.shape[1]), f"{slow:,.1f}", f"{fast:,.0f}",
             f"{fast / slow:.1f}", f"{both / fast:.2f}"]
        )  # fmt: skip
        print(lines[-1], flush=True)
    return table(
        ["table", "rows", "columns", "scikit-learn's ExtraTrees, forests/s", "Forest, one thread",
         "times", "two threads over one"],
        lines,
    )  # fmt: skip


def accuracy(folder, draws=4, theirs=60, ours=300):
    """Mean validation scores over the same coalitions."""
    jobs_ = [(name, "gini") for name in (*TEN, "digits")]
    jobs_ += [(name, "squared") for name in ("diabetes", "friedman", "friedman, noisy")]
    lines, differences = [], {"random": [], "best": []}
    for name, loss in jobs_:
        line = [name]
        for splits in ("random", "best"):
            means = []
            for draw in range(draws):
                data = _draw(folder, name, draw)
                coalitions, keys = jobs(data.n_rows, ours, draw)
                metric = "accuracy" if loss == "gini" else "r2"
                game = db.games.Forest(data, splits=splits, loss=loss, metric=metric)
                other = one_at_a_time(THEIRS[splits, loss], data, coalitions[:theirs])
                means.append((game.utility(coalitions, keys).mean(), other.mean()))
            mine, other = np.mean(means, axis=0)
            line += [f"{mine:.4f}", f"{other:.4f}", f"{mine - other:+.4f}"]
            if name in TEN:
                differences[splits].append(mine - other)
        lines.append(line)
        print(line, flush=True)
    body = table(
        ["table (200 rows)", "random: Forest", "ExtraTrees", "difference", "best: Forest",
         "RandomForest", "difference"],
        lines,
    )  # fmt: skip
    means = {splits: np.mean(values) for splits, values in differences.items()}
    return (
        f"{body}\n\nAccuracy (R^2 from diabetes on), mean over {draws} draws; scikit-learn on the "
        f"first {theirs} coalitions of each draw, Forest on {ours}. Mean difference over the ten "
        f"tables: random {means['random']:+.4f}, best {means['best']:+.4f}."
    )


def _draw(folder, name, draw):
    if name in TEN:
        return rows_of(folder, name, 200, draw)
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    elif name == "diabetes":
        X, y = load_diabetes(return_X_y=True)
    else:
        X, y = make_friedman1(
            1200, 10, noise=5.0 if name.endswith("noisy") else 0.5, random_state=draw
        )
    order = np.random.default_rng(draw).permutation(len(X))
    X, y = X[order], y[order]
    return db.Dataset(X[:200], y[:200], X[200:], y[200:])


def agreement(folder, rows=100, budget=20_000):
    """Banzhaf values of one table by both, each with coalitions of its own."""
    lines = []
    for name in ("pol", "cpu"):
        data = rows_of(folder, name, rows)
        learner = db.games.Learner(
            ExtraTreesClassifier(20, max_features="sqrt"), data, _probability
        )
        start = time.perf_counter()
        other = db.value(learner, budget=budget, seed=1, evaluator=db.evaluators.Processes(2))
        middle = time.perf_counter()
        mine = db.value(db.games.Forest(data), budget=budget, seed=2)
        end = time.perf_counter()
        again = db.value(db.games.Forest(data), budget=budget, seed=3)
        lines.append(
            [name, f"{np.corrcoef(mine.values, other.values)[0, 1]:.4f}",
             f"{np.corrcoef(mine.values, again.values)[0, 1]:.4f}",
             f"{middle - start:,.0f} s", f"{end - middle:,.1f} s"]
        )  # fmt: skip
        print(lines[-1], flush=True)
    return (
        table(["table", "correlation", "two runs of Forest", "scikit-learn", "Forest"], lines)
        + f"\n\nBanzhaf values of {rows} rows by {budget:,} coalitions each, metric probability: "
        "Forest against `Learner(ExtraTreesClassifier(20))`, each with a seed of its own; both on "
        "two cores."
    )


def _probability(model, X, y):
    return float(
        model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)].mean()
    )


def memory(folder, n=100_000, columns=50, m=1000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 1000, columns)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 0).astype(int)
    data = db.Dataset(X[:n], y[:n], X[n:], y[n:])
    del X, y
    lines = []
    for label, options, count in (
        ("each tree sees 1,000 rows at most", {"max_samples": 1000}, m),
        ("all 50,000 rows", {}, m),
    ):
        game = db.games.Forest(data, threads=2, **options)
        start = time.perf_counter()
        for low in range(0, count, game.call_size):
            which = np.arange(low, min(count, low + game.call_size))
            coalitions = db.designs.Coin(n, 0).coalitions(which)
            game.train(coalitions, db.chance.keys(0, 2, which), unseen=True)
        spent = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        lines.append([label, f"{count:,}", f"{count / spent:,.2f}", f"{peak:,.0f} MiB"])
        print(lines[-1], flush=True)
    return (
        table(["", "forests", "forests/s, two threads", "peak memory of the process"], lines)
        + f"\n\n{n:,} rows x {columns} columns, coalitions by a fair coin, 20 trees, 1,000 "
        "validation rows, every row outside the coalition judged too."
    )


def boosting(folder, rounds=50):
    """Boosted trees, one core: 50 rounds, 8 leaves, 5 rows in a leaf at least."""
    from lightgbm import LGBMClassifier

    shape = {"min_samples_leaf": 5, "max_leaf_nodes": 8, "early_stopping": False}
    baselines = {
        "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=rounds, **shape),
        "LightGBM": LGBMClassifier(
            n_estimators=rounds, num_leaves=8, min_child_samples=5, n_jobs=1, verbose=-1
        ),
    }
    lines = []
    for name, n, m, theirs in (
        ("pol", 200, 300, 30), ("wind", 200, 300, 30), ("cpu", 200, 300, 30),
        ("creditcard", 200, 300, 30), ("generated", 200, 300, 30), ("creditcard", 2000, 40, 20),
        ("generated", 2000, 40, 20), ("generated", 10_000, 10, 8),
    ):  # fmt: skip
        data = rows_of(folder, name, n)
        coalitions, keys = jobs(data.n_rows, m)
        game = db.games.Boosting(data, rounds, metric="accuracy", threads=1)
        game.train(coalitions[:2], keys[:2], unseen=True)
        mine = m / seconds(lambda: game.train(coalitions, keys, unseen=True))  # noqa: B023
        line = [name, f"{data.n_rows:,}", str(data.X.shape[1]), f"{mine:,.0f}"]
        scores = [game.utility(coalitions[:theirs], keys[:theirs]).mean()]
        for model in baselines.values():
            start = time.perf_counter()
            scores.append(np.mean([_fitted(model, data, each) for each in coalitions[:theirs]]))
            rate = theirs / (time.perf_counter() - start)
            line += [f"{rate:,.1f}", f"{mine / rate:.1f}"]
        lines.append([*line, *(f"{score:.3f}" for score in scores)])
        print(lines[-1], flush=True)
    head = ["table", "rows", "columns", "Boosting, models/s"]
    head += [part for name in baselines for part in (f"{name}", "times")]
    head += [f"accuracy: {name}" for name in ("Boosting", *baselines)]
    return table(head, lines) + "\n\nAccuracies over the same coalitions, those of the baselines."


def _fitted(model, data, member):
    model.fit(data.X[member], data.y[member])
    model.predict_proba(data.X[~member])
    return model.score(data.X_val, data.y_val)


PARTS = {
    "speed": speed,
    "boosting": boosting,
    "accuracy": accuracy,
    "agreement": agreement,
    "memory": memory,
}

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for part in sys.argv[2:] or PARTS:
        record(f"Forests: {part}", PARTS[part](folder))
