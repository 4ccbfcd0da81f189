"""Five-second sounds, and the images to play."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from benchmarks.measure import BUILD

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = BUILD / "spectrogram"
SECONDS = 5.12
#: Sources for FFmpeg's lavfi.
_SOURCES = {
    "chords": "aevalsrc='0.2*exp(-3*mod(t,0.64))*(sin(2*PI*220*t)+sin(2*PI*277.2*t)"
    "+sin(2*PI*329.6*t)+0.5*sin(2*PI*880*t))':s=44100",
    "drums": "aevalsrc='0.8*sin(2*PI*55*mod(t,0.5))*exp(-9*mod(t,0.5))"
    "+0.5*(random(0)-0.5)*exp(-40*mod(t+0.25,0.5))':s=44100",
}
_SPEECH = "The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore."
KINDS = ("chords", "speech", "drums")


def sound(kind: str) -> Path:
    """Return a file of mono floats at 44.1 kHz; created if missing."""
    path = FOLDER / f"{kind}.f32"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    source = ["-f", "lavfi", "-i", _SOURCES.get(kind, "")]
    if kind == "speech":
        spoken = FOLDER / "speech.wav"
        subprocess.run(["espeak-ng", "-w", str(spoken), _SPEECH], check=True)
        source = ["-i", str(spoken)]
    shape = ["-ac", "1", "-ar", "44100", "-af", "apad", "-t", str(SECONDS), "-f", "f32le"]
    command = ["ffmpeg", "-v", "error", "-y", *source, *shape, str(path)]
    subprocess.run(command, check=True)
    return path


def picture(kind: str) -> Path:
    """Return its image: pixels, and next to them its metadata as JSON."""
    from polymux._native import _media

    path = FOLDER / f"{kind}.pixels"
    drawn = _media.draw_sound(sound(kind).read_bytes(), 1, None)
    path.write_bytes(drawn.pop("pixels"))
    path.with_suffix(".json").write_text(json.dumps(drawn))
    return path
