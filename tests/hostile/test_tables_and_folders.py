"""Tables and run folders as somebody else may send them."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from databanzhaf.tables import read_table
from tests.shell import invoke, table


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(*words):
    """The one sentence of a command that was refused."""
    done = invoke(*words)
    assert done.exit_code == 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(("first", "second"), [("y", "y"), ("city", "city"), ("NA", "NA")])
def test_a_column_name_that_stands_twice_is_refused(first, second):
    frame = table(one=1, two=2)
    lines = frame.to_csv(index=False).splitlines()
    header = lines[0].replace("one", first).replace("two", second)
    Path("t.csv").write_text("\n".join([header, *lines[1:]]))
    assert f"got `{first}` twice" in refused(
        "value", "t.csv", "--target", "y", "--drop", "city", "--budget", 20
    )
    table().to_csv("train.csv", index=False)
    assert f"got `{first}` twice" in refused(
        "value", "train.csv", "--target", "y", "--validation", "t.csv", "--budget", 20
    )


CODES = ["1.1", "1.10", "1E2", "100", "+49", "49", "007", "7", "NA", "null"]


def test_groups_and_ids_are_texts_as_written():
    table(site=CODES * 6, key=[f"{i}E4" for i in range(60)]).to_csv("t.csv", index=False)
    done = invoke(
        "value", "t.csv", "--target", "y", "--groups", "site", "--drop", "key", "--budget", 20
    )
    assert done.exit_code == 0, done.output
    written = pd.read_csv("runs/t/values.csv", dtype=str, keep_default_na=False)
    assert sorted(written["group"]) == sorted(CODES)
    assert (written["rows"].astype(int) <= 6).all()
    assert (
        invoke(
            "value",
            "t.csv",
            "--target",
            "y",
            "--id",
            "key",
            "--drop",
            "site",
            "--budget",
            20,
            "--out",
            "ids",
        ).exit_code
        == 0
    )
    written = pd.read_csv("ids/values.csv", dtype=str, keep_default_na=False)
    assert (written["id"] == [f"{row}E4" for row in written["row"]]).all()


def test_whole_numbers_as_groups_keep_their_order():
    table(site=[9, 10, 100] * 20).to_csv("t.csv", index=False)
    assert (
        invoke("value", "t.csv", "--target", "y", "--groups", "site", "--budget", 20).exit_code == 0
    )
    assert pd.read_csv("runs/t/values.csv")["group"].tolist() == [9, 10, 100]


@pytest.mark.parametrize(
    ("codes", "example"),
    [
        (["1.1", "1.10"], "`1.1` and `1.10`, one number"),
        (["1E2", "7"], "1E2"),
        (["+49", "48"], "+49"),
        (["007", "12"], "007"),
    ],
)
def test_codes_among_the_features_get_a_note_and_an_option(codes, example):
    table(code=codes * 30).to_csv("t.csv", index=False)
    words = ("value", "t.csv", "--target", "y", "--model", "mlp", "--budget", 20)
    done = invoke(*words)
    assert done.exit_code == 0
    assert example in " ".join(done.output.split())
    assert "--text code" in " ".join(done.output.split())
    done = invoke(*words, "--text", "code", "--out", "texts")
    assert done.exit_code == 0
    assert "codes" not in done.output
    widths = [
        json.loads(Path(f, "run.json").read_text())["columns_after_encoding"]
        for f in ("runs/t", "texts")
    ]
    # Codes that become one number are a column that is the same in every row, which is left out.
    assert widths == [3 if float(codes[0]) == float(codes[1]) else 4, 5]


def test_ordinary_numbers_get_no_note():
    rng = np.random.default_rng(0)
    frame = table(
        price=[f"{p:.2f}" for p in rng.uniform(0, 9, 60)],
        small=rng.normal(size=60) * 1e-9,
        whole=rng.integers(-5, 5, 60),
    )
    frame.loc[3, "whole"] = np.nan
    frame.to_csv("t.csv", index=False)
    assert read_table("t.csv").attrs["codes"] == {}
    frame.to_csv("t.csv", index=False, sep=";", decimal=",")
    assert read_table("t.csv", separator=";", decimal=",").attrs["codes"] == {}


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_separator_is_named(mark):
    table().to_csv("t.csv", index=False, sep=mark, decimal="," if mark == ";" else ".")
    assert f"--separator {mark!r}" in refused("value", "t.csv", "--target", "y")


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.empty((0, 3)), "y": np.empty(0)},
        {"X": np.empty((5, 0)), "y": np.arange(5)},
        {"X": np.zeros((5, 2), dtype="V8"), "y": np.arange(5)},
        {"X": np.ones((5, 2)), "y": np.zeros(5, dtype="V4")},
        {"X": np.ones((5, 2)) * 1j, "y": np.arange(5)},
    ],
)
def test_npz_files_that_hold_no_table(arrays):
    np.savez("t.npz", **arrays)
    assert "t.npz" in refused("value", "t.npz", "--target", "y") or "npz table" in refused(
        "value", "t.npz", "--target", "y"
    )


def test_a_name_with_nul_is_refused():
    with pytest.raises(db.InvalidInput, match="NUL"):
        read_table("a\0b.csv")


@pytest.mark.parametrize(
    "model", ["os:abort", "sys:exit", "builtins:print", "os.path:join", ":factory", "module:"]
)
def test_what_is_no_model_is_refused(model):
    table().to_csv("t.csv", index=False)
    assert "model" in refused("value", "t.csv", "--target", "y", "--model", model)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run with a model of the user's own."""
    folder = tmp_path_factory.mktemp("run")
    table().to_csv(folder / "t.csv", index=False)
    (folder / "notes.py").write_text(
        "from sklearn.linear_model import LogisticRegression\ndef factory():\n    return "
        "LogisticRegression()\n"
    )
    command = [
        "value",
        "t.csv",
        "--target",
        "y",
        "--model",
        "notes:factory",
        "--budget",
        "40",
        "--jobs",
        "1",
        "--out",
        "run",
    ]
    subprocess.run(
        [sys.executable, "-m", "databanzhaf", *command], cwd=folder, check=True, capture_output=True
    )
    return folder


