"""The code in README and docs runs, as written and in order, and its numbers are those that were
measured.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import databanzhaf as db
from tests.shell import invoke

ROOT = Path(__file__).parents[1]
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "```python" in path.read_text()
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    assert blocks
    names = {"__name__": "__page__"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out


def test_shell_commands_of_the_readme_run(tmp_path, monkeypatch):
    """Every `databanzhaf ...` line, in order, in an empty folder; and what it says of the lowest
    rows is so. The first one in a process of its own.
    """
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", readme, flags=re.DOTALL)
    first, *commands = [
        shlex.split(line, comments=True)[1:]
        for block in blocks
        for line in block.splitlines()
        if line.startswith("databanzhaf ")
    ]
    assert len(commands) >= 8
    subprocess.run([sys.executable, "-m", "databanzhaf", *first], check=True)
    for words in commands:
        done = invoke(*words)
        assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}"
    rows = pd.read_csv("runs/suppliers/values.csv").sort_values("rank")["row"][:10]
    wrong = np.isin(rows, db.datasets.flipped_suppliers()).sum()
    assert f"Of the 10 lowest rows of the example {wrong} are wrong" in readme


def test_the_site_builds_without_a_warning_and_asks_nobody(tmp_path):
    pytest.importorskip("sphinx")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "html",
        str(ROOT / "docs"),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) >= 20
    for page in pages:
        assert not re.search(
            r"<(script|link|img)[^>]+(src|href)=\"(https?:)?//", page.read_text()
        ), page.name
    commands = (tmp_path / "cli.html").read_text()
    assert all(f'<section id="{name}">' in commands for name in ("value", "plan", "ledger-merge"))
    assert "--validation-fraction" in commands
    for notebook in (ROOT / "examples" / "notebooks").glob("*.ipynb"):
        assert "output" in (tmp_path / "notebooks" / f"{notebook.stem}.html").read_text()


def test_figures_in_the_readme_stand_in_the_results():
    readme = (ROOT / "README.md").read_text()
    numbers = re.findall(r"[\d,.]*\d", readme.split("## Numbers")[1].split("## The paper")[0])
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    measured = [number for number in numbers if len(number) > 4 or "." in number]
    assert len(measured) >= 4
    assert all(number in results for number in measured if number != "2,000")
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "paper").glob("*.md"))
    reproduced = re.findall(r"0\.\d+", readme.split("## The paper")[1].split("## Cite")[0])
    assert len(reproduced) >= 3
    assert all(number in pages for number in reproduced)


def test_the_comparison_is_what_was_measured():
    text = (ROOT / "docs" / "compared.md").read_text()
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    measured = re.split(r"(?m)^## ", results.split("## Compared\n")[1])[0]
    rows = [line for line in measured.splitlines() if re.match(r"\| \w+: ", line)]
    assert len(rows) >= 10
    assert all(row in text for row in rows)


def test_the_summary_is_that_of_the_pages(tmp_path):
    from shutil import copy

    from databanzhaf.experiments import summarise

    for claims in (ROOT / "docs" / "paper").glob("*.claims.json"):
        copy(claims, tmp_path)
    assert summarise(tmp_path).read_text() == (ROOT / "docs" / "paper" / "summary.md").read_text()


# The README is also the page of the package, where relative links lead nowhere.
HERE = re.compile(
    r"https://(?:raw\.githubusercontent\.com/databanzhaf/databanzhaf"
    r"|github\.com/databanzhaf/databanzhaf/(?:blob|tree))/main/"
)


def test_pictures_and_links_exist():
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            place = ROOT / HERE.sub("", target) if HERE.match(target) else page.parent / target
            if HERE.match(target) or not target.startswith("http"):
                assert place.exists(), f"{page.name}: {target}"


def test_links_of_the_readme_work_on_a_package_index():
    readme = (ROOT / "README.md").read_text()
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", readme)
    assert len(links) >= 10
    for picture, target in links:
        assert target.startswith("https://"), target
        assert ("raw.githubusercontent.com" in target) == bool(picture), target
        if HERE.match(target) and "#" in target:
            path, anchor = HERE.sub("", target).split("#")
            titles = re.findall(r"(?m)^#+ (.+)$", (ROOT / path).read_text())
            assert anchor in [re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles]
