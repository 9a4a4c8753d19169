"""Every fast kernel against the plain NumPy twin, on odd shapes; the twin itself against finite
differences and torch.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

import databanzhaf as db
from databanzhaf.kernels import cpu, reference
from databanzhaf.kernels.programs import fully_connected
from databanzhaf.kernels.recipe import Recipe, Rows
from databanzhaf.kernels.stacked import Trainer

BASE = Recipe(
    sizes=(5, 7, 3),
    activation="leaky_relu",
    loss="cross_entropy",
    optimizer="adam",
    learning_rate=0.02,
    momentum=0.0,
    betas=(0.9, 0.999),
    eps=1e-8,
    epochs=3,
    batch_size=4,
    weighted_sampling=False,
    smoothing_draws=0,
    smoothing_radius=0.0,
    metric="probability",
    best_epoch=False,
)
REGRESSION = {"loss": "squared", "metric": "r2", "sizes": (5, 6, 1)}
RECIPES = {
    "plain": BASE,
    "relu": replace(BASE, activation="relu"),
    "tanh": replace(BASE, activation="tanh"),
    "no hidden layer": replace(BASE, sizes=(5, 3)),
    "three hidden layers": replace(BASE, sizes=(5, 9, 4, 6, 3), activation="tanh"),
    "two classes": replace(BASE, sizes=(5, 8, 2)),
    "wide": replace(BASE, sizes=(5, 33, 3)),
    "double softmax": replace(BASE, loss="double_softmax"),
    "sgd with momentum": replace(BASE, optimizer="sgd", momentum=0.8),
    "full batch": replace(BASE, optimizer="sgd", batch_size=None),
    "batch larger than the subset": replace(BASE, batch_size=500),
    "batch of one": replace(BASE, batch_size=1),
    "last batch of one": replace(BASE, batch_size=3),
    "smoothing": replace(BASE, smoothing_draws=1, smoothing_radius=0.05),
    "smoothing by three": replace(
        BASE, smoothing_draws=3, smoothing_radius=0.05, optimizer="sgd", batch_size=None
    ),
    "weighted sampling": replace(BASE, weighted_sampling=True),
    "one batch per epoch": replace(
        BASE,
        weighted_sampling=True,
        batches_per_epoch=1,
        best_epoch=True,
        metric="accuracy",
        epochs=5,
    ),
    "two batches per epoch": replace(BASE, batches_per_epoch=2),
    "accuracy": replace(BASE, metric="accuracy"),
    "log loss": replace(BASE, metric="log_loss"),
    "best epoch": replace(BASE, metric="accuracy", best_epoch=True, epochs=5),
    "regression": replace(BASE, **REGRESSION),
    "regression, mse": replace(BASE, **{**REGRESSION, "metric": "mse"}, best_epoch=True),
    "linear regression": replace(
        BASE, **{**REGRESSION, "sizes": (5, 1)}, optimizer="sgd", batch_size=None
    ),
}
each_recipe = pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)


def make_rows(recipe, n=13, n_val=70, weights=None):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n + n_val, recipe.sizes[0])).astype(np.float32)
    if recipe.classifies:
        y = np.clip((X[:, 0] * 1.5 + 1).round(), 0, recipe.sizes[-1] - 1).astype(np.int32)
    else:
        y = (X[:, 0] - 0.5 * X[:, 1] ** 2).astype(np.float32)
    weights = np.ones(n, np.float32) if weights is None else np.asarray(weights, np.float32)
    return Rows(X[:n], y[:n], X[n:], y[n:], weights)


def jobs(n=13, m=12):
    members = db.designs.Coin(n, 5).coalitions(np.arange(m))
    members[0] = True
    members[1] = np.arange(n) == 2
    members[~members.any(axis=1), 0] = True
    return members, db.chance.keys(9, 2, np.arange(m))


def stacked(recipe, rows, members, keys, chunk=None, **more):
    trainer = Trainer(
        fully_connected(recipe), recipe, rows, device="cpu", compiles=False, tf32=False, chunk=chunk
    )
    return trainer.train(members, keys, **more)


KERNELS = {"cpu": lambda *a, **k: cpu.train(*a, threads=2, **k), "torch": stacked}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def assert_same(ours, twin, recipe):
    # float32 against float64 after a dozen steps: predictions agree to 2e-4, so that a score can
    # differ by a row that lies on the border.
    np.testing.assert_allclose(ours.predictions, twin.predictions, atol=2e-4)
    tolerance = 2 / 70 if recipe.metric == "accuracy" else 2e-4
    np.testing.assert_allclose(ours.scores, twin.scores, atol=tolerance)
    if twin.unseen is not None:
        np.testing.assert_allclose(ours.unseen, twin.unseen, atol=2e-4)


@each_kernel
@each_recipe
def test_fast_kernels_equal_the_twin(kernel, recipe):
    weights = np.linspace(0, 2, 13) if recipe.weighted_sampling else None
    rows, (members, keys) = make_rows(recipe, weights=weights), jobs()
    twin = reference.train(recipe, rows, members, keys, predictions=True, unseen=True)
    assert np.array_equal(np.isnan(twin.unseen).all(axis=2), members & (rows.weights > 0))
    assert_same(kernel(recipe, rows, members, keys, predictions=True, unseen=True), twin, recipe)


@each_kernel
@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_datasets_and_one_class(kernel, n):
    for recipe in (BASE, replace(BASE, sizes=(5, 7, 1)), RECIPES["regression"]):
        rows = make_rows(recipe, n=n)
        members, keys = np.ones((3, n), bool), db.chance.keys(1, 2, np.arange(3))
        twin = reference.train(recipe, rows, members, keys, predictions=True)
        assert_same(kernel(recipe, rows, members, keys, predictions=True), twin, recipe)


@each_kernel
def test_weights_of_the_loss(kernel):
    weights = np.linspace(0.2, 3, 13)
    rows, (members, keys) = make_rows(BASE, weights=weights), jobs()
    twin = reference.train(BASE, rows, members, keys, predictions=True)
    assert_same(kernel(BASE, rows, members, keys, predictions=True), twin, BASE)
    plain = kernel(BASE, make_rows(BASE), members, keys, predictions=True)
    assert np.abs(plain.predictions - twin.predictions).max() > 0.01


@each_kernel
def test_a_weight_of_zero_equals_leaving_the_row_out(kernel):
    members, keys = jobs()
    weights = np.ones(13)
    weights[[3, 7]] = 0
    without = members.copy()
    without[:, [3, 7]] = False
    keep = without.any(axis=1)
    for recipe in (BASE, replace(BASE, weighted_sampling=True)):
        zero = kernel(
            recipe, make_rows(recipe, weights=weights), members[keep], keys[keep], predictions=True
        )
        out = kernel(recipe, make_rows(recipe), without[keep], keys[keep], predictions=True)
        np.testing.assert_array_equal(zero.predictions, out.predictions)


def test_threads_and_chunks_change_no_bit():
    rows, (members, keys) = make_rows(BASE), jobs(m=31)
    one = cpu.train(BASE, rows, members, keys, predictions=True, threads=1)
    for threads in (2, 3, 5):
        assert np.array_equal(
            cpu.train(BASE, rows, members, keys, predictions=True, threads=threads).predictions,
            one.predictions,
        )
    whole = stacked(BASE, rows, members, keys, predictions=True)
    for chunk in (1, 7, 16):
        parts = stacked(BASE, rows, members, keys, predictions=True, chunk=chunk)
        np.testing.assert_allclose(parts.predictions, whole.predictions, atol=1e-5)


def test_memory_that_torch_keeps_for_later_counts_as_free(monkeypatch):
    """A second game in one process gets as many models at a time as the first: here 60% of the card
    is in torch's store.
    """
    card = {"free": 0.4 * 2**20, "kept": 0.6 * 2**20}

    def empty_cache():
        card.update(free=card["free"] + card["kept"], kept=0)

    trainer = Trainer(
        fully_connected(BASE),
        BASE,
        make_rows(BASE),
        device="cpu",
        compiles=False,
        tf32=False,
        chunk=None,
    )
    monkeypatch.setattr(torch.cuda, "empty_cache", empty_cache)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (int(card["free"]), 2**20))
    monkeypatch.setattr(trainer, "device", torch.device("cuda"))
    assert trainer.chunk_size() == int(0.6 * 2**20 / trainer._bytes_per_model()) > 10
    monkeypatch.setattr("databanzhaf.kernels.stacked._FULL", 7 * trainer._step_bytes)
    trainer.chunk = None
    assert trainer.chunk_size() == 7  # more would train no faster


def test_models_start_from_the_same_bits_and_see_the_same_batches():
    from databanzhaf.kernels.torch_chance import fold, gaussian, mix

    recipe, keys = RECIPES["three hidden layers"], db.chance.keys(4, 2, np.arange(6))
    rows, (members, _) = make_rows(recipe), jobs(m=6)
    trainer = Trainer(
        fully_connected(recipe), recipe, rows, device="cpu", compiles=False, tf32=False, chunk=None
    )
    stack = trainer.eager.initial(torch.from_numpy(keys.view(np.int64)))
    for model, key in enumerate(keys):
        flat = torch.cat([p[model].ravel() for p in stack.values()]).numpy()
        assert np.array_equal(flat, reference.initial(recipe, key))
    counts = torch.from_numpy(members.sum(axis=1))
    for epoch in range(3):
        ours = trainer.eager.order(
            torch.from_numpy(keys.view(np.int64)),
            torch.from_numpy(members),
            counts,
            torch.tensor(epoch),
        ).numpy()
        for model, key in enumerate(keys):
            twin = np.concatenate(list(reference.batches(recipe, rows, members[model], key, epoch)))
            assert np.array_equal(ours[model][ours[model] >= 0], twin)
            assert sorted(twin) == np.flatnonzero(members[model]).tolist()
    numbers = np.array([0, 1, 2**63, 2**64 - 1, 12345678901234567890], np.uint64)
    signed = torch.from_numpy(numbers.view(np.int64))
    assert np.array_equal(mix(signed).numpy().view(np.uint64), db.chance.mix(numbers))
    assert np.array_equal(
        fold(signed, 7).numpy().view(np.uint64), db.chance.fold(numbers, np.array([7], np.uint64))
    )
    words = db.chance.words(keys, 50)
    np.testing.assert_allclose(
        gaussian(torch.from_numpy(words.view(np.int64))).numpy(),
        reference.gaussian(keys, 50),
        atol=1e-12,
    )


def test_initial_weights_have_torchs_law():
    recipe = replace(BASE, sizes=(64, 500, 2))
    flat = reference.initial(recipe, np.uint64(5))
    first, rest = flat[: 64 * 500 + 500], flat[64 * 500 + 500 :]
    assert np.abs(first).max() == pytest.approx(1 / 8, rel=1e-3)
    assert np.abs(rest).max() == pytest.approx(1 / np.sqrt(500), rel=1e-2)
    assert first.mean() == pytest.approx(0, abs=4 / 8 / np.sqrt(3 * len(first)))
    noise = reference.gaussian(db.chance.keys(0, 2, np.arange(100)), 1000)
    assert noise.mean() == pytest.approx(0, abs=0.013)
    assert noise.var() == pytest.approx(1, abs=0.02)


@each_recipe
def test_the_twins_gradient_by_finite_differences(recipe):
    recipe = replace(recipe, activation="tanh", smoothing_draws=0)
    rows = make_rows(recipe, weights=np.linspace(0.5, 2, 13))
    theta = reference.initial(recipe, np.uint64(77)).astype(np.float64)
    batch = np.array([0, 3, 5, 11])

    def loss(theta):
        outputs = torch.from_numpy(reference.forward(recipe, theta, rows.X[batch])[-1])
        y = torch.from_numpy(rows.y[batch])
        if recipe.loss == "squared":
            each = (outputs[:, 0] - y) ** 2
        else:
            z = torch.softmax(outputs, dim=1) if recipe.loss == "double_softmax" else outputs
            each = torch.nn.functional.cross_entropy(z, y.long(), reduction="none")
        weight = 1.0 if recipe.weighted_sampling else rows.weights[batch].astype(np.float64)
        return float((each.numpy() * weight).mean())

    slope = reference.gradient_at(recipe, rows, theta, batch)
    for q in range(0, len(theta), max(1, len(theta) // 40)):
        step = np.zeros_like(theta)
        step[q] = 1e-6
        assert slope[q] == pytest.approx((loss(theta + step) - loss(theta - step)) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_updates_equal_torch_optim_step_by_step(optimizer, rng):
    recipe = replace(
        BASE, optimizer=optimizer, momentum=0.9 if optimizer == "sgd" else 0.0, eps=1e-7
    )
    theta = rng.normal(size=20)
    parameter = torch.nn.Parameter(torch.from_numpy(theta.copy()))
    torch_optimizer = (
        torch.optim.Adam([parameter], lr=recipe.learning_rate, betas=recipe.betas, eps=recipe.eps)
        if optimizer == "adam"
        else torch.optim.SGD([parameter], lr=recipe.learning_rate, momentum=0.9)
    )
    first, second = np.zeros(20), np.zeros(20)
    for step in range(1, 40):
        g = rng.normal(size=20)
        parameter.grad = torch.from_numpy(g.copy())
        torch_optimizer.step()
        theta = reference.update(recipe, theta, g, first, second, step)
        np.testing.assert_allclose(theta, parameter.detach().numpy(), rtol=1e-10, atol=1e-12)


@each_kernel
def test_a_model_that_has_seen_all_its_rows_is_not_touched(kernel):
    """A small coalition trained beside a large one ends where it ends alone: Adam's momentum must
    not move it.
    """
    rows = make_rows(BASE)
    members = np.stack([np.arange(13) < 2, np.ones(13, bool)])
    keys = db.chance.keys(3, 2, np.arange(2))
    together = kernel(BASE, rows, members, keys, predictions=True)
    alone = kernel(BASE, rows, members[:1], keys[:1], predictions=True)
    np.testing.assert_allclose(together.predictions[0], alone.predictions[0], atol=1e-6)


@each_kernel
def test_a_diverged_model_scores_nan(kernel):
    recipe = replace(
        RECIPES["regression"], learning_rate=1e30, optimizer="sgd", momentum=0.9, epochs=8
    )
    rows, (members, keys) = make_rows(recipe), jobs(m=2)
    assert np.isnan(kernel(recipe, rows, members, keys).scores).all()


@pytest.mark.parametrize("kernel", ["cpu", "torch"])
@pytest.mark.parametrize(
    "name", ["plain", "no hidden layer", "three hidden layers", "smoothing", "regression"]
)
def test_columns_that_are_always_zero_are_left_out_and_change_nothing(kernel, name):
    from databanzhaf.kernels.recipe import narrowed

    recipe = RECIPES[name]
    rows, (members, keys) = make_rows(recipe), jobs()
    X, X_val = rows.X.copy(), rows.X_val.copy()
    X[:, [1, 3]] = X_val[:, [1, 3]] = 0
    rows = replace(rows, X=X, X_val=X_val)
    smaller, fewer, numbers = narrowed(recipe, rows)
    assert smaller.sizes[0] == 4  # three in use, and one to fill the last four
    assert fewer.X.shape == (13, 4)
    twin = reference.train(recipe, rows, members, keys, predictions=True)
    if kernel == "cpu":
        ours = cpu.train(recipe, rows, members, keys, predictions=True)
    else:
        program = fully_connected(smaller, numbers, recipe)
        trainer = Trainer(
            program, smaller, fewer, device="cpu", compiles=False, tf32=False, chunk=None
        )
        ours = trainer.train(members, keys, predictions=True)
        stack = trainer.eager.initial(torch.from_numpy(keys.view(np.int64)))
        flat = torch.cat([p[0].ravel() for p in stack.values()]).numpy()
        assert np.array_equal(flat, reference.initial(recipe, keys[0])[numbers])
    assert_same(ours, twin, recipe)


def test_rows_of_nothing_but_zeros_still_train():
    rows, (members, keys) = make_rows(BASE), jobs()
    rows = replace(rows, X=np.zeros_like(rows.X), X_val=np.zeros_like(rows.X_val))
    twin = reference.train(BASE, rows, members, keys, predictions=True)
    assert_same(cpu.train(BASE, rows, members, keys, predictions=True), twin, BASE)
