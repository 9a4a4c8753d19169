"""Pages that are made when the site is built: the reference of the commands and the notebooks.

A line `<!-- commands -->` or `<!-- notebook: PATH -->` in a page is replaced by Markdown, so that
neither can differ from the program or the notebook. Nothing is executed: notebooks are shown with
the outputs that they are stored with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from typer.main import get_command

from databanzhaf.cli import app as shell

COMMANDS = re.compile(r"(?m)^<!-- commands -->$")
NOTEBOOK = re.compile(r"(?m)^<!-- notebook: (\S+) -->$")


def commands() -> str:
    """Every command with its arguments and options, as Markdown."""
    found = dict(_single(get_command(shell).commands))
    lines = ["| command | what it does |", "| --- | --- |"]
    lines += [
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_text(each.help)} |"
        for name, each in found.items()
    ]
    return "\n\n".join(["\n".join(lines), *(_command(*each) for each in found.items())])


def _single(commands: dict[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    """Commands by what to type, those of groups included."""
    for name, command in commands.items():
        if hasattr(command, "commands"):
            yield from _single(command.commands, f"{group}{name} ")
        else:
            yield f"{group}{name}", command


def _text(help: str) -> str:
    return " ".join(help.split()).replace("|", "\\|")


def _command(name: str, command: Any) -> str:
    given = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each.opts[0].startswith("-")]
    words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in given]
    words += [f"{each.opts[0]} {_type(each)}" for each in options if each.required]
    usage = " ".join(["databanzhaf", name, *words, "[OPTIONS]" if options else ""]).rstrip()
    lines = [f"## {name}", "", _text(command.help), "", "```sh", usage, "```", ""]
    if command.params:
        lines += ["| option | meaning | default |", "| --- | --- | --- |"]
        lines += [_row(each) for each in (*given, *options)]
    return "\n".join(lines)


def _row(option: Any) -> str:
    named = option.opts[0].startswith("-")
    spelled = option.opts[0] if named else option.name.upper()
    if named and not option.is_flag:
        spelled += f" {_type(option)}"
    default = option.default
    if option.required:
        shown = "required"
    else:
        shown = "" if default is None or default is False else f"`{default}`"
    return f"| `{spelled}` | {_text(option.help)} | {shown} |"


def _type(option: Any) -> str:
    """What to write after an option: as in --help, but for files and columns alike."""
    words = {int: "INTEGER", float: "NUMBER", Path: "PATH"}
    return words.get(option.type_descriptor.annotation, "TEXT")


def notebook(path: Path) -> str:
    """A notebook's texts, code and stored outputs, as Markdown."""
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [_output(each) for each in cell.outputs]
    return "\n\n".join(parts)


def _output(output: Any) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        source = f"data:image/png;base64,{''.join(data['image/png'].split())}"
        return _raw(f'<img class="output" alt="The figure that this code draws" src="{source}">')
    if "text/html" in data:
        table = re.sub(r"<style.*?</style>", "", data["text/html"], flags=re.DOTALL)
        table = re.sub(r"<table[^>]*>", '<table class="docutils">', table)
        lines = "\n".join(line for line in table.splitlines() if line.strip())
        return _raw(f'<div class="output table-wrapper">{lines}</div>')
    return f"```{{code-block}} text\n:class: output\n\n{data['text/plain'].rstrip()}\n```"


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```"


def fill(app: Any, docname: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(docname))
    if found := COMMANDS.search(source[0]):
        source[0] = source[0].replace(found[0], commands())
    if found := NOTEBOOK.search(source[0]):
        path = (page.parent / found[1]).resolve()
        app.env.note_dependency(str(path), docname=docname)
        source[0] = source[0].replace(found[0], notebook(path))


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", fill)
    return {"parallel_read_safe": True}