@pytest.fixture
def sent(run, tmp_path):
    """The same folder as it came from somebody else, whose module leaves a trace when it is run."""
    import shutil

    for name in ("t.csv", "run"):
        (shutil.copytree if (run / name).is_dir() else shutil.copy)(run / name, tmp_path / name)
    (tmp_path / "notes.py").write_text(
        "open('trace', 'w').close()\n" + (run / "notes.py").read_text()
    )
    return tmp_path


def test_a_folder_never_runs_code(sent):
    before = Path("run/report.html").read_text()
    assert invoke("report", "run/run.db").exit_code == 0
    assert Path("run/report.html").read_text() == before
    assert invoke("estimate", "run/run.db").exit_code == 0
    assert "again" in refused("estimate", "run/run.db", "--metric", "accuracy")
    assert not Path("trace").exists()
    sys.modules.pop("notes", None)
    done = invoke("estimate", "run/run.db", "--metric", "accuracy", "--model", "notes:factory")
    assert done.exit_code == 0, done.output
    assert Path("trace").exists()


EDITS = [
    {"scores": "abc"},
    {"scores": {"all": "x", "none": 1}},
    {"scores": []},
    {"repeats": 0},
    {"repeats": "2"},
    {"repeats": -1},
    {"evaluations": None, "repeats": []},
    {"evaluations": "many"},
    {"evaluations": 1.5},
    {"versions": None},
    {"versions": [1]},
    {"versions": {"numpy": None}},
    {"files": None},
    {"files": []},
    {"started_in": 5},
    {"settings": None},
    {"settings": []},
    {"settings.flag": 3},
    {"settings.flag": "none:1"},
    {"settings.data": None},
    {"settings.data": 7},
    {"settings.target": []},
    {"settings.target": "nothing"},
    {"settings.budget": "5000"},
    {"settings.budget": -3},
    {"settings.seed": 1e400},
    {"settings.seed": "0"},
    {"settings.drop": "a"},
    {"settings.drop": [1]},
    {"settings.notion": "best"},
    {"settings.notion": None},
    {"settings.model": 1},
    {"settings.jobs": None},
    {"settings.validation_fraction": "0.3"},
    {"settings.validation_fraction": 5},
    {"settings.encoding": "no such"},
    {"settings.until": 4},
    {"settings.new": 1},
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: json.dumps(edit))
def test_an_edited_record_gets_one_sentence_or_does_no_harm(sent, edit):
    record = json.loads(Path("run/run.json").read_text())
    for name, value in edit.items():
        part, _, inner = name.rpartition(".")
        (record[part] if part else record)[inner] = value
    Path("run/run.json").write_text(json.dumps(record))
    refused("report", "run/run.db")
    done = invoke("estimate", "run/run.db", "--out", "again.csv")
    if done.exit_code:
        refused("estimate", "run/run.db")
    else:
        assert Path("again.csv").read_text() == Path("run/values.csv").read_text()
    assert not Path("trace").exists()


