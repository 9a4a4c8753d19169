"""Damage anywhere in a ledger's file: what is whole is kept, and nothing else."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import databanzhaf as db
from databanzhaf.ledger import check, repair
from databanzhaf.ledger.pages import USUAL, Pages, layouts
from tests.ledger.contents import append, bound, contents, evaluations, made

FILES = Path(__file__).parents[1] / "files"


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_whole_ledger_is_copied_row_for_row():
    names = [f"a long name of player {number}" * 20 for number in range(12)]
    for size in (None, 300, 9000):
        path = made(f"{size}.db", evaluations(120, 2, size), players=names)
        before = Path(path).read_bytes()
        done = repair(path, f"{size}.repaired.db")
        assert (done.evaluations, done.written, done.lost) == (240, 240, 0)
        assert contents(done.out) == contents(path)
        assert Path(path).read_bytes() == before
        with db.Ledger(done.out) as ledger:
            assert ledger.players == names


class Places(Pages):
    """Pages that note which of them were read for a row."""

    def page(self, number):
        self.read.add(number)
        return super().page(number)


def places_of_rows(path):
    """The pages of each evaluation, those of its outcome included, of the facts and the totals."""
    found, facts, totals = {}, set(), set()
    with Places(Path(path), layouts(Path(path))[0]) as pages:
        for number, page in enumerate(pages, start=1):
            pages.read = {number}
            for row in pages.records(page):
                kinds = [type(part) for part in row]
                if kinds == [str, str] and number > 1:
                    facts |= pages.read
                elif kinds == [str, int, int]:
                    totals |= pages.read
                elif kinds[:2] == [int, int] and len(kinds) > 3:
                    found.setdefault(row[:2], set()).update(pages.read)
                pages.read = {number}
    return found, facts, totals


def damages(content, count, seed):
    """Copies of a file: cut short, with bits flipped, or with bytes or whole pages overwritten; and
    the pages that were touched.
    """
    rng, size = np.random.default_rng(seed), len(content)
    pages = -(-size // 4096)
    for case in range(count):
        changed, kind = bytearray(content), case % 5
        if kind == 0:
            low = int(rng.integers(0, size))
            del changed[low:]
            touched = set(range(low // 4096 + 1, pages + 1))
        elif kind == 1:
            places = rng.integers(0, size, rng.integers(1, 6))
            for place in places:
                changed[place] ^= 1 << int(rng.integers(0, 8))
            touched = {int(place) // 4096 + 1 for place in places}
        elif kind == 2:  # where the structure of the file is
            places = rng.integers(0, min(size, 8192), 3)
            for place in places:
                changed[place] ^= 1 << int(rng.integers(0, 8))
            touched = {int(place) // 4096 + 1 for place in places}
        elif kind == 3:
            low = int(rng.integers(0, size))
            high = min(size, low + int(rng.integers(1, 20_000)))
            changed[low:high] = rng.bytes(high - low)
            touched = set(range(low // 4096 + 1, (high - 1) // 4096 + 2))
        else:
            touched = {int(page) + 1 for page in rng.integers(0, pages, rng.integers(1, 4))}
            for page in touched:
                low = 4096 * (page - 1)
                changed[low : low + 4096] = bytes(len(changed[low : low + 4096]))
        yield bytes(changed), touched


@pytest.mark.parametrize(
    ("size", "count", "cases"),
    [(None, 300, 100), (300, 120, 100), (9000, 20, 80)],
    ids=["utilities", "outcomes", "large ones"],
)
def test_repair_keeps_every_row_of_untouched_pages_and_makes_up_none(size, count, cases):
    original = Path(made("original.db", evaluations(count, 2, size)))
    content, truth = original.read_bytes(), contents(original)
    places, facts, totals = places_of_rows(original)
    assert sorted(places) == [row[:2] for row in truth["evaluations"]]
    lost = 0
    for changed, touched in damages(content, cases, seed=count):
        Path("run.db").write_bytes(changed)
        expected = {place for place, pages in places.items() if not pages & touched}
        like = original if facts & touched else None
        try:
            done = repair("run.db", "repaired.db", like)
        except db.LedgerFailed as error:
            why = str(error)
            assert "no evaluation in `run.db` is whole" in why
            assert not expected
            continue
        found = contents("repaired.db")
        kept = {row[:2] for row in found["evaluations"]}
        assert expected <= kept
        assert set(found["evaluations"]) <= set(truth["evaluations"])
        assert set(found["outcomes"]) <= set(truth["outcomes"])
        assert size is None or kept == {row[:2] for row in found["outcomes"]}
        assert found["facts"] == truth["facts"]
        assert done.evaluations == len(kept)
        assert totals & touched or done.lost == 2 * count - len(kept)
        assert check("repaired.db").whole
        assert Path("run.db").read_bytes() == changed
        lost += 2 * count - len(kept)
        os.remove("repaired.db")
    assert lost > 10 * count
    assert not [name for name in os.listdir() if name.startswith(".")]


@pytest.mark.parametrize("size", [None, 300], ids=["utilities", "outcomes"])
def test_check_names_damage_and_never_changes_the_file(size):
    original = Path(made("original.db", evaluations(150, 1, size)))
    content, truth, named = original.read_bytes(), contents(original), 0
    for changed, touched in damages(content, 60, seed=8):
        Path("run.db").write_bytes(changed)
        try:
            found = check("run.db")
        except db.LedgerFailed as error:
            why = str(error)
            assert "not a ledger" in why or "ledger format" in why
            assert 1 in touched
            named += 1
            continue
        if found.whole and found.run is not None:
            assert {**contents("run.db"), "total": ()} == {**truth, "total": ()}
            assert found.coverage.evaluations == 150
        else:
            named += 1
        assert Path("run.db").read_bytes() == changed
    assert named > 30


def learner():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    data = db.Dataset(X[:20], (X[:20, 0] > 0).astype(int), X[20:], (X[20:, 0] > 0).astype(int))
    return db.games.Learner(LogisticRegression(random_state=0), data)


def noisy(coalitions, keys):
    return coalitions.mean(axis=1) + db.chance.uniform(keys, 1)[:, 0]


RUNS = {
    "function": lambda: {
        "game": db.games.Function(20, noisy, stochastic=True, name="noisy"),
        "budget": 500,
        "repeats": 2,
    },
    "outcomes": lambda: {"game": learner(), "budget": 120},
    "truncated permutations": lambda: {
        "game": db.games.Function(12, lambda c: (c.sum(axis=1) > 3) * 1.0, name="four"),
        "notion": db.Shapley(),
        "estimator": db.estimators.Permutation(truncation=0.01),
        "budget": 780,
    },
}


@pytest.mark.parametrize("name", RUNS)
def test_a_repaired_run_continues_and_equals_an_undisturbed_one(name):
    run = RUNS[name]()
    truth = db.value(**run, ledger="whole.db")
    content = Path("whole.db").read_bytes()
    continued = 0
    for number, (changed, _) in enumerate(damages(content, 10, seed=3)):
        Path("run.db").write_bytes(changed)
        try:
            done = repair("run.db", f"{number}.db", "whole.db")
        except db.LedgerFailed:
            continue
        assert np.array_equal(db.value(**run, ledger=done.out).values, truth.values)
        found, whole = contents(done.out), contents("whole.db")
        rows = [[row[:3] for row in each["evaluations"]] for each in (found, whole)]
        assert rows[0] == rows[1]
        assert found["outcomes"] == whole["outcomes"]
        continued += bool(done.lost)
    assert continued > 2


def live(given, *, restarted=False):
    """Copies of run.db and run.db-wal as kill -9 leaves them: nearly all rows are in the log."""
    keep = "utilities" if given[4] is None else "outcomes"
    with bound("live.db", keep=keep) as ledger:
        half = len(given[0]) // 2
        append(ledger, given, slice(0, half), batch=20)
        if restarted:  # the log is written from its beginning again; the rest of it is old
            ledger._storage.connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            append(ledger, given, slice(half, half + 20), batch=20)
        append(ledger, given, slice(half + 20 * restarted, None), batch=1000)
        for end in ("", "-wal"):
            shutil.copy(f"live.db{end}", f"run.db{end}")
    return contents("live.db")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("size", [None, 300, 9000], ids=["utilities", "outcomes", "large ones"])
def test_the_write_ahead_log_is_read_and_left_as_it_is(size, restarted):
    truth = live(evaluations(60, 2, size), restarted=restarted)
    before = [Path(f"run.db{end}").read_bytes() for end in ("", "-wal")]
    assert len(before[1]) > 20_000
    repair("run.db", "repaired.db")
    assert contents("repaired.db") == truth
    found = check("run.db")
    assert found.whole
    assert (found.coverage.evaluations, found.size) == (120, sum(map(len, before)))
    assert [Path(f"run.db{end}").read_bytes() for end in ("", "-wal")] == before
    assert contents("run.db") == truth  # SQLite reads the log, too, and puts it away
    assert not Path("run.db-wal").exists()


def test_the_log_of_a_linked_ledger_is_read():
    truth = live(evaluations(60))
    Path("folder").mkdir()
    Path("folder/link.db").symlink_to(Path("run.db").absolute())
    log = Path("run.db-wal").read_bytes()
    assert check("folder/link.db").coverage.evaluations == 60
    repair("folder/link.db", "repaired.db")
    assert contents("repaired.db") == truth
    assert Path("run.db-wal").read_bytes() == log


@pytest.mark.parametrize("size", [None, 9000], ids=["utilities", "large ones"])
def test_a_damaged_log_costs_no_more_than_the_damaged_pages(size):
    truth = live(evaluations(60, 2, size))
    content, log = Path("run.db").read_bytes(), Path("run.db-wal").read_bytes()
    kept = []
    for changed, _ in damages(log, 30, seed=2):
        Path("run.db").write_bytes(content)
        Path("run.db-wal").write_bytes(changed)
        Path("out.db").unlink(missing_ok=True)
        try:
            done = repair("run.db", "out.db", like="live.db")
        except db.LedgerFailed:
            assert len(changed) < len(log) * 0.8 or size is not None
            continue
        found = contents("out.db")
        assert set(found["evaluations"]) <= set(truth["evaluations"])
        assert set(found["outcomes"]) <= set(truth["outcomes"])
        assert check("out.db").whole
        kept.append(done.evaluations)
    assert len(kept) > 18
    assert np.mean(kept) > 60


def test_pages_of_another_size():
    path = made("run.db", evaluations(300, 1, 2000))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("VACUUM")
    assert [layout.size for layout in layouts(Path(path))] == [1024, 4096]
    truth = contents(path)
    repair(path, "out.db")
    assert contents("out.db") == truth
    assert layouts(Path("out.db")) == [USUAL]


def test_a_description_that_is_damaged_comes_from_another_ledger():
    given = evaluations(100)
    path, other = made("run.db", given), made("part.db", given, slice(90, 100))
    stranger, empty = made("stranger.db", given, seed=4), bound("empty.db")
    empty.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE facts SET value = '1' WHERE name = 'seed'")
    with pytest.raises(db.LedgerFailed, match=r"nothing in `run.db` can be repaired.*like=\"old"):
        repair(path, "out.db")
    with pytest.raises(db.LedgerFailed, match=r"no evaluation in `run.db` is whole"):
        repair(path, "out.db", like=stranger)
    with pytest.raises(db.InvalidInput, match="`like` must be a ledger with evaluations"):
        repair(path, "out.db", like="empty.db")
    assert not Path("out.db").exists()
    assert repair(path, "out.db", like=other).evaluations == 100
    with pytest.raises(db.LedgerMismatch, match=r"`stranger.db` belongs to another run than"):
        repair(other, "next.db", like=stranger)
    found = check(path)
    assert not found.whole
    assert found.run is None
    assert found.lost is None


def test_what_is_no_ledger_is_left_alone():
    Path("notes.txt").write_text("not a database" * 1000)
    Path("empty.db").touch()
    with closing(sqlite3.connect("other.db")) as connection, connection:
        connection.execute("CREATE TABLE precious (x)")
    shutil.copy(next((FILES / "run_0_1").glob("*.sqlite")), "old.db")
    names = sorted(os.listdir())
    for path in ("notes.txt", "empty.db", "other.db", "old.db"):
        with pytest.raises(db.LedgerFailed, match=f"nothing in `{path}` can be repaired"):
            repair(path, "out.db")
    for path in ("notes.txt", "other.db"):
        with pytest.raises(db.LedgerFailed, match="not a ledger"):
            check(path)
    for path in ("nowhere.db", ".", "l" * 300, "a\0b", None):
        for tool in (check, lambda path: repair(path, "out.db")):
            with pytest.raises(db.InvalidInput):
                tool(path)
    assert sorted(os.listdir()) == names


@pytest.mark.parametrize("name", ["out.db", "out.db-wal"])
def test_nothing_is_overwritten_and_no_old_log_stands_beside_the_new_file(name):
    path = made("run.db", evaluations(20))
    Path(name).write_bytes(b"precious")
    with pytest.raises(db.InvalidInput, match=f"`{name}` already exists"):
        repair(path, "out.db")
    assert Path(name).read_bytes() == b"precious"
    with pytest.raises(db.LedgerFailed, match=r"`nowhere/out.db` cannot be written"):
        repair(path, "nowhere/out.db")


def test_a_ledger_of_a_run_that_is_running_is_not_repaired():
    with bound("run.db") as ledger:
        append(ledger, evaluations(50))
        with pytest.raises(db.LedgerBusy):
            repair("run.db", "out.db")
        assert check("run.db").coverage.evaluations == 50


def test_check_says_what_a_ledger_is():
    found = check(made("run.db", evaluations(50, 2, 300)))
    assert found.whole
    assert (found.coverage.coalitions, found.coverage.repeats, found.outcomes) == (50, 2, 100)
    assert (found.run["seed"], found.run["version"]) == (0, db.__version__)
    assert found.run["design"]["design"] == "Coin"
    assert found.seconds == pytest.approx(evaluations(50, 2)[3].sum())
    assert (found.written, found.lost) == (100, 0)
    given = evaluations(50, 2)
    gaps = (given[0] // 10 != 3) & ~((given[0] == 7) & (given[1] == 1))
    found = check(made("gaps.db", given, gaps))
    assert found.coverage.missing == ((30, 39),)
    assert found.coverage.fewer == ((7, 7),)
    bound("empty.db").close()
    assert check("empty.db").whole
    assert check("empty.db").run is None


@pytest.mark.parametrize(
    ("damage", "says", "whole"),
    [
        ("UPDATE evaluations SET utility = 3 WHERE idx IN (3, 5)", "2 of its evaluations", 98),
        ("UPDATE outcomes SET outcome = x'00' WHERE idx = 9", "1 of its outcomes", 99),
        ("DELETE FROM evaluations WHERE idx = 7", "100 evaluations were written", 99),
        ("DELETE FROM outcomes WHERE idx = 7", "have no outcome", 99),
        ("DELETE FROM evaluations", "its 100 evaluations are gone", 0),
        ("UPDATE total SET checksum = 5", "not those that were written", 100),
        ("DELETE FROM total", "count of its evaluations", 100),
        ("DROP TABLE evaluations", "no such table", 0),
        ("UPDATE evaluations SET idx = -1 WHERE idx = 2", "have no outcome", 99),
        ("PRAGMA application_id = 5", "its header is damaged", 100),
    ],
)
def test_check_says_what_is_damaged_and_repair_keeps_the_rest(damage, says, whole):
    path = made("run.db", evaluations(100, 1, 300))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(damage)
    found = check(path)
    assert says in found.problems[0]
    assert found.coverage.evaluations == found.outcomes == whole
    assert found.lost in (100 - whole, None)
    if whole:
        assert repair(path, "out.db").evaluations == whole
        assert check("out.db").whole


@pytest.mark.filterwarnings("error")
def test_a_ledger_of_0_1_is_checked_as_far_as_it_goes():
    shutil.copy(next((FILES / "run_0_1").glob("*.sqlite")), "old.db")
    with pytest.warns(db.DatabanzhafWarning, match="kept no checksums"):
        found = check("old.db")
    assert found.whole
    assert found.coverage.evaluations == 60
