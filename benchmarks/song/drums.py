"""Drums: a kit of samples per song, patterns on a grid of sixteenth notes, and their variations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.song.signals import RATE_HZ, Sound, high_pass, low_pass, noise, spectrum_filter

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 16  # per bar of four quarter notes
TAKES = 3  # variants of each drum, because a player never repeats a sound exactly


@dataclass(frozen=True)
class Hit:
    """A hit: time in beats, drum, and strength from 0 to 1."""

    beat: float
    drum: str
    velocity: float


def times(seconds: float) -> Sound:
    """Return the time of each sample."""
    return np.arange(int(seconds * RATE_HZ), dtype=np.float32) / np.float32(RATE_HZ)


def kick(random: np.random.Generator) -> Sound:
    """A tone that falls quickly, and a click."""
    place = times(random.uniform(0.25, 0.5))
    low, high = random.uniform(42, 62), random.uniform(120, 260)
    speed = random.uniform(18, 45)
    phase = low * place + (high - low) / speed * (1 - np.exp(-speed * place))
    body = np.sin(2 * np.pi * phase) * np.exp(-place * random.uniform(7, 16))
    click = noise(random, len(place)) * np.exp(-place * 400) * random.uniform(0.05, 0.3)
    return np.asarray((body + click) * 0.6, np.float32)


def snare(random: np.random.Generator) -> Sound:
    """Two modes of a drumhead, and the snare wires."""
    place = times(0.3)
    first = random.uniform(160, 230)
    body = np.sin(2 * np.pi * first * place) + 0.6 * np.sin(
        2 * np.pi * first * random.uniform(1.5, 1.85) * place
    )
    wires = spectrum_filter(noise(random, len(place)), high_pass(random.uniform(900, 2500), 1.0))
    sound = 0.5 * body * np.exp(-place * random.uniform(18, 35))
    return np.asarray(
        (1.3 * sound + 0.9 * wires * np.exp(-place * random.uniform(13, 28))), np.float32
    )


def cymbal(random: np.random.Generator, seconds: float, decay: float, tone: float) -> Sound:
    """Metal: many inharmonic partials, and noise."""
    place = times(seconds)
    base = random.uniform(280, 420) * tone
    metal = np.zeros(len(place), np.float32)
    for ratio in random.uniform(1.0, 12.0, 14):
        metal += np.sign(np.sin(2 * np.pi * base * ratio * place + random.uniform(0, 6)))
    rough = np.asarray(metal / 5 + noise(random, len(place)), np.float32)
    bright = spectrum_filter(rough, high_pass(random.uniform(4500, 7000)))
    return np.asarray(0.5 * bright * np.exp(-place * decay), np.float32)


def clap(random: np.random.Generator) -> Sound:
    """Several short bursts, and a tail."""
    place = times(0.25)
    shape = np.exp(-place * random.uniform(18, 30)) * 0.6
    for number in range(4):
        start = number * random.uniform(0.008, 0.012)
        shape += np.where(place >= start, np.exp(-(place - start) * 180), 0)
    sound = spectrum_filter(noise(random, len(place)), low_pass(random.uniform(2500, 5000)))
    return np.asarray(spectrum_filter(sound, high_pass(700)) * shape, np.float32)


def tom(random: np.random.Generator, hz: float) -> Sound:
    """A drumhead whose pitch falls."""
    place = times(0.4)
    pitch = hz * random.uniform(0.9, 1.1)
    phase = pitch * (place + 0.25 / 20 * (1 - np.exp(-20 * place)))
    skin = np.sin(2 * np.pi * phase) + 0.35 * np.sin(2 * np.pi * phase * 1.59)
    stick = noise(random, len(place), 3.0) * np.exp(-place * 60) * 0.3
    return np.asarray(skin * np.exp(-place * random.uniform(7, 12)) + stick, np.float32)


def stick(random: np.random.Generator, hz: float, decay: float) -> Sound:
    """Wood on a rim, a cowbell, a block."""
    place = times(0.15)
    tone = np.sin(2 * np.pi * hz * place) + 0.7 * np.sin(2 * np.pi * hz * 1.47 * place)
    hit = noise(random, len(place)) * np.exp(-place * 300)
    return np.asarray((tone * np.exp(-place * decay) + hit) * 0.5, np.float32)


MAKERS: dict[str, Callable[[np.random.Generator], Sound]] = {
    "kick": kick,
    "snare": snare,
    "hat": lambda random: cymbal(random, 0.12, random.uniform(45, 90), 1.0),
    "open": lambda random: cymbal(random, 0.5, random.uniform(7, 14), 1.0),
    "ride": lambda random: cymbal(random, 0.9, random.uniform(4, 7), 1.2),
    "crash": lambda random: cymbal(random, 1.8, random.uniform(2, 4), 0.8),
    "clap": clap,
    "tom": lambda random: tom(random, 95),
    "high tom": lambda random: tom(random, 150),
    "rim": lambda random: stick(random, random.uniform(500, 1900), random.uniform(40, 90)),
    "bell": lambda random: stick(random, random.uniform(500, 800), random.uniform(12, 25)),
    "shaker": lambda random: cymbal(random, 0.09, random.uniform(40, 70), 2.0) * np.float32(0.6),
}


def kit(seeded: Callable[[str], np.random.Generator]) -> dict[str, list[Sound]]:
    """Return the drums of a song, with TAKES slightly different sounds each.

    Args:
        seeded: Returns the random generator for a drum's name.
    """
    made = {}
    for name, maker in MAKERS.items():
        random = seeded(name)
        clean = maker(random)
        made[name] = [
            spectrum_filter(clean, low_pass(random.uniform(6000, 14000), 0.5)) for _ in range(TAKES)
        ]
    return made


# Usual hits on sixteenth notes: uppercase letters are loud, lowercase letters are soft, dots are
# rests.
BEATS: dict[str, list[dict[str, str]]] = {
    "rock": [
        {"kick": "K.....K.K.......", "snare": "....S.......S...", "hat": "H.h.H.h.H.h.H.h."},
        {"kick": "K..K..K...K.....", "snare": "....S.......S..s", "ride": "H.h.H.hhH.h.H.h."},
        {"kick": "K.K.....K.K..K..", "snare": "....S.......S...", "open": "H...H...H...H..."},
    ],
    "pop": [
        {"kick": "K.....K.....K...", "clap": "....S.......S...", "hat": "H.h.H.h.H.h.H.hh"},
        {"kick": "K..K......K.....", "snare": "....S.......S...", "shaker": "HhhhHhhhHhhhHhhh"},
    ],
    "edm": [
        {"kick": "K...K...K...K...", "clap": "....S.......S...", "open": "..H...H...H...H."},
        {"kick": "K...K...K...K..K", "rim": "..S..S....S..S..", "hat": "HhHhHhHhHhHhHhHh"},
        {"kick": "K...K...K...K...", "snare": "....S.......S.s.", "shaker": "H.hHH.hHH.hHH.hH"},
    ],
    "lo-fi": [
        {"kick": "K......K.K......", "snare": "....S.......S...", "hat": "H.h.H.hhH.h.H.h."},
        {"kick": "K.K.......K..K..", "rim": "....S.......S...", "hat": "H.hhH.h.H.hhH.h."},
    ],
    "drums": [
        {"kick": "K..K..K...K.K...", "snare": "..s.S..s.s..S..s", "hat": "H.hhH.h.H.hhH.hh"},
        {"kick": "K.....K.K..K....", "tom": "..H..H....h..H..", "ride": "H.h.H.h.H.h.H.h.",
         "snare": "....S..s....S..."},
        {"high tom": "H..h..H..h..H.h.", "tom": "..H...H...H...Hh", "bell": "H...H...H...H...",
         "kick": "K.......K......."},
        {"kick": "K...K...K...K...", "rim": "h.hS..hSh.hS.hS.", "shaker": "HhhHhhHhHhhHhhHh",
         "high tom": "......H.......HH"},
    ],
}  # fmt: skip


def bar(random: np.random.Generator, family: str) -> list[Hit]:
    """Return a bar of this family with random changes; beats count from 0."""
    choice = BEATS[family]
    hits = []
    for drum, steps in choice[int(random.integers(len(choice)))].items():
        for step, letter in enumerate(steps):
            struck = letter != "."
            if random.uniform() < 0.07:
                struck = not struck
            if struck:
                hard = letter.isupper() or not letter.isalpha()
                hits.append(
                    Hit(
                        step / 4,
                        drum,
                        float(random.uniform(*((0.75, 1.0) if hard else (0.3, 0.55)))),
                    )
                )
    return hits


def fill(random: np.random.Generator) -> list[Hit]:
    """Return the end of a section: half a bar of toms, then a crash."""
    hits = [Hit(0.0, "kick", 0.9), Hit(1.0, "snare", 0.9)]
    for step in range(8, STEPS):
        if random.uniform() < 0.8:
            drum = str(random.choice(["snare", "high tom", "tom"]))
            hits.append(Hit(step / 4, drum, float(random.uniform(0.5, 1.0))))
    return [*hits, Hit(4.0, "crash", 0.8)]
