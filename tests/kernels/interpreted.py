"""Triton's kernels without a GPU, in a process of its own: its interpreter runs them in NumPy."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton, to interpret its kernels"
)


def interpret(script: str, switch: str = "1") -> None:
    """Run a script by the interpreter; with "0" it may compile kernels, though not run them."""
    environment = {
        **os.environ,
        "TRITON_INTERPRET": switch,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
