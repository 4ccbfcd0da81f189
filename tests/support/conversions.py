"""Conversions started at the native module, and file objects that record how they are used."""

from __future__ import annotations

import array
import io
import math
from typing import TYPE_CHECKING, Any

from polymux._native import _media

from support.wav_files import wave_file

if TYPE_CHECKING:
    from collections.abc import Callable


def wav(seconds: float) -> bytes:
    samples = int(seconds * 44_100)
    second = array.array("h", (int(9000 * math.sin(i / 15)) for i in range(44_100)))
    content = (second * (samples // 44_100 + 1))[:samples]
    return wave_file(content.tobytes(), 44_100)


SHORT = wav(2)


def options() -> _media.ConvertOptions:
    chosen = _media.ConvertOptions()
    chosen.bitrate_bps = 128_000
    return chosen


def start(
    source: object,
    destination: object = None,
    on_done: Callable[[], object] | None = None,
    *,
    overwrite: bool = True,
) -> _media.Conversion:
    """Start a conversion. Source and destination may be bytes, a file object or a native tuple."""
    if isinstance(source, (bytes, bytearray)):
        source = ("bytes", source, "<bytes>")
    elif not isinstance(source, tuple):
        source = ("file", source, "the input")
    if destination is not None and not isinstance(destination, tuple):
        destination = ("file", destination)
    return _media.start_conversion(source, destination, options(), overwrite, on_done)


def mp3_of(source: object) -> bytes:
    data = start(source).wait()["data"]
    assert isinstance(data, bytes)
    return data


class Reader:
    """A read-only file object that calls `step` before each read."""

    def __init__(self, content: bytes, step: Callable[[int], object] = lambda _: None) -> None:
        self.file = io.BytesIO(content)
        self.step = step
        self.reads = 0

    def read(self, size: int) -> Any:
        self.reads += 1
        replaced = self.step(self.reads)
        return self.file.read(size) if replaced is None else replaced


def fail_at_once(error: Exception) -> Callable[[int], object]:
    def step(_: int) -> None:
        raise error

    return step
