"""What a person sees while a run goes on."""

import nbformat
import pytest
from nbclient import NotebookClient


@pytest.mark.slow
def test_a_notebook_shows_one_line_that_is_written_again():
    cell = nbformat.v4.new_code_cell(
        "import databanzhaf as db\n"
        "game = db.games.Function(12, lambda c: c @ range(12), name='twelve')\n"
        "_ = db.value(game, estimator='reuse', budget=500, progress=True)"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, timeout=60).execute()
    [shown] = notebook.cells[0]["outputs"]
    assert shown["data"]["text/plain"].startswith("500 of 500 evaluations, rank stability 0.")
