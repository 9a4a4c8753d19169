"""What the loop itself costs: evaluations per second and peak memory with a utility that is free.

Each figure is a process of its own. The baseline, pyDVL's MSR, runs in an environment of its own
(`make bench` makes it), since it needs an older NumPy.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BASELINE = HERE.parent / ".venv-baseline" / "bin" / "python"
BUDGETS = {200: 500_000, 2_000: 200_000, 100_000: 4_000}


def free(coalitions):
    return coalitions[:, 0].astype(float)


def measure(kind: str, n: int) -> dict[str, float]:
    """Run one case in this process."""
    import resource

    import numpy as np

    import databanzhaf as db

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    game, m = db.games.Function(n, free, name="free"), BUDGETS[n]
    with tempfile.TemporaryDirectory() as folder:
        db.value(game, estimator="reuse", budget=1000)  # imports and first calls
        before, start = peak(), time.perf_counter()
        if kind == "design":
            coin = db.designs.Coin(n, 0)
            step = max(1, (1 << 22) // n)
            for low in range(0, m, step):
                coin.coalitions(np.arange(low, min(low + step, m)))
        else:
            ledger = None if kind == "memory" else os.path.join(folder, "run.db")
            db.value(game, estimator="reuse", budget=m, ledger=ledger)
        seconds = time.perf_counter() - start
    return {"rate": m / seconds, "peak": peak(), "grown": peak() - before}


def child(*arguments: str, python: str = sys.executable) -> dict[str, float]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    out = subprocess.run(
        [python, *arguments], capture_output=True, text=True, check=True, env=environment
    ).stdout
    answer: dict[str, float] = json.loads(out.splitlines()[-1])
    return answer


def main() -> None:
    from record import record, table

    rows = []
    for n in BUDGETS:
        ours = {kind: child(__file__, kind, str(n)) for kind in ("design", "memory", "file")}
        baseline = "not measured"
        if BASELINE.exists() and n <= 2_000:
            rate = child(str(HERE / "baseline_pydvl.py"), str(n), "20", python=str(BASELINE))[
                "rate"
            ]
            baseline = f"{rate:,.1f} (ours: {ours['file']['rate'] / rate:,.0f} times)"
        rates = [f"{ours[kind]['rate']:,.0f}" for kind in ("design", "memory", "file")]
        memory = f"{ours['file']['peak']:,.0f} ({ours['file']['grown']:+,.0f})"
        rows.append([f"{n:,}", f"{BUDGETS[n]:,}", *rates, memory, baseline])
    head = [
        "players",
        "coalitions",
        "fair-coin coalitions/s",
        "evaluations/s, memory ledger",
        "evaluations/s, file ledger",
        "peak MiB (growth in the run)",
        "pyDVL MSR samples/s",
    ]
    note = (
        "`db.value` from the design to the finished MSR estimate, utility free, one core, one "
        "BLAS thread. "
        "pyDVL 0.10: `BanzhafValuation` with `MSRSampler` and a utility that returns a constant, "
        "for 20 s."
    )
    record("Overhead of the loop", f"{table(head, rows)}\n\n{note}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
    else:
        main()
