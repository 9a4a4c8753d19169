"""What every design promises: a pure function of the index, whatever the batch."""

from __future__ import annotations

import json

import numpy as np

from databanzhaf import designs
from databanzhaf.protocols import Design
from databanzhaf.testing.promises import promise, same

_MOST = 240


def check_design(design: Design) -> None:
    """Check the promises of `protocols.Design`, and that a ledger can store it."""
    promise(isinstance(design, Design), "a design has the members of protocols.Design")
    index = np.arange(min(design.size or _MOST, _MOST))
    whole = design.coalitions(index)
    promise(whole.dtype == np.bool_, f"coalitions are bool; got {whole.dtype}")
    shape = (len(index), design.n_players)
    promise(whole.shape == shape, f"coalitions have shape {shape}; got {whole.shape}")
    none = design.coalitions(np.empty(0, dtype=np.int64))
    promise(none.shape == (0, design.n_players), "no index gives no coalition")
    shuffled = np.random.default_rng(0).permutation(index)
    same(design.coalitions(shuffled), whole[shuffled], "the order of the indices does not matter")
    alone = np.vstack([design.coalitions(index[i : i + 1]) for i in range(len(index))])
    same(alone, whole, "a coalition does not depend on the other indices of a call")
    again = designs.restore(json.loads(json.dumps(designs.describe(design))))
    promise(again == design, "a design is the same after a ledger has stored it")
    same(again.coalitions(index), whole, "a restored design makes the same coalitions")
