"""Short songs for tests of the song index: melodies with drums, each generated from a seed."""

from __future__ import annotations

import shutil
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy

from support import programs
from support.cache import Cache, digest
from support.corpus import Corpus
from support.wav_files import wave_file

if TYPE_CHECKING:
    from collections.abc import Callable

RATE = 22_050


@lru_cache(maxsize=32)
def sound(seed: int, seconds: float = 12.0) -> numpy.ndarray:
    """Mono samples from -1 to 1: notes with fading harmonics, some with a drum."""
    random = numpy.random.default_rng(seed)
    samples = numpy.zeros(int(seconds * RATE))
    at = 0.0
    while at < seconds:
        length = random.choice([0.12, 0.18, 0.24, 0.36])
        begin, end = int(at * RATE), min(len(samples), int((at + 2 * length) * RATE))
        time = numpy.arange(end - begin) / RATE
        fading = numpy.exp(-4 * time)
        for _ in range(2):
            pitch = 110 * 2 ** (random.integers(0, 40) / 12) * random.uniform(0.995, 1.005)
            for harmonic in range(1, 6):
                tone = numpy.sin(2 * numpy.pi * pitch * harmonic * time)
                samples[begin:end] += tone * fading / harmonic
        if random.random() < 0.4:
            samples[begin:end] += random.normal(0, 0.4, len(time)) * numpy.exp(-30 * time)
        at += length
    samples = 0.8 * samples / numpy.abs(samples).max()
    samples.flags.writeable = False  # Callers share the cached array.
    return samples


def write(path: Path, samples: numpy.ndarray) -> Path:
    path.write_bytes(wave_file((samples * 32_000).astype("<i2").tobytes(), RATE))
    return path


@cache
def _cache() -> Cache:
    return Corpus().cache


def _made(path: Path, recipe: str, build: Callable[[Path], None]) -> Path:
    """Call `build` once and cache the file it writes."""
    text = f"{recipe} {digest(Path(__file__))}"
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(_cache().make("song", path.suffix, text, build), path)
    return path


def song(path: Path, seed: int, seconds: float = 12.0, **tags: str) -> Path:
    """Write a tagged song file; the ending of `name` selects the format."""
    words = [word for name, text in tags.items() for word in ("-metadata", f"{name}={text}")]

    def build(fresh: Path) -> None:
        plain = write(fresh.with_name("plain.wav"), sound(seed, seconds))
        programs.ffmpeg("-i", plain, *words, fresh)

    return _made(path, f"{seed} {seconds} {words}", build)


def snippet(folder: Path, seed: int, begin_s: float = 3.3, length_s: float = 6.0) -> Path:
    """A part from the middle of a song, with a little noise."""

    def build(fresh: Path) -> None:
        whole = sound(seed)
        piece = whole[int(begin_s * RATE) : int((begin_s + length_s) * RATE)]
        noise = numpy.random.default_rng(seed + 1000).normal(0, 0.02, len(piece))
        write(fresh, numpy.clip(piece + noise, -1, 1))

    return _made(folder / f"snippet-{seed}.wav", f"{seed} {begin_s} {length_s}", build)
