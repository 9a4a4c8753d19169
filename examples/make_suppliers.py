"""Writes suppliers.csv: `python examples/make_suppliers.py`.

Only sums and products of the library's own uniform numbers, so that every machine draws the same
table.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Final

import numpy as np

from databanzhaf import chance

N_ROWS: Final = 300
SUPPLIERS: Final = np.array(["ann", "bob", "cy", "dee", "eve", "fay"])
CITIES: Final = np.array(["Basel", "Gent", "Lund", "Porto", "Turin", "Wien"])
CHANNELS: Final = np.array(["mail", "phone", "shop", "web"])
# What each city and channel adds to the wish to buy.
CITY_PULL: Final = np.array([-1.0, 0.8, -0.4, 1.2, 0.2, -0.8])
CHANNEL_PULL: Final = np.array([-1.2, -0.4, 0.5, 1.1])
COLUMNS: Final = ("id", "age", "income", "city", "channel", "supplier", "bought")
_STREAM: Final = 301  # no other stream of the library


def draw() -> dict[str, Any]:
    """The columns, what is missing in them, and `flipped`: which labels are wrong."""
    u = chance.uniform(chance.keys(0, _STREAM, np.arange(N_ROWS)), 16).T
    age = 18 + np.floor(u[0] * 53).astype(np.int64)
    income = np.round(14_000 + 400.0 * (age - 18) + 60_000 * u[1] * u[2], 2)
    city, channel = np.floor(u[3] * 6).astype(np.int64), np.floor(u[4] * 4).astype(np.int64)
    supplier = SUPPLIERS[np.floor(u[5] * 6).astype(np.int64)]
    noise = u[6] + u[7] + u[8] + u[9] - 2.0
    wish = (
        (income - 39_000) / 12_000
        - (age - 44) / 20
        + CITY_PULL[city]
        + CHANNEL_PULL[channel]
        + 1.6 * noise
    )
    flipped = (supplier == "eve") & (u[10] < 0.5)
    return {
        "id": np.array([f"r{i:03d}" for i in range(1, N_ROWS + 1)]),
        "age": np.where(u[11] < 0.05, "", age.astype(str)),
        "income": np.where(u[12] < 0.07, "", np.array([f"{each:.2f}" for each in income.tolist()])),
        "city": np.where(u[13] < 0.04, "", CITIES[city]),
        "channel": CHANNELS[channel],
        "supplier": supplier,
        "bought": np.where((wish > 0) != flipped, "yes", "no"),
        "flipped": flipped,
    }


def write(file: Path) -> None:
    """The table as CSV; which labels are flipped is not in it."""
    table = draw()
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(*(table[column].tolist() for column in COLUMNS), strict=True))


if __name__ == "__main__":
    write(Path("suppliers.csv"))
