import gzip
import io
import pickle
import runpy
import struct
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import Bunch

from databanzhaf import datasets
from databanzhaf.errors import BackendUnavailable, InvalidInput

REAL = Path(__file__).parents[2] / "shared" / "data"
PAPER = [
    "mnist",
    "fmnist",
    "cifar10",
    "click",
    "fraud",
    "creditcard",
    "vehicle",
    "apsfail",
    "phoneme",
    "wind",
    "pol",
    "cpu",
    "2dplanes",
]


@pytest.fixture(autouse=True)
def _no_places(monkeypatch, tmp_path):
    """No folder but those a test names, and no home of a user."""
    monkeypatch.delenv("DATABANZHAF_DATA", raising=False)
    monkeypatch.setenv("DATABANZHAF_CACHE", str(tmp_path / "cache"))


def sentence(error):
    """The message, which must be one line."""
    assert "\n" not in str(error.value)
    return str(error.value)


def test_names():
    assert datasets.names() == [*PAPER, "cifar10_catdog_227px", "cifar10_catdog_32px", "suppliers"]
    for wrong in ("iris", 3, None, ["mnist"]):
        with pytest.raises(InvalidInput, match="2dplanes") as error:
            datasets.load(wrong)
        assert repr(wrong) in sentence(error)


# The files that this project keeps: shapes and classes as their table says.


