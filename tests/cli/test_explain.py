"""databanzhaf explain: names, numbers, files, and what it refuses."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli.commands import app


def call(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of forty rows: judged by each other, by held-out rows and by a file; and by scores."""
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    lines = ["id,a,b,label"]
    for place in range(40):
        a, b = rng.normal(size=2)
        lines.append(f"r{place},{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}")
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    (folder / "val.csv").write_text("\n".join(["id,a,b,label", *lines[1:13]]) + "\n")
    how = ["value", folder / "train.csv", "--target", "label", "--id", "id", "--budget", 300]
    for name, more in {
        "across": [],
        "held": ["--validation-fraction", 0.3],
        "file": ["--validation", folder / "val.csv"],
        "scores": ["--validation-fraction", 0.3, "--keep", "scores"],
    }.items():
        code, said = call(*how, "--out", folder / name, "--quiet", *more)
        assert code == 0, said
    return folder


def test_a_row_is_named_and_its_effects_are_those_of_python(runs):
    code, said = call("explain", runs / "across", "--row", 7)
    assert code == 0
    assert "Row 7 (id r7), `label` = " in said
    assert "rows that help it the most" in said
    assert call("explain", runs / "across", "--row", "r7") == (code, said)
    code, unknown = call("explain", runs / "across", "--row", "r40")
    assert (code, "--row must be a row of" in unknown, "got r40" in unknown) == (2, True, True)
    code, answer = call("explain", runs / "across", "--row", 7, "--json")
    found = json.loads(answer)
    assert (found["id"], found["row"], len(found["effects"])) == ("r7", 7, 39)
    effects = db.attribute(runs / "across" / "run.db").matrix()[:, 7]
    by_row = {line["row"]: line["effect"] for line in found["effects"]}
    assert 7 not in by_row
    for row, effect in by_row.items():
        assert effect == pytest.approx(effects[row], abs=1e-9)
    assert [line["effect"] for line in found["effects"]] == sorted(by_row.values())


def test_a_number_is_that_of_a_row_though_ids_are_numbers_too(runs, tmp_path):
    rows = (runs / "train.csv").read_text().replace("r", "").splitlines()[1:]
    renamed = (f"{int(number) + 1},{rest}" for number, rest in (row.split(",", 1) for row in rows))
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["id,a,b,label", *renamed]) + "\n")
    how = ("--target", "label", "--id", "id", "--model", "logistic", "--budget", 60)
    code, said = call("value", table, *how, "--out", tmp_path / "run", "--quiet")
    assert code == 0, said
    assert "Row 12 (id 13), " in call("explain", tmp_path / "run", "--row", 12)[1]
    code, said = call("explain", tmp_path / "run", "--row", len(rows))
    assert code == 2
    assert f"from 0 to {len(rows) - 1}. Row {len(rows) - 1} has the id {len(rows)}." in said


def test_an_id_never_names_a_row_of_another_table(runs):
    for run in ("held", "file"):  # these ids are those of rows that are valued, and judge nobody
        for name in ("r1", "r7", "r39"):
            code, said = call("explain", runs / run, "--row", name)
            assert (code, "--row must be a row of" in said) == (2, True)


def test_rows_that_were_held_out_and_rows_of_a_file(runs):
    code, said = call("explain", runs / "held", "--row", 10**6)
    assert code == 2
    last = int(re.search(r"12 rows judged, from \d+ to ([\d,]+)", said)[1])
    code, said = call("explain", runs / "held", "--row", last)
    assert code == 0
    assert f"Row {last}, `label` = " in said
    code, said = call("explain", runs / "file", "--row", 11)
    assert code == 0
    assert "Validation row 11, `label` = " in said
    assert call("explain", runs / "file", "--row", 12)[0] == 2


def test_all_effects_in_a_file(runs):
    code, said = call("explain", runs / "held", "--out", runs / "effects.npz")
    assert code == 0
    assert "effects of 28 rows on 12 judging rows" in said
    with np.load(runs / "effects.npz") as kept:
        mean = kept["weights"] @ kept["effects"]
        np.testing.assert_allclose(mean, kept["values"], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["across"], "neither --row nor --out"),
        (["scores", "--row", "1"], "--keep predictions"),
        (["nowhere", "--row", "1"], "no ledger"),
        (["across", "--row", "1", "--out", "effects.csv"], ".npz or .parquet"),
    ],
)
def test_what_it_refuses(runs, arguments, sentence):
    code, said = call("explain", runs / arguments[0], *arguments[1:])
    assert code == 2
    assert sentence in said
