"""Triton's kernels without a GPU: its interpreter runs them in NumPy, in a process of its own."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

needs_triton = pytest.mark.skipif(
    find_spec("triton") is None, reason="needs triton, to interpret its kernels"
)


def interpret(script: str) -> None:
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
