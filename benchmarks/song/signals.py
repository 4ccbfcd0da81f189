"""Signal processing with numpy alone: noise, filters, rooms, speed.

A `Sound` is mono float32, or stereo with two rows, at RATE_HZ and with full scale at 1.
"""

from __future__ import annotations

import io
import wave
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

RATE_HZ = 22_050
Sound = npt.NDArray[np.float32]
Curve = npt.NDArray[Any]
# Maps times in seconds (a column) and frequencies in Hz (a row) to gains.
Gains = Callable[[Curve, Curve], Curve]
# Maps frequencies in Hz to gains.
Filter = Callable[[Curve], Curve]
TAPS = 32
PHASES = 1024


def generator(*parts: int | str) -> np.random.Generator:
    """Return a random generator that depends only on these parts, on every machine."""
    words = [part if isinstance(part, int) else zlib.crc32(part.encode()) for part in parts]
    return np.random.default_rng([word & 0xFFFFFFFF for word in words])


def decibels(level: float) -> float:
    """Convert decibels to an amplitude factor."""
    return float(10.0 ** (level / 20.0))


def power(sound: Sound) -> float:
    """Return the mean square over all channels."""
    return float(np.mean(np.square(sound), dtype=np.float64)) if sound.size else 0.0


def mono(sound: Sound) -> Sound:
    """Return the mean of the channels."""
    return sound if sound.ndim == 1 else sound.mean(axis=0, dtype=np.float32)


def fitted(sound: Sound, frames: int) -> Sound:
    """Cut or pad with silence to exactly `frames` frames."""
    if len(sound) >= frames:
        return sound[:frames]
    return np.concatenate([sound, np.zeros(frames - len(sound), np.float32)])


def spectrum_filter(sound: Sound, gain: Filter) -> Sound:
    """Apply a constant zero-phase filter, given by its gain at frequencies in Hz."""
    frames = sound.shape[-1]
    size = fast_size(frames + RATE_HZ // 20)
    spectrum = np.fft.rfft(sound, size)
    spectrum *= np.asarray(gain(np.fft.rfftfreq(size, 1 / RATE_HZ)), np.float32)
    return np.asarray(np.fft.irfft(spectrum, size)[..., :frames], np.float32)


def fast_size(least: int) -> int:
    """Return the smallest length of at least `least` that is fast for a Fourier transform."""
    best = 1 << (least - 1).bit_length()
    for factor in (3, 5, 9, 15):
        size = factor
        while size < least:
            size *= 2
        best = min(best, size)
    return best


def moving_filter(sound: Sound, gains: Gains, window: int = 512) -> Sound:
    """Apply a time-varying filter with overlapping windows."""
    hop = window // 2
    slope = np.sin(np.pi * (np.arange(window) + 0.5) / window).astype(np.float32)
    padded = np.concatenate([np.zeros(hop, np.float32), sound, np.zeros(2 * window, np.float32)])
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop] * slope
    times = np.arange(len(frames))[:, None] * hop / RATE_HZ
    spectra = np.fft.rfft(frames)
    spectra *= gains(times, np.fft.rfftfreq(window, 1 / RATE_HZ)[None, :]).astype(np.float32)
    pieces = np.fft.irfft(spectra, window).astype(np.float32) * slope
    result = np.zeros((len(pieces) + 1) * hop, np.float32)
    result[: len(pieces) * hop] += pieces[:, :hop].ravel()
    result[hop:] += pieces[:, hop:].ravel()
    return result[hop : hop + len(sound)]


def low_pass(corner_hz: float, order: float = 2.0) -> Filter:
    """Return the gain of a filter that falls by 6 dB times its order per octave above its
    corner."""
    return lambda hz: 1.0 / np.sqrt(1.0 + (hz / corner_hz) ** (2 * order))


def high_pass(corner_hz: float, order: float = 2.0) -> Filter:
    """Return the gain of a filter that falls by 6 dB times its order per octave below its
    corner."""
    return lambda hz: 1.0 / np.sqrt(1.0 + (corner_hz / np.maximum(hz, 1e-3)) ** (2 * order))


def uneven(random: np.random.Generator, spread_db: float) -> Filter:
    """Return the gain of a resonating body: smooth peaks and dips over about nine octaves."""
    points = random.normal(0.0, spread_db, 28)
    return lambda hz: (
        10.0
        ** (np.interp(np.log2(np.maximum(hz, 30.0) / 30.0) * 3.0, np.arange(28), points) / 20.0)
    )


def noise(random: np.random.Generator, frames: int, slope_db: float = 0.0) -> Sound:
    """Return noise of unit power that falls by `slope_db` per octave; pink noise has 3."""
    white = random.standard_normal(frames, np.float32)
    if slope_db:
        exponent = slope_db / 20.0 / np.log10(2.0)
        white = spectrum_filter(white, lambda hz: (np.maximum(hz, 20.0) / 20.0) ** -exponent)
        white /= np.float32(np.sqrt(power(white)) or 1.0)
    return white


def mixed_at(sound: Sound, other: Sound, ratio_db: float) -> Sound:
    """Mix two sounds at a ratio in dB, over the full band and length."""
    louder = np.sqrt(power(sound) / max(power(other), 1e-12)) * decibels(-ratio_db)
    return sound + other * np.float32(louder)


