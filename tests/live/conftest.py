"""Small runs to look at."""

import time

import pytest

from databanzhaf.live import Watch, find, watch
from tests.shell import invoke, table


@pytest.fixture(autouse=True)
def in_a_folder_with_a_table(tmp_path, monkeypatch):
    """t.csv in an empty working folder; every question is answered by a new look."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "_FRESH", 0.0)
    table(name=[f"<b>{row}</b>" for row in range(60)]).to_csv("t.csv", index=False)
    return tmp_path


@pytest.fixture
def value():
    """`databanzhaf value` on the table; its folder is runs/t unless the words say another."""

    def run(*words):
        model = () if "--model" in words else ("--model", "logistic")
        done = invoke("value", "t.csv", "--target", "y", "--id", "name", *model, *words)
        assert done.exit_code == 0, done.output
        return done

    return run


def looked(path):
    """A watch that has computed the values of what is there, and its state."""
    made = Watch(find(path))
    return made, settled(made)


def settled(made):
    """The state once nothing is being computed."""
    made.state()
    end = time.monotonic() + 30
    while made._task is not None and made._task.is_alive():
        assert time.monotonic() < end
        time.sleep(0.01)
    return made.state()
