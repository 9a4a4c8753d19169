"""Corrected tables: the decided cells and rows change, and not one other byte."""

import csv
import datetime
import gzip
import io
import random
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st
from pyarrow import parquet

import databanzhaf.tables.rewrite as module
from databanzhaf.errors import InvalidInput
from databanzhaf.tables import read_table
from databanzhaf.tables.decisions import (
    Decision,
    Decisions,
    file_fingerprint,
    read_decisions,
    read_sidecar,
    sidecar_path,
    write_decisions,
)
from databanzhaf.tables.rewrite import rewrite


def decide(path, made, target="y"):
    """Decisions from (row, label, decision[, new label])."""
    return Decisions(file_fingerprint(path), target, tuple(Decision(*each) for each in made))


def applied(folder, content, made, target="y", name="t.csv", **how):
    """The bytes of the corrected table."""
    path, out = folder / name, folder / f"fixed.{name}"
    path.write_bytes(content)
    rewrite(path, decide(path, made, target), out, **how)
    assert path.read_bytes() == content
    return out.read_bytes()


FIX, DROP = "fix", "drop"
PLAIN = b"a,y,b\n1,cat,x\n2,dog,y\n3,cat,z\n"


@pytest.mark.parametrize(
    ("content", "made", "expected"),
    [
        (PLAIN, [(1, "dog", FIX, "cat")], PLAIN.replace(b"dog", b"cat")),
        (PLAIN, [(1, "dog", DROP)], PLAIN.replace(b"2,dog,y\n", b"")),
        (PLAIN, [(0, "cat", "keep")], PLAIN),
        (PLAIN, [(0, "cat", FIX, "a,b")], PLAIN.replace(b"1,cat", b'1,"a,b"')),
        (PLAIN, [(0, "cat", FIX, 'a"b')], PLAIN.replace(b"1,cat", b'1,"a""b"')),
        (PLAIN, [(0, "cat", FIX, "a\nb")], PLAIN.replace(b"1,cat", b'1,"a\nb"')),
        (PLAIN, [(0, "cat", FIX, "a\r\nb")], PLAIN.replace(b"1,cat", b'1,"a\r\nb"')),
        (PLAIN, [(0, "cat", FIX, "=1+1")], PLAIN.replace(b"1,cat", b"1,=1+1")),
        (PLAIN, [(0, "cat", FIX, "é")], PLAIN.replace(b"1,cat", b"1,\xc3\xa9")),
        (PLAIN, [(0, "cat", FIX, " ")], PLAIN.replace(b"1,cat", b'1," "')),
        # Line ends, blank lines, blanks, no last line end.
        (
            b"a,y\r\n1,p\r\n\r\n2,q\r\n",
            [(1, "q", FIX, "p")],
            b"a,y\r\n1,p\r\n\r\n2,p\r\n",
        ),
        (b"a,y\r1,p\r2,q\r", [(0, "p", DROP)], b"a,y\r2,q\r"),
        (b"a,y\n1,p\r\n2,q\r3,p", [(2, "p", FIX, "q"), (1, "q", DROP)], b"a,y\n1,p\r\n3,q"),
        (b"a,y\n1,p\n2,q", [(1, "q", DROP)], b"a,y\n1,p\n"),
        (b"a,y\n1,p\n2,q", [(0, "p", DROP)], b"a,y\n2,q"),
        (
            b"\n \na,y\n\n  \n1,p\n\t\n2,q\n\n",
            [(1, "q", FIX, "p")],
            b"\n \na,y\n\n  \n1,p\n\t\n2,p\n\n",
        ),
        (b"a,y\n1,p \n2 , q\n", [(0, "p ", FIX, " q")], b"a,y\n1, q\n2 , q\n"),
        # A byte order mark, quotes where they are needed and where not.
        (
            b'\xef\xbb\xbf"a",y\n"1",p\n2,"q"\n',
            [(0, "p", FIX, "q"), (1, "q", FIX, "p")],
            b'\xef\xbb\xbf"a",y\n"1",q\n2,"p"\n',
        ),
        (b'y,a\n"p",1\nq,2\n', [(0, "p", DROP)], b"y,a\nq,2\n"),
        (
            b'a,y,b\n"1\n2,3",p,"x ""y"""\n"\n\r\n",q,""\n',
            [(0, "p", FIX, "q"), (1, "q", FIX, "z")],
            b'a,y,b\n"1\n2,3",q,"x ""y"""\n"\n\r\n",z,""\n',
        ),
        (b'a,y\n"1\n",p\n2,q\n', [(0, "p", DROP)], b"a,y\n2,q\n"),
        (b'a,y\n1,"p\n"\n2,q\n', [(0, "p\n", FIX, "q")], b'a,y\n1,"q"\n2,q\n'),
        (b'a,y\n1,"p"r"\n2,q"\n', [(0, 'pr"', FIX, "s")], b'a,y\n1,"s"\n2,q"\n'),
        (b'a,y\n 1, "p"\n2,q\n', [(0, ' "p"', FIX, "q")], b"a,y\n 1,q\n2,q\n"),
        (b'a,y,b\n1,"a,b",""\n2,q,\n', [(0, "a,b", FIX, "q")], b'a,y,b\n1,"q",""\n2,q,\n'),
        # The only column; an empty cell; fields that are missing or too many.
        (b"y\np\nq\n", [(0, "p", FIX, "  ")], b'y\n"  "\nq\n'),
        (b'y\n""\nq\n', [(0, "", FIX, "q")], b'y\n"q"\nq\n'),
        (b"a,y\n1,\n2,q\n", [(0, "", FIX, "q")], b"a,y\n1,q\n2,q\n"),
        (b"y,a\np\nq,2\n", [(0, "p", FIX, "q")], b"y,a\nq\nq,2\n"),
        (b"y,a\np,1,\nq,2,\n", [(0, "p", FIX, "q")], b"y,a\nq,1,\nq,2,\n"),
        (b"y,,\np,1,\nq,2,\n", [(1, "q", FIX, "p")], b"y,,\np,1,\np,2,\n"),
        # Numbers, truth values and codes keep the table's spelling.
        (b"a,y\n1,0\n2,1\n", [(0, "0", FIX, "1")], b"a,y\n1,1\n2,1\n"),
        (b"a,y\n1,0.0\n2,1.0\n", [(0, "0", FIX, "1")], b"a,y\n1,1.0\n2,1.0\n"),
        (b"a,y\n1,0.0\n2,1.0\n", [(0, "0.0", FIX, "1.0")], b"a,y\n1,1.0\n2,1.0\n"),
        (b"a,y\n1,true\n2,false\n", [(0, "True", FIX, "False")], b"a,y\n1,false\n2,false\n"),
        (b"a,y\n1,007\n2,010\n", [(0, "007", FIX, "010")], b"a,y\n1,010\n2,010\n"),
        (b"a,y\n1,1.50\n2,-3\n", [(0, "1.5", FIX, "2.25")], b"a,y\n1,2.25\n2,-3\n"),
        (b"a,y\n1, 1\n2, 0\n", [(0, "1", FIX, "0")], b"a,y\n1, 0\n2, 0\n"),
        (
            b"a,y\n1,2024-01-31\n2,2024-02-01\n",
            [(0, "2024-01-31", FIX, "2024-02-01")],
            b"a,y\n1,2024-02-01\n2,2024-02-01\n",
        ),
        # Without the texts, the column becomes one of numbers.
        (b"a,y\n1,1\n2,?\n3,2\n", [(1, "?", DROP)], b"a,y\n1,1\n3,2\n"),
        (b"a,y\n1,1\n2,?\n3,2\n", [(1, "?", FIX, "2")], b"a,y\n1,1\n2,2\n3,2\n"),
        (b"a,y\n1,p\n?,q\n3,p\n", [(1, "q", DROP)], b"a,y\n1,p\n3,p\n"),
    ],
)
def test_nothing_but_the_decided_bytes_changes(tmp_path, content, made, expected):
    assert applied(tmp_path, content, made) == expected