@pytest.mark.skipif(
    not REAL.is_dir(), reason="the folder of real datasets is not beside this checkout"
)
@pytest.mark.parametrize(
    ("name", "shape", "counts", "test_shape", "test_counts"),
    [
        (
            "mnist",
            (15000, 28, 28),
            [1500] * 10,
            (10000, 28, 28),
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        ("fmnist", (15000, 28, 28), [1500] * 10, (10000, 28, 28), [1000] * 10),
        ("cifar10", (5000, 32, 32, 3), [500] * 10, (2000, 32, 32, 3), [200] * 10),
        ("cifar10_catdog_227px", (10000, 512), [5000, 5000], (2000, 512), [1000, 1000]),
        ("cifar10_catdog_32px", (10000, 512), [5000, 5000], (2000, 512), [1000, 1000]),
        ("click", (10000, 11), [5000, 5000], None, None),
        ("fraud", (10000, 30), [9508, 492], None, None),
        ("creditcard", (10000, 23), [5000, 5000], None, None),
        ("vehicle", (1860, 100), [837, 1023], None, None),
        ("apsfail", (18040, 170), [17475, 565], None, None),
        ("phoneme", (5404, 5), [3818, 1586], None, None),
        ("wind", (6574, 14), [3073, 3501], None, None),
        ("pol", (10000, 48), [5000, 5000], None, None),
        ("cpu", (8192, 21), [5715, 2477], None, None),
        ("2dplanes", (10000, 10), [5000, 5000], None, None),
    ],
)
def test_real_files(name, shape, counts, test_shape, test_counts):
    source = datasets.load(name.upper(), folder=REAL)
    assert (source.name, source.X.shape, source.y.shape, source.y.dtype) == (
        name,
        shape,
        shape[:1],
        np.int64,
    )
    assert np.bincount(source.y).tolist() == counts
    if test_shape is None:
        assert source.X_test is None
        assert source.y_test is None
        assert source.feature_names is None or len(source.feature_names) == shape[1]
        assert np.isfinite(source.X).all()
        assert ("authors" in source.origin) == (shape[0] == 10000)
        assert ("sorted by class" in source.origin) == (shape[0] == 10000)
    else:
        assert source.X_test.shape == test_shape
        assert np.bincount(source.y_test).tolist() == test_counts
    assert source.origin.startswith(str(REAL))


# A folder of .npz files.


def test_the_folder_comes_first_and_then_the_environment(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, n in ((here, 4), (there, 6)):
        folder.mkdir()
        np.savez(
            folder / "wind.npz",
            X=np.zeros((n, 2), np.float32),
            y=np.arange(n) % 2,
            feature_names=np.array(["a", "b"]),
        )
    monkeypatch.setenv("DATABANZHAF_DATA", str(there))
    assert len(datasets.load("wind").y) == 6
    source = datasets.load("wind", folder=str(here))
    assert source.feature_names == ("a", "b")
    assert (
        repr(source) == "Source(wind: 4 x 2 float32, 2 of class 0 and 2 of class 1, no test rows)"
    )
    assert source.origin == (
        f"{here / 'wind.npz'}: 4 rows (2 of class 0 and 2 of class 1); the paper takes as many "
        "rows of each class of wind, OpenML 847."
    )
    assert len(datasets.load("suppliers").y) == 300


def test_cifar_files_by_either_name(tmp_path):
    images = {"X_train": np.zeros((3, 2, 2, 3), np.uint8), "y_train": np.arange(3)}
    np.savez(tmp_path / "cifar10.npz", X_test=images["X_train"], y_test=images["y_train"], **images)
    source = datasets.load("cifar10", folder=tmp_path)
    assert repr(source) == "Source(cifar10: 3 x 2 x 2 x 3 uint8, 3 classes, 3 test rows)"
    np.savez(
        tmp_path / "cifar10_10class.npz",
        X_test=images["X_train"][:1],
        y_test=images["y_train"][:1],
        **images,
    )
    assert len(datasets.load("cifar10", folder=tmp_path).y_test) == 1
    with pytest.raises(InvalidInput, match=r"cifar10_catdog_squeezenet_32px\.npz") as error:
        datasets.load("cifar10_catdog_32px")
    assert "DATABANZHAF_DATA" in sentence(error)


def test_a_missing_file_is_never_fetched(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: pytest.fail("fetched"))
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InvalidInput, match=r"must hold wind\.npz"):
            datasets.load("wind", folder=folder)
    monkeypatch.setenv("DATABANZHAF_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"must hold cifar10_10class\.npz or cifar10\.npz"):
        datasets.load("cifar10")


X, y = np.zeros((4, 2), np.float32), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"X": X}, "got X"),
        ({"rows": X}, "got none of them"),
        ({"X_train": X, "y_train": y}, "got X_train, y_train"),
        ({"X": X, "y": y[:3]}, r"got shapes \(4, 2\) and \(3,\)"),
        ({"X": X[:0], "y": y[:0]}, r"got X of shape \(0, 2\)"),
        ({"X": X[:, :0], "y": y}, r"got X of shape \(4, 0\)"),
        ({"X": X[:, 0], "y": y}, r"got shapes \(4,\)"),
        ({"X": X, "y": y, "feature_names": np.array(["a"])}, "feature_names of shape"),
        ({"X": X.astype(object), "y": y}, "plain arrays"),
    ],
)
def test_malformed_archives(tmp_path, arrays, match):
    np.savez(tmp_path / "pol.npz", **arrays)
    with pytest.raises(InvalidInput, match=match) as error:
        datasets.load("pol", folder=tmp_path)
    assert "pol.npz" in sentence(error)


def test_no_archive_at_all(tmp_path):
    array = io.BytesIO()
    np.save(array, X)
    archive = io.BytesIO()
    np.savez_compressed(archive, X=np.random.default_rng(0).random((50, 2)), y=np.arange(50))
    broken = bytearray(archive.getvalue())
    broken[100:140] = bytes(40)
    unknown = bytearray(archive.getvalue())
    unknown[archive.getvalue().index(b"PK\x01\x02") + 10] = (
        99  # a method of compression that Python does not have
    )
    for content in (
        bytes(unknown),
        b"",
        b"text",
        array.getvalue(),
        archive.getvalue()[:200],
        bytes(broken),
        pickle.dumps({"X": 1}),
    ):
        (tmp_path / "pol.npz").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"np\.savez_compressed") as error:
            datasets.load("pol", folder=tmp_path)
        sentence(error)


