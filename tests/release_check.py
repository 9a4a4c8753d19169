"""Install the wheel into an empty environment outside the checkout and run the README's commands.

``make release-check`` builds wheel and sdist and calls this with their folder.
"""

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def readme_commands():
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("databanzhaf ")]


def check_contents(wheel, sdist):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for needed in ("databanzhaf/py.typed", "databanzhaf/datasets/suppliers.csv"):
        assert needed in names, f"the wheel lacks {needed}"
    for needed in ("databanzhaf/report/page.js", "databanzhaf/experiments/texts.toml"):
        assert needed in names, f"the wheel lacks {needed}"
    outside = [name for name in names if not name.startswith("databanzhaf")]
    assert not outside, f"the wheel holds {outside[:3]}"
    assert not any("make_suppliers" in name or "/tests/" in name for name in names)
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("/LICENSE") for name in archive.getnames())


def main(folder):
    [wheel], [sdist] = (sorted(Path(folder).glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    check_contents(wheel, sdist)
    with tempfile.TemporaryDirectory() as empty:
        home = Path(empty) / "environment"
        venv.create(home, with_pip=True)
        programs = home / ("Scripts" if os.name == "nt" else "bin")
        install = [
            programs / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            f"{wheel.resolve()}[plots]",
        ]
        subprocess.run(install, check=True)
        clean = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
        for words in [["databanzhaf", "--version"], *readme_commands()]:
            print("$", shlex.join(words), flush=True)
            subprocess.run([programs / words[0], *words[1:]], check=True, cwd=empty, env=clean)
    print(f"{wheel.name} and {sdist.name} are ready.")


if __name__ == "__main__":
    main(sys.argv[1])