@pytest.mark.parametrize(
    ("name", "content", "expected", "how"),
    [
        ("t.csv", "a;y\n1,5;p\n2;q\n", "a;y\n1,5;q\n2;q\n", {"separator": ";", "decimal": ","}),
        ("t.tsv", "a\ty\n 1,2\tp\n2\tq\n", "a\ty\n 1,2\tq\n2\tq\n", {}),
        ("t.TAB", "a\ty\n1\tp\n2\tq\n", "a\ty\n1\tq\n2\tq\n", {}),
        ("t.csv", "a\ty\n1\tp\n2\tq\n", "a\ty\n1\tq\n2\tq\n", {"separator": "\\t"}),
        ("t.txt", "a|y\n1|p\n2|q\n", "a|y\n1|q\n2|q\n", {"separator": "|"}),
        ("t.csv", "a^y\n1^p\n2^q\n", "a^y\n1^q\n2^q\n", {"separator": "^"}),
        ("t.csv", "a]y\n1]p\n2]q\n", "a]y\n1]q\n2]q\n", {"separator": "]"}),
        ("t.csv", "a y\n1 p\n2 q\n", "a y\n1 q\n2 q\n", {"separator": " "}),
    ],
)
def test_separators(tmp_path, name, content, expected, how):
    made = [(0, "p", FIX, "q")]
    assert applied(tmp_path, content.encode(), made, name=name, **how) == expected.encode()


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "UTF8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-be", "utf-32", "cp850"],
)
def test_encodings(tmp_path, encoding):
    text = 'name,y\r\n"Käthe, é",Köln\r\nÄ,Çx\r\n\r\nß,Köln\r\n'
    made = [(0, "Köln", FIX, "Çx"), (1, "Çx", DROP), (2, "Köln", FIX, "ü")]
    expected = 'name,y\r\n"Käthe, é",Çx\r\n\r\nß,ü\r\n'
    changed = applied(tmp_path, text.encode(encoding), made, encoding=encoding)
    assert changed == expected.encode(encoding)


