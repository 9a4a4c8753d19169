"""Rows that are images, as small PNG files inside the page."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

LARGEST_SIDE = 64


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether rows of this shape are pictures: height x width, with one or three channels first or
    last.
    """
    return len(shape) == 2 or (len(shape) == 3 and (shape[-1] in (1, 3) or shape[0] in (1, 3)))


def data_address(image: Any) -> str:
    """The picture as an address that an <img> shows without asking anybody."""
    return "data:image/png;base64," + base64.b64encode(png(_bytes(np.asarray(image)))).decode(
        "ascii"
    )


def _bytes(image: Any) -> Any:
    """uint8 (height, width) or (height, width, 3), at most 64 pixels a side, brightest white."""
    if image.ndim == 3 and image.shape[-1] not in (1, 3):
        image = np.moveaxis(image, 0, -1)
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    step = max(1, -(-max(image.shape[:2]) // LARGEST_SIDE))
    image = image[::step, ::step]
    if image.dtype == np.uint8:
        return image
    numbers = np.nan_to_num(image.astype(np.float64))
    low, high = numbers.min(), numbers.max()
    return ((numbers - low) * (255 / (high - low) if high > low else 0)).astype(np.uint8)


def png(pixels: Any) -> bytes:
    """A PNG file (ISO/IEC 15948) of uint8 pixels, grey or RGB, every line unfiltered."""
    height, width = pixels.shape[:2]
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
