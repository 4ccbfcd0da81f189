"""Slowly generated noises, stored with the set: a minute of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.song.signals import RATE_HZ, Sound, noise
from benchmarks.song.speech import speech

if TYPE_CHECKING:
    from collections.abc import Callable


def babble(random: np.random.Generator, frames: int) -> Sound:
    """Six to eight people who speak at the same time."""
    sound = np.zeros(frames, np.float32)
    for _ in range(int(random.integers(6, 9))):
        sound += speech(random, frames) * np.float32(random.uniform(0.6, 1.0))
    return sound


def street(random: np.random.Generator, frames: int) -> Sound:
    """Traffic: a swelling rumble, passing cars, a horn, steps."""
    sound = noise(random, frames, 5.0)
    swell = np.interp(np.arange(frames), np.linspace(0, frames, 12), random.uniform(0.5, 1.5, 12))
    sound *= swell.astype(np.float32)
    places = np.arange(frames, dtype=np.float32) / RATE_HZ
    seconds = frames / RATE_HZ
    for _ in range(int(seconds / 4)):
        middle, width = random.uniform(0, seconds), random.uniform(0.5, 2.0)
        shape = np.exp(-(((places - middle) / width) ** 2)).astype(np.float32)
        sound += noise(random, frames, 3.0) * shape * np.float32(random.uniform(0.5, 2.5))
    for _ in range(int(seconds / 12)):
        start, lasting = random.uniform(0, seconds), random.uniform(0.2, 0.9)
        shape = ((places > start) & (places < start + lasting)).astype(np.float32)
        pitch = random.uniform(300, 500)
        for hz in (pitch, pitch * 1.26):
            sound += (0.5 * np.sign(np.sin(2 * np.pi * hz * places)) * shape).astype(np.float32)
    for start in random.uniform(0, seconds, int(seconds * 1.5)):
        first = int(start * RATE_HZ)
        step = noise(random, 1500, 3.0) * np.exp(-np.arange(1500) / 250.0).astype(np.float32)
        sound[first : first + 1500] += step[: frames - first]
    return np.asarray(sound, np.float32)


KINDS: dict[str, Callable[[np.random.Generator, int], Sound]] = {
    "babble": babble,
    "street": street,
    "speech": speech,
}
