"""A ledger's evaluations as files, and back."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.ledger import export
from tests.ledger.contents import bound, evaluations, made

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("repeats", [1, 3])
def test_what_is_exported_is_what_was_evaluated(repeats, monkeypatch):
    monkeypatch.setattr("databanzhaf.evaluations.BLOCK_CELLS", 12 * 7)  # several blocks
    given = evaluations(50, repeats)
    which = (given[0] != 4) & ~((given[0] == 9) & (given[1] == repeats - 1))
    made("run.db", given, which, players=pd.date_range("2026-01-01", periods=12))
    done = export("run.db", "out")
    assert sorted(file.name for file in done.files) == sorted(
        file.name for file in Path("out").iterdir()
    )
    table = pd.read_parquet("out/evaluations.parquet")
    assert list(table.columns) == ["idx", "rep", "utility", "seconds"]
    for column, numbers in zip(table, given, strict=False):
        assert np.array_equal(table[column], numbers[which])
    left = np.array([index for index in range(50) if index not in (4, 9)])
    masks, utilities, indices = (
        np.load(f"out/{name}.npy") for name in ("masks", "utilities", "indices")
    )
    assert np.array_equal(indices, left)
    assert masks.dtype == np.bool_
    assert np.array_equal(masks, db.designs.Coin(12, 0).coalitions(left))
    expected = given[2].reshape(50, repeats)[left]
    assert np.array_equal(utilities, expected[:, 0] if repeats == 1 else expected)
    assert json.loads(Path("out/players.json").read_text())[0].startswith("2026-01-01")
    assert (done.evaluations, done.coalitions, done.players) == (which.sum(), 48, 12)
    assert done.note == ""


def test_values_follow_from_the_files():
    game = db.games.Function(8, lambda c: np.tanh(c.sum(axis=1) - c[:, 0]), name="tanh")
    truth = db.value(game, estimator="reuse", budget=400, ledger="run.db").values
    export("run.db", "out")
    masks, utilities = np.load("out/masks.npy"), np.load("out/utilities.npy")
    values = [utilities[inside].mean() - utilities[~inside].mean() for inside in masks.T]
    np.testing.assert_allclose(values, truth, atol=1e-12)
    assert not Path("out/players.json").exists()


@pytest.mark.parametrize(
    ("players", "stored"),
    [
        ([1.5, "b", np.int64(3)], [1.5, "b", 3]),
        (pd.MultiIndex.from_product([["ä"], [1, 2, 3]]), [["ä", 1], ["ä", 2], ["ä", 3]]),
    ],
)
def test_names_of_players(players, stored):
    game = db.games.Function(3, lambda c: c.sum(axis=1), name="sum", players=players)
    db.value(game, ledger="run.db")
    export("run.db", "out")
    found = json.loads(Path("out/players.json").read_text(encoding="utf-8"))
    assert found == [name if isinstance(name, (list, str, int)) else str(name) for name in stored]


def test_a_run_of_mislabels_has_no_coalitions_to_export():
    design = {"design": "Committee", "rows": 20, "checked": 0, "stage": 50, "before": ""}
    with db.Ledger("run.db") as ledger:
        ledger.bind({"game": "committee"}, design, seed=0, stochastic=True, keep="outcomes")
        places = np.arange(30)
        ledger.append(places, places * 0, places / 30, places / 30, [b"said"] * 30)
    done = export("run.db", "out")
    assert [file.name for file in done.files] == ["evaluations.parquet"]
    assert (done.evaluations, done.coalitions) == (30, 0)
    assert done.note.startswith("masks.npy, utilities.npy and indices.npy were not written: this")
    assert len(pd.read_parquet("out/evaluations.parquet")) == 30


def test_a_design_from_elsewhere_is_named():
    with db.Ledger("run.db") as ledger:
        design = {"design": "elsewhere:Mine", "n_players": 3}
        ledger.bind({"game": "function"}, design, seed=0, stochastic=True)
        ledger.append(np.arange(3), np.zeros(3, int), np.ones(3), np.ones(3))
    assert "Import elsewhere first" in export("run.db", "out").note


def test_nothing_is_overwritten_or_left_half_done(monkeypatch):
    made("run.db", evaluations(20))
    Path("out").mkdir()
    Path("out/masks.npy").write_bytes(b"precious")
    with pytest.raises(db.InvalidInput, match=r"`out/masks.npy` already exists"):
        export("run.db", "out")
    assert [file.name for file in Path("out").iterdir()] == ["masks.npy"]
    with pytest.raises(db.LedgerFailed, match=r"the folder `run.db` cannot be made"):
        export("run.db", "run.db")

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("databanzhaf.ledger.exporting.np.save", full)
    with pytest.raises(db.LedgerFailed, match=r"cannot be written \(No space left on device\)"):
        export("run.db", "other")
    assert not list(Path("other").iterdir())


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    made("run.db", evaluations(20))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(db.BackendUnavailable, match=r"pyarrow.*databanzhaf\[parquet\]"):
        export("run.db", "out")
    assert not list(Path("out").iterdir())


def test_what_cannot_be_exported_gets_one_sentence():
    bound("empty.db").close()
    with pytest.raises(db.InvalidInput, match="holds no evaluations yet"):
        export("empty.db", "out")
    with pytest.raises(db.InvalidInput, match="there is no ledger"):
        export("nowhere.db", "out")
    made("run.db", evaluations(20))
    with db.Ledger("run.db") as ledger:
        ledger._storage.connection.execute("UPDATE evaluations SET utility = 2 WHERE idx = 3")
    with pytest.raises(db.LedgerFailed, match=r"1 of its 20 evaluations.*ledger repair"):
        export("run.db", "out")
    assert not list(Path("out").iterdir())


@pytest.mark.filterwarnings("ignore:the ledger:databanzhaf.DatabanzhafWarning")
def test_a_ledger_of_0_1_is_exported():
    shutil.copy(next((FILES / "run_0_1").glob("*.sqlite")), "old.db")
    assert export("old.db", "out").coalitions == 60
