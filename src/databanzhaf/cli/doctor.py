"""What this installation has: versions, devices, optional packages."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from databanzhaf._version import __version__
from databanzhaf.errors import to_install

_NEEDED = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "joblib",
    "threadpoolctl",
    "filelock",
    "numba",
    "rich",
    "typer",
)
_OPTIONAL = {
    "torch": ("torch", "networks on a GPU, your own torch modules"),
    "pyarrow": ("parquet", "Parquet files"),
    "matplotlib": ("plots", "plots in notebooks"),
}


def examine() -> dict[str, dict[str, str]]:
    """Three lists of (name, finding)."""
    return {
        "databanzhaf": {
            "version": __version__,
            "Python": platform.python_version(),
            "system": platform.platform(),
            "DATABANZHAF_DATA": os.environ.get("DATABANZHAF_DATA") or "not set",
        },
        "packages": {
            name: _version(name) or "missing: run pip install databanzhaf again" for name in _NEEDED
        }
        | {
            name: _version(name) or f"not installed; for {use}: {to_install(extra)}"
            for name, (extra, use) in _OPTIONAL.items()
        },
        "devices": {
            "CPU cores": str(_cores()),
            "CUDA": _cuda(),
            "compiled code is cached": _cache(),
        },
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cores() -> int:
    from joblib import cpu_count

    return int(cpu_count())


def _cuda() -> str:
    try:
        import torch
    except ImportError:
        return "unknown: torch is not installed; the CPU is used"
    if not torch.cuda.is_available():
        return "none that torch sees; the CPU is used"
    return ", ".join(
        torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())
    )


def _cache() -> str:
    """Where Numba keeps its code: beside the package, or in the user's cache."""
    from pathlib import Path

    beside = Path(__file__).parents[1] / "kernels" / "__pycache__"
    if os.access(beside if beside.exists() else beside.parent, os.W_OK):
        return "yes"
    home = Path(os.environ.get("NUMBA_CACHE_DIR") or Path.home())
    return (
        "yes"
        if os.access(home, os.W_OK)
        else "no: each process compiles again; set NUMBA_CACHE_DIR to a writable folder"
    )
