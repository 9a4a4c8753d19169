"""Network and Module as games: the path from a dataset to values, on the CPU; CUDA runs the same
torch code.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import make_classification, make_regression
from torch import nn

import databanzhaf as db
from databanzhaf.games import Module, Network
from databanzhaf.kernels import stacked


def dataset(n=30, n_val=50, n_classes=2, labels=None, **options):
    X, y = make_classification(
        n + n_val, n_features=6, n_informative=4, n_classes=n_classes, random_state=1
    )
    y = y if labels is None else np.array(labels)[y]
    return db.Dataset(X[:n], y[:n], X[n:], y[n:], **options)


def with_first_row(number):
    data = dataset()
    X = data.X.copy()
    X[0] = number
    return db.Dataset(X, data.y, data.X_val, data.y_val)


def regression(n=30, n_val=50):
    X, y = make_regression(n + n_val, 6, noise=1.0, random_state=1)
    y = y / y.std()
    return db.Dataset(X[:n], y[:n], X[n:], y[n:])


def images(n=24, n_val=16):
    rng = np.random.default_rng(0)
    y = np.arange(n + n_val) % 2
    X = rng.normal(size=(n + n_val, 1, 8, 8)).astype(np.float32)
    X[:, 0, 2:5, 2:5] += 1.5 * y[:, None, None]
    return db.Dataset(X[:n], y[:n], X[n:], y[n:])


def mlp():
    return nn.Sequential(nn.Linear(6, 10), nn.LeakyReLU(), nn.Linear(10, 2))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(6, 2),
    )


def jobs(n, m=12, seed=0):
    return db.designs.Coin(n, seed).coalitions(np.arange(m)), db.chance.keys(seed, 2, np.arange(m))


def test_network_and_module_of_the_same_net_agree():
    data = dataset()
    network = Network(data, hidden=(10,), epochs=6, learning_rate=1e-2)
    module = Module(mlp, data, epochs=6, learning_rate=1e-2, device="cpu")
    coalitions, keys = jobs(30, 60)
    np.testing.assert_allclose(
        module.utility(coalitions, keys), network.utility(coalitions, keys), atol=1e-4
    )


def test_values_of_the_devices_correlate():
    """The reference, Numba and torch start from the same bits: accuracies within two rows for 95%
    of models, values above 0.99.
    """
    from databanzhaf.kernels import reference

    data = dataset(n=20, n_val=60)
    game = Network(data, hidden=(12,), epochs=5, metric="accuracy", threads=2)
    module = Module(
        lambda: nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(), nn.Linear(12, 2)),
        data,
        epochs=5,
        learning_rate=1e-2,
        metric="accuracy",
    )
    design = db.designs.Coin(20, 3)
    coalitions, keys = design.coalitions(np.arange(2000)), db.chance.keys(3, 2, np.arange(2000))
    runs = {"numba": game.utility(coalitions, keys), "torch": module.utility(coalitions, keys)}
    twin = runs["numba"].copy()
    some = coalitions.any(axis=1)
    twin[some] = reference.train(game.recipe, game.rows, coalitions[some], keys[some]).scores
    truth = db.estimate(db.Evaluations(design, np.arange(2000), twin[:, None]))
    for scores in runs.values():
        assert np.mean(np.abs(scores - twin) <= 2 / 60 + 1e-9) >= 0.95
        values = db.estimate(db.Evaluations(design, np.arange(2000), scores[:, None])).values
        assert np.corrcoef(values, truth.values)[0, 1] > 0.99


def test_flipped_labels_get_the_lowest_values():
    X, y = make_classification(300, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=3)
    labels = y.copy()
    labels[:8] = 1 - labels[:8]
    data = db.Dataset(X[:80], labels[:80], X[80:], y[80:])
    estimate = db.value(Network(data, hidden=(16,)), budget=3000)
    assert np.isin(estimate.ranking()[:8], np.arange(8)).sum() >= 6


def test_out_of_coalition_confidence_is_a_second_signal_for_wrong_labels():
    X, y = make_classification(300, 6, n_informative=4, class_sep=1.5, flip_y=0, random_state=3)
    labels = y.copy()
    labels[:8] = 1 - labels[:8]
    data = db.Dataset(X[:80], labels[:80], X[80:], y[80:])
    game = Network(data, hidden=(16,))
    own = game.own(game.train(*jobs(80, 400), unseen=True).unseen)
    assert np.isin(np.argsort(np.nanmean(own, axis=0))[:8], np.arange(8)).sum() >= 6
    assert np.array_equal(np.isnan(own), jobs(80, 400)[0])


@pytest.mark.parametrize(
    "make",
    [lambda d: Network(d, hidden=(5,), epochs=2), lambda d: Module(mlp, d, epochs=2)],
    ids=["network", "module"],
)
def test_resuming_keeps_the_ledger(tmp_path, make):
    data = dataset()
    game = make(data)
    db.value(game, budget=40, ledger=tmp_path / "parts.db")
    parts = db.value(game, budget=90, repeats=2, ledger=tmp_path / "parts.db")
    whole = db.value(game, budget=90, repeats=2, ledger=tmp_path / "whole.db")
    np.testing.assert_allclose(parts.values, whole.values, atol=1e-6)
    if isinstance(game, Network):
        with db.Ledger(tmp_path / "parts.db") as one, db.Ledger(tmp_path / "whole.db") as two:
            assert np.array_equal(one.utilities(), two.utilities())
    again = db.value(make(data), budget=90, repeats=2, ledger=tmp_path / "parts.db")
    assert np.array_equal(again.values, parts.values)


def test_processes_give_the_same_bits():
    game = Network(dataset(), hidden=(5,), epochs=2)
    serial = db.value(game, budget=40)
    assert np.array_equal(
        db.value(game, budget=40, evaluator=db.evaluators.Processes(2)).values, serial.values
    )


def test_outcomes_can_be_scored_by_any_metric(tmp_path):
    data = dataset(labels=["no", "yes"])
    with db.Ledger(tmp_path / "run.db", keep="outcomes") as ledger:
        first = db.value(Network(data, hidden=(5,), epochs=3), budget=50, ledger=ledger)
    for score in ("accuracy", "log_loss", "roc_auc", "balanced_accuracy"):
        again = db.estimate(
            tmp_path / "run.db", game=Network(data, hidden=(5,), epochs=3, metric=score)
        )
        fresh = db.value(Network(data, hidden=(5,), epochs=3, metric=score), budget=50)
        np.testing.assert_allclose(again.values, fresh.values, atol=1e-5)
    np.testing.assert_allclose(
        first.values, db.value(Network(data, hidden=(5,), epochs=3), budget=50).values, atol=1e-6
    )


def test_an_empty_coalition_predicts_the_majority_or_the_mean():
    data = dataset(n_classes=3, labels=["a", "b", "c"])
    nobody, key = np.zeros((1, 30), bool), np.zeros(1, np.uint64)
    labels, counts = np.unique(data.y, return_counts=True)
    share = np.mean(data.y_val == labels[counts.argmax()])
    for score in ("probability", "accuracy"):
        assert Network(data, metric=score).utility(nobody, key)[0] == pytest.approx(share)
    target = regression()
    mean = -np.mean((target.y.mean() - target.y_val) ** 2)
    assert Network(target, loss="squared", metric="mse").utility(nobody, key)[0] == pytest.approx(
        mean, rel=1e-5
    )
    both = np.vstack([nobody, ~nobody])
    trained = Network(data).train(both, np.zeros(2, np.uint64), predictions=True, unseen=True)
    assert trained.predictions.shape == (2, 50, 3)
    assert trained.scores[0] == pytest.approx(share)
    lonely = Network(data).train(nobody, key, predictions=True, unseen=True)
    for seen in (trained, lonely):
        assert (seen.unseen[0].argmax(axis=1) == counts.argmax()).all()
    assert np.isnan(trained.unseen[1]).all()


def test_regression_groups_pandas_and_logistic():
    target = regression()
    full, key = np.ones((1, 30), bool), np.zeros(1, np.uint64)
    assert Network(target, loss="squared", epochs=60).utility(full, key)[0] > 0.8
    assert (
        Network(
            target,
            hidden=(),
            loss="squared",
            epochs=200,
            batch_size=None,
            optimizer="sgd",
            learning_rate=0.1,
        ).utility(full, key)[0]
        > 0.9
    )
    frame = pd.DataFrame(dataset().X, index=[f"r{i}" for i in range(30)])
    data = db.Dataset(
        frame, dataset().y, pd.DataFrame(dataset().X_val), dataset().y_val, groups=np.arange(30) % 3
    )
    estimate = db.value(Network(data, hidden=(), epochs=5), repeats=2)
    assert estimate.estimator.name == "exact"
    assert estimate.values.shape == (3,)


def test_targets_of_any_size_are_learned_and_scored_in_their_own_units():
    plain = regression()
    coalitions, keys = jobs(30, 6)
    coalitions[0] = False
    for center, spread in ((0.0, 1.0), (1e8, 1.0), (-5.0, 1e6), (3.0, 1e-6)):
        far = db.Dataset(
            plain.X, center + spread * plain.y, plain.X_val, center + spread * plain.y_val
        )
        options = {"loss": "squared", "epochs": 5, "device": "cpu"}
        expected, got = (
            Network(data, **options).train(coalitions, keys, predictions=True)
            for data in (plain, far)
        )
        np.testing.assert_allclose(got.scores, expected.scores, atol=1e-4)
        np.testing.assert_allclose(
            (got.predictions - center) / spread, expected.predictions, atol=1e-2
        )
        mse = Network(far, metric="mse", **options)
        np.testing.assert_allclose(
            mse.utility(coalitions, keys),
            -np.mean((got.predictions[..., 0] - far.y_val) ** 2, axis=1),
            rtol=1e-3,
        )
        np.testing.assert_allclose(
            mse.utility(coalitions, keys),
            [mse.score(o) for o in mse.outcomes(coalitions, keys)],
            rtol=1e-4,
        )


def test_logistic_regression_nears_scikit_learns():
    from sklearn.linear_model import LogisticRegression

    data = dataset(n=200)
    full, key = np.ones((1, 200), bool), np.zeros(1, np.uint64)
    game = Network(
        data, hidden=(), optimizer="sgd", batch_size=None, learning_rate=0.2, epochs=5000
    )
    model = LogisticRegression(C=np.inf).fit(data.X, data.y)
    predicted = game.train(full, key, predictions=True).predictions[0]
    np.testing.assert_allclose(predicted, model.predict_proba(data.X_val), atol=0.02)


def test_convolutions_unfolded_or_not_agree_with_plain_torch():
    data = images()
    coalitions, keys = jobs(24, 6)
    plain = Module(cnn, data, epochs=3, batch_size=8, device="cpu", unfold=False).train(
        coalitions, keys, predictions=True
    )
    unfolded = Module(cnn, data, epochs=3, batch_size=8, device="cpu", unfold=True).train(
        coalitions, keys, predictions=True
    )
    np.testing.assert_allclose(unfolded.predictions, plain.predictions, atol=1e-4)
    # One model by hand: torch's own loop from the same start and the same batches.
    from databanzhaf.kernels import reference

    game = Module(cnn, data, epochs=3, batch_size=8, device="cpu", unfold=False)
    start = game._trainer.eager.initial(torch.from_numpy(keys[:1].view(np.int64)))
    net = cnn()
    net.load_state_dict({name: p[0] for name, p in start.items()})
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        for batch in reference.batches(game.recipe, game.rows, coalitions[0], keys[0], epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(
                net(torch.from_numpy(data.X[batch])), torch.from_numpy(data.y[batch])
            ).backward()
            optimizer.step()
    by_hand = torch.softmax(net(torch.tensor(data.X_val)), dim=1).detach().numpy()
    np.testing.assert_allclose(plain.predictions[0], by_hand, atol=1e-4)


def test_dropout_is_keyed_by_model_and_off_when_scoring():
    data = dataset()
    game = Module(
        lambda: nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Dropout(0.5), nn.Linear(20, 2)),
        data,
        epochs=4,
        chunk=5,
    )
    none = Module(
        lambda: nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Dropout(0.0), nn.Linear(20, 2)),
        data,
        epochs=4,
    )
    coalitions, keys = jobs(30, 12)
    first = game.utility(coalitions, keys)
    np.testing.assert_allclose(game.utility(coalitions[::-1], keys[::-1])[::-1], first, atol=1e-6)
    assert np.abs(first - none.utility(coalitions, keys)).max() > 1e-3
    from databanzhaf.kernels.torch_layers import KeyedDropout

    layer = KeyedDropout(0.3, 0)
    ones = torch.ones(100, 1000)
    dropped = layer.train()(ones)
    assert (dropped == 0).float().mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 1e5))
    assert dropped.mean() == pytest.approx(1, abs=0.01)
    assert torch.equal(layer.eval()(ones), ones)


class Odd(nn.Module):
    """A parameter whose law only the module knows."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(6))
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(x * self.scale)


