"""Inputs that take long to convert but little space on disk."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support.hostile import noise

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE_RATE = 44_100
FRAME_BYTES = 4


def write_long_wave(path: Path, seconds: int) -> Path:
    """Write a stereo WAV: one second of noise, then a sparse part that reads as silence."""
    size = seconds * SAMPLE_RATE * FRAME_BYTES
    form = struct.pack("<HHIIHH", 1, 2, SAMPLE_RATE, SAMPLE_RATE * FRAME_BYTES, FRAME_BYTES, 16)
    head = b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + struct.pack("<I", 16) + form
    with path.open("wb") as file:
        file.write(head + b"data" + struct.pack("<I", size))
        file.write(noise(SAMPLE_RATE * FRAME_BYTES, "long"))
        file.truncate(len(head) + 8 + size)
    return path
