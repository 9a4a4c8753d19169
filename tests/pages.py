"""Pages in a real browser that note what they log and ask for, and what axe finds in them."""

from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def visits(browser):
    """A function that opens an address, in a new context unless it gets one; they are closed."""
    contexts = []

    def visit(address, width=1400, scheme="light", context=None, script=None, **more):
        if context is None:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, **more
            )
            contexts.append(context)
        page = context.new_page()
        page.errors, page.asked = [], []
        page.on(
            "console",
            lambda message: (
                page.errors.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        if script:
            page.add_init_script(script)
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield visit
    for context in contexts:
        context.close()


def accessible(page):
    """The page as it stands has no violation; returns how many rules it passes."""
    axe = pytest.importorskip("axe_playwright_python")
    page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text())
    # Every rule is run either way; to describe all that passes takes longer than to run them.
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert [(each["id"], each["nodes"][0]["html"][:100]) for each in found["violations"]] == []
    return len(found["passes"])
