"""A command of the shell in this process, and a small table to give it."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from databanzhaf.cli import app


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def table(n=60, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(
        y=np.where(X[:, 0] > 0, "yes", "no"), **more
    )
