"""How fast the engines train: models per second, side by side with one-at-a-time training in torch,
in one run.

The Pol job of the paper's Table 2: 200 training and 200 validation rows, MLP 48-100-2, Adam, batch
32, 15 epochs, accuracy after every epoch, subsets by a fair coin. Data: a folder with pol.npz,
mnist.npz, cifar10_catdog_squeezenet_227px.npz and cifar10_10class.npz.

    python benchmarks/engines.py FOLDER cpu
    python benchmarks/engines.py FOLDER cuda
    python benchmarks/engines.py FOLDER networks      # the first part of the one before
    python benchmarks/engines.py FOLDER convolutions  # its last part
    python benchmarks/engines.py FOLDER kept
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from unittest import mock

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from record import record, table
from torch import nn

import databanzhaf as db
from databanzhaf.kernels import on_chip
from databanzhaf.kernels.recipe import narrowed

POL = {
    "hidden": (100,),
    "epochs": 15,
    "batch_size": 32,
    "learning_rate": 1e-2,
    "eps": 1e-7,
    "metric": "accuracy",
    "metric_at": "best_epoch",
}


def split(X, y, n, n_val, flip=0.1, seed=0):
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[order].copy()
    train = X[:n].reshape(n, -1)
    mean, deviation = train.mean(axis=0), np.clip(train.std(axis=0), 1e-6, None)
    X = (
        ((X[: n + n_val].reshape(n + n_val, -1) - mean) / deviation)
        .reshape(n + n_val, *X.shape[1:])
        .astype(np.float32)
    )
    y[: int(flip * n)] = (y[: int(flip * n)] + 1) % (y.max() + 1)
    return db.Dataset(X[:n], y[:n], X[n : n + n_val], y[n : n + n_val])


def pol(folder):
    stored = np.load(folder / "pol.npz")
    return split(stored["X"], stored["y"], 200, 200)


def features(folder):
    stored = np.load(folder / "cifar10_catdog_squeezenet_227px.npz")
    X, y = (
        np.concatenate([stored["X_train"], stored["X_test"]]).astype(np.float32),
        np.concatenate([stored["y_train"], stored["y_test"]]),
    )
    return split(X, y, 2000, 2000)


def mnist(folder, n_val=1000):
    stored = np.load(folder / "mnist.npz")
    X, y = stored["X_train"][:, None].astype(np.float32) / 255, stored["y_train"].astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))[: 500 + n_val]
    return db.Dataset(X[order[:500]], y[order[:500]], X[order[500:]], y[order[500:]])


def cifar(folder):
    stored = np.load(folder / "cifar10_10class.npz")
    X, X_val = (
        (stored[name].transpose(0, 3, 1, 2).astype(np.float32) / 255 - 0.5) / 0.25
        for name in ("X_train", "X_test")
    )
    return db.Dataset(X[:2000], stored["y_train"][:2000], X_val, stored["y_test"])


def jobs(n, m, seed=0):
    return db.designs.Coin(n, seed).coalitions(np.arange(m)), db.chance.keys(
        seed, db.chance.TRAINING, np.arange(m)
    )


def rate(run, m, repeats=3):
    """Models per second, the best of a few runs."""
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return m / best


def mlp(inputs=48, hidden=100, outputs=2):
    return nn.Sequential(nn.Linear(inputs, hidden), nn.LeakyReLU(), nn.Linear(hidden, outputs))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(20, 40, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(640, 500), nn.ReLU(), nn.Linear(500, 10),
    )  # fmt: skip


def tutorial_cnn():
    return nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def with_data_loader(data, coalitions, epochs=15, batch=32, make=mlp, rate_=1e-2, device="cpu"):
    """The way of the code behind the paper: DataLoaders for training and validation rows, one model
    after the other.
    """
    validation = torch.utils.data.TensorDataset(
        torch.from_numpy(data.X_val), torch.from_numpy(data.y_val)
    )
    scoring = torch.utils.data.DataLoader(validation, batch_size=batch)
    for member in coalitions:
        rows = torch.utils.data.TensorDataset(
            torch.from_numpy(data.X[member]), torch.from_numpy(data.y[member])
        )
        loader = torch.utils.data.DataLoader(rows, batch_size=batch, shuffle=True)
        model = make().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate_, eps=1e-7)
        for _ in range(epochs):
            for X, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(
                    torch.softmax(model(X.to(device)), dim=1), y.to(device)
                ).backward()
                optimizer.step()
            sum(
                (model(X.to(device)).argmax(dim=1) == y.to(device)).sum().item() for X, y in scoring
            )


def lean(
    data,
    coalitions,
    epochs=15,
    batch=32,
    make=mlp,
    rate_=1e-2,
    device="cpu",
    score_every_epoch=True,
):
    """One model after the other without a DataLoader: index tensors on the device, scored as often
    as asked.
    """
    X, y, X_val, y_val = (
        torch.from_numpy(a).to(device) for a in (data.X, data.y, data.X_val, data.y_val)
    )
    for member in coalitions:
        rows = torch.from_numpy(np.flatnonzero(member)).to(device)
        model = make().to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate_, eps=1e-7)
        for epoch in range(epochs):
            for index in rows[torch.randperm(len(rows), device=device)].split(batch):
                optimizer.zero_grad(set_to_none=True)
                nn.functional.cross_entropy(model(X[index]), y[index]).backward()
                optimizer.step()
            if score_every_epoch or epoch == epochs - 1:
                with torch.no_grad():
                    (model(X_val).argmax(dim=1) == y_val).float().mean().item()


def flops(sizes, rows, n_val, epochs, scored):
    """Multiply-adds of training and scoring one model, times two; the first layer needs no gradient
    of its input.
    """
    layers = [a * b for a, b in pairwise(sizes)]
    train = sum(3 * size for size in layers) - layers[0]
    return 2 * (epochs * rows * train + scored * n_val * sum(layers))


def blas():
    a = np.random.default_rng(0).random((3000, 3000), dtype=np.float32)
    a @ a
    start = time.perf_counter()
    a @ a
    return 2 * 3000**3 / (time.perf_counter() - start)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def on_cpu(folder):
    torch.set_num_threads(1)
    data = pol(folder)
    coalitions, keys = jobs(200, 4000)
    rows = []
    game = db.games.Network(data, device="cpu", threads=1, **POL)
    game.train(coalitions[:4], keys[:4])
    slow = rate(lambda: with_data_loader(data, coalitions[:12]), 12, 2)
    thin = rate(lambda: lean(data, coalitions[:30]), 30, 2)
    module = db.games.Module(
        mlp, data, device="cpu", **{k: v for k, v in POL.items() if k != "hidden"}
    )
    stacked = rate(lambda: module.train(coalitions[:256], keys[:256]), 256, 1)
    one = rate(lambda: game.train(coalitions[:1000], keys[:1000]), 1000)
    small = peak()
    both = db.games.Network(data, device="cpu", threads=2, **POL)
    two = rate(lambda: both.train(coalitions, keys), 4000)
    dense = pol(folder)
    rng = np.random.default_rng(1)
    for X in (dense.X, dense.X_val):
        X[:, (dense.X == 0).all(axis=0)] = rng.normal(
            size=(len(X), int((dense.X == 0).all(axis=0).sum()))
        )
    full = db.games.Network(dense, device="cpu", threads=1, **POL)
    all_columns = rate(lambda: full.train(coalitions[:1000], keys[:1000]), 1000)
    reference_flops = blas()
    used = narrowed(game.recipe, game.rows)[0].sizes
    mine, mine_dense = (
        one * flops(used, 100, 200, 15, 15),
        all_columns * flops((48, 100, 2), 100, 200, 15, 15),
    )
    for name, value in (
        ("one at a time, DataLoader (one core)", slow),
        ("one at a time, lean loop (one core)", thin),
        ("Module, stacked in torch, eager (one core)", stacked),
        ("Network, Numba, one thread", one),
        ("Network, Numba, two threads", two),
        ("Network, Numba, one thread, Pol's 22 constant columns filled with noise", all_columns),
    ):
        rows.append([name, f"{value:,.1f}", f"{value / slow:,.1f}", f"{value / thin:,.1f}"])
    body = table(["Pol job", "models/s", "times DataLoader", "times lean loop"], rows)
    body += (
        f"\n\nTwo threads are {two / one:.2f} times one. One thread does {mine / 1e9:.0f} GFLOP/s "
        f"in the {used[0]} columns that it "
        f"trains (the others are constant and change nothing), {mine_dense / 1e9:.0f} with 48 in "
        "use; this machine's BLAS reaches "
        f"{reference_flops / 1e9:.0f} on a 3,000 x 3,000 float32 product, one thread. Peak memory "
        f"{small:,.0f} MiB after 1,000 models, "
        f"{peak():,.0f} MiB after 4,000 more with two threads."
    )
    wide = features(folder)
    coalitions, keys = jobs(2000, 16)
    options = {
        "hidden": (256,),
        "activation": "relu",
        "epochs": 15,
        "batch_size": 128,
        "learning_rate": 1e-3,
        "metric": "accuracy",
    }
    big = db.games.Network(wide, device="cpu", threads=2, **options)
    models = rate(lambda: big.train(coalitions, keys), 16, 2)
    work = models * flops((512, 256, 2), 1000, 2000, 15, 1)
    thin = rate(
        lambda: lean(
            wide,
            coalitions[:3],
            batch=128,
            make=lambda: mlp(512, 256),
            rate_=1e-3,
            score_every_epoch=False,
        ),
        3,
        1,
    )
    body += (
        "\n\nMLP 512-256-2 on 2,000 image features (batch 128, 15 epochs, 2,000 validation rows "
        "scored once): "
        f"{models:,.1f} models/s on two threads "
        f"({work / 1e9:.0f} GFLOP/s); the lean loop {thin:,.2f} on one core."
    )
    record("Engines on the CPU", body)


def kept(folder):
    """What it costs to keep what models say of each validation row."""
    data, m = pol(folder), 20_000
    members, keys = jobs(200, m)
    rows = []
    for label, how in (("1 epoch", {"epochs": 1}), ("15 epochs", {})):
        game = db.games.Network(data, device="cpu", threads=1, **{**POL, **how})
        game.train(members[:4], keys[:4])
        start = time.perf_counter()
        game.train(members, keys)
        seconds = [time.perf_counter() - start]
        for keep in ("utilities", "outcomes"):
            with tempfile.TemporaryDirectory() as place:
                start = time.perf_counter()
                with db.Ledger(f"{place}/run.db", keep=keep) as ledger:
                    db.value(game, budget=m, ledger=ledger)
                seconds.append(time.perf_counter() - start)
        rows.append([label, *(f"{each:.1f}" for each in seconds)])
    head = ["Pol job, one core, 20,000 models", "training alone, s", "db.value, s"]
    record("Kept predictions", table([*head, "db.value that keeps predictions, s"], rows))


def on_cuda(folder):
    networks(folder)
    record(f"Image features on {torch.cuda.get_device_name()}", features_on_cuda(folder))
    convolutions(folder)


def networks(folder):
    """Networks on chip, and as stacked tensors."""
    name = torch.cuda.get_device_name()
    data = pol(folder)
    m, whole = (
        50_000,
        3 * 16_384,
    )  # the rows of the table are whole chunks; `db.value` ends with a part of one
    coalitions, keys = jobs(200, whole)
    rows = []

    def add(label, value, note=""):
        rows.append([label, f"{value:,.0f}" if value > 100 else f"{value:,.2f}", note])
        print(label, value, note, flush=True)

    one = rate(lambda: lean(data, coalitions[:20], device="cuda"), 20, 2)
    add("one at a time on the GPU, lean loop", one)
    for label, kernel, how in (
        ("Network", "on chip", {}),
        ("Network", "stacked", {}),
        ("Network, TF32", "on chip", {"tf32": True}),
        ("Network, scored after the last epoch", "on chip", {"metric_at": "last"}),
    ):
        with mock.patch.object(on_chip, "fits", on_chip.fits if kernel == "on chip" else no):
            game = db.games.Network(data, device="cuda", **{**POL, **how})
            start = time.perf_counter()
            game.train(coalitions, keys)
            first = time.perf_counter() - start
        torch.cuda.reset_peak_memory_stats()
        value = rate(lambda game=game: game.train(coalitions, keys), whole, 3)
        peak_memory = torch.cuda.max_memory_allocated() / 2**30
        add(f"{label}, {kernel}", value, f"first call {first:.1f} s; {peak_memory:.2f} GiB")
    cpu = db.games.Network(data, device="cpu", **POL)
    values = {}
    for label, game in (("cuda", db.games.Network(data, device="cuda", **POL)), ("cpu", cpu)):
        path = Path(f"/tmp/{label}.db")
        path.unlink(missing_ok=True)
        budget = m if label == "cuda" else 2000
        db.value(game, budget=20_000 if label == "cuda" else 50, seed=1)  # compiles
        start = time.perf_counter()
        values[label] = db.value(game, budget=budget, ledger=path)
        add(
            f"db.value, {budget:,} evaluations, file ledger, {label}",
            budget / (time.perf_counter() - start),
        )
    same = db.value(db.games.Network(data, device="cuda", **POL), budget=2000)
    with db.Ledger("/tmp/cpu.db") as one_ledger, db.Ledger("/tmp/cuda.db") as two_ledger:
        a, b = one_ledger.utilities()[:2000], two_ledger.utilities()[:2000]
    agree = np.mean(np.abs(a - b) <= 2 / 200 + 1e-9)
    correlation = np.corrcoef(same.values, values["cpu"].values)[0, 1]
    note = (
        f"2,000 models on both devices: {agree:.1%} have the same accuracy within two validation "
        "rows; "
        f"their Banzhaf values correlate at {correlation:.5f}."
    )
    body = table([f"Pol job, {name} (whole chunks of 16,384)", "models/s", ""], rows)
    record(f"Networks on {name}", f"{body}\n\n{note}")


def no(*_):
    return False


def convolutions(folder):
    """Stacked convolutions: grouped, as products over unfolded patches, and as Triton kernels."""
    lenets = convolutional(lenet, mnist(folder), 512, 30, ("grouped", "unfolded", "Triton"))
    cnns = convolutional(tutorial_cnn, cifar(folder), 1024, 10, ("unfolded", "Triton"))
    parts = [
        *in_turn("LeNet, 500 MNIST rows, batch 32, 30 epochs", lenet, 30, lenets),
        *in_turn("Tutorial CNN, 2,000 CIFAR10 rows, batch 32, 10 epochs", tutorial_cnn, 10, cnns),
    ]
    record(f"Convolutions on {torch.cuda.get_device_name()}", "\n\n".join(parts))


def convolutional(make, data, count, epochs, kinds):
    """The games of each kind, compiled."""
    games = {}
    for kind in kinds:
        with mock.patch(
            "databanzhaf.kernels.convolution.available", lambda device, k=kind: k == "Triton"
        ):
            games[kind] = db.games.Module(
                make,
                data,
                epochs=epochs,
                batch_size=32,
                learning_rate=1e-3,
                metric="accuracy",
                device="cuda",
                unfold=kind != "grouped",
                chunk=128 if kind == "grouped" else count,
            )
        games[kind].train(*jobs(len(data.X), games[kind].call_size))
    return games


def in_turn(job, make, epochs, games):
    """A table of models a second, and how well the games agree."""
    data = games["Triton"].dataset
    alone = {"make": make, "rate_": 1e-3, "device": "cuda", "score_every_epoch": False}
    coalitions, _ = jobs(len(data.X), 2)
    one = rate(lambda: lean(data, coalitions, epochs, 32, **alone), 2, 2)
    rows, scores = [["one at a time on the GPU, lean loop", f"{one:,.2f}", "1.0", ""]], {}
    for kind, game in games.items():
        torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        scores[kind] = game.train(*jobs(len(data.X), game.call_size)).scores
        value = game.call_size / (time.perf_counter() - start)
        memory = f"{torch.cuda.max_memory_allocated() / 2**30:.1f}"
        rows.append(
            [f"Module, {kind} convolutions", f"{value:,.1f}", f"{value / one:,.1f}", memory]
        )
        print(rows[-1], flush=True)
    gap = scores["Triton"] - scores["unfolded"]
    return (
        table([job, "models/s", "times one at a time", "GiB"], rows),
        f"Mean accuracy of the same {len(gap):,} models: {scores['unfolded'].mean():.5f} unfolded, "
        f"{scores['Triton'].mean():.5f} by Triton, where the standard error of the difference is "
        f"{gap.std() / len(gap) ** 0.5:.5f} (products are TF32 in both).",
    )


def features_on_cuda(folder):
    data = features(folder)
    coalitions, keys = jobs(2000, 2048)
    game = db.games.Network(
        data,
        (256,),
        activation="relu",
        epochs=15,
        batch_size=128,
        learning_rate=1e-3,
        metric="accuracy",
        device="cuda",
        tf32=True,
        chunk=2048,
    )
    game.train(coalitions, keys)
    value = rate(lambda: game.train(coalitions, keys), 2048, 2)
    return (
        "MLP 512-256-2 on 2,000 image features (batch 128, 15 epochs, 2,000 validation rows "
        f"scored once), TF32: {value:,.0f} models/s."
    )


if __name__ == "__main__":
    parts = {
        "cpu": on_cpu,
        "cuda": on_cuda,
        "networks": networks,
        "kept": kept,
        "convolutions": convolutions,
    }
    parts[sys.argv[2]](Path(sys.argv[1]))
