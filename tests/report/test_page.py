"""What the page says, without a browser."""

import io
import json
import re
import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app
from databanzhaf.diagnostics import Trust
from databanzhaf.pipeline import Flag
from databanzhaf.report.content import cell
from databanzhaf.report.content import describe as describe_by
from databanzhaf.report.picture import data_address, is_image, png

SURE = Trust(0.95, 0.1, 0.5)


def describe(*what, rule="fdr:0.05", **more):
    return describe_by(*what, rule=Flag.parse(rule), **more)


def data_of(path):
    return json.loads(
        re.search(
            r'<script type="application/json" id="data">(.*?)</script>',
            path.read_text(),
            flags=re.DOTALL,
        )[1]
    )


def estimated(values, errors):
    values = np.asarray(values, dtype=float)
    return db.Estimate(
        values,
        np.broadcast_to(errors, values.shape).astype(float),
        np.full(len(values), 9.0),
        values[None],
        500,
        db.Banzhaf(),
        db.estimators.Reuse(),
    )


def test_the_page_shows_the_values_of_the_run(reports):
    data = data_of(reports["rows"])
    table = pd.read_csv(reports["rows"].parent / "values.csv", keep_default_na=False)
    order = np.argsort(table["value"], kind="stable")
    np.testing.assert_allclose(data["values"], table["value"][order], rtol=1e-6)
    assert data["suspect"] == (table["flag"][order] == "suspect").tolist()
    assert data["table"]["suspects"] == np.flatnonzero(table["flag"] == "suspect").tolist()
    source = pd.read_csv(reports["rows"].parents[1] / "suppliers.csv")
    column = data["table"]["columns"].index("bought")
    assert [row[column] for row in data["table"]["rows"]] == source["bought"][table["row"]].tolist()
    assert data["groups"] == source["supplier"][table["row"][order]].tolist()
    assert data["series"]["evaluations"][-1] == 600
    assert data["curve"]["counts"][0] == 0


def test_a_report_can_be_written_again_and_is_the_same(reports):
    before = reports["rows"].read_bytes()
    done = CliRunner().invoke(app, ["report", str(reports["rows"].parent / "run.db")])
    assert done.exit_code == 0, done.output
    assert reports["rows"].read_bytes() == before


def test_a_great_many_rows_are_drawn_in_part_and_the_lowest_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("databanzhaf.report.page.MOST_POINTS", 20)
    monkeypatch.setattr("databanzhaf.report.build.MOST_LINES", 30)
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(150, 2)), columns=["a", "b"]).assign(
        label=rng.integers(0, 2, 150)
    ).to_csv("t.csv", index=False)
    done = CliRunner().invoke(
        app, ["value", "t.csv", "--target", "label", "--budget", "300", "--flag", "lowest:0.1"]
    )
    assert done.exit_code == 0, done.output
    data, table = (
        data_of(tmp_path / "runs/t/report.html"),
        pd.read_csv(tmp_path / "runs/t/values.csv", keep_default_na=False),
    )
    assert len(data["values"]) == 20
    assert (data["places"][0], data["places"][-1]) == (1, len(table))
    lowest = table.sort_values("rank").head(30)
    assert sorted(row[0] for row in data["table"]["rows"]) == sorted(lowest["row"])
    assert len(data["table"]["suspects"]) == (table["flag"] == "suspect").sum()
    assert data["table"]["all"] == len(table)
    assert "are drawn, evenly from" in (tmp_path / "runs/t/report.html").read_text()


def test_two_thousand_rows_take_less_than_a_megabyte_and_a_half(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        rng.normal(size=(2900, 12)).round(4), columns=[f"column {i}" for i in range(12)]
    )
    table.assign(city=rng.choice(["Basel", "Turin"], 2900), label=rng.integers(0, 2, 2900)).to_csv(
        "big.csv", index=False
    )
    words = [
        "value",
        "big.csv",
        "--target",
        "label",
        "--model",
        "logistic",
        "--budget",
        "300",
        "--out",
        "big",
    ]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert len(data_of(tmp_path / "big" / "report.html")["values"]) > 2000
    assert (tmp_path / "big" / "report.html").stat().st_size < 1.5e6


def test_alerts_say_what_matters_first():
    found = estimated(np.linspace(-1, 1, 100), 0.01)
    [alert] = describe(found, np.arange(12), SURE, "rows")
    assert alert.startswith("12 of 100 rows are suspect")
    assert describe(found, np.arange(1), SURE, "rows")[0].startswith("1 of 100 rows is suspect")
    assert describe(found, np.arange(0), SURE, "groups") == [
        "No group is below zero beyond chance. 49 of 100 intervals lie below zero, but among so "
        "many groups some do by chance. The lowest values may still be worth a look."
    ]
    half = np.where(np.arange(100) < 40, np.inf, 0.01)
    partly = describe(estimated(np.linspace(-1, 1, 100), half), np.arange(0), SURE, "rows")
    assert partly[1].startswith("None of the 60 rows that have an interval is below zero beyond")
    unknown = describe(estimated(np.linspace(-1, 1, 100), np.inf), np.arange(0), SURE, "rows")
    assert unknown[1] == "No row has an interval yet, so none can be called harmful."
    unsure = describe(found, np.arange(3), Trust(0.4, 0.8, None, 0.57), "rows")
    assert "not stable yet" in unsure[1]
    assert "of about 0.57. The lowest" in unsure[1]
    juries = describe(found, np.arange(3), Trust(0.4, 0.8, None, 0.57, 0.31), "rows")
    assert "of about 0.57, and at about 0.31 if as many other rows judged." in juries[1]
    assert "80% of the variance" in unsure[2]
    assert (
        "too few evaluations" in describe(estimated([1, 2], np.inf), np.arange(0), SURE, "rows")[0]
    )
    assert "no standard errors" in describe(estimated([1, 2], np.nan), None, SURE, "rows")[0]
    groups = ["eve"] * 20 + ["ann"] * 80
    crowded = describe(found, np.arange(12), SURE, "rows", groups=groups)
    assert crowded[1] == "12 of the 12 suspects belong to eve, which has 20% of all."
    spread = describe(found, np.arange(0, 100, 8), SURE, "rows", groups=groups)
    assert len(spread) == 1


def test_cells_of_the_users_table():
    assert [cell(value) for value in (None, float("nan"), True, np.int64(3), 2.5, 2**70)] == [
        "",
        "",
        "True",
        3,
        2.5,
        str(2**70),
    ]
    assert cell("x" * 1000).endswith("… (1,000 characters)")
    assert len(cell("x" * 1000)) < 350


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (5, 7, 1), (3, 5, 7), (1, 5, 7)])
@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_pictures_are_png_files_that_a_reader_takes(shape, kind):
    image = (np.random.default_rng(0).random(shape) * 255).astype(kind)
    assert is_image(shape)
    assert data_address(image).startswith("data:image/png;base64,iVBOR")
    assert not is_image((28,))
    assert not is_image((4, 5, 6))


@pytest.mark.parametrize("shape", [(5, 7), (4, 6, 3)])
def test_png_keeps_every_pixel(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    file = io.BytesIO(png(pixels))
    assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    chunks = {}
    while head := file.read(8):
        size, kind = struct.unpack(">I4s", head)
        chunks[kind] = file.read(size)
        assert struct.unpack(">I", file.read(4))[0] == zlib.crc32(kind + chunks[kind])
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (height, width, depth, colour) == (*shape[:2], 8, 2 if len(shape) == 3 else 0)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    assert np.array_equal(lines[:, 1:].reshape(shape), pixels)
