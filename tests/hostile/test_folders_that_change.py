"""Folders and ledgers that a second command, another version or a changed class meets."""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import databanzhaf as db
from databanzhaf import designs, pipeline
from databanzhaf.pipeline import notes
from tests.shell import invoke, table

VALUE = ("value", "t.csv", "--target", "y", "--model", "logistic", "--jobs", 1, "--out", "run")


@pytest.fixture(autouse=True)
def in_a_folder_with_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_csv("t.csv", index=False)


def done(*words):
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result


def refused(*words):
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit | None)
    return result.stderr


def values(report):
    data = Path(report).read_text().split('<script type="application/json" id="data">')[1]
    return json.loads(data.split("</script>")[0])["values"]


@pytest.mark.parametrize("shapes", [((60, 3), (100, 1)), ((200, 1), (60, 3))])
def test_the_report_shows_the_values_of_the_last_command(shapes):
    for budget, repeats in shapes:
        done(*VALUE, "--model", "mlp", "--budget", budget, "--repeats", repeats)
    before = Path("run/report.html").read_text()
    command = (
        f"databanzhaf value t.csv --target y --model mlp --budget {budget} --repeats {repeats}"
    )
    assert re.search(f"{command}[^<]* --out run\\b", before)
    done("report", "run")
    assert Path("run/report.html").read_text() == before
    record = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps({**record, "evaluations": 5, "repeats": 5}))
    assert "are not all in" in refused("report", "run")


def test_the_report_keeps_the_estimator_of_its_run():
    done(*VALUE, "--budget", 100, "--estimator", "reuse")
    record = json.loads(Path("run/run.json").read_text())
    record["settings"]["estimator"] = "auto"  # as a version wrote it whose "auto" was `reuse`
    Path("run/run.json").write_text(json.dumps(record))
    shutil.copy("run/report.html", "before.html")
    done("report", "run")
    assert values("before.html") == values("run/report.html")
    done("estimate", "run", "--out", "auto.csv")
    assert Path("auto.csv").read_text() != Path("run/values.csv").read_text()


def test_a_removal_curve_belongs_to_its_values():
    done(*VALUE, "--budget", 60, "--curve")
    assert 'id="removal"' in Path("run/report.html").read_text()
    Path("run/run.db").unlink()
    done(*VALUE, "--budget", 60, "--seed", 7)
    done("report", "run")
    assert 'id="removal"' not in Path("run/report.html").read_text()


def test_numbers_in_names_keep_all_their_digits():
    how = ("--notion", "weighted-banzhaf:0.33333333", "--flag", "below:-0.0011169965")
    done(*VALUE, "--budget", 60, *how)
    settings = json.loads(Path("run/run.json").read_text())["settings"]
    assert settings["notion"] == "weighted_banzhaf(0.33333333)"
    assert settings["flag"] == "below:-0.0011169965"
    done("report", "run")
    assert db.WeightedBanzhaf(0.3).name == "weighted_banzhaf(0.3)"


def test_values_never_overwrite_a_ledger_or_a_folder():
    done(*VALUE, "--budget", 60)
    for part in Path("run").glob("run.db*"):
        part.rename(part.with_name(part.name.replace("run.db", "other.sqlite")))
    estimate = ("estimate", "run/other.sqlite")
    assert "would be overwritten" in refused(*estimate, "--out", "run/other.sqlite")
    assert "is a folder" in refused(*estimate, "--out", ".")
    done(*estimate)


def test_texts_that_no_file_can_hold_are_refused():
    done(*VALUE, "--budget", 60)
    record = json.loads(Path("run/run.json").read_text())
    Path("run/run.json").write_text(json.dumps({**record, "databanzhaf": "\ud800"}))
    assert "cannot be read" in refused("report", "run")


def test_another_command_in_a_folder_reads_what_it_changed():
    done(*VALUE, "--budget", 60)
    assert "--model: the run has logistic, this call has knn" in refused(
        *VALUE, "--budget", 60, "--model", "knn"
    )
    assert "--seed: the run has 0, this call has 1" in refused(*VALUE, "--budget", 60, "--seed", 1)
    assert "--drop: the run has none, this call has a" in refused(
        *VALUE, "--budget", 60, "--drop", "a"
    )
    said = " ".join(refused(*VALUE, "--budget", 60, "--metric", "accuracy").split())
    assert "databanzhaf estimate run/run.db --metric accuracy` trains nothing" in said
    table().assign(a=1.0).to_csv("t.csv", index=False)
    assert "`t.csv` has changed since the run" in refused(*VALUE, "--budget", 60)


