"""What every design promises: a pure function of the index, whatever the batch."""

import json

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs

LAW = tuple(db.Shapley().weights(7))
DESIGNS = [
    designs.Coin(7, 3),
    designs.Coin(7, 3, 0.2),
    designs.Coin(1, 0),
    designs.Coin(130, 1),
    designs.Anchored(7, 3),
    designs.Exhaustive(7),
    designs.Exhaustive(1),
    designs.LeaveOneOut(7),
    designs.LeaveOneOut(1),
    designs.Paired(7, 3, LAW),
    designs.Paired(1, 3, (1.0,)),
    designs.Permutation(7, 3),
    designs.Permutation(1, 3),
    designs.Permutation(7, 3, 0.1),
    designs.GroupTesting(7, 3),
    designs.GroupTesting(1, 3),
]
each_design = pytest.mark.parametrize("design", DESIGNS, ids=repr)


def indices(design):
    return np.arange(min(design.size or 240, 240))


@each_design
def test_shape_and_type(design):
    coalitions = design.coalitions(indices(design))
    assert coalitions.dtype == np.bool_
    assert coalitions.shape == (len(indices(design)), design.n_players)
    assert design.coalitions(np.empty(0, dtype=np.int64)).shape == (0, design.n_players)


@each_design
def test_the_batch_does_not_matter(design, rng):
    index = indices(design)
    whole = design.coalitions(index)
    shuffled = rng.permutation(index)
    assert np.array_equal(design.coalitions(shuffled), whole[shuffled])
    assert np.array_equal(np.vstack([design.coalitions(index[i : i + 1]) for i in index]), whole)


@each_design
def test_a_design_survives_the_ledgers_json(design):
    again = designs.restore(json.loads(json.dumps(designs.describe(design))))
    assert again == design
    assert np.array_equal(again.coalitions(indices(design)), design.coalitions(indices(design)))


@pytest.mark.parametrize("design", [d for d in DESIGNS if hasattr(d, "seed") and d.n_players == 7], ids=repr)
def test_the_seed_matters(design):
    from dataclasses import replace

    assert not np.array_equal(replace(design, seed=4).coalitions(np.arange(240)), design.coalitions(np.arange(240)))


def test_an_unknown_design_is_refused():
    with pytest.raises(db.InvalidInput, match="no design"):
        designs.restore({"design": "Lottery"})
    with pytest.raises(db.InvalidInput, match="dataclass"):
        designs.describe(object())
