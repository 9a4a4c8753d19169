"""The shell under hard conditions: odd files, closed streams, models that print, runs that change
their size.
"""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import databanzhaf as db
from tests.shell import invoke, table


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def broken_files():
    table().to_csv("t.csv", index=False)
    whole = gzip.compress(Path("t.csv").read_bytes())
    Path("truncated.csv.gz").write_bytes(whole[: len(whole) // 2])
    Path("plain.csv.gz").write_bytes(Path("t.csv").read_bytes())
    Path("bits.csv.gz").write_bytes(whole[:30] + b"\x00" * 50 + whole[80:])
    Path("empty.npz").write_bytes(b"")
    Path("text.npz").write_text("a,b\n1,2\n")
    np.save("array.npy", np.ones((5, 2)))
    Path("array.npy").rename("array.npz")
    np.savez("records.npz", X=np.zeros((5, 2), dtype=[("a", float)]), y=np.arange(5))
    np.savez("named_y.npz", X=np.ones((5, 2)), y=np.arange(5), feature_names=np.array(["a", "y"]))
    np.savez("twice.npz", X=np.ones((5, 2)), y=np.arange(5), feature_names=np.array(["a", "a"]))
    np.savez("objects.npz", X=np.ones((5, 2)), y=np.array([1, "a", None, 2, 3], dtype=object))
    Path("text.parquet").write_text("a,b\n1,2\n")
    Path("zeros.csv").write_bytes(b"\x00" * 100)


@pytest.mark.parametrize(
    "name",
    [
        "truncated.csv.gz",
        "plain.csv.gz",
        "bits.csv.gz",
        "empty.npz",
        "text.npz",
        "array.npz",
        "records.npz",
        "named_y.npz",
        "twice.npz",
        "objects.npz",
        "text.parquet",
        "zeros.csv",
    ],
)
def test_a_broken_file_gets_one_sentence(name):
    broken_files()
    done = invoke("value", name, "--target", "y")
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("databanzhaf: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert not Path("runs").exists() or not list(Path("runs").rglob("run*"))


def test_names_of_an_npz_that_are_not_one_for_each_column_are_left_aside():
    rng = np.random.default_rng(0)
    np.savez("t.npz", X=rng.normal(size=(30, 2)), y=np.arange(30) % 2, feature_names=np.array("a"))
    assert invoke("value", "t.npz", "--target", "y", "--budget", 20).exit_code == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="paths of bytes are a matter of Unix")
def test_a_path_that_is_no_text():
    name = b"t\xff.csv"
    table().to_csv("t.csv", index=False)
    try:
        os.rename(b"t.csv", name)
    except OSError:
        pytest.skip("this file system takes text names only")
    done = invoke("value", os.fsdecode(name), "--target", "y")
    assert done.exit_code == 2
    assert "Rename it" in done.stderr


def test_a_refused_command_and_a_failing_metric_leave_the_folder_to_the_next():
    """Neither binds the ledger: the command that is right then runs, and keeps predictions."""
    table().to_csv("t.csv", index=False)
    base = ("value", "t.csv", "--target", "y", "--budget", 50)
    assert invoke(*base, "--notion", "loo", "--until", "stable").exit_code == 2
    Path("failing.py").write_text(
        "import sys\nfrom sklearn.linear_model import LogisticRegression\n"
        "class Fails(LogisticRegression):\n    def predict_proba(self, X): raise "
        "RuntimeError('no')\n"
        "class Leaves(LogisticRegression):\n    def fit(self, X, y): sys.exit(4)\n"
    )
    for name, reason in (("Fails", "RuntimeError: no"), ("Leaves", "SystemExit: 4")):
        failed = invoke(*base, "--model", f"failing:{name}", "--jobs", 1)
        assert failed.exit_code == 2
        assert reason in failed.stderr
    assert not Path("runs/t").exists() or not Path("runs/t/values.csv").exists()
    assert invoke(*base).exit_code == 0
    assert invoke("estimate", "runs/t/run.db", "--metric", "accuracy").exit_code == 0


def test_a_budget_that_crosses_all_coalitions_goes_on_with_the_design_it_began_with():
    table(group=np.arange(60) % 5).to_csv("t.csv", index=False)
    base = ("value", "t.csv", "--target", "y", "--groups", "group", "--json")
    first = json.loads(invoke(*base, "--budget", 20).stdout)
    assert (first["estimator"], first["evaluations"]) == ("regression", 20)
    more = json.loads(invoke(*base, "--budget", 500).stdout)
    assert (more["estimator"], more["evaluations"]) == ("regression", 500)
    exact = json.loads(invoke(*base, "--budget", 500, "--out", "exact").stdout)
    assert (exact["estimator"], exact["evaluations"]) == ("exact", 3 * 5 * 32)
    fewer = json.loads(invoke(*base, "--budget", 20, "--out", "exact").stdout)
    assert (fewer["estimator"], fewer["evaluations"]) == ("exact", 2 * 5 * 32)


def test_until_samples_each_coalition_once():
    table(group=np.arange(60) % 5).to_csv("t.csv", index=False)
    done = invoke(
        "value",
        "t.csv",
        "--target",
        "y",
        "--groups",
        "group",
        "--budget",
        500,
        "--until",
        "stable:0.999999",
        "--json",
    )
    assert json.loads(done.stdout)["evaluations"] <= 500


def test_whether_predictions_are_kept_does_not_depend_on_the_budget(monkeypatch):
    """So that a run that was continued equals one that was not."""
    table().to_csv("t.csv", index=False)
    base = ("value", "t.csv", "--target", "y", "--validation-fraction", 0.3)
    for limit in (0, 10**6):
        monkeypatch.setattr("databanzhaf.beginning.LARGEST_KEPT_BYTES", limit)
        for budget in (50, 300):
            assert invoke(*base, "--budget", budget, "--out", f"grown{limit}").exit_code == 0
        assert invoke(*base, "--budget", 300, "--out", f"once{limit}").exit_code == 0
        assert (
            Path(f"grown{limit}/values.csv").read_bytes()
            == Path(f"once{limit}/values.csv").read_bytes()
        )
        with db.Ledger(f"grown{limit}/run.db") as ledger:
            assert ledger.keep == ("outcomes" if limit else "utilities")
    assert invoke(*base, "--budget", 50, "--keep", "scores", "--out", "scores").exit_code == 0
    refused = invoke("estimate", "scores/run.db", "--metric", "accuracy")
    assert refused.exit_code == 2
    assert "--keep predictions" in refused.stderr


def test_groups_that_are_all_held_out_are_told():
    frame = table(group=["x"] * 20 + ["y"] * 20 + ["z"] * 19 + ["alone"])
    for seed in range(20):  # until the split holds the lonely row out
        frame.to_csv("t.csv", index=False)
        base = (
            "value",
            "t.csv",
            "--target",
            "y",
            "--groups",
            "group",
            "--validation-fraction",
            0.3,
            "--budget",
            20,
            "--seed",
            seed,
            "--out",
            f"s{seed}",
            "--json",
        )
        summary = json.loads(invoke(*base).stdout)
        if summary["players"] == 3:
            assert any("`alone`" in note for note in summary["notes"])
            return
        assert not any("`alone`" in note for note in summary["notes"])
    raise AssertionError("no seed held the row out")


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["u", "v", None] * 20),
        pd.array([1, 2, None] * 20, dtype="Int64"),
        pd.array([True, False, None] * 20, dtype="boolean"),
        [["l"], {"d": 1}, None] * 20,
        [date(2024, 1, 1), date(2024, 1, 2), None] * 20,
        [Decimal("1.5"), Decimal("2.5"), None] * 20,
    ],
    ids=["category", "Int64", "boolean", "lists", "dates", "decimals"],
)
def test_report_of_columns_of_every_kind(column, monkeypatch):
    frame = table().assign(kind=column)
    monkeypatch.setattr("databanzhaf.pipeline.columns.read_table", lambda *_, **__: frame)
    Path("t.csv").write_text("stands for it")
    done = invoke("value", "t.csv", "--target", "y", "--drop", "kind", "--budget", 20)
    assert done.exit_code == 0, done.output + str(done.exception)
    assert "(missing)" in Path("runs/t/report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "kind",
    [
        lambda i: date(2000, 1, 1 + i % 28) if i < 28 else date(2001, 1 + i // 28, 1 + i % 28),
        Decimal,
        bytes,
    ],
)
def test_json_of_ids_of_every_kind(kind, monkeypatch):
    frame = table().assign(id=[bytes([i]) if kind is bytes else kind(i) for i in range(60)])
    monkeypatch.setattr("databanzhaf.pipeline.columns.read_table", lambda *_, **__: frame)
    Path("t.csv").write_text("stands for it")
    done = invoke("value", "t.csv", "--target", "y", "--id", "id", "--budget", 20, "--json")
    assert done.exit_code == 0, done.output + str(done.exception)
    assert isinstance(json.loads(done.stdout)["lowest"][0]["id"], str)


def shell(command, **how):
    line = command.format(db=f"{sys.executable} -m databanzhaf value t.csv --target y --budget 300")
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False, **how
    )


