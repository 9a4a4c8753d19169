"""The page in a real browser while another process makes a run."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import accessible

pytestmark = pytest.mark.browser
COMMAND = [sys.executable, "-m", "databanzhaf"]
VALUE = ["value", "t.csv", "--target", "y", "--id", "name", "--budget", "60000", "--jobs", "1"]
# Two minutes of trainings on any machine: no test waits for the end.
MODEL = """
import time
from sklearn.linear_model import LogisticRegression

class Slow(LogisticRegression):
    def fit(self, X, y):
        time.sleep(0.002)
        return super().fit(X, y)
"""


def started(*words, **how):
    """A command in another process, in the working folder."""
    return subprocess.Popen([*COMMAND, *words], stdin=subprocess.DEVNULL, **how)


@pytest.fixture
def address():
    """The address of a watch of runs/t, which ends by Ctrl-C and says so."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = started("watch", "runs/t", **pipes)
    lines = iter(process.stdout.readline, "")
    yield next(found[0] for line in lines if (found := re.search(r"http://\S+", line)))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert said == "Stopped watching. The run is not affected.\n"
    assert process.returncode == 130


@pytest.fixture
def run():
    """A run that is going on, killed at the end."""
    Path("own.py").write_text(MODEL)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = started(*VALUE, "--model", "own:Slow", **quiet)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def open_page(visit, address):
    """Opens the page of the watch."""
    return lambda *words: visit(address, *words)


def number(page):
    """Evaluations done, as the page has them."""
    text = page.locator("#tiles dd").first.inner_text()
    return int(text.split(" of ")[0].replace(",", ""))


def check(page, width):
    accessible(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.errors == []


def test_a_run_is_waited_for_seen_to_grow_and_to_be_stopped(open_page, request):
    page = open_page()
    assert "no run in runs/t yet" in page.locator("#said").inner_text()
    check(page, 1400)
    run = request.getfixturevalue("run")
    page.wait_for_selector("#rows tbody tr", timeout=60_000)
    first = number(page)
    page.wait_for_function(
        "n => parseInt(document.querySelector('#tiles dd').textContent.replace(',', '')) > n",
        arg=first,
    )
    names = page.locator("#tiles dt").all_inner_texts()
    assert names[:4] == ["evaluations", "a second, last minute", "a second, overall", "time left"]
    assert page.locator("#said").inner_text() == "The run is in progress."
    assert page.locator("#rows thead th").all_inner_texts()[:3] == ["row", "id", "y"]
    assert page.locator("#rows tbody tr").count() == 20
    assert page.locator("#rows tbody td").nth(1).inner_text().startswith("<b>")  # a text
    assert page.locator("progress").get_attribute("max") == "60000"
    page.wait_for_selector("#curve svg", timeout=120_000)
    assert page.evaluate("document.title").endswith("% of t")
    check(page, 1400)
    narrow = open_page(390, "dark")
    narrow.wait_for_selector("#rows tbody tr")
    check(narrow, 390)

    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "pause"
    page.keyboard.press("Space")
    paused = number(page)
    page.wait_for_timeout(2500)
    assert number(page) == paused
    page.keyboard.press("Space")

    run.send_signal(signal.SIGINT)
    run.wait(timeout=20)
    page.wait_for_selector("#said:has-text('stopped')")
    assert page.errors == []
    here = page.url
    assert {url for url in page.asked if not url.startswith("data:")} == {here, f"{here}data"}


@pytest.mark.skipif(not hasattr(os, "kill"), reason="needs signals")
def test_the_page_says_when_the_watch_is_gone(visit):
    process = started("watch", "runs/t", stdout=subprocess.PIPE, text=True)
    lines = iter(process.stdout.readline, "")
    page = visit(next(found[0] for line in lines if (found := re.search(r"http://\S+", line))))
    problems, said = page.locator("#problems"), page.locator("#said").inner_text()
    assert problems.inner_text() == ""
    assert "no run in runs/t yet" in said
    process.kill()
    process.communicate()
    page.wait_for_selector("#problems:not(:empty)")
    assert problems.inner_text().startswith("No answer from `databanzhaf watch`")
    assert page.locator("#said").inner_text() == said  # what it knew stays


def test_a_ledger_that_is_damaged_is_named_until_it_is_restored(open_page, value):
    value("--budget", 150)
    page = open_page()
    page.wait_for_selector("#rows tbody tr", timeout=30_000)
    ledger = Path("runs/t/run.db")
    whole = ledger.read_bytes()
    ledger.write_bytes(b"no ledger" * 100)
    page.wait_for_selector("#problems:has-text('not a ledger')")
    assert page.locator("#rows tbody tr").count() == 20
    check(page, 1400)
    ledger.write_bytes(whole)
    page.wait_for_selector("#problems:empty", state="attached")
    page.wait_for_selector("#said:has-text('finished')")
