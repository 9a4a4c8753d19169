"""Codes that a text file's reader takes for numbers: 007, +49, 1E2, 1.10."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

# Cells of a text file that are held as texts at a time.
_TEXT_CELLS = 1 << 21


def lossy_codes(
    path: Path, as_written: dict[str, Any], table: pd.DataFrame, numbers: list[str]
) -> dict[str, str]:
    """Columns of numbers whose texts do not survive the way to a number and back, each with an
    example.
    """
    import pandas as pd

    found: dict[str, str] = {}
    # Only of columns that may hold codes: reading 30 columns of 200,000 measurements takes 1 s
    # longer than without, all texts took 22 s.
    asked = [name for name in numbers if _may_be_codes(table[name].to_numpy())]
    if not asked:
        return found
    texts: dict[str, list[Any]] = {name: [] for name in asked}
    for part in pd.read_csv(
        path, **as_written, usecols=asked, chunksize=max(1, _TEXT_CELLS // len(asked))
    ):
        for name in asked:
            texts[name].append(part[name].unique())
    for name in asked:
        different = pd.Series(np.concatenate(texts[name])).str.strip().drop_duplicates()
        values = pd.to_numeric(
            different.str.replace(as_written["decimal"], ".", regex=False), errors="coerce"
        )
        different, values = different[values.notna()], values[values.notna()]
        odd = different[different.str.match(r"\+|-?0\d|\d+[eE]\d+$")]
        again = values[values.duplicated()]
        if len(odd):
            found[name] = f"`{odd.iloc[0]}`"
        elif len(again):
            found[name] = (
                " and ".join(f"`{text}`" for text in different[values == again.iloc[0]].iloc[:2])
                + ", one number"
            )
    return found


def _may_be_codes(numbers: Any) -> bool:
    """Whole numbers and short decimals may be codes (1.10, 1E2, 007); measurements have more
    digits.
    """
    if numbers.dtype.kind in "iu":
        return True
    scaled = numbers[np.isfinite(numbers)] * 1e4
    return (
        bool((np.abs(scaled - np.round(scaled)) <= 1e-9 * np.abs(scaled)).mean() > 0.9)
        if scaled.size
        else False
    )
