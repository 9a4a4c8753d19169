"""decisions.csv: what is written is read back, and what nobody could mean is refused."""

import csv
import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databanzhaf.errors import InvalidInput
from databanzhaf.tables.decisions import (
    COLUMNS,
    Decision,
    Decisions,
    as_text,
    file_fingerprint,
    read_decisions,
    read_sidecar,
    sidecar_path,
    unused_sidecar,
    write_decisions,
)

TABLE = "0123456789abcdef"
HOSTILE = [
    "",
    "a,b",
    'say "no"',
    '"',
    "two\nlines",
    "two\r\nlines",
    "bare\rreturn",
    "\n",
    "=1+1",
    "=HYPERLINK(\"http://x\",'y')",
    "+49",
    "-1",
    "@x",
    " spaces ",
    "\ttab",
    "Köln 日本 🐈",
    "\ufeffmark",
    "a\0b",
    "#comment",
    "<script>",
    "NA",
    "007",
    "\u2028",
]


def test_hostile_labels_come_back_as_they_were(tmp_path):
    made = [Decision(2 * row, label, "keep", id=label) for row, label in enumerate(HOSTILE)]
    made += [Decision(2 * row + 1, "x", "fix", label, label) for row, label in enumerate(HOSTILE)]
    made = [each for each in made if each.decision == "keep" or each.new_label]
    for target in ("y", 'the "label", please', "=cmd", "a\rb"):
        decisions = Decisions(TABLE, target, tuple(made))
        write_decisions(tmp_path / "d.csv", decisions)
        assert read_decisions(tmp_path / "d.csv") == decisions


TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('",\r\n= '), max_size=8)


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(["keep", "fix", "drop"])), min_size=1),
    TEXTS,
)
def test_all_texts_come_back_as_they_were(tmp_path_factory, cells, target):
    made = []
    for row, (id, label, new_label, kind) in enumerate(cells):
        new_label = (new_label or "other") if kind == "fix" else ""
        if new_label != label:
            made.append(Decision(row, label, kind, new_label, id))
    if made:
        path = tmp_path_factory.mktemp("d") / "d.csv"
        decisions = Decisions(TABLE, target, tuple(made))
        write_decisions(path, decisions)
        assert read_decisions(path) == decisions


def test_the_file_is_plain_csv(tmp_path):
    made = (Decision(3, "cat", "fix", "a, b", "r3"), Decision(0, "dog", "keep"))
    write_decisions(tmp_path / "d.csv", Decisions(TABLE, "y", made))
    assert (tmp_path / "d.csv").read_bytes() == (
        b"row,id,label,decision,new_label,table,target\n"
        b'3,r3,cat,fix,"a, b",0123456789abcdef,y\n'
        b"0,,dog,keep,,0123456789abcdef,y\n"
    )


def test_what_a_spreadsheet_makes_of_the_file_is_read(tmp_path):
    text = as_text(Decisions(TABLE, "y", (Decision(1, "ä", "drop"),)))
    lines = list(csv.reader(io.StringIO(text)))
    order = [6, 0, 3, 2, 1, 5, 4]
    again = "\r\n".join(",".join(line[place] for place in order) for line in lines) + "\r\n\r\n"
    (tmp_path / "d.csv").write_bytes(again.encode("utf-8-sig"))
    assert read_decisions(tmp_path / "d.csv").made == (Decision(1, "ä", "drop"),)
    (tmp_path / "e.csv").write_text(text.replace(",", ";"), encoding="utf-8")
    assert read_decisions(tmp_path / "e.csv").made == (Decision(1, "ä", "drop"),)


