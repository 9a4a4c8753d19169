"""The shell, run as a person would: files in, files out, one sentence for what is wrong."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app
from databanzhaf.pipeline import Settings, notes, prepare

COLUMNS = [
    "row",
    "label",
    "value",
    "std_error",
    "std_error_population",
    "ci_low",
    "ci_high",
    "rank",
    "flag",
]


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def suppliers():
    Path("suppliers.csv").write_bytes(db.datasets.path("suppliers").read_bytes())
    return "suppliers.csv"


def iris(name="iris.csv", **changes):
    rows, labels = load_iris(return_X_y=True, as_frame=True)
    table = rows.assign(species=np.array(["a", "b", "c"])[labels], **changes)
    table.to_csv(name, index=False)
    return name


def values(folder="runs/suppliers"):
    return pd.read_csv(
        Path(folder) / "values.csv", keep_default_na=False, na_values={"std_error": ""}
    )


def test_value_writes_values_ledger_and_record(suppliers):
    done = invoke(
        "value",
        suppliers,
        "--target",
        "bought",
        "--id",
        "id",
        "--drop",
        "supplier",
        "--model",
        "mlp",
        "--budget",
        2000,
    )
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in Path("runs/suppliers").iterdir()) == [
        "report.html",
        "run.db",
        "run.db.lock",
        "run.json",
        "values.csv",
    ]
    table = values()
    assert table.columns.tolist() == ["row", "id", *COLUMNS[1:]]
    source = pd.read_csv(suppliers)
    assert (source["id"][table["row"]].to_numpy() == table["id"]).all()
    assert len(table) == 300
    assert sorted(table["rank"]) == list(range(1, 301))
    assert (table["std_error_population"] >= table["std_error"]).all()
    lowest = table.sort_values("rank")["row"][:30]
    assert (source["supplier"][lowest] == "eve").mean() > 1 / 3  # eve owns a sixth of the rows
    record = json.loads(Path("runs/suppliers/run.json").read_text())
    words = "A model trained on the other rows scores {all:.3f}, a guess {none:.3f}."
    assert words.format(**record["scores"]) in " ".join(done.output.split())
    assert record["status"] == "finished"
    assert record["evaluations"] == 2000
    assert record["settings"]["drop"] == ["supplier"]
    assert set(record["versions"]) >= {"python", "numpy", "scikit-learn"}
    assert len(record["files"][suppliers]) == 64
    assert record["fingerprint"]["metric"] == "probability"


def test_flags_are_those_of_the_rule(suppliers):
    base = ("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 300)
    for flag, count in (("lowest:0.1", 30), ("below:-9", 0)):
        assert invoke(*base, "--flag", flag).exit_code == 0
        assert (values()["flag"] == "suspect").sum() == count
    assert invoke(*base, "--flag", "cluster").exit_code == 0
    assert invoke(*base, "--flag", "lowest:many").exit_code == 2


def test_every_flagged_row_is_shown(suppliers):
    base = ("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 60)
    said = invoke(*base, "--flag", "lowest:0.06").output
    assert "The 10 lowest of 300 banzhaf values" in said
    assert "then 8 more that are flagged" in " ".join(said.split())
    assert said.count("suspect │") == 18
    many = invoke(*base, "--flag", "lowest:0.5").output
    assert "then 20 of 140 others that are flagged" in " ".join(many.split())


def test_the_same_command_resumes_and_a_larger_budget_continues(suppliers):
    def run(budget, out):
        done = invoke(
            "value",
            suppliers,
            "--target",
            "bought",
            "--drop",
            "id",
            "--budget",
            budget,
            "--out",
            out,
        )
        assert done.exit_code == 0, done.output
        return Path(out, "values.csv").read_bytes()

    run(100, "one")
    before = Path("one/run.json").read_text()
    assert run(300, "one") == run(300, "two")
    assert json.loads(before)["evaluations"] == 100
    again = run(300, "one")
    assert again == Path("two/values.csv").read_bytes()
    assert json.loads(Path("one/run.json").read_text())["training_seconds_now"] == 0


def test_another_run_in_the_same_folder_is_refused_and_loses_nothing(suppliers):
    base = ("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 100)
    assert invoke(*base).exit_code == 0
    before = {path.name: path.read_bytes() for path in Path("runs/suppliers").iterdir()}
    done = invoke(*base, "--model", "logistic")
    assert done.exit_code == 2
    assert "--out" in done.stderr
    assert {path.name: path.read_bytes() for path in Path("runs/suppliers").iterdir()} == before


def test_groups_are_valued_exactly_with_repeats_that_the_budget_pays_for(suppliers):
    done = invoke(
        "value",
        suppliers,
        "--target",
        "bought",
        "--drop",
        "id",
        "--groups",
        "supplier",
        "--budget",
        1000,
        "--json",
    )
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["estimator"] == "exact"
    assert summary["evaluations"] == 3 * 5 * 64  # all coalitions in each of five folds
    assert summary["judged"] == "in folds"
    table = values()
    assert table.columns.tolist() == ["group", "rows", *COLUMNS[2:]]
    assert table.loc[table["rank"] == 1, "group"].item() == "eve"
    assert summary["suspects"] == ["eve"]
    assert table["rows"].sum() == 300


@pytest.mark.parametrize(
    "notion", ["shapley", "beta:16,1", "loo", "least-core", "weighted-banzhaf:0.3"]
)
def test_every_notion(notion):
    done = invoke(
        "value",
        iris(),
        "--target",
        "species",
        "--model",
        "logistic",
        "--notion",
        notion,
        "--budget",
        700,
    )
    assert done.exit_code == 0, done.output
    assert np.isfinite(values("runs/iris")["value"]).all()
    if notion == "least-core":
        assert "no standard errors" in " ".join(done.stdout.split())


def test_regression_and_validation_file():
    rows, target = load_diabetes(return_X_y=True, as_frame=True)
    table = rows.assign(progress=target)
    table[:300].to_csv("train.csv", index=False)
    table[300:].to_csv("held.csv", index=False)
    done = invoke(
        "value",
        "train.csv",
        "--target",
        "progress",
        "--validation",
        "held.csv",
        "--budget",
        200,
        "--json",
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["metric"] == "r2"
    assert values("runs/train")["row"].tolist() == list(range(300))


def test_until_stops_early_and_again_at_the_same_place():
    first, second = (
        json.loads(
            invoke(
                "value",
                iris(),
                "--target",
                "species",
                "--until",
                "stable:0.6",
                "--budget",
                budget,
                "--json",
            ).stdout
        )
        for budget in (5000, 100000)
    )
    assert first["evaluations"] == second["evaluations"] < 5000


def test_estimate_reads_other_notions_and_metrics_without_training(suppliers):
    base = ("value", suppliers, "--target", "bought", "--drop", "id")
    assert invoke(*base, "--estimator", "permutation", "--budget", 2500).exit_code == 0
    ledger = Path("runs/suppliers/run.db")
    before = ledger.read_bytes()
    for options, name in (
        (("--notion", "shapley"), "values-shapley"),
        (("--metric", "accuracy"), "values-banzhaf-accuracy"),
    ):
        done = invoke("estimate", ledger, *options, "--json")
        assert done.exit_code == 0, done.output
        table = pd.read_csv(f"runs/suppliers/{name}.csv")
        assert len(table) == 300
        assert Path(json.loads(done.stdout)["values"]).name == f"{name}.csv"
    assert ledger.read_bytes() == before
    direct = invoke(
        *base,
        "--notion",
        "shapley",
        "--metric",
        "accuracy",
        "--estimator",
        "permutation",
        "--budget",
        2500,
        "--out",
        "direct",
    )
    assert direct.exit_code == 0
    assert (
        invoke(
            "estimate", ledger, "--notion", "shapley", "--metric", "accuracy", "--out", "other.csv"
        ).exit_code
        == 0
    )
    np.testing.assert_allclose(
        pd.read_csv("other.csv")["value"], pd.read_csv("direct/values.csv")["value"], atol=1e-12
    )


def test_scores_of_the_run_are_not_those_of_another_metric(suppliers):
    words = ("--target", "bought", "--drop", "id", "--drop", "supplier", "--budget", 60)
    assert "a guess" in invoke("value", suppliers, *words).output
    same, other = (
        json.loads(invoke("estimate", "runs/suppliers/run.db", *more, "--json").stdout)
        for more in ((), ("--metric", "accuracy"))
    )
    assert same["scores"] is not None
    assert other["scores"] is None


def test_estimate_says_what_it_cannot_do(suppliers):
    assert (
        invoke("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 100).exit_code
        == 0
    )
    done = invoke("estimate", "runs/suppliers/run.db", "--notion", "shapley")
    assert done.exit_code == 2
    assert "with --notion shapley, or with banzhaf,shapley for one run" in done.stderr
    Path(suppliers).write_text(Path(suppliers).read_text().replace("yes", "no", 1))
    done = invoke("estimate", "runs/suppliers/run.db")
    assert done.exit_code == 2
    assert "has changed since" in done.stderr
    assert invoke("estimate", "absent.db").exit_code == 2
    Path("runs/suppliers/run.json").unlink()
    assert "run.json" in invoke("estimate", "runs/suppliers/run.db").stderr


def test_plan_predicts_what_a_run_then_has(suppliers):
    options = ("--target", "bought", "--drop", "id", "--budget", 1500)
    done = invoke(
        "plan", suppliers, *options, "--pilot", 500, "--stability", 0.8, "--epsilon", 0.1, "--json"
    )
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert not Path("runs").exists()
    by_goal = {option["goal"]: option for option in plan["options"]}
    assert by_goal["proof: error below 0.1 at 95%"]["evaluations"] == db.theory.samples_needed(
        300, 0.1, 0.05
    )
    assert (
        by_goal["rank stability 0.8"]["evaluations"]
        < by_goal["proof: error below 0.1 at 95%"]["evaluations"]
    )
    predicted = by_goal["your --budget"]
    assert invoke("value", suppliers, *options, "--out", "seed0").exit_code == 0
    assert values("seed0")["std_error"].median() == pytest.approx(predicted["std_error"], rel=0.1)
    job = prepare(Settings(suppliers, "bought", drop=("id",)))
    other = db.value(job.game, budget=1500, seed=99).values  # the same rows, other coalitions
    assert db.ranking.spearman(values("seed0")["value"], other) == pytest.approx(
        predicted["stability"], abs=0.15
    )
    words = invoke("plan", suppliers, *options, "--pilot", 100)
    assert words.exit_code == 0
    assert "your --budget" in words.stdout


@pytest.mark.parametrize(
    "more",
    [
        ("--notion", "loo"),
        ("--notion", "shapley"),
        ("--groups", "supplier"),
        ("--notion", "least-core"),
    ],
)
def test_plan_of_other_designs(suppliers, more):
    done = invoke(
        "plan",
        suppliers,
        "--target",
        "bought",
        "--drop",
        "id",
        "--model",
        "logistic",
        *more,
        "--json",
    )
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)
    assert plan["seconds_per_evaluation"] > 0
    assert all(option["evaluations"] is None or option["seconds"] > 0 for option in plan["options"])


def test_margin_is_the_theory():
    table = {
        row["notion"]: row
        for row in json.loads(invoke("margin", "--n", 200, "--json").stdout)["notions"]
    }
    for notion in (db.Banzhaf(), db.Shapley(), db.Beta(16, 1), db.LeaveOneOut()):
        assert 10 ** table[notion.name]["log10_safety_margin"] == pytest.approx(
            db.theory.safety_margin(notion, 200)
        )
        assert 10 ** table[notion.name]["log10_lipschitz"] == pytest.approx(
            db.theory.lipschitz(notion, 200)
        )
    assert "10^" in invoke("margin", "--n", 5000).stdout
    assert invoke("margin", "--n", 1).exit_code == 2


def test_example_writes_the_table_and_overwrites_nothing():
    assert invoke("example").exit_code == 0
    assert Path("suppliers.csv").read_bytes() == db.datasets.path("suppliers").read_bytes()
    assert invoke("example").exit_code == 2
    assert invoke("example", "--out", "other.csv").exit_code == 0


def test_doctor_version_and_help():
    found = json.loads(invoke("doctor", "--json").stdout)
    assert found["databanzhaf"]["version"] == db.__version__
    assert found["packages"]["numpy"] == np.__version__
    assert int(found["devices"]["CPU cores"]) >= 1
    assert "numpy" in invoke("doctor").stdout
    assert invoke("--version").stdout.strip() == db.__version__
    assert "value" in invoke("--help").stdout


def test_doctor_tells_what_is_missing(monkeypatch):
    from databanzhaf.cli import doctor

    monkeypatch.setattr(doctor, "_version", lambda package: None)
    monkeypatch.setitem(sys.modules, "torch", None)
    found = doctor.examine()
    assert "pip install 'databanzhaf[torch]'" in found["packages"]["torch"]
    assert "torch is not installed" in found["devices"]["CUDA"]
    assert "pip install 'databanzhaf[plots]'" in found["packages"]["matplotlib"]
    monkeypatch.setenv("DATABANZHAF_DATA", "somewhere")
    assert doctor.examine()["databanzhaf"]["DATABANZHAF_DATA"] == "somewhere"


SPLIT = ("value", "iris.csv", "--target", "species", "--validation-fraction", 0.3)
BAD = {
    "absent file": (("value", "absent.csv", "--target", "y"), "there is no file"),
    "absent target": (("value", "iris.csv", "--target", "colour"), "Choose --target among them"),
    "absent groups": (
        ("value", "iris.csv", "--target", "species", "--groups", "supplier"),
        "--groups must be a column",
    ),
    "absent drop": (
        ("value", "iris.csv", "--target", "species", "--drop", "x"),
        "--drop must be a column",
    ),
    "one row": (("value", "one.csv", "--target", "species"), "one class only"),
    "every row another class": (
        ("value", "iris.csv", "--target", "number"),
        "Check that this is the target",
    ),
    "one class": (("value", "same.csv", "--target", "species"), "one class only"),
    "missing labels": (("value", "holes.csv", "--target", "species"), "2 rows without it"),
    "duplicate ids": (
        ("value", "iris.csv", "--target", "species", "--id", "site"),
        "got `s` twice",
    ),
    "unseen class": (
        ("value", "iris.csv", "--target", "species", "--validation", "unseen.csv"),
        "['zebra'] in `species` as well",
    ),
    "validation without target": (
        ("value", "iris.csv", "--target", "species", "--validation", "no_target.csv"),
        "must have the target",
    ),
    "validation without columns": (
        ("value", "iris.csv", "--target", "species", "--validation", "no_column.csv"),
        "none called",
    ),
    "other encoding": (("value", "latin.csv", "--target", "species"), "is not utf-8 text"),
    "semicolons": (("value", "semicolons.csv", "--target", "species"), "--separator ';'"),
    "text as numbers": (
        ("value", "iris.csv", "--target", "species", "--task", "regression"),
        "--task classification",
    ),
    "model": (
        ("value", "iris.csv", "--target", "species", "--model", "tree"),
        "the model must be one of",
    ),
    "metric": (("value", "iris.csv", "--target", "species", "--metric", "beauty"), "--metric"),
    "notion": (
        ("value", "iris.csv", "--target", "species", "--notion", "core"),
        "--notion must be",
    ),
    "until": (("value", "iris.csv", "--target", "species", "--until", "tired"), "--until must be"),
    "task": (("value", "iris.csv", "--target", "species", "--task", "dance"), "--task must be"),
    "budget": (("value", "iris.csv", "--target", "species", "--budget", "0"), "--budget must be"),
    "fraction": (
        ("value", "iris.csv", "--target", "species", "--validation-fraction", "1"),
        "--validation-fraction must",
    ),
    "flag that is no share": (
        ("value", "iris.csv", "--target", "species", "--flag", "fdr:7"),
        "`flag fdr` must be",
    ),
    "flag that is no number": (
        ("value", "iris.csv", "--target", "species", "--flag", "below:x"),
        "`flag below` must be",
    ),
    "seed": (("value", "iris.csv", "--target", "species", "--seed", "-1"), "--seed must be"),
    "jobs": (("value", "iris.csv", "--target", "species", "--jobs", "0"), "--jobs must be"),
    "device": (
        ("value", "iris.csv", "--target", "species", "--device", "quantum"),
        "--device must be",
    ),
    "folder is a file": (
        ("value", "iris.csv", "--target", "species", "--out", "iris.csv"),
        "Give another --out",
    ),
    "budget beyond all counting": (
        ("value", "iris.csv", "--target", "species", "--budget", 10**10),
        "--budget times",
    ),
    "until without a sample": (
        ("value", "iris.csv", "--target", "species", "--notion", "loo", "--until", "stable"),
        "cannot stop",
    ),
    "until beyond a correlation": (
        ("value", "iris.csv", "--target", "species", "--until", "stable:2"),
        "--until takes a rank correlation between 0 and 1; got 'stable:2'",
    ),
    "target that is left out": (
        ("value", "iris.csv", "--target", "species", "--drop", "species"),
        "--drop must not name the target",
    ),
    "keep": (("value", "iris.csv", "--target", "species", "--keep", "all"), "--keep must be"),
    "metric for numbers": (
        ("value", "iris.csv", "--target", "species", "--model", "knn", "--metric", "mse"),
        "mean over rows: probability",
    ),
    "metric for two classes": (
        (*SPLIT, "--metric", "precision"),
        "cannot score",
    ),
    "metric that is no mean": (
        ("value", "iris.csv", "--target", "species", "--metric", "f1"),
        "or give validation rows",
    ),
    "long name": (("value", "a" * 300 + ".csv", "--target", "species"), "cannot be opened"),
    "separator": (
        ("value", "iris.csv", "--target", "species", "--separator", "ab"),
        "one character",
    ),
    "factory that fails": (
        ("value", "iris.csv", "--target", "species", "--model", "bad_models:fails"),
        "factory `fails` failed",
    ),
    "factory that leaves": (
        ("value", "iris.csv", "--target", "species", "--model", "bad_models:leaves"),
        "SystemExit",
    ),
    "module that fails": (
        ("value", "iris.csv", "--target", "species", "--model", "bad_module:make"),
        "cannot be imported",
    ),
    "small budget": (
        ("value", "iris.csv", "--target", "species", "--notion", "shapley", "--budget", "5"),
        "--budget must pay",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence_code_2_and_leaves_nothing(case):
    iris(site="s", number=[f"n{i}" for i in range(150)])
    table = pd.read_csv("iris.csv")
    table[:1].to_csv("one.csv", index=False)
    table[:20].to_csv("same.csv", index=False)
    table.assign(species=table["species"].where(table.index > 1)).to_csv("holes.csv", index=False)
    table.assign(species=table["species"].where(table.index > 0, "zebra")).to_csv(
        "unseen.csv", index=False
    )
    table.drop(columns="species").to_csv("no_target.csv", index=False)
    table.drop(columns="number").to_csv("no_column.csv", index=False)
    table.to_csv("semicolons.csv", index=False, sep=";")
    table.assign(site="Köln").to_csv("latin.csv", index=False, encoding="latin-1")
    Path("bad_models.py").write_text(
        "import sys\n\ndef fails(): raise KeyError('k')\n\ndef leaves(): sys.exit(3)\n"
    )
    Path("bad_module.py").write_text("def make(:\n")
    before = sorted(path.name for path in Path().rglob("*"))
    words, expected = BAD[case]
    done = invoke(*words)
    assert done.exit_code == 2, done.output
    assert expected in done.stderr
    assert "Traceback" not in done.output
    assert len(done.stderr.strip().splitlines()) == 1
    left = sorted(path.name for path in Path().rglob("*"))
    assert set(left) <= {*before, "runs"}


def test_a_full_disk_is_told_and_a_second_try_goes_on(suppliers, monkeypatch):
    """The disk is full when values.csv is written: nothing half-written stays, and the evaluations
    are kept.
    """
    base = ("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 100)

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        done = invoke(*base)
    assert done.exit_code == 2
    assert "No space left on device" in done.stderr
    assert not list(Path("runs").rglob("*.csv*"))
    assert not list(Path("runs").rglob(".*"))
    assert invoke(*base).exit_code == 0
    assert len(values()) == 300


def shell(*words):
    command = [sys.executable, "-m", "databanzhaf", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for_evaluations(ledger):
    for _ in range(600):
        if Path(ledger).exists():
            with suppress(db.DatabanzhafError), db.Ledger(ledger) as seen:  # it may be half made
                if seen.count() > 0:
                    return
        time.sleep(0.1)
    raise AssertionError("no evaluation was made within a minute")


# Slow in the run that is stopped, and there alone.
SLOW = """
import os, time
from sklearn.tree import DecisionTreeClassifier

