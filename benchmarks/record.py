"""Where measurements go: one section of RESULTS.md for each benchmark, with date, hardware and
command.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from pathlib import Path

from joblib import cpu_count

RESULTS = Path(__file__).with_name("RESULTS.md")


def hardware() -> str:
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists() and (found := re.search(r"model name\s*:\s*(.+)", info.read_text())):
        cpu = found[1]
    return f"{cpu}, {cpu_count()} cores; Python {platform.python_version()}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def record(name: str, body: str) -> None:
    """Print the section and put it in RESULTS.md in place of its former self."""
    command = "python " + " ".join([os.path.relpath(sys.argv[0]), *sys.argv[1:]])
    today = datetime.date.today().isoformat()
    section = f"## {name}\n\n{today}; {hardware()}; `{command}`\n\n{body}\n"
    print(section)
    old = (
        RESULTS.read_text()
        if RESULTS.exists()
        else "# Results\n\nWritten by the scripts beside this file; ratios come from one run.\n"
    )
    parts = re.split(r"(?m)^(?=## )", old)
    kept = [part.rstrip() for part in parts if not part.startswith(f"## {name}\n")]
    RESULTS.write_text("\n\n".join([*kept, section]))