@pytest.mark.parametrize("order", ["le", "be"])
@pytest.mark.parametrize("width", ["16", "32"])
def test_byte_order_marks_of_wide_encodings_stay(tmp_path, order, width):
    text, made = "\ufeffa,y\n1,p\n2,日本\n", [(0, "p", FIX, "日本")]
    content = text.encode(f"utf-{width}-{order}")
    changed = applied(tmp_path, content, made, encoding=f"utf-{width}")
    assert changed.decode(f"utf-{width}-{order}") == text.replace("p", "日本")


def test_encodings_with_states_are_written_only_if_every_byte_is_the_same(tmp_path):
    text = "a,y\n1,日本\n2,x\n3,日本\n"
    content = text.encode("iso2022_jp")
    changed = applied(tmp_path, content, [(1, "x", FIX, "日本")], encoding="iso2022_jp")
    assert changed == text.replace("x", "日本").encode("iso2022_jp")
    content = b"a,y\n1,+AOk\n2,x\n"  # and not +AOk-, as Python writes it
    refused(tmp_path, content, [(0, "é", FIX, "x")], "bytes that utf-7", encoding="utf-7")


def test_compressed_text(tmp_path):
    content = gzip.compress(b"a,y\r\n1,p\r\n2,q\r\n")
    changed = applied(tmp_path, content, [(0, "p", FIX, "q")], name="t.csv.gz")
    assert gzip.decompress(changed) == b"a,y\r\n1,q\r\n2,q\r\n"
    assert (tmp_path / "fixed.t.decisions.csv").exists()


def test_labels_that_read_as_missing_or_as_no_number(tmp_path):
    texts = b"a,y\n1,p\n2,q\n"
    refused(tmp_path, texts, [(0, "p", FIX, "NA")], "'NA' for row 0, which is read as a missing")
    refused(tmp_path, texts, [(0, "p", FIX, "null")], "which is read as a missing value")
    numbers = b"a,y\n1,0\n2,1\n"
    refused(tmp_path, numbers, [(0, "0", FIX, "O")], "must be numbers, as its labels are; got 'O'")
    assert applied(tmp_path, numbers, [(0, "0", FIX, "2")]) == b"a,y\n1,2\n2,1\n"


def refused(folder, content, made, words, target="y", name="t.csv", **how):
    """Nothing is written, and one sentence says why."""
    inner = folder / "refused"
    inner.mkdir(exist_ok=True)
    for each in inner.iterdir():
        each.unlink()
    (inner / name).write_bytes(content)
    decisions = decide(inner / name, made, target)
    with pytest.raises(InvalidInput) as error:
        rewrite(inner / name, decisions, inner / f"out.{name}", **how)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert [each.name for each in inner.iterdir()] == [name]
    assert (inner / name).read_bytes() == content


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([(3, "cat", "keep")], "must be about its rows, 0 to 2; got row 3"),
        ([(-1, "cat", "keep")], "got row -1"),
        ([(0, "dog", "keep")], "about row 0 must name its label, 'cat'; got 'dog'"),
        ([(0, "", "keep")], "must name its label, 'cat'; got ''"),
        ([(0, "Cat", DROP)], "must name its label"),
        ([(0, "cat", DROP), (1, "dog", DROP), (2, "cat", DROP)], "got drop for all 3"),
        ([], "one decision or more"),
        ([(0, "cat", "maybe")], "keep, fix or drop"),
        ([(0, "cat", FIX, "")], "must have a `new_label`"),
        ([(0, "cat", FIX, "cat")], "must change the label"),
        ([(0, "cat", "keep"), (0, "cat", DROP)], "got row 0 twice"),
    ],
)
def test_decisions_that_do_not_fit_write_nothing(tmp_path, made, words):
    refused(tmp_path, PLAIN, made, words)


