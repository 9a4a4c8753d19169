"""Long texts of the pages, from a file beside this module."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files


@cache
def _texts() -> dict[str, str]:
    content = files("databanzhaf.experiments").joinpath("texts.toml").read_text(encoding="utf-8")
    return {name: text.replace("\n", " ") for name, text in tomllib.loads(content).items()}


def text(name: str, **parts: object) -> str:
    """One text with its parts filled in."""
    return _texts()[name].format(**parts)


def whole(name: str) -> str:
    """A text of several paragraphs, from a file of its own."""
    return files("databanzhaf.experiments").joinpath(name).read_text(encoding="utf-8").strip()
