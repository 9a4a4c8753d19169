"""What a first run costs: processor time of `databanzhaf value` on the example table, by this
checkout and by others, in turns.

    python benchmarks/first_runs.py ROUNDS OTHER_CHECKOUT ...
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from record import record, table

HERE = Path(__file__).resolve().parents[1]
RUNS = {
    "Banzhaf": [],
    "Shapley": ["--notion", "shapley"],
    "three notions": ["--notion", "banzhaf,shapley,beta(16,1)"],
}


def seconds(checkout: Path, options: list[str], folder: str) -> float:
    """Processor time of one run, of user and system."""
    words = ["value", "suppliers.csv", "--target", "bought", "--drop", "id", "--drop", "supplier"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "databanzhaf", *words, *options, "--out", "run", "--quiet"]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    path = {"PYTHONPATH": str(checkout / "src")}
    with TemporaryDirectory() as place:
        Path(place, "suppliers.csv").write_bytes(Path(folder, "suppliers.csv").read_bytes())
        subprocess.run(
            command, cwd=place, env={**os.environ, **threads, **path}, check=True,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(rounds: int, others: list[Path]) -> str:
    checkouts = [*(each.resolve() for each in others), HERE]
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "databanzhaf", "example"], cwd=folder, check=True)
        lines = []
        for name, options in RUNS.items():
            found = [
                [seconds(checkout, options, folder) for checkout in checkouts]
                for _ in range(rounds)
            ]
            middle = [statistics.median(each) for each in zip(*found, strict=True)]
            ratios = [f"{middle[-1] / each:.2f}" for each in middle[:-1]]
            lines.append([name, *(f"{each:.1f}" for each in middle), *ratios])
            print(lines[-1], flush=True)
    names = [
        subprocess.run(
            ["git", "describe", "--always"], cwd=each, capture_output=True, text=True, check=True
        ).stdout.strip()
        for each in checkouts
    ]
    head = ["values", *(f"{name}, s" for name in names), *(f"to {name}" for name in names[:-1])]
    return (
        table(head, lines)
        + f"\n\nMedian of {rounds} runs each, with the defaults: 300 rows that judge each other, "
        "5,000 forests. Starting Python and reading the table are included."
    )


if __name__ == "__main__":
    record("First runs", main(int(sys.argv[1]), [Path(each) for each in sys.argv[2:]]))
