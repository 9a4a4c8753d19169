"""Files into tables, tables into numbers."""

import numpy as np
import pandas as pd
import pytest

from databanzhaf.errors import InvalidInput
from databanzhaf.tables import Encoder, held_out, read_table
from databanzhaf.tables.encode import MOST_CATEGORIES

FRAME = pd.DataFrame({"a": [1.5, np.nan, 3.0], "city": ["Rome", "Köln", None], "label": [0, 1, 1]})


@pytest.mark.parametrize(
    ("name", "options", "write"),
    [
        ("t.csv", {}, lambda path: FRAME.to_csv(path, index=False)),
        ("t.CSV", {}, lambda path: FRAME.to_csv(path, index=False)),
        ("t.csv.gz", {}, lambda path: FRAME.to_csv(path, index=False)),
        ("t.tsv", {}, lambda path: FRAME.to_csv(path, index=False, sep="\t")),
        ("t.csv", {}, lambda path: FRAME.to_csv(path, index=False, lineterminator="\r\n")),
        ("t.csv", {}, lambda path: FRAME.to_csv(path, index=False, encoding="utf-8-sig")),
        (
            "t.csv",
            {"encoding": "latin-1"},
            lambda path: FRAME.to_csv(path, index=False, encoding="latin-1"),
        ),
        ("t.csv", {"separator": ";"}, lambda path: FRAME.to_csv(path, index=False, sep=";")),
        ("t.parquet", {}, lambda path: FRAME.to_parquet(path)),
    ],
)
def test_every_kind_of_file_gives_the_same_table(tmp_path, name, options, write):
    write(tmp_path / name)
    read = read_table(tmp_path / name, **options)
    assert read.columns.tolist() == FRAME.columns.tolist()
    pd.testing.assert_frame_equal(read, FRAME, check_dtype=False)


def test_npz(tmp_path):
    rows = np.arange(12.0).reshape(3, 2, 2)
    np.savez(tmp_path / "t.npz", X=rows, y=[0, 1, 0])
    table = read_table(tmp_path / "t.npz")
    assert table.columns.tolist() == ["x0", "x1", "x2", "x3", "y"]
    assert table["x3"].tolist() == [3.0, 7.0, 11.0]
    np.savez(tmp_path / "named.npz", X=rows[:, 0], y=[0, 1, 0], feature_names=["u", "v"])
    assert read_table(tmp_path / "named.npz").columns.tolist() == ["u", "v", "y"]


def save(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "no data rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", "is not utf-8 text"),
        ("t.xlsx", b"PK", "must be a .csv, .tsv, .parquet or .npz"),
        ("t.npz", b"not a zip", "cannot be read as .npz"),
        ("t.parquet", b"not parquet", "cannot be read as Parquet"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_sentence(tmp_path, name, content, words):
    with pytest.raises(InvalidInput, match=words) as error:
        read_table(save(tmp_path, name, content))
    assert "\n" not in str(error.value)


def test_absent_files_folders_encodings_and_npz_without_x(tmp_path):
    np.savez(tmp_path / "t.npz", rows=[1])
    np.savez(tmp_path / "objects.npz", X=np.array([[object()]]), y=[1])
    (tmp_path / "t.csv").write_text("a\n1\n")
    for path, options, words in (
        (tmp_path / "no.csv", {}, "there is no file"),
        (tmp_path, {}, "is a folder"),
        (tmp_path / "t.npz", {}, "must hold X"),
        (tmp_path / "objects.npz", {}, "cannot be read as .npz"),
        (tmp_path / "t.csv", {"encoding": "klingon"}, "`encoding` must be"),
    ):
        with pytest.raises(InvalidInput, match=words):
            read_table(path, **options)


def test_numbers_are_scaled_and_filled_and_categories_one_hot():
    table = pd.DataFrame(
        {
            "x": [1.0, 2.0, np.nan, 9.0],
            "flag": [True, False, True, True],
            "city": ["a", None, "b", "a"],
            "none": [np.nan] * 4,
        }
    )
    encoder = Encoder(table)
    encoded = encoder(table)
    assert encoded.shape == (4, 1 + 1 + 3)
    filled = np.array([1.0, 2.0, 2.0, 9.0])
    np.testing.assert_allclose(encoded[:, 0], (filled - filled.mean()) / filled.std())
    assert encoded[:, 2:].sum(axis=1).tolist() == [1, 1, 1, 1]
    assert encoder.notes == ["Column `none` left out: no value in any row."]
    unseen = encoder(table.assign(city="zebra"))
    assert np.isfinite(unseen).all()
    assert not unseen[:, 2:].any()


def test_infinities_dates_and_many_categories():
    n = 200
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "x": np.where(np.arange(n) == 3, np.inf, np.arange(n) * 2.0),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n) % 7, unit="D"),
            "span": pd.to_timedelta(np.arange(n) % 5, unit="h"),
            "word": rng.integers(0, 150, n).astype(str) + np.array(["w"]),
            "category": pd.Categorical(np.where(np.arange(n) % 2, "u", "v")),
        }
    )
    encoder = Encoder(table)
    encoded = encoder(table)
    assert np.isfinite(encoded).all()
    assert encoded.shape[1] == 3 + MOST_CATEGORIES + 2
    assert np.corrcoef(encoded[:, 1], np.arange(n) % 7)[0, 1] == pytest.approx(1)
    assert "`word` differs in most rows" in encoder.notes[0]


