"""Synthetic test sounds, and a spectrogram that shares no code with the core."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import numpy
from support import programs

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Numbers = NDArray[Any]

RATE_HZ, HOP, WINDOW, TRANSFORM = 44_100, 441, 4_410, 17_640
BANDS, HIGHEST_HZ = 512, 10_000
SECONDS = 2.0
#: A low thump and noise, twice a second.
_DRUMS = (
    "aevalsrc='0.8*sin(2*PI*55*mod(t,0.5))*exp(-9*mod(t,0.5))"
    "+0.5*(random(0)-0.5)*exp(-40*mod(t+0.25,0.5))':s=44100"
)
_SPEECH = "The quick brown fox jumps over the lazy dog."
KINDS = ("chords", "speech", "drums")


def made(kind: str, folder: Path) -> Numbers:
    """Two seconds of mono audio at 44.1 kHz, float32 in [-1, 1]."""
    source, target = folder / f"{kind}.wav", folder / f"{kind}.f32"
    if kind == "chords":
        chord = ("pluck", "A3", "pluck", "C#4", "pluck", "E4", "pluck", "A4")
        _run("sox", "-R", "-n", "-r", "44100", "-c", "1", source, "synth", str(SECONDS), *chord,
             "remix", "-m", "-", "gain", "-n", "-6")  # fmt: skip
    elif kind == "speech":
        _run("espeak-ng", "-w", source, _SPEECH)
    inputs = ("-f", "lavfi", "-i", _DRUMS) if kind == "drums" else ("-i", source)
    shape = ("-ac", "1", "-ar", str(RATE_HZ), "-af", "apad", "-t", str(SECONDS), "-f", "f32le")
    programs.ffmpeg(*inputs, *shape, target)
    return numpy.fromfile(target, numpy.float32)


def _run(*arguments: object) -> None:
    subprocess.run([str(one) for one in arguments], check=True, capture_output=True)


def magnitudes(samples: Numbers) -> Numbers:
    """Magnitudes of the short-time Fourier transform as in Riffusion, one row per frame.

    Frame k is centered on sample 441 k. The audio is reflected at both ends.
    """
    shape = 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(WINDOW) / WINDOW)
    padded = numpy.pad(samples.astype(float), WINDOW // 2, mode="reflect")
    frames = numpy.stack([padded[at : at + WINDOW] * shape for at in range(0, len(samples), HOP)])
    return abs(numpy.fft.rfft(frames, TRANSFORM, axis=1))


def triangles() -> Numbers:
    """The HTK mel filterbank, not normalized: a row per band, a column per frequency bin."""
    mel = 2595 * numpy.log10(1 + HIGHEST_HZ / 700) * numpy.arange(BANDS + 2) / (BANDS + 1)
    edges = 700 * (10 ** (mel / 2595) - 1)
    hz = numpy.arange(TRANSFORM // 2 + 1) * RATE_HZ / TRANSFORM
    rising = (hz - edges[:-2, None]) / numpy.diff(edges)[:-1, None]
    falling = (edges[2:, None] - hz) / numpy.diff(edges)[1:, None]
    return numpy.maximum(0, numpy.minimum(rising, falling))


def stood_for(drawn: dict[str, Any]) -> Numbers:
    """The mel bands that an image encodes: one row per image column, low bands first."""
    pixels = numpy.frombuffer(drawn["pixels"], numpy.uint8).reshape(BANDS, drawn["width"])
    shown = (255 - pixels[::-1].T.astype(float)) / 255
    return shown**4 * drawn["largest"] / 32_768


def convergence(found: Numbers, wanted: Numbers) -> float:
    """Spectral convergence: the relative distance of two spectra in the Frobenius norm."""
    return float(numpy.linalg.norm(found - wanted) / numpy.linalg.norm(wanted))
