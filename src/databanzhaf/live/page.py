"""The one page of a watch: the same for every run, since all that is shown comes as data."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.resources import files

from databanzhaf._version import __version__
from databanzhaf.report.markup import source


@dataclass(frozen=True)
class Page:
    """The page, and the content security policy that goes with it."""

    html: str
    policy: str


def page() -> Page:
    """The page with its style and script inside. The policy names them by their digests, so that no
    other style or script is used; data come from this server alone.
    """
    style = source("page.css") + _own("live.css")
    script = source("charts.js") + _own("live.js")
    html = _own("live.html")
    for name, text in (("version", __version__), ("style", style), ("script", script)):
        html = html.replace(f"{{{name}}}", text)
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return Page(html, policy)


def _own(name: str) -> str:
    return files("databanzhaf.live").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