PRINTS = (
    "import os\nfrom sklearn.linear_model import LogisticRegression\n"
    "class Prints(LogisticRegression):\n    def fit(self, X, y):\n"
    "        print('words'); os.write(1, b'bytes'); return super().fit(X, y)\n"
)


@pytest.mark.parametrize("jobs", [1, 2])
def test_json_stands_alone_though_models_print(jobs):
    table().to_csv("t.csv", index=False)
    Path("m.py").write_text(PRINTS)
    done = shell("{db} --budget 20 --json --model m:Prints --jobs " + str(jobs))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"] == 20
    assert "words" in done.stderr


@pytest.mark.parametrize(
    "command", ["{db} | head -1", "{db} 2>&-", "{db} >&-", "{db} >&- 2>&- <&-", "{db} > /dev/full"]
)
def test_streams_that_nobody_reads_do_not_stop_a_run(command):
    table().to_csv("t.csv", index=False)
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = shell("set -o pipefail; " + command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
    assert json.loads(Path("runs/t/run.json").read_text())["status"] == "finished"
    with db.Ledger("runs/t/run.db") as ledger:
        assert ledger.count() == 300


def test_few_characters_suffice():
    table(größe=1.0).rename(columns={"y": "größer"}).to_csv("t.csv", index=False)
    done = shell(
        "{db} --target größer", env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    )
    assert done.returncode == 0, done.stderr


def test_estimate_and_report_from_another_folder(monkeypatch):
    table().to_csv("t.csv", index=False)
    assert invoke("value", "t.csv", "--target", "y", "--budget", 50).exit_code == 0
    before = Path("runs/t/values.csv").read_bytes()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    done = invoke("estimate", "../runs/t/run.db", "--metric", "accuracy")
    assert done.exit_code == 0, done.output
    assert invoke("report", "../runs/t/run.db").exit_code == 0
    for target in ("../runs/t/run.db", "../runs/t/run.json", "../t.csv"):
        content = Path(target).read_bytes()
        refused = invoke("estimate", "../runs/t/run.db", "--out", target)
        assert refused.exit_code == 2
        assert Path(target).read_bytes() == content
    assert Path("../runs/t/values.csv").read_bytes() == before


def test_a_table_that_goes_during_the_run():
    """All of it is read at the start; the record tells what was read."""
    table().to_csv("t.csv", index=False)
    Path("removing.py").write_text(
        "import os\nfrom sklearn.linear_model import LogisticRegression\n"
        "class Removes(LogisticRegression):\n    def fit(self, X, y):\n"
        "        os.path.exists('t.csv') and os.remove('t.csv'); return super().fit(X, y)\n"
    )
    done = invoke(
        "value",
        "t.csv",
        "--target",
        "y",
        "--model",
        "removing:Removes",
        "--budget",
        20,
        "--jobs",
        1,
    )
    assert done.exit_code == 0, done.output
    assert len(json.loads(Path("runs/t/run.json").read_text())["files"]["t.csv"]) == 64


def test_a_tab_as_written_in_a_shell():
    table().to_csv("t.txt", index=False, sep="\t")
    assert (
        invoke("value", "t.txt", "--target", "y", "--budget", 20, "--separator", r"\t").exit_code
        == 0
    )


def test_truth_values_with_gaps_in_one_of_two_files():
    frame = table(member=np.arange(60) % 2 == 0)
    frame.to_csv("t.csv", index=False)
    frame.assign(member=frame["member"].astype(object).where(frame.index > 5)).to_csv(
        "v.csv", index=False
    )
    done = invoke("value", "t.csv", "--target", "y", "--validation", "v.csv", "--budget", 20)
    assert done.exit_code == 0, done.output


def descendants(pid):
    """Processes whose parent is `pid`, from /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:
            continue
        if int(text.rsplit(")", 1)[1].split()[1]) == pid:
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_run(number):
    table().to_csv("t.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "databanzhaf",
        "value",
        "t.csv",
        "--target",
        "y",
        "--model",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "--jobs",
        "2",
    ]
    process = subprocess.Popen(
        [*command, "--budget", "3000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not Path("runs/t/run.db").exists() or len(descendants(process.pid)) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(2)
    workers = descendants(process.pid)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL)
    if number == signal.SIGTERM:
        assert "Stopped with" in error
    end = time.time() + 20
    while time.time() < end and any(Path(f"/proc/{pid}").exists() for pid in workers):
        time.sleep(0.2)
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_the_users_own_table_is_never_written_over():
    table().to_csv("values.csv", index=False)
    before = Path("values.csv").read_bytes()
    done = invoke("value", "values.csv", "--target", "y", "--budget", 20, "--out", ".")
    assert done.exit_code == 2
    assert Path("values.csv").read_bytes() == before


def test_codes_keep_their_leading_zeros():
    frame = table(shop=["01", "1", "007"] * 20, id=[f"{i:05}" for i in range(60)])
    frame.to_csv("t.csv", index=False)
    assert (
        invoke(
            "value", "t.csv", "--target", "y", "--groups", "shop", "--drop", "id", "--budget", 20
        ).exit_code
        == 0
    )
    assert set(pd.read_csv("runs/t/values.csv", dtype=str)["group"]) == {"01", "1", "007"}
    assert (
        invoke(
            "value",
            "t.csv",
            "--target",
            "y",
            "--id",
            "id",
            "--drop",
            "shop",
            "--budget",
            20,
            "--out",
            "ids",
        ).exit_code
        == 0
    )
    written = pd.read_csv("ids/values.csv", dtype={"id": str})
    assert (written["id"] == [f"{row:05}" for row in written["row"]]).all()
    frame.assign(y=np.where(frame["y"] == "yes", "01", "1")).to_csv("t.csv", index=False)
    assert (
        invoke(
            "value", "t.csv", "--target", "y", "--drop", "id", "--budget", 20, "--out", "classes"
        ).exit_code
        == 0
    )


def test_a_header_that_lacks_a_name_is_refused_and_a_comma_at_the_end_is_not():
    lines = table().to_csv(index=False).splitlines()
    Path("shifted.csv").write_text(
        "\n".join([lines[0], *(f"{i},{line}" for i, line in enumerate(lines[1:]))])
    )
    done = invoke("value", "shifted.csv", "--target", "y", "--budget", 20)
    assert done.exit_code == 2
    assert "as many fields as its header" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    Path("ended.csv").write_text("\n".join([lines[0], *(f"{line}," for line in lines[1:])]))
    assert invoke("value", "ended.csv", "--target", "y", "--budget", 20).exit_code == 0


def test_decimal_commas():
    frame = table(60)
    frame.to_csv("points.csv", index=False, sep=";")
    frame.to_csv("commas.csv", index=False, sep=";", decimal=",")
    base = ("--separator", ";", "--target", "y", "--budget", 50)
    noted = invoke("value", "commas.csv", *base, "--out", "texts")
    assert "--decimal" in noted.stdout
    assert invoke("value", "commas.csv", *base, "--decimal", ",", "--out", "one").exit_code == 0
    assert invoke("value", "points.csv", *base, "--out", "two").exit_code == 0
    assert Path("one/values.csv").read_bytes() == Path("two/values.csv").read_bytes()


def test_estimate_takes_the_table_that_the_run_read(monkeypatch):
    frame = table(id=[f"r{i}" for i in range(60)])
    frame.to_csv("t.csv", index=False)
    assert invoke("value", "t.csv", "--target", "y", "--id", "id", "--budget", 30).exit_code == 0
    Path("other").mkdir()
    frame.assign(id=[f"z{i}" for i in range(60)]).to_csv("other/t.csv", index=False)
    monkeypatch.chdir("other")
    assert invoke("estimate", "../runs/t/run.db", "--out", "e.csv").exit_code == 0
    assert pd.read_csv("e.csv")["id"].str.startswith("r").all()
    Path("../t.csv").rename(
        "same.csv"
    )  # the run's own table moves here, and another takes its place
    Path("t.csv").rename("../t.csv")
    Path("same.csv").rename("t.csv")
    assert invoke("estimate", "../runs/t/run.db", "--out", "e.csv").exit_code == 0
    assert pd.read_csv("e.csv")["id"].str.startswith("r").all()


@pytest.mark.parametrize("flag", ["lowest:0.4", "cluster", "below:-5"])
def test_words_follow_the_rule_that_flags(flag):
    table().to_csv("t.csv", index=False)
    done = invoke("value", "t.csv", "--target", "y", "--budget", 300, "--flag", flag)
    page = Path("runs/t/report.html").read_text(encoding="utf-8")
    for text in (done.stdout, page):
        assert "beyond chance" not in text
        assert "tend to score worse" not in " ".join(text.split())


def test_a_curve_belongs_to_its_values_and_a_report_to_values_csv():
    table().to_csv("t.csv", index=False)
    base = ("value", "t.csv", "--target", "y", "--model", "logistic")
    assert invoke(*base, "--budget", 300, "--curve").exit_code == 0
    page = Path("runs/t/report.html")
    assert "Does removing them help?" in page.read_text(encoding="utf-8")
    assert invoke(*base, "--budget", 400).exit_code == 0
    assert "Does removing them help?" not in page.read_text(encoding="utf-8")
    assert invoke(*base, "--budget", 100).exit_code == 0
    before = page.read_bytes()
    assert invoke("report", "runs/t/run.db").exit_code == 0
    assert page.read_bytes() == before
    Path("runs/t/curve.json").write_text("{")
    assert invoke("report", "runs/t/run.db").exit_code == 0


def test_a_run_that_goes_on_by_sampling_says_that_all_coalitions_would_fit():
    table(group=np.arange(60) % 5).to_csv("t.csv", index=False)
    base = ("value", "t.csv", "--target", "y", "--groups", "group", "--model", "logistic")
    assert "A new --out would take all" not in invoke(*base, "--budget", 20).stdout
    assert "A new --out would take all 160" in " ".join(
        invoke(*base, "--budget", 500).stdout.split()
    )


def test_dates_of_long_ago():
    pytest.importorskip("pyarrow")
    table().assign(d=np.array(["0001-01-01", "2020-01-01"] * 30, "datetime64[s]")).to_parquet(
        "t.parquet"
    )
    done = invoke("value", "t.parquet", "--target", "y", "--budget", 20)
    assert done.exit_code == 0, done.output + str(done.exception)


def test_validation_rows_that_are_training_rows_are_noted():
    table().to_csv("t.csv", index=False)
    assert "equal a training row" in " ".join(
        invoke(
            "value", "t.csv", "--target", "y", "--validation", "t.csv", "--budget", 20
        ).stdout.split()
    )
    assert "equal a training row" not in " ".join(
        invoke("value", "t.csv", "--target", "y", "--budget", 20, "--out", "o").stdout.split()
    )


@pytest.mark.parametrize("seen", ["values.csv", "run.json"])
def test_ctrl_c_after_the_last_evaluation_or_during_the_curve_stops_and_keeps_the_values(seen):
    table().to_csv("t.csv", index=False)
    command = [
        sys.executable,
        "-m",
        "databanzhaf",
        "value",
        "t.csv",
        "--target",
        "y",
        "--model",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "--jobs",
        "1",
        "--budget",
        "10",
    ]
    process = subprocess.Popen(
        [*command, "--curve"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    record = Path("runs/t/run.json")
    while not (
        Path("runs/t/values.csv").exists()
        and (seen == "values.csv" or json.loads(record.read_text())["status"] == "finished")
    ):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.5 * (seen == "run.json"))
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=20)  # the curve would take longer
    assert process.returncode == 130, error
    assert "the values are in runs/t/values.csv" in error
    assert json.loads(record.read_text())["status"] == "finished"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_in_a_callback_where_python_drops_it_is_heard_all_the_same():
    from databanzhaf.cli.signals import INTERRUPTED, one_sentence

    class Destroyed:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)
            for _ in range(1000):  # somewhere here it is raised
                pass

    before, start = signal.getsignal(signal.SIGINT), time.monotonic()
    with pytest.raises(typer.Exit) as stopped, one_sentence():  # noqa: PT012
        Destroyed()
        time.sleep(30)
    assert stopped.value.exit_code == INTERRUPTED
    assert 1 < time.monotonic() - start < 20  # it was dropped at first
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("model", ["forest", "logistic"])
def test_a_table_of_one_column_of_texts(model):
    rows = [f"{'good' if i % 2 else 'bad'} film number {i}, seen today" for i in range(60)]
    pd.DataFrame({"review": rows, "y": np.arange(60) % 2}).to_csv("t.csv", index=False)
    words = ("value", "t.csv", "--target", "y", "--model", model, "--budget", 20)
    done = invoke(*words)
    assert done.exit_code == 0, done.output + str(done.exception)
    said = " ".join(done.stdout.split())
    assert "Columns: 1 free text as 12 numbers." in said
    assert "Note: Column `review` read as free text" in said
    assert "good film number 59" in Path("runs/t/report.html").read_text(encoding="utf-8")
    assert invoke(*words, "--out", "again").exit_code == 0
    assert Path("again/values.csv").read_bytes() == Path("runs/t/values.csv").read_bytes()
    assert invoke("report", "again/run.db").exit_code == 0


def test_a_column_that_is_the_target_again_is_noted():
    frame = table()
    frame.assign(name=np.where(frame["y"] == frame["y"].iloc[0], "u", "v")).to_csv("t.csv")
    done = invoke("value", "t.csv", "--target", "y", "--budget", 20)
    assert "`name` says the target of every row" in " ".join(done.stdout.split())
