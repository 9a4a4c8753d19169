"""The engines on a real CUDA device; skipped where there is none."""

import numpy as np
import pytest
import torch
from torch import nn

import databanzhaf as db
from databanzhaf.games import Module, Network
from tests.games.test_trained import cnn, dataset, images, jobs, regression

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("ignore"),  # torch's compiler warns about itself
]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"hidden": (8, 6), "activation": "tanh"},
        {"hidden": (), "optimizer": "sgd", "batch_size": None, "learning_rate": 0.1},
        {"smoothing": (2, 0.01)},
        {"sample_weight": np.linspace(0, 1, 30), "weighting": "sampling"},
        {"metric": "accuracy", "metric_at": "best_epoch", "loss": "double_softmax"},
    ],
    ids=str,
)
def test_network_equals_the_cpu(options):
    coalitions, keys = jobs(30, 70)
    gpu, cpu = (
        Network(dataset(), device=device, epochs=4, chunk=64, **options).train(
            coalitions, keys, predictions=True, unseen=True
        )
        for device in ("cuda", "cpu")
    )
    np.testing.assert_allclose(gpu.predictions, cpu.predictions, atol=1e-4)
    np.testing.assert_allclose(gpu.unseen, cpu.unseen, atol=1e-4)


def test_module_with_dropout_and_convolutions_equals_the_cpu():
    def dropping():
        return nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Dropout(0.3), nn.Linear(10, 2))

    for make, data, n in ((dropping, dataset(), 30), (cnn, images(), 24)):
        coalitions, keys = jobs(n, 20)
        gpu, cpu = (
            Module(make, data, device=device, epochs=3, tf32=False, chunk=16).utility(
                coalitions, keys
            )
            for device in ("cuda", "cpu")
        )
        np.testing.assert_allclose(gpu, cpu, atol=1e-4)


def test_auto_takes_cuda_and_a_run_resumes_there(tmp_path):
    game = Network(regression(), loss="squared", epochs=3)
    assert game.device == "cuda"
    db.value(game, budget=100, ledger=tmp_path / "run.db")
    resumed = db.value(game, budget=300, ledger=tmp_path / "run.db")
    np.testing.assert_allclose(resumed.values, db.value(game, budget=300).values, atol=1e-5)


def test_running_out_of_memory_halves_the_chunk_and_loses_nothing():
    game = Module(cnn, images(), device="cuda", epochs=2, compiles=False, tf32=False, chunk=4096)
    coalitions, keys = jobs(24, 4096)
    expected = Module(
        cnn, images(), device="cuda", epochs=2, compiles=False, tf32=False, chunk=256
    ).utility(coalitions, keys)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 60 * 2**20) / total)
    try:
        scores = game.utility(coalitions, keys)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert game._trainer.chunk < 4096
    np.testing.assert_allclose(scores, expected, atol=1e-4)