def test_a_counter_is_noticed_and_wrong_validation_columns_are_refused():
    table = pd.DataFrame({"n": np.arange(5), "x": [3.0, 1.0, 4.0, 1.0, 5.0]})
    encoder = Encoder(table)
    assert encoder.notes == [
        "Column `n` left out: it numbers the rows.",
    ]
    with pytest.raises(InvalidInput, match="none called `x`"):
        encoder(table[["n"]])
    with pytest.raises(InvalidInput, match="of the training table's kinds"):
        encoder(table.assign(x="text"))
    with pytest.raises(InvalidInput, match="no column to learn from"):
        Encoder(table[[]])


def test_a_share_of_each_class_is_held_out_and_every_class_stays():
    labels = np.array(["a"] * 60 + ["b"] * 30 + ["c"])
    chosen = held_out(labels, 0.3, 0, by_class=True)
    assert [int(chosen[labels == name].sum()) for name in "abc"] == [18, 9, 0]
    assert np.array_equal(chosen, held_out(labels, 0.3, 0, by_class=True))
    assert not np.array_equal(chosen, held_out(labels, 0.3, 1, by_class=True))
    assert held_out(np.arange(10.0), 0.3, 0, by_class=False).sum() == 3
    assert held_out(np.arange(2), 0.9, 0, by_class=False).sum() == 1
    picked = np.mean(
        [held_out(np.zeros(10), 0.3, seed, by_class=True) for seed in range(2000)], axis=0
    )
    assert np.abs(picked - 0.3).max() < 4 * np.sqrt(0.3 * 0.7 / 2000)


def test_rows_are_known_by_their_place_whatever_index_was_stored(tmp_path):
    shuffled = FRAME.sample(frac=1, random_state=0)
    shuffled.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").index.tolist() == [0, 1, 2]
    assert read_table(tmp_path / "t.parquet")["label"].tolist() == shuffled["label"].tolist()


@pytest.mark.filterwarnings("ignore::pandas.errors.ParserWarning")
def test_a_comma_at_the_end_of_lines_shifts_no_column(tmp_path):
    (tmp_path / "t.csv").write_text("y,a\np,1,\nq,2,\n")
    assert read_table(tmp_path / "t.csv")["y"].tolist() == ["p", "q"]


def test_columns_are_read_as_what_they_are_and_useless_ones_left_out(tmp_path):
    n = 40
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "Unnamed: 0": np.arange(n),
            "id": rng.permutation(n) + 100,
            "when": pd.date_range("2024-01-01", periods=n).astype(str),
            "price": [f"{1000 + i:,}.50" for i in range(n)],
            "same": "x",
            "kind": rng.choice(["a", "b", "c"], n),
            "size": np.where(np.arange(n) % 5, rng.normal(size=n), np.nan),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv")
    assert table["when"].dtype.kind == "M"
    encoder = Encoder(table)
    said = " ".join(encoder.notes)
    assert "`Unnamed: 0`, `id` left out: they number the rows" in said
    assert "`same` left out: the same in every row" in said
    assert "`price` read as text because of numbers such as `1,000.50`" in said
    assert encoder.read_as == (
        "Columns: 1 of numbers, 2 of categories (up to 40 different ones), 1 of dates; 1 with gaps."
    )
    alone = Encoder(pd.DataFrame({"id": np.arange(5)}))  # nothing else to learn from
    assert alone(pd.DataFrame({"id": np.arange(5)})).shape == (5, 1)


def test_dates_in_another_form_are_noted():
    days = [f"{day % 28 + 1:02d}" for day in range(60)]
    table = pd.DataFrame(
        {
            "german": [f"{day}.06.2025" for day in days],
            "american": [f"6/{day}/2025" for day in days],
            "with gaps": [None if day == "03" else f"2025/06/{day}" for day in days],
            "version": [f"1.{day}.10" for day in days],
            "phone": [f"12-34-56{day}" for day in days],
        }
    )
    [said] = [note for note in Encoder(table).notes if "dates" in note]
    assert said == (
        "Columns `german`, `american`, `with gaps` read as text because of dates such as "
        "`01.06.2025`. Write them in the form 2025-06-15."
    )


def test_texts_that_only_look_like_dates_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text("d,e\n2024-06-31,2024-01-01\n2024-01-02,soon\n")
    table = read_table(tmp_path / "t.csv")
    assert table["d"].tolist() == ["2024-06-31", "2024-01-02"]
    assert table["e"].tolist() == ["2024-01-01", "soon"]
