"""Instruments: one note at a time, with partials that waver, drift and decay as real ones do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.song.signals import RATE_HZ, Sound, noise

CONTROL = 64  # samples between two points of a curve
NYQUIST_HZ = RATE_HZ / 2
Curve = npt.NDArray[np.float64]


def hertz(key: float) -> float:
    """The frequency of a MIDI key, 69 being 440 Hz."""
    return float(440.0 * 2.0 ** ((key - 69.0) / 12.0))


@dataclass(frozen=True)
class Timbre:
    """How an instrument sounds.

    Attributes:
        kind: `struck` (partials that decay), `bowed` (a saw that lasts), `pulse` or `triangle`.
        partials: Amplitudes of the harmonics, for `struck`.
        inharmonicity: How far strings push their partials up: 0.0003 is a piano.
        attack_s: Until it is at its loudest.
        decay_s: In which the lowest partial falls by 60 dB.
        decay_tilt: How much faster the higher ones fall; 0 is equally fast.
        release_s: How long it lasts after its end.
        vibrato_hz: How fast the pitch swings.
        vibrato_cents: How far.
        drift_cents: How far the pitch wanders besides.
        unison: Voices at once.
        spread_cents: How far these are apart.
        breath: Noise beside the tone, as a share of its amplitude.
        width: Of a pulse.
    """

    kind: str = "struck"
    partials: tuple[float, ...] = (1.0, 0.5, 0.3)
    inharmonicity: float = 0.0
    attack_s: float = 0.005
    decay_s: float = 3.0
    decay_tilt: float = 0.3
    release_s: float = 0.08
    vibrato_hz: float = 5.0
    vibrato_cents: float = 0.0
    drift_cents: float = 2.0
    unison: int = 1
    spread_cents: float = 8.0
    breath: float = 0.0
    width: float = 0.5


def spread(curve: Curve, frames: int) -> Curve:
    """A curve with a point every CONTROL samples, at every sample."""
    return np.interp(np.arange(frames), np.arange(len(curve)) * CONTROL, curve)


def wander(random: np.random.Generator, points: int, size: float) -> Curve:
    """A slow random curve of about this size; CONTROL samples from point to point."""
    knots = random.normal(0.0, size, points // 40 + 3)
    return np.interp(np.arange(points) / 40.0, np.arange(len(knots)), knots)


def bend(random: np.random.Generator, timbre: Timbre, frames: int) -> Curve:
    """By how many cents a note is off its pitch, at the points of its curve."""
    points = frames // CONTROL + 2
    times = np.arange(points) * CONTROL / RATE_HZ
    cents = wander(random, points, timbre.drift_cents) + random.normal(0, timbre.drift_cents)
    if timbre.vibrato_cents:
        speed = timbre.vibrato_hz * (1.0 + wander(random, points, 0.06))
        phase = np.cumsum(speed) * CONTROL / RATE_HZ + random.uniform()
        depth = timbre.vibrato_cents * np.clip((times - 0.15) / 0.35, 0.0, 1.0)
        cents = cents + depth * (1.0 + wander(random, points, 0.15)) * np.sin(2 * np.pi * phase)
    return cents


def phases(hz: float, cents: Curve, frames: int, start: float) -> Curve:
    """How many cycles have passed at every sample, without the whole ones."""
    speed = hz * 2.0 ** (spread(cents, frames) / 1200.0) / RATE_HZ
    return np.mod(np.cumsum(speed) + start, 1.0)


def envelope(timbre: Timbre, frames: int, held: int) -> Sound:
    """Rise, and fall after the end."""
    places = np.arange(frames, dtype=np.float32)
    rise = np.minimum(places / max(timbre.attack_s * RATE_HZ, 1.0), 1.0)
    fall = np.clip(1.0 - (places - held) / max(timbre.release_s * RATE_HZ, 1.0), 0.0, 1.0)
    return np.asarray(rise * fall * fall, np.float32)


def struck(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """Partials that decay, the higher ones faster, each with a wobble of its own."""
    cents = bend(random, timbre, frames)
    base = phases(hz, cents, frames, random.uniform())
    places = np.arange(frames, dtype=np.float32) / RATE_HZ
    lasting = timbre.decay_s * (220.0 / max(hz, 40.0)) ** 0.4
    result = np.zeros(frames, np.float32)
    for index, level in enumerate(timbre.partials):
        number = index + 1
        stretch = float(np.sqrt(1.0 + timbre.inharmonicity * number * number))
        if hz * number * stretch > NYQUIST_HZ * 0.95:
            break
        cycles = base * number
        if timbre.inharmonicity or timbre.unison > 1:
            beat = hz * number * (stretch - 1.0) + random.uniform(-0.4, 0.4) * timbre.unison
            cycles = cycles + places * beat
        tone = np.sin((2 * np.pi * np.mod(cycles, 1.0)).astype(np.float32))
        fall = 6.9 / lasting * (1.0 + timbre.decay_tilt * index) * random.uniform(0.85, 1.15)
        swing = 1.0 + 0.1 * np.sin(np.float32(random.uniform(2.0, 12.0)) * places)
        result += np.float32(level) * tone * np.exp(-np.float32(fall) * places) * swing
    return result


def saw(cycles: Curve, step: float) -> Sound:
    """A sawtooth without the partials that would fold back, from phases and cycles per sample."""
    place = cycles.astype(np.float32)
    value = 2.0 * place - 1.0
    early, late = place < step, place > 1.0 - step
    first, last = place[early] / step, (place[late] - 1.0) / step
    value[early] -= 2.0 * first - first * first - 1.0
    value[late] -= last * last + 2.0 * last + 1.0
    return value


def bowed(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """A sawtooth, or several that beat against each other."""
    result = np.zeros(frames, np.float32)
    for voice in range(timbre.unison):
        off = (voice - (timbre.unison - 1) / 2.0) * timbre.spread_cents
        cents = bend(random, timbre, frames) + off
        result += saw(phases(hz, cents, frames, random.uniform()), hz / RATE_HZ)
    return result / np.float32(np.sqrt(timbre.unison))


def pulse(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """A rectangle: two sawtooths, one of them later."""
    cycles = phases(hz, bend(random, timbre, frames), frames, 0.0)
    step = hz / RATE_HZ
    later = np.mod(cycles + timbre.width, 1.0)
    return np.asarray(saw(cycles, step) - saw(later, step), np.float32) * np.float32(0.5)


def triangle(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """A triangle in the sixteen steps of old machines."""
    cycles = phases(hz, bend(random, timbre, frames), frames, 0.0)
    return np.asarray(np.round((4.0 * np.abs(cycles - 0.5) - 1.0) * 7.5) / 7.5, np.float32)


KINDS = {"struck": struck, "bowed": bowed, "pulse": pulse, "triangle": triangle}


def note(
    random: np.random.Generator, timbre: Timbre, hz: float, seconds: float, velocity: float
) -> Sound:
    """One note, with the time that it needs to end.

    Args:
        random: What is different each time it is played.
        timbre: The instrument.
        hz: The pitch.
        seconds: How long it is held.
        velocity: 0 to 1.
    """
    held = int(seconds * RATE_HZ)
    frames = held + int(timbre.release_s * RATE_HZ) + 1
    tone = KINDS[timbre.kind](random, timbre, hz, frames)
    if timbre.breath:
        tone += noise(random, frames) * np.float32(timbre.breath)
    return tone * envelope(timbre, frames, held) * np.float32(velocity)


def falling(
    count: int, slope: float, random: np.random.Generator, odd: float = 1.0
) -> tuple[float, ...]:
    """Amplitudes of harmonics that fall with a power of their number, each a little off.

    Args:
        count: Harmonics.
        slope: The power.
        random: By how much each is off.
        odd: How loud the even ones are.
    """
    numbers = np.arange(1, count + 1)
    levels = numbers**-slope * random.uniform(0.6, 1.4, count)
    levels[1::2] *= odd
    return tuple(float(level) for level in levels)