def test_a_record_that_names_another_model_is_noted(sent):
    table().to_csv("u.csv", index=False)
    assert (
        invoke("value", "u.csv", "--target", "y", "--model", "logistic", "--budget", 20).exit_code
        == 0
    )
    edit = {"model": "mlp", "metric": "accuracy"}
    record = json.loads(Path("runs/u/run.json").read_text())
    record["settings"] |= edit
    Path("runs/u/run.json").write_text(json.dumps(record))
    done = invoke("report", "runs/u/run.db")
    assert done.exit_code == 0
    assert "do not match the ledger in metric, network.sizes" in done.stderr
    assert "scored by accuracy" not in Path("runs/u/report.html").read_text()
    record["settings"] |= {"seed": 5, **dict.fromkeys(edit)} | {"model": "logistic"}
    Path("runs/u/run.json").write_text(json.dumps(record))
    assert "run.json has changed since the run" in refused("report", "runs/u/run.db")


def test_other_ids_in_the_table_are_noted(sent):
    table(key=[f"k{i}" for i in range(60)]).to_csv("u.csv", index=False)
    words = (
        "value",
        "u.csv",
        "--target",
        "y",
        "--id",
        "key",
        "--model",
        "logistic",
        "--budget",
        20,
    )
    assert "not the file of the run" not in invoke(*words).stderr
    table(key=[f"k{i}" for i in range(60)][::-1]).to_csv("u.csv", index=False)
    assert "not the file of the run" in invoke("estimate", "runs/u/run.db").stderr
    assert "not the file of the run" in invoke(*words).stderr


def test_dropped_codes_are_shown_as_written():
    table(site=["1.1", "1.10", "01", "1e3"] * 15).to_csv("t.csv", index=False)
    done = invoke("value", "t.csv", "--target", "y", "--drop", "site", "--budget", 20)
    assert done.exit_code == 0
    page = Path("runs/t/report.html").read_text()
    assert all(f'"{code}"' in page for code in ("1.1", "1.10", "01", "1e3"))


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "", "[]", "5", "{", "null", '{"settings": 1}', "\x00"]
)
def test_a_record_that_is_none_gets_one_sentence(sent, text):
    Path("run/run.json").write_text(text)
    assert "run.json" in refused("report", "run/run.db")


@pytest.mark.parametrize(
    "curve",
    [
        "[]",
        "5",
        '{"evaluations": 40}',
        '{"evaluations": 40, "counts": [1], "utility": "x", "random": [[1]]}',
    ],
)
def test_a_damaged_curve_is_left_out_of_the_report(sent, curve):
    Path("run/curve.json").write_text(curve)
    assert invoke("report", "run/run.db").exit_code == 0