HEADER = ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must have the columns row, id, label"),
        (b"row,label\n", "must have the columns row, id, label"),
        (f"{HEADER[:-1]},more\n".encode(), "must have the columns row, id, label"),
        (HEADER.encode(), "must hold one decision or more"),
        (f"{HEADER}0,,a,maybe,,t,y\n".encode(), "must be keep, fix or drop; got 'maybe' for row 0"),
        (f"{HEADER}0,,a,Keep,,t,y\n".encode(), "must be keep, fix or drop"),
        (f"{HEADER}0,,a,fix,,t,y\n".encode(), "must have a `new_label`; got none for row 0"),
        (f"{HEADER}0,,a,fix,a,t,y\n".encode(), "must change the label; got 'a' again for row 0"),
        (f"{HEADER}0,,a,keep,b,t,y\n".encode(), "only a fix"),
        (f"{HEADER}0,,a,drop,b,t,y\n".encode(), "only a fix"),
        (f"{HEADER}0,,a,keep,,t,y\n0,,a,drop,,t,y\n".encode(), "each row once; got row 0 twice"),
        (f"{HEADER}0,,a,keep,,t,y\n00,,a,drop,,t,y\n".encode(), "each row once"),
        (f"{HEADER}-1,,a,keep,,t,y\n".encode(), "must be a whole number"),
        (f"{HEADER}1.0,,a,keep,,t,y\n".encode(), "must be a whole number"),
        (f"{HEADER}٣,,a,keep,,t,y\n".encode(), "must be a whole number"),
        (f"{HEADER},,a,keep,,t,y\n".encode(), "must be a whole number"),
        (f"{HEADER}{'9' * 40},,a,keep,,t,y\n".encode(), "must be a whole number"),
        (f"{HEADER}0,,a,keep,,t,y\n1,,a,keep,,u,y\n".encode(), "about one column of one table"),
        (f"{HEADER}0,,a,keep,,t,y\n1,,a,keep,,t,z\n".encode(), "about one column of one table"),
        (f"{HEADER}0,,a,keep,,t\n".encode(), "must have 7 fields; got 6 in decision 1"),
        (f"{HEADER}0,,a,keep,,t,y,z\n".encode(), "must have 7 fields; got 8"),
        (f'{HEADER}0,,"a"b,keep,,t,y\n'.encode(), "cannot be read as CSV"),
        (f'{HEADER}0,,"a,keep,,t,y\n'.encode(), "cannot be read as CSV"),
        (f"{HEADER}0,,{'a' * 200_000},keep,,t,y\n".encode(), "cannot be read as CSV"),
        (f"{HEADER}0,,é,keep,,t,y\n".encode("latin-1"), "must be UTF-8 text; got byte 0xe9 at 48"),
        (HEADER.encode("utf-16"), "must be UTF-8 text"),
    ],
)
def test_a_file_that_nobody_could_mean_gets_one_sentence(tmp_path, content, words):
    (tmp_path / "d.csv").write_bytes(content)
    with pytest.raises(InvalidInput) as error:
        read_decisions(tmp_path / "d.csv")
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_are_not_there_or_cannot_be_written(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_decisions(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_decisions(tmp_path)
    with pytest.raises(InvalidInput, match="NUL"):
        read_decisions("a\0b")
    with pytest.raises(InvalidInput, match="one decision or more"):
        write_decisions(tmp_path / "d.csv", Decisions(TABLE, "y", ()))
    assert list(tmp_path.iterdir()) == []


def test_the_fingerprint_is_of_the_files_bytes(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,y\r\n1,x\r\n")
    expected = hashlib.sha256(b"a,y\r\n1,x\r\n").hexdigest()[:16]
    assert file_fingerprint(tmp_path / "t.csv") == expected


def test_decided_rows_are_read_beside_their_own_table_only(tmp_path):
    table = tmp_path / "train.csv.gz"
    table.write_bytes(b"anything")
    assert read_sidecar(table, "y") is None
    assert unused_sidecar(table, "y") is None
    path = sidecar_path(table)
    assert path == tmp_path / "train.decisions.csv"
    mine = file_fingerprint(table)
    made = (Decision(0, "a", "keep"), Decision(1, "a", "drop"), Decision(2, "a", "fix", "b"))
    write_decisions(path, Decisions(mine, "y", made))
    assert read_sidecar(table, "y") == Decisions(mine, "y", made[:1])
    assert unused_sidecar(table, "y") is None
    assert read_sidecar(table, "z") is None
    assert "is about the column `y`" in unused_sidecar(table, "z")
    write_decisions(path, Decisions(mine, "y", made[1:]))
    assert read_sidecar(table, "y") is None
    write_decisions(path, Decisions(TABLE, "y", made))
    assert read_sidecar(table, "y") is None
    assert "`train.csv.gz` has changed" in unused_sidecar(table, "y")
    path.write_text("something else")
    assert read_sidecar(table, "y") is None
    assert "`train.decisions.csv` must have the columns" in unused_sidecar(table, "y")
