"""Execute the example notebooks and store their outputs, which the documentation shows.

python examples/run_notebooks.py
"""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

for path in sorted((Path(__file__).parent / "notebooks").glob("*.ipynb")):
    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(
            book,
            kernel_name="python3",
            record_timing=False,
            resources={"metadata": {"path": folder}},
        ).execute()
    book.metadata = {
        "kernelspec": book.metadata["kernelspec"],
        "language_info": {"name": "python"},
    }
    nbformat.write(book, path)
    print(f"Executed: {path.name}")
