"""Tables and columns of other packages."""

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.frames import as_array, as_pandas
from databanzhaf.tables import Encoder

N = 40
COLUMNS = {
    "size": [float(i * 7 % 11) for i in range(N)],
    "count": [None if i % 7 == 0 else i % 5 for i in range(N)],
    "paid": [None if i % 9 == 0 else bool(i % 2) for i in range(N)],
    "new": [bool(i % 3) for i in range(N)],
    "city": [None if i % 11 == 0 else ["Rome", "Köln", "Oslo"][i % 3] for i in range(N)],
    "day": [None if i == 3 else dt.date(2024, 1, 1) + dt.timedelta(days=i * 3) for i in range(N)],
    "time": [dt.datetime(2024, 1, 1, i % 24) for i in range(N)],
    "price": [None if i == 5 else Decimal(i % 13) / 4 for i in range(N)],
}
LABELS = ["yes" if size > 4 else "no" for size in COLUMNS["size"]]
PACKAGES = ["polars", "pyarrow", "datasets"]


class Column(Sequence):
    """A column of `datasets`: a sequence that is read row by row."""

    def __init__(self, cells):
        self.cells = cells

    def __getitem__(self, place):
        return self.cells[place]

    def __len__(self):
        return len(self.cells)


class HuggingFace:
    """Stands for `datasets.Dataset`, which is too heavy for a test: a table of Arrow."""

    def __init__(self, columns):
        pa = pytest.importorskip("pyarrow", reason="datasets hold Arrow tables")
        self.table = pa.table(columns)

    def __getitem__(self, name):
        return Column(self.table[name].to_pylist())

    def to_pandas(self):
        return self.table.to_pandas()


def table_of(package, columns=COLUMNS):
    if package == "datasets":
        return HuggingFace(columns)
    module = pytest.importorskip(package, reason=f"needs {package}")
    return module.DataFrame(columns) if package == "polars" else module.table(columns)


def column_of(package, cells):
    if package == "datasets":
        return Column(cells)
    module = pytest.importorskip(package, reason=f"needs {package}")
    return module.Series(cells) if package == "polars" else module.chunked_array([cells])


@pytest.mark.parametrize("package", PACKAGES)
def test_columns_are_read_as_what_they_are(package):
    if package == "polars":
        pytest.importorskip("pyarrow", reason="polars converts through pyarrow")
    table = as_pandas("X", table_of(package))
    assert len(table) == N
    encoder = Encoder(table)
    assert encoder.read_as == (
        "Columns: 5 of numbers, 1 of categories (up to 4 different ones), 2 of dates; 5 with gaps."
    )
    pd.testing.assert_series_equal(
        table["price"], pd.Series([None, *COLUMNS["price"]][1:], dtype=float), check_names=False
    )
    assert table["day"].isna().tolist() == [day is None for day in COLUMNS["day"]]
    assert table["day"].iloc[4] == pd.Timestamp(COLUMNS["day"][4])
    plain = pd.DataFrame(COLUMNS).astype({"day": "datetime64[s]", "price": "float64"})
    assert np.array_equal(encoder(table), Encoder(plain)(plain))


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("model", ["forest", "mlp"])
def test_values_are_those_of_pandas(package, model):
    if package == "polars":
        pytest.importorskip("pyarrow", reason="polars converts through pyarrow")
    groups = ["ann", "bob"] * (N // 2)
    ours = db.DataBanzhaf(model, budget=20).fit(as_pandas("X", table_of(package)), LABELS)
    theirs = db.DataBanzhaf(model, budget=20).fit(table_of(package), column_of(package, LABELS))
    assert np.array_equal(ours.values_, theirs.values_)
    valuator = db.DataBanzhaf(model, budget=10)
    valuator.fit(table_of(package), column_of(package, LABELS), groups=column_of(package, groups))
    assert list(valuator.estimate_.players) == ["ann", "bob"]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "labels",
    [LABELS, [0, 1] * 20, [True, False] * 20, [0.5, 1.5] * 20, [Decimal("0.5"), Decimal(2)] * 20],
    ids=["texts", "integers", "truth-values", "floats", "decimals"],
)
def test_labels_stay_as_they_are(package, labels):
    data = db.Dataset(np.zeros((N, 1)), column_of(package, labels))
    assert data.y.tolist() == labels
    assert data.y.dtype.kind != "O"


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("labels", [[None, "a"] * 20, [None, 1] * 20, [None, True] * 20], ids=str)
def test_missing_labels_are_refused(package, labels):
    column = column_of(package, labels)
    with pytest.raises(db.InvalidInput, match="no missing label"):
        db.Dataset(np.zeros((N, 1)), column)
    with pytest.raises(db.InvalidInput, match="no missing label"):
        db.DataBanzhaf(budget=10).fit(table_of(package), column)


