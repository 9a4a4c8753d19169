"""Rooms exchange frozen values: each may import only the rooms below it."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "databanzhaf"
PACKAGE = "databanzhaf"
# Who may import whom at run time. A room may always import its own files. Rooms stand from the
# ground up, and each entry names rooms further up in this list only: nothing imports upward.
GROUND = {"errors", "protocols", "verdicts", "evaluations", "_version"}
ALLOWED = {
    "_version": set(),
    "errors": set(),
    "protocols": set(),
    "verdicts": {"protocols"},
    "evaluations": {"errors", "protocols", "verdicts"},
    "blas": set(),
    "chance": GROUND,
    "files": GROUND,
    "fingerprint": GROUND,
    "metrics": GROUND,
    "crossed": GROUND | {"chance"},
    "neighbors": set(),
    "notions": GROUND,
    "plots": GROUND,
    "ranking": GROUND,
    "frames": GROUND,
    "data": GROUND | {"fingerprint", "frames"},
    "datasets": GROUND | {"chance"},
    "designs": GROUND | {"chance"},
    "kernels": GROUND | {"blas", "chance"},
    "games": GROUND | {"chance", "data", "fingerprint", "kernels", "metrics", "notions"},
    "evaluators": GROUND | {"_version", "blas", "chance"},
    "tables": GROUND | {"blas", "chance", "files"},
    "ledger": GROUND | {"chance", "designs", "files", "metrics"},
    "theory": GROUND | {"ledger", "notions"},
    "diagnostics": GROUND | {"designs", "notions", "ranking"},
    "estimate": GROUND | {"diagnostics", "ledger", "plots"},
    "until": GROUND | {"diagnostics"},
    "progress": GROUND | {"diagnostics", "kernels"},
    "estimators": GROUND | {"blas", "chance", "designs", "estimate", "notions"},
    "population": GROUND | {"blas", "designs", "estimate", "notions"},
    "applications": GROUND
    | {"chance", "crossed", "estimate", "evaluators", "population", "ranking"},
    "loop": GROUND | {"designs", "diagnostics", "evaluators", "ledger", "progress", "until"},
    "beginning": GROUND
    | {"chance", "designs", "estimators", "ledger", "loop", "notions", "progress", "until"},
    "run": GROUND
    | {"beginning", "diagnostics", "estimate", "estimators", "evaluators", "ledger", "notions"}
    | {"population", "progress", "until"},
    "attribution": GROUND
    | {"designs", "estimate", "files", "ledger", "notions", "population", "run"},
    "models": GROUND | {"data", "games", "neighbors"},
    "labels": GROUND
    | {"blas", "chance", "data", "evaluators", "frames", "games", "ledger", "models", "progress"}
    | {"tables"},
    "pipeline": GROUND
    | {
        "applications",
        "attribution",
        "beginning",
        "chance",
        "data",
        "designs",
        "diagnostics",
        "estimate",
        "evaluators",
    }
    | {
        "files",
        "games",
        "labels",
        "ledger",
        "models",
        "notions",
        "progress",
        "run",
        "tables",
        "theory",
    }
    | {"until"},
    "report": GROUND
    | {
        "applications",
        "attribution",
        "diagnostics",
        "estimate",
        "files",
        "labels",
        "pipeline",
        "population",
    }
    | {"tables"},
    "live": GROUND
    | {"blas", "diagnostics", "estimate", "ledger", "notions", "pipeline", "report", "run"},
    "finder": GROUND | {"files", "labels", "ledger", "report"},
    "valuator": GROUND
    | {"applications", "data", "diagnostics", "estimate", "frames", "models", "notions"}
    | {"pipeline", "run"},
    "experiments": {"files"},  # and public names
    "testing": GROUND
    | {"chance", "designs", "estimate", "estimators", "evaluators", "games", "notions", "run"},
    "cli": None,
    "__main__": None,
}


def room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path):
    tree = ast.parse(path.read_text())
    for_types = [
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    ]
    for node in ast.walk(tree):
        names = []
        if node in for_types:
            continue
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


def test_no_room_stands_below_one_that_it_imports():
    order = list(ALLOWED)
    upward = [
        (name, other)
        for name, below in ALLOWED.items()
        for other in below or ()
        if order.index(other) > order.index(name) and other not in GROUND
    ]
    assert upward == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_at_most_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_import_needs_no_heavy_or_optional_package():
    import subprocess
    import sys

    heavy = ["sklearn", "pandas", "torch", "rich", "joblib", "numba", "matplotlib"]
    script = f"import databanzhaf, sys; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
