"""What every design promises: a pure function of the index, whatever the batch."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs
from databanzhaf.testing import check_design

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


@each_design
def test_a_design_keeps_its_promises(design):
    check_design(design)


@dataclass(frozen=True)
class Halves:
    """A design from outside the package: the first or the second half of the players."""

    n_players: int
    shift: int = 0

    size, unit = None, 1

    def coalitions(self, indices):
        first = np.arange(self.n_players) < self.n_players // 2
        return np.asarray(first ^ ((np.asarray(indices)[:, None] + self.shift) % 2 == 1))


def test_a_design_from_outside_is_stored_and_read(tmp_path):
    check_design(Halves(6, 1))
    assert designs.describe(Halves(6, 1))["design"] == f"{__name__}:Halves"
    with db.Ledger(tmp_path / "run.db") as ledger:
        ledger.bind({"game": "g"}, designs.describe(Halves(6)), seed=0, stochastic=False)
        ledger.append(np.arange(4), np.zeros(4, int), np.arange(4.0), np.zeros(4))
    assert db.ledger.read_evaluations(tmp_path / "run.db").design == Halves(6)


def test_a_ledger_does_not_decide_what_is_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    for name in ("antigravity:fly", "subprocess:Popen", "os:system", "no.such:Thing"):
        with pytest.raises(db.InvalidInput, match="not known here"):
            designs.restore({"design": name, "n_players": 3})
    assert "antigravity" not in sys.modules


def test_designs_that_break_a_promise_are_found():
    @dataclass(frozen=True)
    class Drawn(Halves):
        def coalitions(self, indices):
            return np.random.default_rng().random((len(indices), self.n_players)) < 0.5

    @dataclass(frozen=True)
    class Counted(Halves):
        def coalitions(self, indices):
            return super().coalitions(np.arange(len(indices)))

    for design in (Drawn(6), Counted(6)):
        with pytest.raises(AssertionError):
            check_design(design)


@pytest.mark.parametrize(
    "design", [d for d in DESIGNS if hasattr(d, "seed") and d.n_players == 7], ids=repr
)
def test_the_seed_matters(design):
    from dataclasses import replace

    assert not np.array_equal(
        replace(design, seed=4).coalitions(np.arange(240)), design.coalitions(np.arange(240))
    )


def test_an_unknown_design_is_refused():
    with pytest.raises(db.InvalidInput, match="not known here"):
        designs.restore({"design": "Lottery"})
    with pytest.raises(db.InvalidInput, match="dataclass"):
        designs.describe(object())