def test_modules_with_their_own_initial_law_are_built_under_the_key():
    game = Module(Odd, dataset(), epochs=2)
    coalitions, keys = jobs(30, 5)
    state = torch.random.get_rng_state()
    assert np.array_equal(game.utility(coalitions, keys), game.utility(coalitions, keys))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert len(set(game.utility(np.ones((3, 30), bool), keys[:3]))) == 3


def test_norms_custom_losses_and_group_norm():
    data = dataset()
    game = Module(
        lambda: nn.Sequential(
            nn.Linear(6, 8), nn.GroupNorm(2, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2)
        ),
        data,
        loss=lambda outputs, y: nn.functional.cross_entropy(
            outputs, y, reduction="none", label_smoothing=0.1
        ),
        epochs=3,
    )
    assert np.isfinite(game.utility(*jobs(30, 5))).all()
    target = regression()
    squared = Module(
        lambda: nn.Linear(6, 1), target, loss="squared", epochs=100, learning_rate=0.05
    )
    assert squared.utility(np.ones((1, 30), bool), np.zeros(1, np.uint64))[0] > 0.8


def test_divergence_is_an_error_that_names_the_evaluation():
    game = Network(regression(), loss="squared", optimizer="sgd", learning_rate=1e20, epochs=5)
    with pytest.raises(db.EvaluationFailed, match="nan") as error:
        db.value(game, budget=20)
    assert error.value.index == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_whole_chunks_run_compiled_and_agree_with_eager_ones():
    data = dataset()
    coalitions, keys = jobs(30, 5)
    eager = Module(mlp, data, epochs=2, device="cpu").train(
        coalitions, keys, predictions=True, unseen=True
    )
    game = Module(mlp, data, epochs=2, device="cpu", compiles=True, chunk=4)
    first = game.train(coalitions[:1], keys[:1], predictions=True)  # eager: nothing is compiled yet
    assert not game._trainer.warm
    compiled = game.train(
        coalitions, keys, predictions=True, unseen=True
    )  # a whole chunk, then one model filled up with copies
    assert game._trainer.warm
    np.testing.assert_allclose(first.predictions, eager.predictions[:1], atol=1e-6)
    np.testing.assert_allclose(compiled.predictions, eager.predictions, atol=1e-5)
    np.testing.assert_allclose(compiled.unseen, eager.unseen, atol=1e-4)


