"""Files of JSON lines that grow: what was found, a line for each key, so that pages can be made in
parts, by several processes and machines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import databanzhaf as db
from databanzhaf.files import write_text


@dataclass(frozen=True)
class Lines:
    """The lines of a file, each under its values of some names."""

    path: Path
    names: tuple[str, ...]

    def place(self, line: dict[str, Any]) -> str:
        return json.dumps({name: line.get(name) for name in self.names})

    def read(self) -> dict[str, dict[str, Any]]:
        """Every line by its place; a damaged line is left out, since it can be made again."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise db.InvalidInput(
                f"`{self.path}` must be readable", got=str(error), remedy="Check its permissions."
            ) from error
        found: dict[str, dict[str, Any]] = {}
        for text in content.splitlines():
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if isinstance(line, dict):
                found[self.place(line)] = line
        return found

    def add(self, line: dict[str, Any]) -> None:
        """Put a line in its place. Several processes, or commands, may add theirs: one at
        a time.
        """
        from filelock import FileLock

        with FileLock(self.path.with_name(f".{self.path.name}.lock")):
            lines = {**self.read(), self.place(line): line}
            text = "".join(json.dumps(lines[place]) + "\n" for place in sorted(lines))
            write_text(self.path, text)
