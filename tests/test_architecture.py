"""Rooms exchange frozen values: each may import only the rooms below it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "databanzhaf"
PACKAGE = "databanzhaf"
# Who may import whom. A room may always import its own files.
GROUND = {"errors", "types", "_version"}
ALLOWED = {
    "_version": set(),
    "errors": set(),
    "types": {"errors", "plots", "run"},  # inside methods of Estimate, which are there for notebooks
    "chance": GROUND,
    "data": GROUND | {"fingerprint"},
    "checksums": GROUND | {"chance"},
    "datasets": GROUND | {"chance"},
    "fingerprint": GROUND,
    "notions": GROUND,
    "ranking": GROUND,
    "designs": GROUND | {"chance"},
    "games": GROUND | {"chance", "data", "fingerprint", "kernels"},
    "kernels": GROUND | {"chance"},
    "evaluators": GROUND,
    "storage": GROUND,
    "ledger": GROUND | {"checksums", "storage"},
    "estimators": GROUND | {"designs", "notions"},
    "theory": GROUND | {"notions"},
    "applications": GROUND | {"chance", "evaluators", "ranking"},
    "until": GROUND,
    "progress": GROUND,
    "stability": GROUND | {"notions", "ranking"},
    "loop": GROUND | {"chance", "designs", "estimators", "ledger", "notions", "progress", "stability", "until"},
    "tables": GROUND | {"chance"},
    "neighbors": set(),
    "models": GROUND | {"data", "games", "neighbors"},
    "trust": GROUND | {"designs", "notions", "run", "stability"},
    "valuator": GROUND
    | {"applications", "data", "estimators", "evaluators", "games", "ledger", "models", "notions", "run", "tables", "trust", "until"}
    | {"plots"},
    "jobs": GROUND
    | {"applications", "data", "evaluators", "games", "ledger", "models", "notions", "progress", "report", "run", "tables"}
    | {"chance", "trust", "until"},
    "report": GROUND | {"applications", "trust"},
    "screen": GROUND | {"exits", "jobs"},
    "doctor": GROUND,
    "plots": GROUND | {"applications"},
    "plan": GROUND | {"chance", "designs", "jobs", "notions", "run", "theory"},
    "exits": GROUND,
    "experiments": set(),  # public names only
    "paper": GROUND | {"exits", "experiments"},
    "cli": None,
    "__main__": None,
    "run": GROUND | {"chance", "designs", "estimators", "evaluators", "ledger", "loop", "notions", "progress", "stability", "until"},
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == PACKAGE:
            names = [f"{PACKAGE}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if name.startswith(PACKAGE + "."):
                yield name.split(".")[1]


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_what_is_below_it(path):
    here = room(path)
    if ALLOWED[here] is not None:  # the shell stands above all rooms
        assert set(imported_rooms(path)) <= ALLOWED[here] | {here}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_at_most_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_import_needs_no_heavy_or_optional_package():
    import subprocess
    import sys

    heavy = ["sklearn", "pandas", "torch", "rich", "joblib", "numba", "matplotlib"]
    script = f"import databanzhaf, sys; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.strip() == "[]"