class Slow(DecisionTreeClassifier):
    def fit(self, X, y):
        time.sleep(float(os.environ.get("SECONDS_A_FIT", 0)))
        return super().fit(X, y)
"""
OF_SLOW = ("--target", "bought", "--drop", "id", "--model", "slow:Slow", "--budget", 80)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """values.csv of the run that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("slow.py").write_text(SLOW)
        Path("suppliers.csv").write_bytes(db.datasets.path("suppliers").read_bytes())
        done = invoke("value", "suppliers.csv", *OF_SLOW, "--jobs", 1, "--out", "whole")
        assert done.exit_code == 0, done.output
        return Path("whole/values.csv").read_bytes()


@pytest.mark.parametrize(
    ("stop", "jobs"),
    [
        (signal.SIGKILL, 1),
        (signal.SIGKILL, 2),
        (signal.SIGINT, 1),
        (signal.SIGINT, 2),
        (signal.SIGTERM, 2),
    ],
    ids=lambda each: str(int(each)),
)
def test_a_stopped_run_goes_on_and_equals_one_that_was_not(
    suppliers, whole, monkeypatch, stop, jobs
):
    Path("slow.py").write_text(SLOW)
    words = ("value", suppliers, *OF_SLOW, "--out", "stopped")
    with monkeypatch.context() as slow:
        slow.setenv("SECONDS_A_FIT", "0.1")
        process = shell(*words, "--jobs", jobs)
    wait_for_evaluations("stopped/run.db")
    os.killpg(
        process.pid, stop
    )  # a terminal's Ctrl-C, and a service manager's SIGTERM, reach the workers too
    _, error = process.communicate(timeout=60)
    with db.Ledger("stopped/run.db") as ledger:
        done = ledger.count()
    assert 0 < done < 80
    if stop != signal.SIGKILL:
        assert process.returncode == 128 + stop
        assert f"Stopped with {done} of 80 evaluations" in error
        assert "Traceback" not in error
    assert not Path("stopped/values.csv").exists()
    assert invoke(*words, "--jobs", 1).exit_code == 0  # with two: tests/ledger/test_kill.py
    assert Path("stopped/values.csv").read_bytes() == whole


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_workers_start(suppliers, stop):
    """They are not there yet, and must not die of it."""
    process = shell(
        "value",
        suppliers,
        "--target",
        "bought",
        "--model",
        "sklearn.ensemble:HistGradientBoostingClassifier",
        "--budget",
        300,
        "--jobs",
        2,
        "--out",
        "early",
    )
    while not Path("early/run.json").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    os.killpg(process.pid, stop)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 128 + stop, error
    assert "Traceback" not in error
    assert json.loads(Path("early/run.json").read_text())["status"] == "stopped"


