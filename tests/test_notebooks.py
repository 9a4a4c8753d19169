"""The example notebooks run from the first cell to the last, and are stored as they run now."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore")  # of the notebook machinery itself
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    book = nbformat.read(path, as_version=4)
    stored = summaries(book)
    client.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert any(cell.outputs for cell in code)
    assert not any(output.output_type == "error" for cell in code for output in cell.outputs)
    assert summaries(book) == stored, "run examples/run_notebooks.py: its outputs are old"


def summaries(book):
    """Players, estimator and evaluations of every estimate that is shown."""
    said = str([cell.get("outputs") for cell in book.cells])
    return re.findall(r"values of (\d+) players by (\w+), ([\d,]+) evaluations", said)


def test_there_is_one_for_each_use():
    uses = [
        "mislabeled-rows",
        "torch-module-on-images",
        "value-suppliers",
        "weight-a-training",
        "your-own-game",
    ]
    assert [path.stem for path in NOTEBOOKS] == uses
