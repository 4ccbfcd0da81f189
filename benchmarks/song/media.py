"""Runs ffmpeg with pipes for all data: the effect of codecs and containers on a sound."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.song.signals import RATE_HZ, Sound, from_int16, to_int16

if TYPE_CHECKING:
    from pathlib import Path


def ffmpeg(*arguments: str | Path, given: bytes = b"") -> bytes:
    """Run ffmpeg.

    Args:
        arguments: Command-line arguments.
        given: Standard input.

    Returns:
        Its standard output.

    Raises:
        RuntimeError: It failed; the message has the last line of its error output.
    """
    command = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-threads", "1", *map(str, arguments)]
    if given:
        command.remove("-nostdin")
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(f"ffmpeg failed: {lines[-1] if lines else done.returncode}: {command}")
    return done.stdout


def raw_input(rate_hz: int = RATE_HZ, channels: int = 1) -> tuple[str, ...]:
    """Return the arguments that describe 16-bit samples on standard input."""
    return ("-f", "s16le", "-ar", str(rate_hz), "-ac", str(channels), "-i", "pipe:0")


def filtered(sound: Sound, text: str) -> Sound:
    """Apply an ffmpeg filter to mono; it may change the length."""
    wanted = ("-ar", str(RATE_HZ), "-ac", "1", "-f", "s16le", "pipe:1")
    return decoded_samples(
        ffmpeg(*raw_input(), "-af", text, *wanted, given=to_int16(sound).tobytes())
    )


def decoded_samples(raw: bytes) -> Sound:
    """Convert 16-bit samples to mono."""
    return from_int16(np.frombuffer(raw, "<i2").reshape(-1, 1))


def recoded(sound: Sound, container: str, *codec: str) -> Sound:
    """Encode and decode mono with a codec.

    Args:
        sound: Sound to encode.
        container: ffmpeg's name of a format that can be written to a pipe.
        codec: ffmpeg's arguments of the codec.
    """
    coded = ffmpeg(*raw_input(), *codec, "-f", container, "pipe:1", given=to_int16(sound).tobytes())
    raw = ffmpeg("-f", container if container != "adts" else "aac", "-i", "pipe:0",
                 "-ar", str(RATE_HZ), "-ac", "1", "-f", "s16le", "pipe:1", given=coded)  # fmt: skip
    return decoded_samples(raw)
