"""What every page is put together from: its files, its texts, its data."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any


def escaped(text: Any) -> str:
    """A text as HTML that shows it."""
    return html.escape(str(text))


def source(name: str) -> str:
    """A style, a script or a template of this room."""
    return files("databanzhaf.report").joinpath(name).read_text(encoding="utf-8")


def filled(template: str, pieces: Mapping[str, str]) -> str:
    """The template with its places filled, in one pass: a text of the user's that looks like a
    place in the page stays a text.
    """
    return re.sub(r"\{(\w+)\}", lambda found: pieces[found[1]], source(template))


def embedded(data: Any) -> str:
    """Numbers and texts as JSON; no text can end the script element that holds them."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def described(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, as a list of terms."""
    return (
        '<dl class="facts">'
        + "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(text)}</dd>" for name, text in facts)
        + "</dl>"
    )
