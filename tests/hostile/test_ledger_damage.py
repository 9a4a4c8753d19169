"""A ledger whose file was damaged, moved, deleted or opened where it cannot be written to."""

import csv
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import databanzhaf as db

FILES = Path(__file__).parents[1] / "files"


def smooth_game(n=12):
    weights = np.linspace(-1, 1, n)
    return db.games.Function(n, lambda coalitions: np.tanh(coalitions @ weights), name="smooth")


def learner(metric="probability"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    data = db.Dataset(X[:20], (X[:20, 0] > 0).astype(int), X[20:], (X[20:, 0] > 0).astype(int))
    return db.games.Learner(LogisticRegression(random_state=0), data, metric=metric)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger that keeps outcomes, with what can be read of it: values, standard errors, outcomes,
    seconds.
    """
    path = tmp_path_factory.mktemp("whole") / "run.db"
    with db.Ledger(path, keep="outcomes") as ledger:
        db.value(learner(), budget=150, ledger=ledger)
    return path, read(path)


def read(path):
    with db.Ledger(path) as ledger:
        estimate, outcomes = (
            db.estimate(ledger),
            ledger.utilities(lambda outcomes: [float(zlib.crc32(each)) for each in outcomes]),
        )
        return (*estimate.values, *estimate.std_errors, *outcomes[:, 0], ledger.seconds())


def flips(size, count):
    """Fixed places, a third of them in the first pages, where the structure of the file is."""
    rng = np.random.default_rng(16)
    early = rng.integers(0, min(size, 8192), count // 3)
    return zip(
        np.concatenate([early, rng.integers(0, size, count - len(early))]),
        rng.integers(0, 8, count),
        strict=True,
    )


def test_300_flipped_bits_are_harmless_or_named(tmp_path, whole):
    path, truth = whole
    content, damaged = path.read_bytes(), tmp_path / "run.db"
    named = 0
    for byte, bit in flips(len(content), 300):
        changed = bytearray(content)
        changed[byte] ^= 1 << int(bit)
        damaged.write_bytes(changed)
        try:
            found = read(damaged)
        except db.LedgerFailed as error:
            named += "run.db" in str(error)
        else:
            assert found == truth, f"bit {bit} of byte {byte} changed the values without a word"
    assert named > 150


def test_a_damaged_row_is_counted_and_nothing_runs_on_it(tmp_path, whole):
    path = shutil.copy(whole[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE evaluations SET utility = utility + 1e-9 WHERE idx IN (3, 5)")
    with pytest.raises(
        db.LedgerFailed,
        match=r"2 of its 150 evaluations do not match their checksums.*restore a copy",
    ):
        db.estimate(path)
    with pytest.raises(db.LedgerFailed, match="2 of its 150"):
        db.value(learner(), budget=200, ledger=path)
    with pytest.raises(db.LedgerFailed, match="2 of its 150"), db.Ledger(path) as ledger:
        ledger.seconds()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("DELETE FROM evaluations WHERE idx = 7", "150 evaluations were written, and it holds 149"),
        ("DELETE FROM evaluations", "its 150 evaluations are gone"),
        ("DELETE FROM facts", "description of its run"),
        (
            "UPDATE facts SET value = replace(value, '\"seed\": 0', '\"seed\": 1') WHERE name = "
            "'design'",
            "description of its run",
        ),
        (
            "UPDATE total SET count = 151 WHERE name = 'evaluations'",
            "151 evaluations were written, and it holds 150",
        ),
        ("UPDATE total SET checksum = 5", "not those that were written"),
        ("DELETE FROM total", "count of its evaluations"),
        ("DROP TABLE evaluations", "no such table"),
    ],
)
def test_what_is_missing_or_exchanged_is_named(tmp_path, whole, damage, says):
    path = shutil.copy(whole[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(damage).rowcount != 0
    with pytest.raises(db.LedgerFailed, match=says):
        db.estimate(path)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE outcomes SET outcome = substr(outcome, 1, 40) WHERE idx = 9",
        "UPDATE outcomes SET outcome = zeroblob(length(outcome)) WHERE idx = 9",
        "DELETE FROM outcomes WHERE idx = 9",
        "UPDATE total SET checksum = 5 WHERE name = 'outcomes'",
        "UPDATE outcomes SET idx = 1000000000000 WHERE idx = 9",
    ],
)
def test_damaged_outcomes_are_named(tmp_path, whole, damage):
    path = shutil.copy(whole[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    with pytest.raises(db.LedgerFailed, match="damaged"):
        db.estimate(path, game=learner("accuracy"))
    with pytest.raises(db.LedgerFailed, match="damaged"):  # intervals are made of outcomes
        db.estimate(path, game=learner())
    assert np.array_equal(db.estimate(path).values, db.estimate(whole[0]).values)


def test_parts_of_another_ledger_are_named(tmp_path):
    """Pages and rows that are whole, but of another run."""
    paths = [tmp_path / f"{seed}.db" for seed in (0, 1)]
    for seed, path in enumerate(paths):
        with db.Ledger(path, keep="outcomes") as ledger:
            db.value(learner(), budget=150, ledger=ledger, seed=seed)
    contents = [path.read_bytes() for path in paths]
    truth, mixed = read(paths[0]), tmp_path / "mixed.db"
    assert len(contents[0]) == len(contents[1])
    named = 0
    for page in range(len(contents[0]) // 4096):
        where = slice(4096 * page, 4096 * (page + 1))
        if contents[0][where] == contents[1][where]:
            continue
        changed = bytearray(contents[0])
        changed[where] = contents[1][where]
        mixed.write_bytes(changed)
        try:
            assert read(mixed) == truth
        except db.LedgerFailed:
            named += 1
    assert named > 10


def test_a_damage_that_a_cyclic_code_does_not_see_is_named(tmp_path, whole):
    path = shutil.copy(whole[0], tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        [(packed,)] = connection.execute("SELECT outcome FROM outcomes WHERE idx = 3")
        changed = bytearray(packed)
        for place, bits in enumerate((0xEDB88320 << 1 | 1).to_bytes(5, "little")):
            changed[382 + place] ^= bits
        assert zlib.crc32(changed) == zlib.crc32(packed)
        connection.execute("UPDATE outcomes SET outcome = ? WHERE idx = 3", (bytes(changed),))
    with pytest.raises(db.LedgerFailed, match="1 of its 150 outcomes"):
        db.estimate(path, game=learner("accuracy"))


def test_facts_of_another_kind_and_a_false_format_are_named(tmp_path, whole):
    for damage in ("UPDATE facts SET value = x'00' WHERE name = 'seed'", "PRAGMA user_version = 1"):
        path = shutil.copy(whole[0], tmp_path)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(damage)
        with pytest.raises(db.LedgerFailed, match="damaged"):
            db.Ledger(path)


def test_another_folder_is_no_other_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with db.Ledger("run.db") as ledger:
        db.value(smooth_game(), budget=20, ledger=ledger)
        monkeypatch.chdir("sub")
        db.value(smooth_game(), budget=40, ledger=ledger)
        assert ledger.count() == 40
    assert not list((tmp_path / "sub").iterdir())


def test_odd_places_for_a_ledger_get_one_sentence(tmp_path):
    (tmp_path / "loop.db").symlink_to(tmp_path / "loop.db")
    for path in (tmp_path / ("l" * 300 + ".db"), tmp_path / "loop.db", Path(os.devnull), tmp_path):
        with pytest.raises(db.LedgerFailed):
            db.Ledger(path)


@pytest.fixture
def old(tmp_path):
    """The folder of a run by databanzhaf 0.1, whose ledger has no checksums."""
    for file in (FILES / "run_0_1").iterdir():
        shutil.copy(file, tmp_path / ("run.db" if file.suffix == ".sqlite" else file.name))
    shutil.copy(db.datasets.path("suppliers"), tmp_path / "suppliers.csv")
    return tmp_path


def test_a_ledger_of_0_1_is_read_to_the_bit_and_says_that_it_has_no_checksums(old):
    with pytest.warns(db.DatabanzhafWarning, match=r"0\.1\.0, which kept no checksums"):
        estimate = db.estimate(old / "run.db", estimator="reuse")
    with (old / "values.csv").open(newline="") as file:
        stored = list(csv.DictReader(file))
    assert estimate.values.tolist() == [float(line["value"]) for line in stored]
    # since 0.2 errors also count what few samples may have missed
    stored_errors = [float(line["std_error"]) for line in stored]
    assert (estimate.std_errors > stored_errors).all()
    np.testing.assert_allclose(estimate.std_errors, stored_errors, rtol=0.2)


@pytest.mark.filterwarnings("ignore:the ledger:databanzhaf.DatabanzhafWarning")
def test_damage_of_a_ledger_of_0_1_that_shows_is_named(old):
    with closing(sqlite3.connect(old / "run.db")) as connection, connection:
        connection.execute("UPDATE evaluations SET idx = 99999999999999 WHERE idx = 9")
    with pytest.raises(db.LedgerFailed, match="damaged"):
        db.estimate(old / "run.db")


@pytest.mark.filterwarnings("ignore:the ledger:databanzhaf.DatabanzhafWarning")
def test_a_run_of_0_1_goes_on_in_its_own_format(old):
    with db.Ledger(old / "run.db") as ledger:
        ledger.append(np.array([60]), np.array([0]), np.array([0.5]), np.array([0.1]), [b"kept"])
        assert ledger.utilities()[60, 0] == 0.5
        assert ledger.count() == 61


READER = """
import os, sys
import numpy, scipy.stats, databanzhaf as db
import databanzhaf.run
if os.getuid() == 0:
    os.setuid(65534)
try:
    with db.Ledger(sys.argv[1]) as ledger:
        print(ledger.count())
except db.DatabanzhafError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="permissions as on Unix")
@pytest.mark.parametrize("beside", ["nothing", "log", "log and index"])
def test_a_folder_without_write_permission_hides_nothing(tmp_path, beside):
    folder = tmp_path / "run"
    folder.mkdir()
    writer = db.Ledger(folder / "run.db")
    game = smooth_game()
    db.value(game, budget=100, ledger=writer)
    if beside == "nothing":
        writer.close()
    elif beside == "log":  # as after kill -9 and a copy of the folder without the index
        live, folder = folder, tmp_path / "copy"
        folder.mkdir()
        for name in ("run.db", "run.db-wal"):
            shutil.copy(live / name, folder)
    assert (folder / "run.db-wal").exists() == (beside != "nothing")
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    try:
        seen = subprocess.run(
            [sys.executable, "-c", READER, folder / "run.db"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    finally:
        folder.chmod(0o755)
        writer.close()
    if beside == "log":
        assert "run.db-wal" in seen
        assert "Copy both files" in seen
    else:
        assert seen == "100"


def test_an_address_is_no_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for address in ("file:x.db?mode=memory", "file::memory:"):
        with pytest.raises(db.InvalidInput, match="plain path"):
            db.value(smooth_game(), ledger=address)
    odd = Path("file:x.db?mode=memory#1")
    db.value(smooth_game(), budget=50, ledger=odd)
    assert odd.is_file()
    with pytest.raises(db.InvalidInput, match="NUL"):
        db.Ledger("a\0b.db")
    with pytest.raises(db.InvalidInput, match="NUL"):
        db.estimate("a\0b.db")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not delete a file that is open")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_ledger_that_goes_away_during_a_run_is_noticed_at_once(tmp_path, how):
    path = tmp_path / "run.db"

    def utility(coalitions):
        if path.exists() and calls:
            path.unlink()
            if how == "replaced":
                path.write_bytes(b"")
        calls.append(len(coalitions))
        return coalitions.sum(axis=1)

    calls = []
    with pytest.raises(db.LedgerFailed, match="deleted or replaced"):
        db.value(
            db.games.Function(12, utility, name="deleting", call_size=4),
            budget=4000,
            ledger=path,
            estimator="reuse",
        )
    assert sum(calls) < 100


def test_looking_at_a_ledger_makes_and_removes_nothing(tmp_path):
    path = tmp_path / "run.db"
    with db.Ledger(path) as ledger:
        assert ledger.is_new
    assert not list(tmp_path.iterdir())
    path.touch()
    db.Ledger(path).close()
    assert path.exists()


def test_many_openings_at_once_lose_no_ledger(tmp_path):
    """Each start: one runs, the others are refused or find its evaluations, and the finished ledger
    is there.
    """
    game = smooth_game()
    truth = db.value(game, budget=40, estimator="reuse").values
    for start in range(25):
        path = tmp_path / f"{start}.db"
        gate, ends = threading.Barrier(4), []

        def one(path=path, gate=gate, ends=ends):
            gate.wait()
            try:
                ends.append(db.value(game, budget=40, estimator="reuse", ledger=path).values)
            except db.LedgerBusy:
                ends.append(None)

        threads = [threading.Thread(target=one) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ran = [values for values in ends if values is not None]
        assert len(ends) == 4
        assert ran
        assert all(np.array_equal(values, truth) for values in ran)
        with db.Ledger(path) as ledger:
            assert ledger.count() == 40


def test_a_ledger_opened_before_another_run_made_the_file_sees_it(tmp_path):
    path = tmp_path / "run.db"
    with db.Ledger(path) as early:
        assert early.is_new
        db.value(smooth_game(), budget=30, ledger=path)
        db.value(smooth_game(), budget=50, ledger=early)
        assert early.count() == 50
    with db.Ledger(tmp_path / "third.db", keep="utilities") as early:
        with db.Ledger(tmp_path / "third.db", keep="outcomes") as later:
            db.value(learner(), budget=20, ledger=later)
        with pytest.raises(db.LedgerMismatch, match="keeps outcomes"):
            db.value(learner(), budget=20, ledger=early)
    other = db.games.Function(12, lambda coalitions: coalitions.sum(axis=1), name="other")
    with db.Ledger(tmp_path / "second.db") as early:
        db.value(smooth_game(), budget=30, ledger=tmp_path / "second.db")
        with pytest.raises(db.LedgerMismatch):
            db.value(other, budget=30, ledger=early)
