import shutil
import signal

import numpy as np
import pytest
from hypothesis import settings

from tests.pages import visits

# The same examples in every run: a failure must not depend on the day.
settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

# A shell starts background jobs with Ctrl-C ignored, and what they start inherits that: tests that
# send it would wait in vain.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    return np.random.default_rng(20230425)


@pytest.fixture(scope="session")
def browser():
    """One for all tests of a process: playwright allows no second one in a thread."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if chromium is None:
        pytest.skip("needs Chromium")
    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    ]
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=quiet)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    """Opens an address as a page that notes its errors and requests."""
    with visits(browser) as opened:
        yield opened