def test_the_compilers_advice_is_not_shown_and_other_warnings_are(monkeypatch):
    game = Module(mlp, dataset(), device="cpu", compiles=True)
    for module, shown in (("torch._inductor.lowering", False), ("somebody.else", True)):
        monkeypatch.setattr(
            game._trainer,
            "_train",
            lambda *_, module=module: warnings.warn_explicit(
                "slow", UserWarning, "file.py", 1, module
            ),
        )
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            game.train(*jobs(30, 2))
        assert bool(seen) == shown


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_a_part_of_a_chunk_is_compiled_for_where_eager_steps_would_take_longer(monkeypatch):
    trainer = Module(mlp, dataset(), epochs=2, device="cpu", compiles=True, chunk=8)._trainer
    monkeypatch.setattr(
        trainer, "parameter_hashes", range(10**8)
    )  # models too large to fill a chunk with copies for nothing
    assert [trainer._fill(size, 30) for size in (3, 5)] == [None, None]
    for size, fill in ((3, 3), (5, 8)):  # alone if less than half, else as a whole chunk
        steps = 2 * -(-30 // trainer.recipe.batch_size)
        monkeypatch.setattr(stacked, "_LONG", size * steps * trainer._step_bytes)
        assert trainer._fill(size, 30) is None
        monkeypatch.setattr(stacked, "_LONG", size * steps * trainer._step_bytes - 1)
        assert trainer._fill(size, 30) == fill
    monkeypatch.setattr(stacked, "_LONG", 10**12)
    assert trainer.warm
    assert [trainer._fill(size, 30) for size in (3, 5, 8)] == [
        None,
        8,
        8,
    ]  # the code for whole chunks is there now
    assert Module(mlp, dataset(), device="cpu", chunk=8)._trainer._fill(8, 30) is None


def test_many_parts_of_chunks_are_worth_compiling_a_whole_one(monkeypatch):
    trainer = Module(mlp, dataset(), epochs=2, device="cpu", compiles=True, chunk=8)._trainer
    steps = 2 * -(-30 // trainer.recipe.batch_size)
    monkeypatch.setattr(stacked, "_LONG", 2 * 5 * steps * trainer._step_bytes)
    assert [trainer._fill(5, 30) for _ in range(5)] == [None, None, None, 8, 8]


BATCH_NORM = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network(dataset(), activation="swish"), "activation"),
        (lambda: Network(dataset(), optimizer="lion"), "optimizer"),
        (lambda: Network(dataset(), loss="hinge"), "loss"),
        (lambda: Network(dataset(), metric="r2"), "score"),
        (lambda: Network(dataset(), metric="nonsense"), "score"),
        (lambda: Network(regression(), loss="squared", metric="accuracy"), "score"),
        (lambda: Network(regression()), "squared"),
        (lambda: Network(dataset(), metric_at="first"), "metric_at"),
        (lambda: Network(dataset(), metric="roc_auc", metric_at="best_epoch"), "best_epoch"),
        (lambda: Network(dataset(), hidden=(0,)), "hidden"),
        (lambda: Network(dataset(), hidden="100"), "hidden"),
        (lambda: Network(dataset(), epochs=0), "epochs"),
        (lambda: Network(dataset(), batch_size=0), "batch_size"),
        (lambda: Network(dataset(), learning_rate=0), "learning_rate"),
        (lambda: Network(dataset(), threads=0), "threads"),
        (lambda: Network(dataset(), sample_weight=[1, 2]), "sample_weight"),
        (lambda: Network(dataset(), sample_weight=-np.ones(30)), "sample_weight"),
        (lambda: Network(dataset(), weighting="sampling"), "sample_weight"),
        (lambda: Network(dataset(), weighting="luck"), "weighting"),
        (lambda: Network(dataset(), smoothing=(0, 0.1)), "smoothing"),
        (lambda: Network(dataset(), device="tpu"), "device"),
        (lambda: Network("data"), "dataset"),
        (lambda: Network(images()), "Module"),
        (lambda: Network(db.Dataset([[np.nan], [1.0]], [0, 1], [[1.0]], [1])), "row 0"),
        (lambda: Network(db.Dataset([["a"], ["b"]], [0, 1], [["a"]], [1])), "numbers"),
        (lambda: Network(db.Dataset([[0.0], [1.0]], [0, 1], [[1.0]], [2])), "classes"),
        (
            lambda: Network(
                db.Dataset([[0.0], [1.0]], [0.0, 1.0], [[1.0], [0.0]], [2.0, 2.0]), loss="squared"
            ),
            "mse",
        ),
        (
            lambda: Network(regression(), loss="squared").own(np.zeros((2, 30, 1))),
            "own label",
        ),
        (lambda: Module(lambda: BATCH_NORM, dataset()), "GroupNorm"),
        (
            lambda: Module(lambda: nn.Sequential(nn.Linear(6, 2), nn.Dropout2d()), dataset()),
            "nn.Dropout",
        ),
        (lambda: Module(lambda: nn.Linear(6, 5), dataset()), "last layer"),
        (lambda: Module(lambda: nn.LSTM(6, 2), dataset()), "LSTM"),
        (lambda: Module(lambda: 3, dataset()), "nn.Module"),
        (lambda: Module(nn.Linear(6, 2), dataset()), "make_module"),
        (lambda: Module(mlp, dataset(), chunk=0), "chunk"),
    ],
)
def test_bad_input_gets_one_clear_sentence(make, words):
    with pytest.raises(db.InvalidInput) as error:
        make()
    assert words in str(error.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_cuda_asked_for_and_absent_is_an_error_not_another_device():
    for make in (
        lambda: Network(dataset(), device="cuda"),
        lambda: Module(mlp, dataset(), device="cuda:0"),
    ):
        with pytest.raises(db.BackendUnavailable, match="CUDA"):
            make()
    assert Network(dataset(), device="auto").device == "cpu"


def test_torch_is_not_needed_for_the_network_on_the_cpu():
    import subprocess
    import sys

    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'torch':\n            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy as np, databanzhaf as db\n"
        "data = db.Dataset(np.eye(4), [0, 1, 0, 1], np.eye(4), [0, 1, 0, 1])\n"
        "print(db.value(db.games.Network(data, hidden=(3,), epochs=2)).values.shape)\n"
        "try:\n    db.games.Module(lambda: None, data)\nexcept db.BackendUnavailable as error:\n  "
        "  print(error)\n"
        "try:\n    db.games.Network(data, device='cuda')\nexcept db.BackendUnavailable as "
        "error:\n    print(error)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert out.startswith("(4,)")
    assert out.count("pip install") == 2


@pytest.mark.parametrize("threads", [1, 2])
def test_a_diverged_model_lends_no_other_models_predictions(threads):
    data = with_first_row(3e38)
    coalitions, keys = jobs(30, 8)
    coalitions[:, 0] = np.arange(8) % 2 == 0
    game = Network(
        data, optimizer="sgd", learning_rate=0.1, epochs=3, metric="accuracy", threads=threads
    )
    diverged = np.isnan(game.utility(coalitions, keys))
    assert diverged.tolist() == [True, False] * 4
    assert (
        np.isnan([game.score(outcome) for outcome in game.outcomes(coalitions, keys)]).tolist()
        == diverged.tolist()
    )
    other = Network(
        data,
        optimizer="sgd",
        learning_rate=0.1,
        epochs=3,
        metric="balanced_accuracy",
        threads=threads,
    )
    assert np.isnan(other.utility(coalitions, keys)).tolist() == diverged.tolist()


def test_rows_outside_the_coalition_cannot_matter():
    for loss in (
        nn.CrossEntropyLoss(),
        lambda outputs, y: nn.functional.cross_entropy(outputs, y, reduction="none")[:, None],
    ):
        with pytest.raises(db.InvalidInput, match="one number per row"):
            Module(mlp, dataset(), loss=loss)
    one, two = dataset(), with_first_row(100.0)
    coalitions, keys = jobs(30, 6)
    coalitions[:, 0] = False
    per_row = nn.CrossEntropyLoss(reduction="none")
    first, second = (
        Module(mlp, data, loss=per_row, batch_size=8, epochs=4).utility(coalitions, keys)
        for data in (one, two)
    )
    assert np.array_equal(first, second)


class Tanh(nn.Module):
    def __init__(self, kind="tanh"):
        super().__init__()
        self.first, self.last, self.kind = nn.Linear(6, 4), nn.Linear(4, 2), kind

    def forward(self, x):
        return self.last(
            torch.tanh(self.first(x)) if self.kind == "tanh" else torch.relu(self.first(x))
        )


def test_modules_and_losses_that_differ_have_other_fingerprints():
    from functools import partial

    data = dataset()
    weights = [
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, w]), reduction="none") for w in (1.0, 2.0)
    ]
    games = [
        Module(partial(Tanh, "tanh"), data),
        Module(partial(Tanh, "relu"), data),
        Module(mlp, data),
        Module(lambda: nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2)), data),
        Module(mlp, data, loss=weights[0]),
        Module(mlp, data, loss=weights[1]),
        Module(mlp, data, metric_at="best_epoch"),
        Network(data),
        Network(data, metric_at="best_epoch"),
        Network(data, sample_weight=np.ones(30)),
    ]
    prints = [str(game.fingerprint()) for game in games]
    assert len(set(prints)) == len(games)
    assert str(Module(partial(Tanh, "relu"), data).fingerprint()) == prints[1]