# OpenML.


@pytest.fixture
def openml(monkeypatch):
    """Puts a table in the place of OpenML."""

    def give(data, target):
        calls = []

        def fetch(**options):
            calls.append(options)
            return Bunch(
                data=data, target=target, feature_names=[f"f{j}" for j in range(data.shape[1])]
            )

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return calls

    return give


IDS = {
    "click": 1218,
    "fraud": 42397,
    "creditcard": 42477,
    "vehicle": 357,
    "apsfail": 41138,
    "phoneme": 1489,
    "wind": 847,
    "pol": 722,
    "cpu": 761,
    "2dplanes": 727,
}


@pytest.mark.parametrize(("name", "number"), IDS.items())
def test_openml_numbers(openml, name, number):
    calls = openml(np.arange(6.0).reshape(3, 2), np.array(["N", "P", "N"], dtype=object))
    source = datasets.load(name)
    assert calls == [{"data_id": number, "as_frame": False, "parser": "auto"}]
    assert f"OpenML {number}" in source.origin
    assert source.X.dtype == np.float32
    assert source.y.dtype == np.int64
    assert source.y.tolist() == [0, 1, 0]
    assert source.X_test is None
    assert source.feature_names == ("f0", "f1")


@pytest.mark.parametrize(
    ("target", "expected", "words"),
    [
        (np.array([0.0, 1.0, 0.0, 1.0]), [0, 1, 0, 1], "label 1 for class 1.0"),
        (np.array(["-1", "1", "1", "-1"], dtype=object), [0, 1, 1, 0], "label 1 for class 1"),
        (np.array(["10", "9", "9", "10"], dtype=object), [1, 0, 0, 1], "label 1 for class 10"),
        (
            np.array(["pos", "neg", "neg", "neg"], dtype=object),
            [1, 0, 0, 0],
            "label 1 for class pos",
        ),
        (np.array([True, False, True, True]), [1, 0, 1, 1], "label 1 for class True"),
        (
            np.array(["1", "2", "3", "1"], dtype=object),
            [1, 0, 0, 1],
            "label 1 for class 1 of 3 classes",
        ),
        (np.array([0, 1, 2, 2]), [0, 1, 0, 0], "label 1 for class 1 of 3 classes"),
    ],
)
def test_labels_become_0_and_1(openml, target, expected, words):
    openml(np.zeros((4, 1)), target)
    source = datasets.load("wind")
    assert source.y.tolist() == expected
    assert words in source.origin


@pytest.mark.parametrize(
    ("target", "match"),
    [
        (np.array(["a", "b", "c"], dtype=object), "'a', 'b', 'c'"),
        (np.array([5, 6, 7]), "'5', '6', '7'"),
        (np.zeros(3), "two classes"),
        (np.array(["a", None, "b"], dtype=object), "one label per row"),
        (np.zeros((3, 2)), r"shape \(3, 2\)"),
        (None, "one label per row"),
    ],
)
def test_labels_that_cannot(openml, target, match):
    openml(np.zeros((3, 1)), target)
    with pytest.raises(InvalidInput, match=match) as error:
        datasets.load("wind")
    assert "wind.npz" in sentence(error)


def test_missing_values_become_the_column_median(openml):
    openml(
        np.array(
            [[1.0, np.nan, 4.0], [2.0, np.nan, 5.0], [np.nan, np.nan, 6.0], [9.0, np.nan, 7.0]]
        ),
        np.array([0, 1, 0, 1]),
    )
    source = datasets.load("apsfail")
    assert source.X.tolist() == [[1, 0, 4], [2, 0, 5], [2, 0, 6], [9, 0, 7]]
    assert "5 missing values replaced by the column median" in source.origin


