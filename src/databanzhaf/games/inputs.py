"""What the games that train networks are given: numbers, weights, a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from databanzhaf.errors import BackendUnavailable, InvalidInput, short


def check_weights(sample_weight: Any, weighting: str, n_rows: int) -> None:
    if weighting not in ("loss", "sampling"):
        raise InvalidInput(
            '`weighting` must be "loss" or "sampling"',
            got=short(weighting),
            remedy='"loss" weighs each row\'s loss.',
        )
    if sample_weight is None:
        if weighting == "sampling":
            raise InvalidInput(
                '`weighting="sampling"` needs `sample_weight`',
                got="none",
                remedy="Pass one weight for each training row.",
            )
        return
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_rows,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise InvalidInput(
            f"`sample_weight` must be {n_rows} numbers, 0 or more, one for each row",
            got=f"shape {weight.shape}",
            remedy="Clip negative weights to 0.",
        )


def numbers(name: str, table: Any) -> Any:
    """A table as float32, rows first; refuses what is no number."""
    if hasattr(table, "tocsr"):
        table = table.toarray()
    try:
        array = np.array(table, dtype=np.float32, order="C")
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"`{name}` must hold numbers",
            got=f"{error}",
            remedy="Encode categories first, for example with OneHotEncoder.",
        ) from error
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))[0])
        raise InvalidInput(
            f"`{name}` must be finite for a network; row {row} holds NaN or infinity",
            remedy="Impute first, for example with SimpleImputer.",
        )
    return array


def resolve_device(device: str) -> str:
    """ "auto" is CUDA if torch sees it, else "cpu"; a device that is asked for and absent is an
    error, never another device.
    """
    if not isinstance(device, str):
        raise InvalidInput(
            '`device` must be "auto", "cpu", "cuda" or "cuda:N", a string',
            got=short(device),
            remedy='Try "auto".',
        )
    if device == "cpu":
        return device
    if device != "auto" and not device.startswith("cuda"):
        raise InvalidInput(
            '`device` must be "auto", "cpu", "cuda" or "cuda:N"',
            got=short(device),
            remedy='Try "auto".',
        )
    try:
        import torch
    except ImportError as error:
        if device == "auto":
            return "cpu"
        raise BackendUnavailable.missing(f"device {device!r} needs", "torch", "torch") from error
    if torch.cuda.is_available():
        return "cuda" if device == "auto" else device
    if device == "auto":
        return "cpu"
    raise BackendUnavailable(
        f"device {device!r} was asked for, but torch sees no CUDA device here",
        remedy='Use device="cpu" or "auto".',
    )