def test_initial_values_of_the_users_own_and_frozen_parameters_are_kept():
    def constant(value):
        net = nn.Linear(6, 2)
        nn.init.constant_(net.weight, value)
        nn.init.zeros_(net.bias)
        return net

    def frozen():
        net = mlp()
        nn.init.constant_(net[0].weight, 0.1)
        net[0].weight.requires_grad_(False)
        return net

    data, (coalitions, keys) = dataset(), jobs(30, 4)
    same = Module(lambda: constant(0.0), data, epochs=1, learning_rate=1e-9).utility(
        coalitions, keys
    )
    assert same == pytest.approx(np.full(4, 0.5), abs=1e-4)
    game = Module(frozen, data, epochs=3, learning_rate=0.1)
    assert np.isfinite(game.utility(coalitions, keys)).all()
    assert "0.weight" not in game._trainer.eager.initial(torch.from_numpy(keys.view(np.int64)))
    assert (game._trainer.module[0].weight == 0.1).all()


def test_a_best_epoch_run_cannot_be_scored_by_another_metric(tmp_path):
    data = dataset()
    with db.Ledger(tmp_path / "run.db", keep="outcomes") as ledger:
        db.value(
            Network(data, hidden=(4,), epochs=3, metric_at="best_epoch"), budget=20, ledger=ledger
        )
    with pytest.raises(db.LedgerMismatch, match="epoch"):
        db.estimate(
            tmp_path / "run.db",
            game=Network(data, hidden=(4,), epochs=3, metric="accuracy", metric_at="best_epoch"),
        )


