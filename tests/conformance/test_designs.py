"""What every design promises: a pure function of the index, whatever the batch."""

import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs
from databanzhaf.testing import check_design


def in_folds(first, second):
    """Seven players: 0, 1 and 2 judge in one fold, 3 and 4 in the other, 5 and 6 in none."""
    parts = designs.describe(first), designs.describe(second)
    return designs.Folds(7, parts, (0, 0, 0, 1, 1, -1, -1), (0, 0, 0, 1, 1))


LAW = tuple(db.Shapley().weights(7))
DESIGNS = [
    designs.Coin(7, 3),
    designs.Coin(7, 3, 0.2),
    designs.Coin(1, 0),
    designs.Coin(130, 1),
    designs.Anchored(7, 3),
    designs.Complementary(7, 3),
    designs.Exhaustive(7),
    designs.Exhaustive(1),
    designs.LeaveOneOut(7),
    designs.LeaveOneOut(1),
    designs.Paired(7, 3, LAW),
    designs.Paired(1, 3, (1.0,)),
    designs.Permutation(7, 3),
    designs.Permutation(1, 3),
    designs.Permutation(7, 3, 0.1),
    designs.Sized(7, 3, (1, 0, 5, 9, 2, 2, 4, 3)),
    designs.Sized(1, 3, (2, 1)),
    designs.GroupTesting(7, 3),
    designs.GroupTesting(1, 3),
    in_folds(designs.Exhaustive(4), designs.Exhaustive(5)),
    in_folds(designs.Permutation(4, 0), designs.Permutation(5, 1)),
    in_folds(designs.Coin(4, 0), designs.Coin(5, 1)),
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


@dataclass(frozen=True)
class Drawn(Halves):
    def coalitions(self, indices):
        return np.random.default_rng().random((len(indices), self.n_players)) < 0.5


@dataclass(frozen=True)
class Counted(Halves):
    def coalitions(self, indices):
        return super().coalitions(np.arange(len(indices)))


@dataclass(frozen=True)
class Wrapped(Halves):
    wrap: int = 256

    def coalitions(self, indices):
        return designs.Coin(self.n_players, 0).coalitions(np.asarray(indices) % self.wrap)


@dataclass(frozen=True)
class Short(Halves):
    size: int | None = 1000

    def coalitions(self, indices):
        if (np.asarray(indices) >= 300).any():
            raise IndexError("the list has ended")
        return super().coalitions(indices)


@dataclass(frozen=True)
class Odd(Halves):
    size: int | None = None
    unit: int = 1


@dataclass
class Thawed:
    n_players: int
    size, unit, coalitions = None, 1, Halves.coalitions
    shift = 0


@dataclass(frozen=True)
class Derived(Halves):
    total: int = field(init=False, default=0)


@dataclass(frozen=True)
class Named(Halves):
    design: str = "mine"


@dataclass(frozen=True)
class Listed(Halves):
    law: object = ()


class Plain:
    n_players, size, unit, shift, coalitions = 6, None, 1, 0, Halves.coalitions


class Partial:
    n_players = 6


BROKEN = [
    (Drawn(6), r"the same call .* index \d: got"),
    (Counted(6), "order of the indices does not matter; index"),
    (Wrapped(6), "256 to 495 are those of 0 to 239 again"),
    (Wrapped(6, wrap=777), "777 to 1,016 are those of 0 to 239 again"),
    (Wrapped(6, wrap=2**16), "65,536 to 65,775 are those of 0 to 239 again"),
    (Short(6), "below its size of 1,000; indices 0 to 999 gave IndexError: the list has ended"),
    (Short(6, size=None), "endless .* gave IndexError: the list has ended"),
    (Odd(6, unit=0), "`unit` is a whole number, 1 or more; got 0"),
    (Odd(6, size=0), "`size` is None or a whole number, 1 or more; got 0"),
    (Thawed(6), r"frozen dataclass; Thawed is not decorated by @dataclass\(frozen=True\)"),
    (Plain(), "frozen dataclass; Plain"),
    (Derived(6), "field `total` .* init=False"),
    (Named(6), "field .* called `design`"),
    (Listed(6, law={1, 2}), "into JSON; got InvalidInput"),
    (Listed(6, law=(1, 2)), r"after a ledger has stored it; got .*law=\[1, 2\]"),
    (Partial(), "without coalitions, size, unit"),
    (Halves, "an object; got the class Halves"),
]


@pytest.mark.parametrize(("design", "sentence"), BROKEN, ids=lambda x: getattr(x, "__name__", None))
def test_designs_that_break_a_promise_are_found(design, sentence):
    with pytest.raises(AssertionError, match=sentence):
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
