"""Real runs."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_digits
from typer.testing import CliRunner

import databanzhaf as db
from databanzhaf.cli import app

ATTACK = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


def value(path, folder, *words):
    done = CliRunner().invoke(app, ["value", str(path), "--out", str(folder), *words])
    assert done.exit_code == 0, done.output
    return folder / "report.html"


def nasty_table(path):
    """Cells and columns that would run or break a page: markup, quotes, right-to-left text, very
    long strings, places of the template.
    """
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            ATTACK: rng.normal(size=n),
            "quote\"'`": rng.choice([ATTACK, "</script>", "שלום עולם"], n),
        }
    )
    table["long"] = rng.choice(["w" * 10_000, "{data}{charts}{script}", "\u2028\u2029 <!-- "], n)
    table["label"] = np.where(table["x"] + rng.normal(size=n) > 0, "yes <b>", "no & 'no'")
    table["site"] = rng.choice(["<i>north</i>", "south"], n)
    table.to_csv(path, index=False)
    return path


def copies_table(path):
    """Row 4 says a, and rows 5 and 6 with the same cells say b."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=40), "label": rng.choice(["a", "b"], 40)})
    table.loc[4:6] = [(0.25, "a"), (0.25, "b"), (0.25, "b")]
    table.to_csv(path, index=False)
    return path


class Reports(dict):
    """name → report.html of a real run, which is made when it is first asked for: the tests of one
    process rarely need all.
    """

    def __init__(self, folder, options):
        super().__init__()
        self.folder, self.options = folder, options

    def __missing__(self, name):
        path, *words = self.options[name]
        self[name] = value(path, self.folder / name, *words)
        return self[name]


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    suppliers = folder / "suppliers.csv"
    suppliers.write_bytes(db.datasets.path("suppliers").read_bytes())
    images, digits = load_digits(return_X_y=True)
    np.savez(folder / "digits.npz", X=images[:400].reshape(-1, 8, 8), y=digits[:400])
    rows, target = load_diabetes(return_X_y=True, as_frame=True)
    rows.assign(progress=target).to_csv(folder / "diabetes.csv", index=False)
    options = {
        "rows": (
            suppliers,
            "--target",
            "bought",
            "--id",
            "id",
            "--drop",
            "supplier",
            "--budget",
            "600",
            "--curve",
        ),
        "groups": (
            suppliers,
            "--target",
            "bought",
            "--drop",
            "id",
            "--groups",
            "supplier",
            "--budget",
            "200",
        ),
        "images": (
            folder / "digits.npz",
            "--target",
            "y",
            "--model",
            "logistic",
            "--budget",
            "400",
        ),
        "regression": (
            folder / "diabetes.csv",
            "--target",
            "progress",
            "--model",
            "linear",
            "--budget",
            "400",
        ),
        "nasty": (
            nasty_table(folder / "nasty.csv"),
            "--target",
            "label",
            "--drop",
            "site",
            "--budget",
            "300",
        ),
        "copies": (
            copies_table(folder / "copies.csv"),
            "--target",
            "label",
            "--model",
            "logistic",
            "--budget",
            "200",
        ),
        "closed form": (
            suppliers,
            "--target",
            "bought",
            "--id",
            "id",
            "--drop",
            "supplier",
            "--model",
            "knn",
        ),
        "no errors": (
            suppliers,
            "--target",
            "bought",
            "--drop",
            "id",
            "--notion",
            "least-core",
            "--budget",
            "200",
        ),
    }
    return Reports(folder, options)