def room(random: np.random.Generator, sound: Sound, decay_s: float, direct_db: float) -> Sound:
    """Return the sound in a room.

    Args:
        random: Source of the room's echoes.
        sound: Mono sound.
        decay_s: Time in which the middle frequencies fall by 60 dB; high ones fall faster.
        direct_db: Power of the direct sound relative to the reflections.
    """
    frames = int(decay_s * 1.2 * RATE_HZ)
    times = np.arange(frames) / RATE_HZ
    tail = random.standard_normal(frames) * np.exp(-6.9 * times / decay_s)
    dull = np.convolve(random.standard_normal(frames), np.ones(4) / 2.0, "same")
    tail = 0.5 * tail * np.exp(-4.0 * times / decay_s) + dull * np.exp(-6.9 * times / decay_s)
    tail[: int(0.003 * RATE_HZ)] = 0.0
    for _ in range(8):  # early echoes are louder than the diffuse ones
        place = int(random.uniform(0.003, 0.04) * RATE_HZ)
        tail[place] += random.choice([-1.0, 1.0]) * random.uniform(1.0, 4.0)
    tail *= decibels(-direct_db) / np.sqrt(np.sum(tail**2))
    tail[0] += 1.0
    return convolved(sound, tail.astype(np.float32))


def convolved(sound: Sound, answer: Sound) -> Sound:
    """Convolve the sound with an impulse response; keeps the length."""
    size = fast_size(len(sound) + len(answer))
    both = np.fft.rfft(sound, size) * np.fft.rfft(answer, size)
    return np.asarray(np.fft.irfft(both, size)[: len(sound)], np.float32)


def sinc_table(cutoff: float) -> npt.NDArray[np.float32]:
    """Return interpolation kernels for fractions of a sample, up to this share of the band."""
    places = np.arange(TAPS)[None, :] - (TAPS // 2 - 1) - np.arange(PHASES)[:, None] / PHASES
    window = np.cos(np.pi * places / (TAPS + 1)) ** 2
    return np.asarray(cutoff * np.sinc(cutoff * places) * window, np.float32)


def at_speed(sound: Sound, speed: float) -> Sound:
    """Play the sound at a different speed, which also shifts its pitch."""
    frames = int((len(sound) - TAPS) / speed)
    places = np.arange(frames) * speed
    whole = places.astype(np.int64)
    phases = ((places - whole) * PHASES).astype(np.int64)
    table = sinc_table(min(1.0, 1.0 / speed) * 0.97)
    padded = np.concatenate([np.zeros(TAPS // 2 - 1, np.float32), sound])
    result = np.zeros(frames, np.float32)
    for tap in range(TAPS):
        result += padded[whole + tap] * table[phases, tap]
    return result


def companded(sound: Sound) -> Sound:
    """Encode as 8-bit mu-law and decode, as telephones do."""
    limit = 255.0
    folded = np.log1p(limit * np.abs(np.clip(sound, -1, 1))) / np.log1p(limit)
    coded = np.round(folded * 127.0) / 127.0
    return np.asarray(np.sign(sound) * np.expm1(coded * np.log1p(limit)) / limit, np.float32)


def compressed(sound: Sound, threshold_db: float, ratio: float) -> Sound:
    """Compress the dynamics: levels over the threshold grow more slowly."""
    level = np.abs(mono(sound))
    block = RATE_HZ // 100
    peaks = np.maximum.reduceat(level, np.arange(0, len(level), block))
    smooth = np.convolve(np.pad(peaks, 4, mode="edge"), np.ones(9) / 9.0, "valid")
    over_db = np.maximum(20 * np.log10(np.maximum(smooth, 1e-6)) - threshold_db, 0.0)
    gains = 10.0 ** (-over_db * (1 - 1 / ratio) / 20.0)
    places = np.arange(len(level)) / block - 0.5
    return np.asarray(sound * np.interp(places, np.arange(len(gains)), gains), np.float32)


def peaked(sound: Sound, peak: float) -> Sound:
    """Scale to this peak."""
    return sound * np.float32(peak / max(float(np.max(np.abs(sound))), 1e-9))


def unclipped(sound: Sound) -> Sound:
    """Scale down if the sound would clip."""
    return peaked(sound, 0.97) if float(np.max(np.abs(sound), initial=0.0)) > 0.97 else sound


def to_int16(sound: Sound) -> npt.NDArray[np.int16]:
    """Convert to 16-bit samples, shape (frames, channels)."""
    rows = np.atleast_2d(sound).T
    return np.asarray(np.round(np.clip(rows, -1.0, 1.0) * 32767.0), np.int16)


def from_int16(samples: npt.NDArray[np.int16]) -> Sound:
    """Convert 16-bit samples with one row per frame to mono."""
    return np.asarray(samples.mean(axis=1, dtype=np.float32) / 32767.0, np.float32)


def wav_bytes(samples: npt.NDArray[np.int16], rate_hz: int = RATE_HZ) -> bytes:
    """Return a WAV file of 16-bit samples, shape (frames, channels)."""
    target = io.BytesIO()
    with wave.open(target, "wb") as writer:
        writer.setnchannels(samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(rate_hz)
        writer.writeframes(samples.astype("<i2").tobytes())
    return target.getvalue()


def wav_sound(content: bytes) -> Sound:
    """Read mono from a WAV file that `wav_bytes` wrote."""
    with wave.open(io.BytesIO(content), "rb") as reader:
        samples = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        return from_int16(samples.reshape(-1, reader.getnchannels()))
