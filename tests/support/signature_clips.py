"""Clips of 1 to 30 s at 16 kHz whose signatures are compared, the same from the same seed."""

from __future__ import annotations

import numpy

RATE_HZ = 16_000
#: What a clip is of, besides a mix of two of them.
KINDS = ("music", "noise", "tones", "speech", "bursts")

Samples = numpy.ndarray
Chance = numpy.random.Generator


def clip(seed: int) -> Samples:
    """One channel of 16-bit samples. Every sixth is a mix; one in five is faint, one is clipped."""
    chance = numpy.random.default_rng([9, seed])
    count = int(chance.uniform(1, 30) * RATE_HZ)
    kind = seed % (len(KINDS) + 1)
    if kind < len(KINDS):
        sound = _sound(KINDS[kind], count, chance)
    else:
        first, second = chance.choice(KINDS, 2, replace=False)
        share = chance.uniform(0.2, 0.8)
        sound = share * _sound(first, count, chance) + (1 - share) * _sound(second, count, chance)
    level = (0.02, 0.2, 0.5, 0.95, 2.5)[chance.integers(5)]
    return numpy.clip(numpy.rint(sound * level * 32767), -32768, 32767).astype("<i2")


def _sound(kind: str, count: int, chance: Chance) -> Samples:
    make = {
        "music": _music,
        "noise": _noise,
        "tones": _tones,
        "speech": _speech,
        "bursts": _bursts,
    }[kind]
    made = make(count, chance)
    loudest: float = numpy.abs(made).max()
    return made / loudest


def _music(count: int, chance: Chance) -> Samples:
    """Chords of notes with partials that fade, over a beat of noise."""
    made = chance.normal(0, 0.002, count)
    beat = int(RATE_HZ * chance.uniform(0.2, 0.6))
    for begin in range(0, count, beat):
        time = numpy.arange(min(count - begin, 2 * beat)) / RATE_HZ
        end = begin + len(time)
        for _ in range(chance.integers(1, 5)):
            hz = 110 * 2 ** (chance.integers(0, 40) / 12)
            fade = numpy.exp(-chance.uniform(1, 8) * time)
            for partial in range(1, chance.integers(2, 9)):
                phase = chance.uniform(0, 2 * numpy.pi)
                wave = numpy.sin(2 * numpy.pi * hz * partial * time + phase)
                made[begin:end] += fade * wave / partial
        made[begin:end] += chance.normal(0, 0.5, len(time)) * numpy.exp(-40 * time)
    return made


def _noise(count: int, chance: Chance) -> Samples:
    """White or coloured, and swelling."""
    spectrum = numpy.fft.rfft(chance.normal(0, 1, count))
    tilt = numpy.arange(1, len(spectrum) + 1) ** -chance.uniform(0, 1)
    swell = 1 + 0.8 * numpy.sin(numpy.arange(count) / RATE_HZ * chance.uniform(1, 9))
    coloured: Samples = numpy.fft.irfft(spectrum * tilt, count)
    return coloured * swell


def _tones(count: int, chance: Chance) -> Samples:
    """Some that last, and one that glides."""
    time = numpy.arange(count) / RATE_HZ
    made = numpy.zeros(count)
    for _ in range(chance.integers(1, 7)):
        wave = numpy.sin(2 * numpy.pi * chance.uniform(60, 7800) * time)
        made += chance.uniform(0.05, 1) * wave
    slope = chance.uniform(-300, 300) / 2
    return made + 0.3 * numpy.sin(2 * numpy.pi * (3000 + slope * time) * time)


def _speech(count: int, chance: Chance) -> Samples:
    """Pulses of a voice through two resonances that move from one syllable to the next."""
    made = numpy.zeros(count)
    begin = 0
    while begin < count:
        time = numpy.arange(min(count - begin, int(RATE_HZ * chance.uniform(0.08, 0.3)))) / RATE_HZ
        pitch = chance.uniform(80, 260) * (1 + 0.1 * numpy.sin(20 * time))
        turned = numpy.cumsum(pitch) / RATE_HZ
        for number in range(1, 40):
            hz = number * float(pitch.mean())
            places = chance.uniform(250, 900), chance.uniform(900, 2800)
            size = sum(1 / (1 + ((hz - place) / 90) ** 2) for place in places)
            made[begin : begin + len(time)] += size * numpy.sin(2 * numpy.pi * number * turned)
        made[begin : begin + len(time)] *= numpy.hanning(len(time) + 2)[1:-1]
        begin += len(time) + int(RATE_HZ * chance.uniform(0, 0.15))
    return made + chance.normal(0, 0.003, count)


def _bursts(count: int, chance: Chance) -> Samples:
    """Clicks and short noises, with nothing between them."""
    made = numpy.zeros(count)
    made[chance.integers(count)] = 1
    for _ in range(1 + count // 4000):
        begin = chance.integers(count)
        length = min(count - begin, int(chance.integers(1, 2000)))
        fade = numpy.exp(-numpy.arange(length) / length * 6)
        made[begin : begin + length] += chance.uniform(0.1, 1) * chance.normal(0, 1, length) * fade
    return made