def test_log_loss_is_the_same_from_outcomes():
    data = dataset()
    sharp = db.Dataset(data.X * 30, data.y, data.X_val * 30, data.y_val)
    game = Network(sharp, epochs=30, learning_rate=0.1, metric="log_loss")
    coalitions, keys = jobs(30, 8)
    np.testing.assert_allclose(
        [game.score(outcome) for outcome in game.outcomes(coalitions, keys)],
        game.utility(coalitions, keys),
        atol=1e-4,
    )


def test_rows_of_weight_zero_are_unseen_and_keys_may_be_plain_numbers():
    weights = np.ones(30)
    weights[:10] = 0
    coalitions, _ = jobs(30, 40)
    game = Network(dataset(), sample_weight=weights, epochs=2)
    trained = game.train(coalitions, np.arange(40), unseen=True)
    assert np.isfinite(trained.unseen[:, :10]).all()
    assert np.array_equal(np.isnan(trained.unseen[:, 10:, 0]), coalitions[:, 10:])
    assert np.array_equal(trained.scores, game.utility(coalitions, np.arange(40, dtype=np.uint64)))


def test_a_regression_with_a_loss_of_ones_own():
    game = Module(
        lambda: nn.Linear(6, 1),
        regression(),
        loss=lambda outputs, y: nn.functional.huber_loss(outputs[:, 0], y, reduction="none"),
        epochs=100,
        learning_rate=0.05,
    )
    assert not game.classifies
    assert game.utility(np.ones((1, 30), bool), np.zeros(1, np.uint64))[0] > 0.8


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Network(dataset(), hidden=100), "hidden"),
        (lambda: Network(dataset(), smoothing=5), "smoothing"),
        (lambda: Network(dataset(), betas=0.9), "betas"),
        (lambda: Network(dataset(), momentum="x"), "momentum"),
        (lambda: Network(dataset(), eps=-1.0), "eps"),
        (lambda: Network(dataset(), loss=nn.CrossEntropyLoss()), "Module"),
        (lambda: Network(dataset(), device=torch.device("cpu")), "device"),
        (lambda: Module(mlp, dataset(), weighting="samplng"), "weighting"),
        (lambda: Module(mlp, dataset(), weighting="sampling"), "sample_weight"),
        (lambda: Module(mlp, dataset(), smoothing=(-1, 0.1)), "smoothing"),
        (lambda: Module(lambda: nn.Linear(5, 2), dataset()), "rows of shape"),
        (lambda: Module(lambda: nn.TransformerEncoderLayer(6, 2, dropout=0.5), images()), "module"),
    ],
)
def test_more_bad_input_gets_one_clear_sentence(make, words):
    with pytest.raises(db.InvalidInput) as error:
        make()
    assert words in str(error.value)


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(nn.functional.dropout(x, 0.5, self.training))


def test_unkeyed_randomness_is_refused():
    with pytest.raises(db.InvalidInput, match=r"nn\.Dropout"):
        Module(Noisy, dataset())


def test_one_dropout_layer_in_two_places_is_keyed_twice():
    def twice():
        drop = nn.Dropout(0.5)
        return nn.Sequential(nn.Linear(6, 8), drop, nn.Linear(8, 8), drop, nn.Linear(8, 2))

    game = Module(twice, dataset(), epochs=2)
    assert len(game._trainer.program.dropouts) == 2
    coalitions, keys = jobs(30, 3)
    assert np.array_equal(game.utility(coalitions, keys), game.utility(coalitions, keys))
