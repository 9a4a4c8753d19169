"""Chance belongs to the index, also where a model draws from a global generator."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

# Global generators belong to the whole process: two runs in two threads take turns.
_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def seeded_generators(key: np.uint64) -> Iterator[None]:
    """Set the generators of Python, NumPy and torch from a key for a while, then put them back."""
    torch = sys.modules.get("torch")
    with _ONE_AT_A_TIME, ExitStack() as stack:
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())  # noqa: NPY002
        random.seed(int(key))
        np.random.seed(int(key) & 0xFFFFFFFF)  # noqa: NPY002
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.manual_seed(int(key) & (2**63 - 1))
        yield