def test_text_columns_become_numbers(openml):
    table = np.array(
        [["2", "red", 1.5], ["10", "blue", 2.5], [None, np.nan, np.nan], ["4", "red", 3.5]],
        dtype=object,
    )
    openml(table, np.array(["0", "1", "0", "1"], dtype=object))
    source = datasets.load("creditcard")
    assert source.X.tolist() == [[2, 1, 1.5], [10, 0, 2.5], [4, 1, 2.5], [4, 1, 3.5]]
    assert "1 text columns coded by their sorted order, 3 missing values" in source.origin


def test_sparse_tables_become_dense(openml):
    openml(sparse.csr_matrix(np.eye(3)), np.array(["-1", "1", "1"], dtype=object))
    assert np.array_equal(datasets.load("vehicle").X, np.eye(3))


@pytest.mark.parametrize(
    "cause",
    [URLError("no route"), TimeoutError("slow"), ValueError("md5"), AttributeError("no target")],
)
def test_openml_out_of_reach(monkeypatch, cause):
    def fail(**_):
        raise cause

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)
    with pytest.raises(BackendUnavailable, match="DATABANZHAF_DATA") as error:
        datasets.load("pol")
    assert "OpenML 722" in sentence(error)
    assert "pol.npz" in sentence(error)
    assert error.value.__cause__ is cause


# Image files.


def idx(array):
    return (
        bytes((0, 0, 8, array.ndim))
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def write_idx(folder, packed):
    folder.mkdir(parents=True)
    rng, arrays = np.random.default_rng(0), []
    for part, n in (("train", 5), ("t10k", 3)):
        images, labels = rng.integers(0, 256, (n, 4, 6), np.uint8), rng.integers(0, 10, n, np.uint8)
        for file, array in (
            (f"{part}-images-idx3-ubyte", images),
            (f"{part}-labels-idx1-ubyte", labels),
        ):
            content = idx(array)
            (folder / (file + packed)).write_bytes(gzip.compress(content) if packed else content)
        arrays += [images, labels]
    return arrays


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize(("name", "folder"), [("mnist", "MNIST"), ("fmnist", "FashionMNIST")])
def test_idx_files(tmp_path, name, folder, packed):
    arrays = write_idx(tmp_path / "cache" / folder / "raw", packed)
    source = datasets.load(name)
    for got, expected in zip(
        (source.X, source.y, source.X_test, source.y_test), arrays, strict=True
    ):
        assert np.array_equal(got, expected)
    assert (source.X.dtype, source.y.dtype) == (np.uint8, np.int64)
    assert source.X.flags.writeable
    assert "5 training images and 3 test images" in source.origin


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0",
        b"<html>404</html>",
        idx(np.zeros((5, 4, 6), np.uint8))[:-1],
        idx(np.zeros((5, 4, 6), np.uint8)) + b"x",
        idx(np.zeros((4, 4, 6), np.uint8)),
        idx(np.zeros(5, np.uint8)),
        bytes((0, 0, 13, 3)) + struct.pack(">3I", 0, 4, 6),
        bytes((0, 0, 8, 3)) + b"\xff" * 12,
    ],
)
def test_malformed_idx_files(tmp_path, content):
    folder = tmp_path / "cache" / "MNIST" / "raw"
    write_idx(folder, "")
    (folder / "train-images-idx3-ubyte").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"Fetch \w+ again") as error:
        datasets.load("mnist")
    assert "train-images-idx3-ubyte" in sentence(error)


def test_malformed_gzip(tmp_path):
    folder = tmp_path / "cache" / "MNIST" / "raw"
    write_idx(folder, ".gz")
    file = folder / "t10k-labels-idx1-ubyte.gz"
    whole = file.read_bytes()
    for content in (b"", b"plain", whole[:-9], whole[:12] + bytes(8) + whole[20:]):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match="t10k-labels") as error:
            datasets.load("mnist")
        sentence(error)


