"""Sphinx: the documentation, offline, with formulas as MathML that browsers draw themselves."""

import html
import sys
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from databanzhaf import __version__

project = "databanzhaf"
author = "the databanzhaf authors"
copyright = author
release = __version__
extensions = [
    "made_pages",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
copybutton_selector = "div:not(.output) > div.highlight > pre"
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_ext"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"databanzhaf {release}"
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_numpy_docstring = True
napoleon_use_rtype = False
nitpicky = False


def _mathml(text: str, display: str) -> str:
    try:
        return latex2mathml.converter.convert(text, display=display)
    except Exception as error:  # any failure of the converter must fail the build, with the formula
        raise ValueError(f"this formula cannot be shown: {text!r}") from error


def _inline(self, node: nodes.math) -> None:
    self.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self, node: nodes.math_block) -> None:
    self.body.append(
        '<div class="math" role="math" '
        f'aria-label="{html.escape(node.astext())}">{_mathml(node.astext(), "block")}</div>'
    )
    raise nodes.SkipNode


def _examples(app, what, name, obj, options, lines) -> None:
    """Docstrings end with an example; say so, lest it be read as one more parameter."""
    first = next((number for number, line in enumerate(lines) if line.startswith(">>>")), None)
    if first is not None:
        lines[first:first] = ["Examples", "--------"]


def setup(app) -> None:
    app.connect("autodoc-process-docstring", _examples, priority=100)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
