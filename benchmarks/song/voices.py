"""Instruments: single notes with partials that waver, drift and decay like real ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.song.signals import RATE_HZ, Sound, noise

CONTROL = 64  # samples between two points of a curve
NYQUIST_HZ = RATE_HZ / 2
Curve = npt.NDArray[np.float64]


def hertz(key: float) -> float:
    """Return the frequency of a MIDI key; 69 is 440 Hz."""
    return float(440.0 * 2.0 ** ((key - 69.0) / 12.0))


@dataclass(frozen=True)
class Timbre:
    """The sound of an instrument.

    Attributes:
        kind: `struck` (decaying partials), `bowed` (a sustained sawtooth), `pulse` or `triangle`.
        partials: Amplitudes of the harmonics, for `struck`.
        inharmonicity: How much string stiffness raises the partials: 0.0003 is a piano.
        attack_s: Time to the peak.
        decay_s: Time in which the lowest partial falls by 60 dB.
        decay_tilt: How much faster higher partials fall; 0 is equally fast.
        release_s: Time to silence after the end of the note.
        vibrato_hz: Vibrato rate.
        vibrato_cents: Vibrato depth.
        drift_cents: Additional random pitch drift.
        unison: Number of simultaneous voices.
        spread_cents: Detuning between these.
        breath: Noise as a share of the tone's amplitude.
        width: Pulse width.
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
    """Interpolate a curve with a point every CONTROL samples."""
    return np.interp(np.arange(frames), np.arange(len(curve)) * CONTROL, curve)


def wander(random: np.random.Generator, points: int, size: float) -> Curve:
    """Return a slow random curve of about this size, with a point every CONTROL samples."""
    knots = random.normal(0.0, size, points // 40 + 3)
    return np.interp(np.arange(points) / 40.0, np.arange(len(knots)), knots)


def bend(random: np.random.Generator, timbre: Timbre, frames: int) -> Curve:
    """Return the pitch deviation of a note in cents, at the points of its curve."""
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
    """Return the fractional phase in cycles at every sample."""
    speed = hz * 2.0 ** (spread(cents, frames) / 1200.0) / RATE_HZ
    return np.mod(np.cumsum(speed) + start, 1.0)


def envelope(timbre: Timbre, frames: int, held: int) -> Sound:
    """Return the attack and release envelope."""
    places = np.arange(frames, dtype=np.float32)
    rise = np.minimum(places / max(timbre.attack_s * RATE_HZ, 1.0), 1.0)
    fall = np.clip(1.0 - (places - held) / max(timbre.release_s * RATE_HZ, 1.0), 0.0, 1.0)
    return np.asarray(rise * fall * fall, np.float32)


def struck(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """Return decaying partials; higher ones decay faster, and each wavers independently."""
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
    """Return a band-limited sawtooth, from phases and cycles per sample."""
    place = cycles.astype(np.float32)
    value = 2.0 * place - 1.0
    early, late = place < step, place > 1.0 - step
    first, last = place[early] / step, (place[late] - 1.0) / step
    value[early] -= 2.0 * first - first * first - 1.0
    value[late] -= last * last + 2.0 * last + 1.0
    return value


def bowed(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """Return a sawtooth, or several slightly detuned ones."""
    result = np.zeros(frames, np.float32)
    for voice in range(timbre.unison):
        off = (voice - (timbre.unison - 1) / 2.0) * timbre.spread_cents
        cents = bend(random, timbre, frames) + off
        result += saw(phases(hz, cents, frames, random.uniform()), hz / RATE_HZ)
    return result / np.float32(np.sqrt(timbre.unison))


def pulse(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """Return a pulse wave: the difference of two shifted sawtooths."""
    cycles = phases(hz, bend(random, timbre, frames), frames, 0.0)
    step = hz / RATE_HZ
    later = np.mod(cycles + timbre.width, 1.0)
    return np.asarray(saw(cycles, step) - saw(later, step), np.float32) * np.float32(0.5)


def triangle(random: np.random.Generator, timbre: Timbre, hz: float, frames: int) -> Sound:
    """Return a triangle in the sixteen steps of old sound chips."""
    cycles = phases(hz, bend(random, timbre, frames), frames, 0.0)
    return np.asarray(np.round((4.0 * np.abs(cycles - 0.5) - 1.0) * 7.5) / 7.5, np.float32)


KINDS = {"struck": struck, "bowed": bowed, "pulse": pulse, "triangle": triangle}


def note(
    random: np.random.Generator, timbre: Timbre, hz: float, seconds: float, velocity: float
) -> Sound:
    """Return one note, including its release.

    Args:
        random: Source of the differences between repetitions.
        timbre: The instrument.
        hz: Pitch.
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
    """Return amplitudes of harmonics that fall with a power of their number, with random
    deviations.

    Args:
        count: Number of harmonics.
        slope: The power.
        random: Source of the deviations.
        odd: Level of the even harmonics.
    """
    numbers = np.arange(1, count + 1)
    levels = numbers**-slope * random.uniform(0.6, 1.4, count)
    levels[1::2] *= odd
    return tuple(float(level) for level in levels)
