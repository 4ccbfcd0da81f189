"""Generated frames, ffprobe's report about a video, and the similarity of frames."""

from __future__ import annotations

import json
import subprocess
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def drawn(width: int, height: int, number: int) -> NDArray[numpy.uint8]:
    """Smooth colors, and a bright square that moves with `number`."""
    x, y = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    parts = [40 + 160 * x / width, 60 + 120 * y / height, numpy.full(x.shape, 150)]
    frame = numpy.stack(parts, axis=-1).astype(numpy.uint8)
    left = 4 * number % max(1, width - 8)
    frame[height // 4 : height // 4 + 8, left : left + 8] = (230, 220, 210)
    return frame


def facts_of(path: Path) -> tuple[str, int, int, Fraction, int]:
    """Codec, width, height, rate, and the number of decoded frames."""
    command = ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v:0", "-of", "json",
               "-show_entries", "stream=codec_name,width,height,avg_frame_rate,r_frame_rate,"
               "nb_read_frames", str(path)]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True)
    found = json.loads(done.stdout)["streams"][0]
    assert found["r_frame_rate"] == found["avg_frame_rate"]
    rate = Fraction(found["avg_frame_rate"])
    frames = int(found["nb_read_frames"])
    return found["codec_name"], found["width"], found["height"], rate, frames


def frames_of(path: Path) -> NDArray[numpy.uint8]:
    """All frames of a video, decoded by the ffmpeg program."""
    _, width, height, _, count = facts_of(path)
    command = ["ffmpeg", "-nostdin", "-v", "error", "-i", str(path), "-f", "rawvideo",
               "-pix_fmt", "rgb24", "-"]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True)
    return numpy.frombuffer(done.stdout, numpy.uint8).reshape(count, height, width, 3)


def likeness(left: NDArray[numpy.uint8], right: NDArray[numpy.uint8]) -> float:
    """Peak signal-to-noise ratio in decibels; 99 for equal images."""
    error = numpy.mean((left.astype(float) - right.astype(float)) ** 2)
    return 99.0 if error == 0 else float(10 * numpy.log10(255.0**2 / error))
