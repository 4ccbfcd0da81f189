"""Singing and speaking voices: glottal pulses and breath, filtered by moving formants."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.song.signals import (
    RATE_HZ,
    Sound,
    high_pass,
    moving_filter,
    noise,
    peaked,
    power,
    spectrum_filter,
)
from benchmarks.song.voices import CONTROL, Curve, hertz, saw, spread, wander

# Formants in Hz per vowel: a, e, i, o, u, and the open vowel of "but".
VOWELS = np.array(
    [
        [750, 1200, 2600, 3400],
        [480, 1900, 2550, 3500],
        [290, 2250, 3000, 3700],
        [460, 850, 2500, 3300],
        [320, 700, 2400, 3300],
        [600, 1300, 2450, 3400],
    ],
    np.float64,
)
WIDTHS_HZ = np.array([80.0, 100.0, 140.0, 200.0])
LEVELS = np.array([1.0, 0.6, 0.35, 0.2])


@dataclass(frozen=True)
class Tone:
    """One sung note: start and length in seconds, key, and loudness from 0 to 1."""

    start_s: float
    seconds: float
    key: float
    velocity: float = 0.8


@dataclass(frozen=True)
class Mouth:
    """A voice: vocal tract size, tension, breathiness and vibrato."""

    size: float = 1.0
    breath: float = 0.02
    vibrato_hz: float = 5.4
    vibrato_cents: float = 35.0


def mouth(random: np.random.Generator) -> Mouth:
    """Return a random voice."""
    return Mouth(
        size=float(random.uniform(0.88, 1.2)),
        breath=float(random.uniform(0.01, 0.06)),
        vibrato_hz=float(random.uniform(4.6, 6.4)),
        vibrato_cents=float(random.uniform(15.0, 60.0)),
    )


def resonated(source: Sound, resonances: npt.NDArray[np.float64], size: float) -> Sound:
    """Filter a source with formants (points, 4), one point every CONTROL samples."""

    def gains(
        times: npt.NDArray[np.float64], hz: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        places = times[:, 0] * RATE_HZ / CONTROL
        total = np.full((len(times), hz.shape[1]), 0.004)
        for number in range(4):
            points = np.interp(places, np.arange(len(resonances)), resonances[:, number])
            distance = (hz - size * points[:, None]) / WIDTHS_HZ[number]
            total += LEVELS[number] / (1.0 + distance * distance)
        return total

    return moving_filter(source, gains)


def smooth(curve: Curve, points: int) -> Curve:
    """Smooth a curve."""
    weights = np.hanning(points + 2)[1:-1]
    padded = np.pad(curve, (points // 2, points - 1 - points // 2), mode="edge")
    return np.convolve(padded, weights / weights.sum(), "valid")


def pulses(hz: Curve, frames: int) -> Sound:
    """Return a sawtooth with one pitch value every CONTROL samples."""
    steps = spread(hz, frames) / RATE_HZ
    return saw(np.mod(np.cumsum(steps), 1.0), float(np.mean(steps)))


def sung(random: np.random.Generator, tones: list[Tone], frames: int, who: Mouth) -> Sound:
    """Sing a melody with glides, vibrato, breath and consonants, in vowels that change with the
    notes.

    Args:
        random: Source of the variations.
        tones: In order of their starts, without overlaps.
        frames: Length.
        who: The voice.
    """
    points = frames // CONTROL + 2
    keys, loud, hiss = (np.zeros(points) for _ in range(3))
    vowels = np.zeros((points, 4))
    swing = np.zeros(points)
    keys[:] = tones[0].key if tones else 60.0
    vowels[:] = VOWELS[0]
    for tone in tones:
        first = max(int(tone.start_s * RATE_HZ / CONTROL), 0)
        last = min(int((tone.start_s + tone.seconds) * RATE_HZ / CONTROL), points)
        if last - first < 6:
            continue
        keys[first:] = tone.key
        vowels[first:] = VOWELS[random.integers(len(VOWELS))]
        loud[first:last] = tone.velocity * random.uniform(0.8, 1.0)
        loud[first : first + 4] *= random.choice([0.05, 0.4, 1.0])
        swing[first:last] = np.clip((np.arange(last - first) - 70.0) / 120.0, 0.0, 1.0)
        if random.uniform() < 0.35:
            hiss[max(first - 22, 0) : first] = random.uniform(0.1, 0.5)
        breath = max(first - 120, 0)
        if not loud[breath:first].any():
            hiss[breath:first] += 0.04
    cents = wander(random, points, 9.0)
    speed = who.vibrato_hz * (1.0 + wander(random, points, 0.07))
    cents += who.vibrato_cents * swing * np.sin(2 * np.pi * np.cumsum(speed) * CONTROL / RATE_HZ)
    hz = 440.0 * 2.0 ** ((smooth(keys, 25) - 69.0 + cents / 100.0) / 12.0)
    return spoken_out(random, hz, loud, hiss, vowels, who, frames)


def spoken_out(
    random: np.random.Generator,
    hz: Curve,
    loud: Curve,
    hiss: Curve,
    vowels: npt.NDArray[np.float64],
    who: Mouth,
    frames: int,
) -> Sound:
    """Synthesize a voice from curves: pitch, loudness of vowels and of consonants, formants."""
    source = pulses(hz, frames) + noise(random, frames) * np.float32(who.breath * 4)
    source *= spread(smooth(loud, 9), frames).astype(np.float32)
    shapes = np.stack([smooth(vowels[:, number], 17) for number in range(4)], axis=1)
    voice = resonated(source, shapes, who.size)
    consonants = spectrum_filter(noise(random, frames), high_pass(2500.0))
    voice += consonants * spread(smooth(hiss, 5), frames).astype(np.float32) * np.float32(0.05)
    return peaked(voice, 0.7)


def speech(random: np.random.Generator, frames: int) -> Sound:
    """Return speech: syllables, falling pitch in each phrase, and pauses between phrases.

    Returns:
        Sound of unit power.
    """
    points = frames // CONTROL + 2
    keys, loud, hiss = (np.zeros(points) for _ in range(3))
    vowels = np.zeros((points, 4))
    vowels[:] = VOWELS[5]
    who = mouth(random)
    middle = random.uniform(42.0, 57.0)
    place = int(random.integers(0, 120))
    while place < points:
        count = int(random.integers(4, 14))
        for number in range(count):
            length = int(random.uniform(0.12, 0.3) * RATE_HZ / CONTROL)
            end = min(place + length, points)
            keys[place:end] = middle + 4.0 - 7.0 * number / count + random.normal(0, 1.2)
            vowels[place:end] = VOWELS[random.integers(len(VOWELS))]
            rest = int(length * random.uniform(0.15, 0.4))
            loud[place + rest : end] = random.uniform(0.4, 1.0)
            if random.uniform() < 0.5:
                hiss[place : min(place + rest, end)] = random.uniform(0.1, 0.9)
            place = end
        place += int(random.uniform(0.15, 0.9) * RATE_HZ / CONTROL)
    keys[keys == 0] = middle
    cents = wander(random, points, 20.0)
    hz = np.array([hertz(0.0)]) * 2.0 ** ((smooth(keys, 15) + cents / 100.0) / 12.0)
    voice = spoken_out(random, hz, loud, hiss, vowels, who, frames)
    return voice / np.float32(np.sqrt(power(voice)) or 1.0)
