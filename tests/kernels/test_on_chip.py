"""Networks that are trained inside one Triton program, against the plain NumPy twin."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from databanzhaf.kernels import on_chip, reference
from databanzhaf.kernels.programs import fully_connected
from tests.kernels.interpreted import interpret, needs_triton
from tests.kernels.test_against_reference import BASE, RECIPES, jobs, make_rows

TWO = replace(BASE, sizes=(5, 7, 2))
# (recipe, training rows, validation rows, whether rows have weights), beside those of all kernels
ODD = {
    "a tile and a row": (replace(TWO, sizes=(17, 17, 2), batch_size=17), 34, 17, False),
    "one row": (replace(TWO, epochs=2), 1, 1, False),
    "rows that are left out": (replace(TWO, best_epoch=True), 13, 40, True),
}
LARGE = {
    "as on Pol": (replace(TWO, sizes=(28, 100, 2), batch_size=32, epochs=15), 200, 200, False),
    "wide": (replace(TWO, sizes=(16, 256, 2), batch_size=None), 2048, 100, False),
}


def cases(recipes):
    for name, recipe in recipes.items():
        recipe = replace(recipe, sizes=(*recipe.sizes[:-1], min(2, recipe.sizes[-1])))
        if on_chip.fits(recipe, 13, "cuda"):
            yield name, (recipe, 13, 20, False)


def trainer(recipe, rows, device, chunk):
    program = fully_connected(recipe)
    return on_chip.OnChip(program, recipe, rows, device=device, tf32=False, chunk=chunk)


def check(device, *, models=3, more=()):
    """Scores, predictions and answers for rows that a model has not seen are those of the twin, and
    do not depend on how many models are trained at a time.
    """
    on_chip._available = lambda device: True
    chosen = [*cases(RECIPES), *ODD.items(), *more]
    assert len(chosen) > 15
    for name, (recipe, n, n_val, weighted) in chosen:
        weights = np.arange(n) % 3 if weighted else None
        rows, (members, keys) = make_rows(recipe, n, n_val, weights), jobs(max(n, 3), models)
        members = members[:, :n]
        twin = reference.train(recipe, rows, members, keys, predictions=True, unseen=True)
        ours = trainer(recipe, rows, device, 2).train(members, keys, predictions=True, unseen=True)
        tolerance = {"atol": 2e-4, "err_msg": name}
        scores = {**tolerance, "atol": 1 / n_val if recipe.metric == "accuracy" else 2e-4}
        np.testing.assert_allclose(ours.scores, twin.scores, **scores)
        np.testing.assert_allclose(ours.predictions, twin.predictions, **tolerance)
        np.testing.assert_allclose(ours.unseen, twin.unseen, **tolerance)
    # What else is asked for makes another kernel, which may round in another way.
    again = trainer(recipe, rows, device, models).train(
        members, keys, predictions=True, unseen=True
    )
    np.testing.assert_array_equal(again.scores, ours.scores)
    broken = trainer(replace(recipe, learning_rate=1e300), rows, device, 3).train(members, keys)
    assert np.isnan(broken.scores).all()


@needs_triton
def test_kernel_in_the_interpreter():
    interpret("from tests.kernels.test_on_chip import check; check('cpu')")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_kernel_on_cuda():
    check("cuda", models=12, more=LARGE.items())


def test_only_what_registers_hold_is_trained_on_chip(monkeypatch):
    assert not on_chip.fits(TWO, 13, "cpu")
    monkeypatch.setattr(on_chip, "_available", lambda device: device == "cuda")
    for recipe, n_rows, fits in (
        (TWO, 13, True),
        (replace(BASE, sizes=(32, 128, 1)), 2048, True),
        (replace(BASE, sizes=(16, 256, 2)), 2048, True),
        (TWO, 2049, False),
        (replace(BASE, sizes=(33, 100, 2)), 13, False),
        (replace(BASE, sizes=(32, 129, 2)), 13, False),
        (BASE, 13, False),
        (replace(BASE, sizes=(5, 2)), 13, False),
        (replace(BASE, sizes=(5, 9, 9, 2)), 13, False),
        (replace(TWO, smoothing_draws=1, smoothing_radius=0.1), 13, False),
        (replace(TWO, weighted_sampling=True), 13, False),
        (replace(TWO, eps=1e-16), 13, False),
    ):
        assert on_chip.fits(recipe, n_rows, "cuda") == fits, recipe


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from databanzhaf.kernels.network_triton import network_kernel as kernel

sizes = {"IN": 32, "HIDDEN": 128, "OUT": 2, "BI": 32, "BH": 128, "BN": 256, "TILE": 16}
names = {"ADAM": True, "LOSS": "cross_entropy", "ACTIVATION": "relu", "METRIC": "accuracy"}
flags = {"BEST": True, "PREDICTED": True, "UNSEEN": True, "PRECISION": "tf32x3"}
fixed = {**sizes, **names, **flags}
types = {
    **dict.fromkeys(("y", "y_val", "initial_keys", "order_keys", "hashes"), "*i64"),
    **dict.fromkeys(("n", "n_val", "epochs", "batch", "limit"), "i32"),
    **dict.fromkeys(("half1", "half2", "b1", "b2", "b1_left", "b2_left", "eps"), "fp32"),
    "members": "*i1", "order": "*i32", "scores": "*fp64",
}
signature = {
    name: "constexpr" if name in fixed else types.get(name, "*fp32") for name in kernel.arg_names
}
places = {(kernel.arg_names.index(name),): value for name, value in fixed.items()}
source = ASTSource(fn=kernel, signature=signature, constexprs=places)
options = {"num_warps": 8, "num_stages": 1, "maxnreg": 128}
code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
assert "mma.sync" in code
assert "wgmma" not in code
"""


@needs_triton
def test_compiled_code_has_the_older_matrix_instructions():
    interpret(COMPILE, "0")