def test_a_run_of_0_1_still_opens():
    import shutil

    home = Path(__file__).parents[1] / "files" / "run_0_1"
    Path("run").mkdir()
    for file in home.iterdir():
        shutil.copy(file, Path("run") / ("run.db" if file.suffix == ".sqlite" else file.name))
    shutil.copy(db.datasets.path("suppliers"), "suppliers.csv")
    done = invoke("estimate", "run/run.db", "--out", "again.csv")
    assert done.exit_code == 0, done.output
    assert "kept no checksums" in done.stderr
    accuracy = ("estimate", "run/run.db", "--metric", "accuracy", "--out", "accuracy.csv")
    assert invoke(*accuracy).exit_code == 0
    assert invoke("report", "run/run.db").exit_code == 0
    # values by the estimator that 0.1 took are the same to the bit
    record = json.loads(Path("run/run.json").read_text())
    record["settings"]["estimator"] = "reuse"
    Path("run/run.json").write_text(json.dumps(record))
    assert invoke("estimate", "run/run.db", "--out", "again.csv").exit_code == 0
    assert invoke(*accuracy).exit_code == 0
    for name, stored in (("again.csv", "run/values.csv"), ("accuracy.csv", "run/accuracy.csv")):
        then, now = pd.read_csv(stored), pd.read_csv(name)
        assert now[["row", "id", "value", "rank"]].equals(then[["row", "id", "value", "rank"]])


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\tx", "\rx"]


def test_ids_that_a_spreadsheet_would_run_stay_equal_and_are_named():
    names = [f"{FORMULAS[i % 6]}{i}" for i in range(60)]
    table(key=names).to_parquet("t.parquet")
    done = invoke("value", "t.parquet", "--target", "y", "--id", "key", "--budget", 20)
    assert done.exit_code == 0
    assert "60 names begin with" in done.output
    import csv

    with Path("runs/t/values.csv").open(newline="") as file:
        for line in csv.DictReader(file):
            assert line["id"] == names[int(line["row"])]
    table(key=[f"-{i}" for i in range(60)]).to_csv("t.csv", index=False)
    assert (
        "formulas"
        not in invoke(
            "value", "t.csv", "--target", "y", "--id", "key", "--budget", 20, "--out", "x"
        ).output
    )


ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J"


def test_no_escape_reaches_the_terminal_raw():
    odd = f"y{ESCAPE}"
    table(key=[f"{ESCAPE}{i}" for i in range(60)]).rename(columns={"y": odd}).to_parquet(
        "t.parquet"
    )
    for words in (
        ("value", "t.parquet", "--target", odd, "--id", "key", "--budget", 20),
        ("value", "t.parquet", "--target", odd, "--id", "key", "--budget", 20, "--json"),
        ("value", "t.parquet", "--target", f"no {ESCAPE}"),
        ("value", f"no{ESCAPE}.csv", "--target", "y"),
        ("estimate", f"no{ESCAPE}.db"),
    ):
        done = invoke(*words)
        assert not set(done.output) & {"\x1b", "\x07", "\x9b"}, words
    answer = json.loads(
        invoke(
            "value", "t.parquet", "--target", odd, "--id", "key", "--budget", 20, "--json"
        ).stdout
    )
    assert answer["lowest"][0]["id"].startswith(ESCAPE)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as on Unix")
@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_files_have_the_permissions_that_the_user_wants(mask):
    table().to_csv("t.csv", index=False)
    before = os.umask(mask)
    try:
        assert invoke("value", "t.csv", "--target", "y", "--budget", 20, "--curve").exit_code == 0
    finally:
        os.umask(before)
    for name in ("values.csv", "run.json", "curve.json", "report.html", "run.db"):
        assert stat.S_IMODE(Path("runs/t", name).stat().st_mode) == 0o666 & ~mask & 0o644, name


def test_the_outputs_do_not_tell_where_the_user_works(tmp_path):
    table().to_csv("t.csv", index=False)
    for out in ("runs/t", str(tmp_path / "deep" / "er")):
        assert (
            invoke("value", "t.csv", "--target", "y", "--budget", 20, "--out", out).exit_code == 0
        )
        for name in ("run.json", "report.html", "values.csv"):
            text = Path(out, name).read_text()
            assert str(tmp_path) not in text
            assert tmp_path.name not in text
        assert invoke("report", f"{out}/run.db").exit_code == 0
        assert str(tmp_path) not in Path(out, "report.html").read_text()


def test_a_moved_folder_finds_its_table_from_elsewhere(tmp_path, monkeypatch):
    table().to_csv("t.csv", index=False)
    assert invoke("value", "t.csv", "--target", "y", "--budget", 20).exit_code == 0
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert invoke("report", "../runs/t/run.db").exit_code == 0
    assert str(tmp_path) not in Path("../runs/t/report.html").read_text()