@pytest.mark.parametrize(
    ("name", "kind", "file"),
    [("mnist", "MNIST", "train-images"), ("cifar10", "CIFAR10", "data_batch_3")],
)
def test_image_files_that_are_absent(tmp_path, name, kind, file):
    with pytest.raises(BackendUnavailable, match=file) as error:
        datasets.load(name)
    assert f'torchvision.datasets.{kind}("{tmp_path / "cache"}", download=True)' in sentence(error)


def test_only_the_absent_files_are_said_to_lack(tmp_path):
    folder = tmp_path / "cache" / "MNIST" / "raw"
    write_idx(folder, "")
    (folder / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(BackendUnavailable, match=r"lacks t10k-labels-idx1-ubyte\."):
        datasets.load("mnist")


def python_2_batch(rows, labels, *, shape=None, code=b"u1", keys=(b"labels", b"data")):
    """The bytes that Python 2 wrote, operation by operation, as in the published files."""

    def text(value):
        return b"U" + bytes((len(value),)) + value

    def number(value):
        return b"J" + struct.pack("<i", value)

    content, shape = rows.tobytes(), shape or rows.shape
    dtype = (
        b"cnumpy\ndtype\n"
        + text(code)
        + b"K\0K\1\x87R(K\3"
        + text(b"|")
        + b"NNN"
        + number(-1)
        + number(-1)
        + b"K\0tb"
    )
    state = (
        b"(K\1("
        + b"".join(map(number, shape))
        + b"t"
        + dtype
        + b"\x89T"
        + struct.pack("<i", len(content))
        + content
        + b"tb"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
        + text(b"b")
        + b"\x87R"
        + state
    )
    listed = b"](" + b"".join(map(number, labels)) + b"e"
    return (
        b"\x80\2}("
        + text(b"batch_label")
        + text(b"batch")
        + text(keys[0])
        + listed
        + text(keys[1])
        + array
        + b"u."
    )


def write_cifar(folder):
    folder.mkdir(parents=True)
    rng, images, labels = np.random.default_rng(0), [], []
    for file in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        images.append(rng.integers(0, 256, (2, 32, 32, 3), np.uint8))
        labels.append(rng.integers(0, 10, 2))
        rows = images[-1].transpose(0, 3, 1, 2).reshape(2, 3072)
        (folder / file).write_bytes(python_2_batch(rows, labels[-1].tolist()))
    return images, labels


def test_cifar_batches(tmp_path):
    images, labels = write_cifar(tmp_path / "cache" / "cifar-10-batches-py")
    source = datasets.load("CIFAR10")
    assert np.array_equal(source.X, np.concatenate(images[:5]))
    assert np.array_equal(source.y, np.concatenate(labels[:5]))
    assert np.array_equal(source.X_test, images[5])
    assert np.array_equal(source.y_test, labels[5])
    assert (source.X.shape, source.X.dtype, source.y.dtype) == ((10, 32, 32, 3), np.uint8, np.int64)
    assert source.X.flags.c_contiguous


def test_cifar_batches_saved_again_by_python_3(tmp_path):
    folder = tmp_path / "cache" / "cifar-10-batches-py"
    images, _ = write_cifar(folder)
    rows = images[5].transpose(0, 3, 1, 2).reshape(2, 3072)
    (folder / "test_batch").write_bytes(
        pickle.dumps({b"data": rows, b"labels": [3, 4]}, protocol=4)
    )
    assert np.array_equal(datasets.load("cifar10").X_test, images[5])


class Touch:
    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


ROWS = np.zeros((2, 3072), np.uint8)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, protocol):
    folder, trace = tmp_path / "cache" / "cifar-10-batches-py", tmp_path / "trace.npy"
    write_cifar(folder)
    script = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    for call in ((Path.touch, (trace,)), (eval, (script,)), (np.save, (str(trace), 1))):
        content = pickle.dumps(Touch(*call), protocol=protocol)
        pickle.loads(content)
        assert trace.exists(), "the pickle is harmless, so the test would show nothing"
        trace.unlink()
        (folder / "data_batch_2").write_bytes(content)
        with pytest.raises(InvalidInput, match="UnpicklingError: the file asks for ") as error:
            datasets.load("cifar10")
        assert "data_batch_2" in sentence(error)
        assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no pickle",
        pickle.dumps([1]),
        pickle.dumps({b"data": [1], b"labels": [1]}),
        python_2_batch(ROWS, [1, 2])[:-2],
        python_2_batch(ROWS, [1, 2, 3]),
        python_2_batch(ROWS, [1, 2], shape=(2, 3073)),
        python_2_batch(ROWS, [1, 2], shape=(2, 1536)),
        python_2_batch(ROWS[:, :7], [1, 2], shape=(2, 3072)),
        python_2_batch(ROWS, [1, 2], code=b"O8"),
        python_2_batch(ROWS, [1, 2], keys=(b"fine_labels", b"data")),
        b"\x80\2cnumpy\nndarray\n}U\5stateNsb.",
        b"\x80\2U\4nameQ.",
    ],
)
def test_malformed_cifar_batches(tmp_path, content):
    folder = tmp_path / "cache" / "cifar-10-batches-py"
    write_cifar(folder)
    (folder / "test_batch").write_bytes(content)
    with pytest.raises(InvalidInput, match="source that you trust") as error:
        datasets.load("cifar10")
    assert "test_batch" in sentence(error)