def test_categories_of_polars_are_categories():
    pl = pytest.importorskip("polars", reason="needs polars")
    pytest.importorskip("pyarrow", reason="polars converts through pyarrow")
    names = pl.Series("c", ["b", "a"] * 20)
    for kind in (pl.Categorical, pl.Enum(["b", "a"])):
        data = db.Dataset(names.cast(kind).to_frame(), names.cast(kind), groups=names.cast(kind))
        assert data.X["c"].tolist() == ["b", "a"] * 20
        assert str(data.X["c"].dtype) == "category"
        assert data.y.tolist() == ["b", "a"] * 20
        assert data.players == ["a", "b"]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_column_of_texts_is_a_table(package):
    texts = [f"text about row {i % 20}" for i in range(N)]
    plain = db.DataBanzhaf("mlp", budget=10).fit(texts, LABELS)
    column = column_of(package, texts)
    assert np.array_equal(
        plain.values_, db.DataBanzhaf("mlp", budget=10).fit(column, LABELS).values_
    )
    assert db.Dataset(column, LABELS).X.tolist() == texts


def test_lazy_tables_are_refused():
    pl = pytest.importorskip("polars", reason="needs polars")
    lazy = pl.LazyFrame({"a": [1.0, 2.0], "y": [0, 1]})
    rows = np.zeros((2, 1))
    for call in (
        lambda: db.Dataset(lazy, [0, 1]),
        lambda: db.Dataset(rows, lazy),
        lambda: db.Dataset(rows, [0, 1], groups=lazy),
        lambda: db.DataBanzhaf().fit(lazy, [0, 1]),
        lambda: db.DataBanzhaf().fit(rows, lazy),
        lambda: db.DataBanzhaf().fit(rows, [0, 1], groups=lazy),
    ):
        with pytest.raises(
            db.InvalidInput, match=r"in memory; got a polars LazyFrame.*collect\(\)"
        ):
            call()


def test_several_tables_and_cells_with_parts_are_refused():
    splits = {"train": HuggingFace(COLUMNS)}
    nested = HuggingFace({"x": list(range(N)), "parts": [[1.0, 2.0]] * N})
    for call in (db.Dataset, db.DataBanzhaf().fit):
        with pytest.raises(db.InvalidInput, match=r"a dict\. Choose one of its tables"):
            call(splits, LABELS)
        with pytest.raises(db.InvalidInput, match="column `parts` holds a ndarray"):
            call(nested, LABELS)


def test_a_whole_table_with_its_target_is_noted():
    table = HuggingFace({**COLUMNS, "label": LABELS})
    assert db.DataBanzhaf(budget=10).fit(table, table["label"]).notes_[-1] == (
        "`label` says the target of every row, so models need only copy it. Leave out the target "
        "itself with --drop."
    )


def test_without_pyarrow_one_sentence_says_how_to_install_it():
    class NeedsArrow:
        def to_pandas(self):
            raise ModuleNotFoundError("No module named 'pyarrow'")

    with pytest.raises(db.BackendUnavailable, match=r"table needs pyarrow.*pip install"):
        db.Dataset(NeedsArrow(), LABELS)


def test_a_column_of_decimals_with_other_cells_stays_as_it_is():
    mixed = np.array([Decimal(1), "a"], dtype=object)
    assert as_array("y", mixed).tolist() == mixed.tolist()
    assert as_array("y", []).shape == (0,)