def test_help_does_not_import_what_it_does_not_need():
    heavy = ("sklearn", "pandas", "torch", "numba")
    script = (
        f"import sys; from databanzhaf.cli import app; print([name for name in {heavy} if "
        "name in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_what_is_said_before_and_after(suppliers):
    base = ("value", suppliers, "--target", "bought", "--drop", "id", "--budget", 3000)
    said = " ".join(invoke(*base).stdout.split())
    assert "2 of numbers, 3 of categories (up to 7 different ones); 3 with gaps." in said
    assert "Classes of `bought`: yes 169, no 131." in said
    left = r"about (a second|\d+ seconds) of training left"
    assert re.search(rf"After 3,000 evaluations \({left}\) another run would", said)
    assert f"To repeat it: databanzhaf value {suppliers} --target bought --drop id" in said
    quiet = invoke(*base, "--quiet").stdout
    assert "Columns" not in quiet
    assert "After 3,000" not in quiet
    assert "lowest of 300" in quiet
    answer = json.loads(invoke(*base, "--json").stdout)
    assert answer["command"].startswith(f"databanzhaf value {suppliers}")


def test_a_run_that_cannot_rank_says_so_on_the_way(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 3)), columns=list("abc"))
    frame.assign(y=(frame["a"] + rng.normal(size=400) > 0).astype(int)).to_csv("n.csv", index=False)
    said = " ".join(invoke("value", "n.csv", "--target", "y", "--budget", 1500).stdout.split())
    assert "That is too little to compare single rows" in said
    assert re.search(r"--budget [\d,]+ would reach 0.5 in about", said)


def test_suspects_of_one_rare_class_get_an_alert():
    labels = np.array(["no"] * 90 + ["yes"] * 10)
    (said,) = notes.one_class(labels, np.arange(91, 99), "probability")
    assert "100% of the suspects are `yes`, which is 10% of all rows" in said
    assert "balanced_probability" in said
    assert notes.one_class(labels, np.arange(91, 99), "balanced_probability") == []
    assert notes.one_class(labels, np.arange(20), "probability") == []
    assert notes.one_class(labels, None, "probability") == []


def test_copies_get_a_note():
    rows = np.repeat(np.arange(10.0), 2)[:, None]
    (said,) = notes.copies(db.Dataset(rows, np.repeat(np.arange(10) % 2, 2)))
    assert "10 of 20 rows are copies of another row" in said
    assert notes.copies(db.Dataset(np.arange(20.0)[:, None], np.arange(20) % 2)) == []