# The table that comes with the library.


def test_suppliers():
    source = datasets.load("Suppliers")
    assert source.feature_names == ("id", "age", "income", "city", "channel", "supplier")
    assert source.X.shape == (300, 6)
    assert list(source.X.columns) == list(source.feature_names)
    assert source.X["id"].is_unique
    assert source.X.isna().any().to_dict() == dict(
        zip(source.feature_names, [False, True, True, True, False, False], strict=True)
    )
    assert source.X["city"].nunique() == 6
    assert sorted(set(source.X["supplier"])) == ["ann", "bob", "cy", "dee", "eve", "fay"]
    assert source.y.dtype.kind == "U"
    assert sorted(set(source.y)) == ["no", "yes"]
    ages = source.X["age"].dropna()
    assert (ages == ages.round()).all()


def test_half_of_eves_labels_are_flipped():
    flipped, by_eve = (
        datasets.flipped_suppliers(),
        np.flatnonzero(datasets.load("suppliers").X["supplier"] == "eve"),
    )
    assert flipped.dtype == np.int64
    assert set(flipped) <= set(by_eve)
    assert 0.4 < len(flipped) / len(by_eve) < 0.6


def test_the_script_writes_the_same_file(tmp_path):
    maker = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "make_suppliers.py"))
    maker["write"](tmp_path / "suppliers.csv")
    assert np.array_equal(np.flatnonzero(maker["draw"]()["flipped"]), datasets.flipped_suppliers())
    assert (tmp_path / "suppliers.csv").read_bytes() == datasets.path("suppliers").read_bytes()


def test_path_is_for_suppliers_only():
    assert (
        datasets.path("SUPPLIERS")
        .read_text()
        .startswith("id,age,income,city,channel,supplier,bought\n")
    )
    for name in ("mnist", None):
        with pytest.raises(InvalidInput, match="'suppliers'"):
            datasets.path(name)


def test_logistic_regression_learns_suppliers():
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    source = datasets.load("suppliers")
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city", "channel"]),
    )
    model = make_pipeline(columns, LogisticRegression())
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    right = np.setdiff1d(np.arange(300), datasets.flipped_suppliers())
    assert 0.75 < cross_val_score(model, source.X, source.y, cv=folds).mean() < 0.82
    assert (
        0.80 < cross_val_score(model, source.X.iloc[right], source.y[right], cv=folds).mean() < 0.90
    )