def test_labels_that_cannot_be_written_write_nothing(tmp_path):
    made, content = [(0, "é", FIX, "日本")], b"a,y\n1,\xe9\n2,x\n"
    refused(
        tmp_path, content, made, "writable in the table's encoding, latin-1", encoding="latin-1"
    )
    refused(tmp_path, b"a,b,y\n1\n2,3,q\n", [(0, "", FIX, "q")], "row 0 must have a field")
    refused(tmp_path, PLAIN, [(0, "cat", "keep")], "must be a column of", target="z")
    # The first row alone says that rows may end with empty fields.
    made, wide = [(0, "1", DROP)], b"y\n1,,\n4\n5,,\n"
    refused(tmp_path, wide, made, "an unreadable one: it cannot be read as a table")


def test_a_label_with_a_nul_is_written_where_pandas_reads_it_back(tmp_path):
    """The version of pandas decides whether a NUL is a character or ends the cell."""
    made, expected = [(0, "cat", FIX, "a\0b")], PLAIN.replace(b"1,cat", b"1,a\0b")
    if pd.read_csv(io.BytesIO(expected))["y"][0] == "a\0b":
        assert applied(tmp_path, PLAIN, made) == expected
    else:
        refused(tmp_path, PLAIN, made, "NUL")


def test_decisions_about_another_table_write_nothing(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "fixed.csv"
    path.write_bytes(PLAIN)
    decisions = decide(path, [(0, "cat", DROP)])
    path.write_bytes(PLAIN.replace(b"z", b"Z"))
    with pytest.raises(InvalidInput, match=r"must be about .* as it is now, with fingerprint"):
        rewrite(path, decisions, out)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_files_that_are_there_are_not_overwritten(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    decisions = decide(path, [(0, "cat", DROP)])
    (tmp_path / "there.csv").write_text("mine")
    (tmp_path / "beside.decisions.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "gone")
    (tmp_path / "folder.csv").mkdir()
    before = {each: each.stat().st_mtime_ns for each in tmp_path.iterdir() if each.exists()}
    for name, words in (
        ("t.csv", "is the table itself"),
        ("link.csv", "is the table itself"),
        ("there.csv", "already exists"),
        ("nowhere.csv", "already exists"),
        ("folder.csv", "already exists"),
        ("beside.csv", "beside.decisions.csv` already exists"),
        ("t.tsv", "must be a .csv file"),
        ("t", "must be a .csv file"),
        ("t.csv.gz", "must be a .csv file"),
        ("none/t.csv", "cannot be written"),
        ("x" * 300 + ".csv", "cannot be written"),
        ("\0.csv", "NUL"),
    ):
        with pytest.raises(InvalidInput, match=words):
            rewrite(path, decisions, tmp_path / name)
    after = {each: each.stat().st_mtime_ns for each in tmp_path.iterdir() if each.exists()}
    assert before == after


def test_a_wrong_copy_is_noticed_and_nothing_is_written(tmp_path, monkeypatch):
    """Each kind of damage that a mistake in the writer could do."""
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    decisions = decide(path, [(0, "cat", FIX, "dog"), (1, "dog", DROP)])
    for made, words in (
        (b"a,y,b\n1,dog,x\n3,cat,Z\n", "another cell of `b`"),
        (b"a,y,b\n1,dog,x\n3,dog,z\n", "another cell of `y`"),
        (b"a,y,b\n1,dog,x\n03,cat,z\n", "another cell of `a`"),
        (b"a,y,b\n1,cat,x\n3,cat,z\n", "for row 0, which is read as 'cat'"),
        (b"a,y,b\n1,dog,x\n", "1 rows"),
        (b"a,y,B\n1,dog,x\n3,cat,z\n", "other columns"),
        (b"a,y,b\n1,dog,x\n3,cat,z,4,5\n", "an unreadable one: it cannot be read"),
        (b"", "an unreadable one: it is empty"),
    ):
        monkeypatch.setattr(module, "spliced", lambda *_, made=made, **__: made)
        with pytest.raises(InvalidInput) as error:
            rewrite(path, decisions, tmp_path / "fixed.csv")
        assert words in str(error.value)
        assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_a_disk_that_fails_at_the_last_step_leaves_neither_file(tmp_path, monkeypatch):
    path, out = tmp_path / "t.csv", tmp_path / "fixed.csv"
    path.write_bytes(PLAIN)
    replace = type(path).replace

    def fails(self, target):
        if target == out:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(type(path), "replace", fails)
    with pytest.raises(InvalidInput, match=r"cannot be written \(No space left"):
        rewrite(path, decide(path, [(0, "cat", DROP)]), out)
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


def test_the_corrected_table_knows_its_decided_rows(tmp_path):
    first, second, third = (tmp_path / f"{name}.csv" for name in ("a", "b", "c"))
    first.write_bytes(b"a,y\n0,p\n1,q\n2,p\n3,q\n4,p\n5,q\n")
    made = (
        Decision(5, "q", "keep", id="last"),
        Decision(0, "p", DROP),
        Decision(2, "p", FIX, "a, b", "two"),
        Decision(4, "p", "keep"),
    )
    done = rewrite(first, Decisions(file_fingerprint(first), "y", made), second)
    assert (done.rows, done.dropped, done.kept, done.undecided) == (5, 1, 2, 2)
    assert done.changes == (("p", "a, b", 1),)
    assert done.sidecar == sidecar_path(second)
    assert read_decisions(done.sidecar) == Decisions(
        file_fingerprint(second),
        "y",
        (
            Decision(1, "a, b", "keep", id="two", was="p"),
            Decision(3, "p", "keep", was="p"),
            Decision(4, "q", "keep", id="last", was="q"),
        ),
    )
    assert read_sidecar(second, "y") == read_decisions(done.sidecar)
    # A second review: what was decided before is carried over, and decided again where asked.
    made = [(0, "q", DROP), (3, "p", FIX, "q", "again"), (2, "q", "keep")]
    done = rewrite(second, decide(second, made), third)
    assert read_decisions(done.sidecar).made == (
        Decision(0, "a, b", "keep", id="two", was="p"),
        Decision(1, "q", "keep", was="q"),
        Decision(2, "q", "keep", id="again", was="p"),
        Decision(3, "q", "keep", id="last", was="q"),
    )


def test_decided_rows_of_another_version_are_not_carried_over(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "fixed.csv"
    path.write_bytes(PLAIN)
    for number, (table, row, label) in enumerate(
        [("0" * 16, 2, "cat"), (file_fingerprint(path), 2, "dog"), (file_fingerprint(path), 9, "")]
    ):
        write_decisions(sidecar_path(path), Decisions(table, "y", (Decision(row, label, "keep"),)))
        out = tmp_path / f"fixed{number}.csv"
        done = rewrite(path, decide(path, [(0, "cat", "keep")]), out)
        assert read_decisions(done.sidecar).made == (Decision(0, "cat", "keep", was="cat"),)


def test_where_all_decided_rows_are_dropped_no_row_is_listed(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    done = rewrite(path, decide(path, [(0, "cat", DROP)]), tmp_path / "fixed.csv")
    assert done.sidecar is None
    assert sorted(each.name for each in tmp_path.iterdir()) == ["fixed.csv", "t.csv"]


def test_new_labels_are_noted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(PLAIN)
    done = rewrite(path, decide(path, [(0, "cat", FIX, "dgo")]), tmp_path / "f.csv")
    assert "no row of" in done.notes[0]
    assert "`dgo`" in done.notes[0]
    path.write_bytes(b"a,y\n1,0.5\n2,1.5\n")
    done = rewrite(path, decide(path, [(0, "0.5", FIX, "0.7")]), tmp_path / "g.csv")
    assert done.notes == ()


def test_thousands_of_rows(tmp_path):
    rng = random.Random(5)
    rows = [
        (str(row), rng.choice(["cat", '"dog"', '"a, ""b"""']), rng.choice(["x", '"two\nlines"']))
        for row in range(5000)
    ]
    plain = {"cat": "cat", '"dog"': "dog", '"a, ""b"""': 'a, "b"'}
    made, expected = [], ["a,y,b\r\n"]
    for number, (first, label, last) in enumerate(rows):
        kind = rng.choice(["keep", FIX, DROP, None])
        if kind == FIX:
            made.append((number, plain[label], FIX, "bird"))
            label = '"bird"' if label.startswith('"') else "bird"
        elif kind is not None:
            made.append((number, plain[label], kind))
        if kind != DROP:
            expected.append(f"{first},{label},{last}\r\n")
    content = "".join(["a,y,b\r\n", *(",".join(row) + "\r\n" for row in rows)])
    assert applied(tmp_path, content.encode(), made) == "".join(expected).encode()


# ---------------------------------------------------------------- random tables

CELLS = st.text(st.sampled_from("ab1é日 ,;\t\"'\n\r=-"), max_size=5)


@st.composite
def tables(draw):
    """Rows of cells, each written with or without quotes, by a writer that is not ours."""
    dialect = {
        "delimiter": draw(st.sampled_from([",", ";", "\t", "|"])),
        "lineterminator": draw(st.sampled_from(["\n", "\r\n", "\r"])),
    }
    width = draw(st.integers(2, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=6))
    quoted = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    blank = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    if dialect["lineterminator"] == "\r":
        # pandas 3.1 loses an empty cell at the start of a line behind a blank one.
        blank = [False] * len(rows)
    return dialect, width, rows, quoted, blank


def written(row, dialect, quoted):
    """One line by Python's own writer; it does not quote a carriage return before Python 3.13."""
    quoted = quoted or any(mark in cell for cell in row for mark in "\r\n")
    file = io.StringIO(newline="")
    how = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(file, quoting=how, **dialect).writerow(row)
    return file.getvalue()


@given(tables(), st.data())
@hypothesis(max_examples=150)
def test_random_tables_in_random_dialects(tmp_path_factory, table, data):
    dialect, width, rows, quoted, blank = table
    folder = tmp_path_factory.mktemp("t")
    path, out = folder / "t.csv", folder / "fixed.csv"
    mark, end = dialect["delimiter"], dialect["lineterminator"]
    encoding = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
    names = [f"x{number}" for number in range(width)]
    lines = [written(row, dialect, how) for row, how in zip(rows, quoted, strict=True)]
    start = mark.join(names) + end
    path.write_bytes("".join([start, *_with_blanks(lines, blank, end)]).encode(encoding))
    column = data.draw(st.integers(0, width - 1))
    made, expected, corrected = [], [], []
    for number, row in enumerate(rows):
        kind = data.draw(st.sampled_from(["keep", FIX, DROP, None]))
        new = data.draw(CELLS.filter(bool)) if kind == FIX else ""
        if kind == FIX and new == row[column]:
            kind = None
        if kind is not None:
            made.append(Decision(number, row[column], kind, new if kind == FIX else ""))
        row = [*row[:column], new, *row[column + 1 :]] if kind == FIX else row
        if kind != DROP:
            corrected.append(row)
        expected.append((kind, row))
    decisions = Decisions(file_fingerprint(path), names[column], tuple(made))
    if not made or not corrected:
        with pytest.raises(InvalidInput):
            rewrite(path, decisions, out, encoding=encoding, separator=mark)
        return
    said = ""
    try:
        rewrite(path, decisions, out, encoding=encoding, separator=mark)
    except InvalidInput as error:
        said = str(error)
    if said:  # a column of 1s that gets an `a`
        assert "must be numbers" in said
        assert [each.name for each in folder.iterdir()] == ["t.csv"]
        return
    text = out.read_bytes().decode(encoding)
    read = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark) if row]
    assert read == [names, *corrected]
    # Lines that nobody decided, and blank ones, are the same to the byte.
    untouched = [
        line
        for line, (kind, _), empty in zip(lines, expected, blank, strict=True)
        for line in ([line] if kind in ("keep", None) else []) + ([end] if empty else [])
    ]
    place = len(start)
    assert text.startswith(start)
    for line in untouched:
        place = text.index(line, place) + len(line)
    assert read_table(out, encoding=encoding, separator=mark).shape == (len(corrected), width)


def _with_blanks(lines, blank, end):
    for line, empty in zip(lines, blank, strict=True):
        yield line
        if empty:
            yield end


JUNK = st.lists(
    st.sampled_from(["a", "1", " ", "\t", ",", ",", '"', '""', "\n", "\r", "\r\n", "\n", '"\n"']),
    max_size=25,
).map("".join)


@given(JUNK, st.data())
@hypothesis(max_examples=300)
@pytest.mark.filterwarnings("ignore::pandas.errors.ParserWarning")
def test_of_any_text_either_the_right_table_is_made_or_none(tmp_path_factory, junk, data):
    """Quotes in strange places, blanks, all line ends: pandas itself is the judge."""
    folder = tmp_path_factory.mktemp("t")
    path, out = folder / "t.csv", folder / "fixed.csv"
    path.write_bytes(f"x,y\n{junk}".encode())
    how = {"dtype": str, "keep_default_na": False, "index_col": False}
    try:
        read_table(path)
        before = pd.read_csv(path, **how).fillna("")
    except (InvalidInput, ValueError):
        return
    kinds = data.draw(
        st.lists(
            st.sampled_from(["keep", FIX, DROP, None]), min_size=len(before), max_size=len(before)
        )
    )
    made = [
        (row, before["y"][row], kind, *(["new"] if kind == FIX else []))
        for row, kind in enumerate(kinds)
        if kind is not None
    ]
    if not made:
        return
    try:
        rewrite(path, decide(path, made), out)
    except InvalidInput:
        assert [each.name for each in folder.iterdir()] == ["t.csv"]
        return
    expected = before.copy()
    for row, kind in enumerate(kinds):
        if kind == FIX:
            expected.loc[row, "y"] = "new"
    expected = expected[[kind != DROP for kind in kinds]].reset_index(drop=True)
    found = pd.read_csv(out, **how).fillna("")
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()


# ---------------------------------------------------------------- Parquet and .npz

DAY = datetime.date(2024, 1, 31)
ARROW = pa.table(
    {
        "f": pa.array([0.0, 1.0, np.nan, 0.0], pa.float32()),
        "i": pa.array([0, 1, 0, 2], pa.int8()),
        "b": [True, False, True, False],
        "s": pa.array(["p", "q", "p", "q"], pa.large_string()),
        "c": pa.array(["p", "q", "p", "q"]).dictionary_encode(),
        "d": [DAY, DAY, datetime.date(2024, 2, 1), DAY],
        "gaps": pa.array([None, 1, None, 3], pa.int64()),
        "list": [[1, 2], None, [], [3]],
    }
).replace_schema_metadata({"who": "me"})


@pytest.mark.parametrize(
    ("target", "made", "expected"),
    [
        ("i", [(0, "0", FIX, "7"), (1, "1", DROP)], [7, 0, 2]),
        ("b", [(0, "True", FIX, "False")], [False, False, True, False]),
        ("s", [(0, "p", FIX, "q"), (1, "q", FIX, "new")], ["q", "new", "p", "q"]),
        ("c", [(0, "p", FIX, "q"), (3, "q", DROP)], ["q", "q", "p"]),
        ("c", [(0, "p", FIX, "new"), (1, "q", FIX, "a, b")], ["new", "a, b", "p", "q"]),
        ("d", [(0, "2024-01-31", FIX, "2024-02-01")], [ARROW["d"][2].as_py(), DAY]),
        ("gaps", [(0, "", FIX, "1"), (1, "1", "keep"), (2, "", DROP)], [1, 1, 3]),
    ],
)
@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
def test_parquet_keeps_types_metadata_and_other_cells(
    tmp_path, target, made, expected, compression
):
    path, out = tmp_path / "t.parquet", tmp_path / "fixed.parquet"
    parquet.write_table(ARROW, path, compression=compression, row_group_size=3)
    done = rewrite(path, decide(path, made, target), out)
    before, after = parquet.read_table(path), parquet.read_table(out)
    assert after.schema.equals(before.schema, check_metadata=True)
    assert after[target].to_pylist()[: len(expected)] == expected
    stays = [row for row in range(4) if (row, DROP) not in [(each[0], each[2]) for each in made]]
    others = before.drop_columns([target]).take(stays).to_pylist()
    assert str(after.drop_columns([target]).to_pylist()) == str(others)  # NaN is NaN
    facts = parquet.ParquetFile(path).metadata, parquet.ParquetFile(out).metadata
    chunks = [each.row_group(0).column(0).compression for each in facts]
    assert chunks[0] == chunks[1]
    assert facts[1].row_group(0).num_rows == 3
    assert read_decisions(done.sidecar).table == file_fingerprint(out)


def test_an_index_stored_in_parquet_goes_with_its_rows(tmp_path):
    path, out = tmp_path / "t.parquet", tmp_path / "fixed.parquet"
    frame = pd.DataFrame({"a": [1, 2, 3], "y": ["p", "q", "p"]}, index=["u", "v", "w"])
    frame.to_parquet(path)
    rewrite(path, decide(path, [(1, "q", DROP), (2, "p", FIX, "q")]), out)
    expected = frame.assign(y=["p", "q", "q"]).drop(index="v")
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)
    frame.reset_index(drop=True).to_parquet(path)
    out = tmp_path / "numbered.parquet"
    rewrite(path, decide(path, [(1, "q", DROP)]), out)
    assert pd.read_parquet(out)["a"].tolist() == [1, 3]


def test_labels_that_parquet_cannot_take_write_nothing(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(ARROW, path)
    for target, label, new, words in (
        ("i", "0", "x", "of the target's type, int8; got 'x'"),
        ("i", "0", "300", "of the target's type, int8"),
        ("i", "0", "03", "is read as '3'"),
        ("b", "True", "maybe", "of the target's type, bool"),
        ("f", "0", "nan", "is read as a missing value"),
        ("list", "[1 2]", "[4]", "of the target's type, list"),
    ):
        with pytest.raises(InvalidInput) as error:
            rewrite(path, decide(path, [(0, label, FIX, new)], target), tmp_path / "f.parquet")
        assert words in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["t.parquet"]


def npz(path, y, **more):
    np.savez_compressed(path, X=np.arange(12.0).reshape(4, 3), y=y, **more)


@pytest.mark.parametrize(
    ("y", "label", "new", "expected"),
    [
        (np.array([0, 1, 0, 2], ">i2"), "0", "1", [1, 1, 2]),
        (np.array([0, 1, 0, 2], np.uint8), "0", "9", [9, 1, 2]),
        (np.array([0.0, 1.0, 0.0, 2.0]), "0", "1", [1.0, 1.0, 2.0]),
        (np.array([0.1, 1.5, 0.0, 2.0], np.float32), "0.1", "0.3", np.float32([0.3, 1.5, 2])),
        (np.array(["p", "q", "p", "q"]), "p", "longer", ["longer", "q", "q"]),
        (np.array([True, False, True, False]), "True", "False", [False, False, False]),
    ],
)
def test_npz_keeps_types_and_other_arrays(tmp_path, y, label, new, expected):
    path, out = tmp_path / "t.npz", tmp_path / "fixed.npz"
    npz(path, y, feature_names=["u", "v", "w"], ids=np.arange(4), other=np.ones((2, 2)))
    third = "0" if y.dtype.kind in "iu" else str(y[2])
    made = [(0, label, FIX, new), (2, third, DROP)]
    done = rewrite(path, decide(path, made), out)
    with np.load(path) as old, np.load(out) as made:
        assert made["y"].tolist() == np.asarray(expected).tolist()
        assert made["y"].dtype.kind == y.dtype.kind
        assert y.dtype.kind == "U" or made["y"].dtype == y.dtype
        assert made["X"].tolist() == old["X"][[0, 1, 3]].tolist()
        for name in ("feature_names", "ids", "other"):
            assert made[name].tolist() == old[name].tolist()
    assert "`ids`" in done.notes[-1]
    assert "`other`" not in done.notes[-1]
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out) as made:
        assert made.namelist() == old.namelist()
        assert made.read("other.npy") == old.read("other.npy")
        types = [each.compress_type for each in made.infolist()]
        assert types == [each.compress_type for each in old.infolist()]


def test_what_an_npz_cannot_take_writes_nothing(tmp_path):
    path, out = tmp_path / "t.npz", tmp_path / "fixed.npz"
    npz(path, np.array([0, 1, 0, 2], np.uint8), odd=np.array([None, 1, 2, 3], dtype=object))
    for target, label, new, words in (
        ("y", "0", "x", "of the target's type, uint8; got 'x'"),
        ("y", "0", "300", "of the target's type, uint8"),
        ("y", "0", "1_0", "is read as '10'"),
        ("x0", "0", "1", "must be its array y"),
    ):
        with pytest.raises(InvalidInput) as error:
            rewrite(path, decide(path, [(0, label, FIX, new)], target), out)
        assert words in str(error.value)
    assert [each.name for each in tmp_path.iterdir()] == ["t.npz"]
    rewrite(path, decide(path, [(0, "0", DROP)]), out)  # arrays of objects are copied unread
    with np.load(out, allow_pickle=True) as made:
        assert made["odd"].tolist() == [None, 1, 2, 3]