def test_the_shell_speaks_of_options():
    assert "--budget must pay for" in refused(*VALUE, "--notion", "shapley", "--budget", 10)
    assert "Try --seed 0" in refused(*VALUE, "--seed", -1)
    held = ("--validation-fraction", 0.3)
    said = done(*VALUE, *held, "--budget", 400, "--until", "stable:0.01").stdout
    assert "--until stable:0.01 stopped the run after" in " ".join(said.split())


@pytest.mark.parametrize(
    ("labels", "note"),
    [
        (lambda y: y.where(y.index > 3, " no"), "' no' and 'no' of `y` differ in spaces or case"),
        (lambda y: y.where(y.index > 1, "maybe"), "fewer than three rows: 'maybe'"),
        (lambda y: y.index % 6, "read as 6 classes. Pass --task regression"),
    ],
)
def test_labels_that_may_be_slips_get_a_note(labels, note):
    frame = table()
    frame.assign(y=labels(frame["y"])).to_csv("t.csv", index=False)
    answer = json.loads(done(*VALUE, "--budget", 60, "--json").stdout)
    assert any(note in each for each in answer["notes"]), answer["notes"]


@pytest.mark.parametrize("row", [0, 1, 2, 3])
def test_one_cell_that_is_no_number_gets_a_note_wherever_it_is(row):
    frame = table().assign(d="1.5")
    frame.loc[row, "d"] = "unknown"
    frame.to_csv("t.csv", index=False)
    job = pipeline.prepare(pipeline.Settings("t.csv", "y"))
    assert any("Column `d` is read as text" in note for note in job.notes)


def test_a_model_that_learns_nothing_is_named():
    assert notes.no_better_than_guessing({"all": 0.6, "none": 0.5}, "rows") == []
    assert notes.no_better_than_guessing(None, "rows") == []
    (said,) = notes.no_better_than_guessing({"all": -0.288, "none": -0.0}, "rows")
    assert "not clearly better than guessing" in said
    (said,) = notes.no_better_than_guessing({"all": 0.52, "none": 0.5, "error": 0.03}, "rows")
    assert "standard error of 0.030" in said
    frame = table().assign(y=np.random.default_rng(3).permutation(60) % 2)
    frame.to_csv("t.csv", index=False)
    answer = json.loads(done(*VALUE, "--budget", 60, "--json").stdout)
    assert answer["scores"]["all"] - answer["scores"]["none"] < 2 * answer["scores"]["error"]
    assert any("not clearly better than guessing" in note for note in answer["notes"])
    assert answer["suspects"] == []


# --- designs from outside ---


@dataclass(frozen=True)
class Mine:
    n_players: int
    seed: int
    size = None
    unit = 1

    def coalitions(self, indices):
        return designs.Coin(self.n_players, self.seed).coalitions(indices)


def test_a_design_whose_code_or_fields_changed_is_refused(monkeypatch):
    described = designs.describe(Mine(np.int64(5), 3))
    assert designs.restore(described) == Mine(5, 3)
    with pytest.raises(db.InvalidInput, match="has other fields here"):
        designs.restore({**described, "bias": 0.5})
    monkeypatch.setattr(
        Mine, "coalitions", lambda self, indices: designs.Coin(5, 4).coalitions(indices)
    )
    with pytest.raises(db.InvalidInput, match="makes other coalitions here"):
        designs.restore(described)
    game = db.games.Function(5, lambda c: c.sum(axis=1), name="sum")
    db.value(game, db.WeightedBanzhaf(np.float32(0.3)), estimator="reuse", budget=20, ledger="w.db")


def test_a_field_that_no_ledger_can_keep_is_refused():
    @dataclass(frozen=True)
    class Odd:
        design: str = "spread"

    with pytest.raises(db.InvalidInput, match="must not have a field `design`"):
        designs.describe(Odd())
