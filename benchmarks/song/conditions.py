"""Damage to a snippet: noise, codecs, speed, rooms, microphones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.song import media
from benchmarks.song.signals import (
    RATE_HZ,
    Sound,
    at_speed,
    companded,
    decibels,
    fitted,
    high_pass,
    low_pass,
    mixed_at,
    noise,
    power,
    room,
    spectrum_filter,
    uneven,
)
from benchmarks.song.song_set import SongSet, cut

BEFORE_S = 1.0  # of music before a snippet, because it still echoes in rooms
AFTER_S = 0.25  # extra length, because codecs and filters shorten the sound


@dataclass(frozen=True)
class Studio:
    """The inputs of a condition: a set, and the snippet's random numbers."""

    songs: SongSet
    random: np.random.Generator

    def bed(self, kind: str, frames: int) -> Sound:
        """Return a piece of a noise."""
        sound = self.songs.bed(kind, int(self.random.integers(1 << 20)))
        start = int(self.random.integers(0, max(len(sound) - frames, 1)))
        piece = np.asarray(sound[start : start + frames])
        repeated = np.tile(piece, -(-frames // max(len(piece), 1)))
        return repeated[:frames]

    def music(self, frames: int) -> Sound:
        """Return a piece of a song outside the index."""
        others = self.songs.outside("song")
        other = others[int(self.random.integers(len(others)))]
        start = int(self.random.integers(0, max(int(other.seconds * RATE_HZ) - frames, 1)))
        return fitted(cut(self.songs, other, start, frames), frames)


# Changes a sound that begins BEFORE_S before the snippet, and returns the snippet alone.
Change = Callable[[Studio, Sound], Sound]


@dataclass(frozen=True)
class Condition:
    """A row of the table.

    Attributes:
        name: Name of the row.
        family: Group for sums.
        change: Change to the sound.
        stretch: Length of the music relative to the snippet.
        core: Whether the reduced set has it.
    """

    name: str
    family: str
    change: Change
    stretch: float = 1.0
    core: bool = False


BEFORE = int(BEFORE_S * RATE_HZ)


def music(sound: Sound) -> Sound:
    """Remove the music before the snippet."""
    return sound[BEFORE:]


def with_noise(slope_db: float, ratio_db: float) -> Change:
    """Add noise with this spectral slope."""
    return lambda studio, sound: mixed_at(
        music(sound), noise(studio.random, len(sound) - BEFORE, slope_db), ratio_db
    )


def with_bed(kind: str, ratio_db: float) -> Change:
    """Add one of the stored noises."""
    return lambda studio, sound: mixed_at(
        music(sound), studio.bed(kind, len(sound) - BEFORE), ratio_db
    )


def with_music(ratio_db: float) -> Change:
    """Add another song at the same time."""
    return lambda studio, sound: mixed_at(music(sound), studio.music(len(sound) - BEFORE), ratio_db)


def through(container: str, *codec: str) -> Change:
    """Encode and decode with a codec."""
    return lambda _, sound: media.recoded(music(sound), container, *codec)


MP3_64 = through("mp3", "-c:a", "libmp3lame", "-b:a", "64k")
MP3_32 = through("mp3", "-c:a", "libmp3lame", "-b:a", "32k")
OPUS_16 = through("ogg", "-c:a", "libopus", "-b:a", "16k")
AAC_48 = through("adts", "-c:a", "aac", "-b:a", "48k")
AAC_64 = through("adts", "-c:a", "aac", "-b:a", "64k")


def narrow(_: Studio, sound: Sound) -> Sound:
    """Remove everything above 3 kHz."""
    return spectrum_filter(music(sound), low_pass(3000, 8))


def telephone(_: Studio, sound: Sound) -> Sound:
    """Limit to 300 to 3400 Hz, with mu-law at 8 kHz."""
    band = spectrum_filter(music(sound), low_pass(3400, 10))
    band = spectrum_filter(band, high_pass(300, 6))
    slow = at_speed(np.pad(band, (0, 64)), RATE_HZ / 8000)
    return at_speed(np.pad(companded(slow * np.float32(0.9)), (0, 64)), 8000 / RATE_HZ)


def clipped(by_db: float) -> Change:
    """Amplify by `by_db` over full scale and clip."""

    def change(_: Studio, sound: Sound) -> Sound:
        clean = music(sound)
        limit = np.float32(max(float(np.max(np.abs(clean))), 1e-6) * decibels(-by_db))
        return np.clip(clean, -limit, limit) / limit * np.float32(0.95)

    return change


def faint(_: Studio, sound: Sound) -> Sound:
    """Attenuate by 50 dB; a snippet has 16 bits."""
    return music(sound) * np.float32(decibels(-50.0))


def played_at(speed: float) -> Change:
    """Change the speed, and the pitch with it."""
    return lambda _, sound: at_speed(music(sound), speed)


def stretched(tempo: float) -> Change:
    """Change the tempo but keep the pitch."""
    return lambda _, sound: media.filtered(music(sound), f"atempo={tempo}")


def transposed(semitones: float) -> Change:
    """Change the pitch but keep the tempo."""
    return lambda _, sound: media.filtered(
        music(sound), f"rubberband=pitch={2.0 ** (semitones / 12.0):.6f}"
    )


def in_room(decay_s: float, direct_db: float) -> Change:
    """Add the echoes of a room, including those of the music before the snippet."""
    return lambda studio, sound: room(studio.random, sound, decay_s, direct_db)[BEFORE:]


def heard_by(decay_s: float, direct_db: float, bed: str, ratio_db: float, codec: Change) -> Change:
    """Simulate a microphone: a room, noise, a frequency response, a codec."""

    def change(studio: Studio, sound: Sound) -> Sound:
        heard = in_room(decay_s, direct_db)(studio, sound)
        heard = mixed_at(heard, studio.bed(bed, len(heard)), ratio_db)
        response = uneven(studio.random, 3.0)
        heard = spectrum_filter(heard, response)
        heard = spectrum_filter(heard, high_pass(150, 1.5))
        heard = spectrum_filter(heard, low_pass(7500, 3))
        heard *= np.float32(0.1 / max(np.sqrt(power(heard)), 1e-9))
        return codec(studio, np.concatenate([np.zeros(BEFORE, np.float32), np.clip(heard, -1, 1)]))

    return change


def dropouts(studio: Studio, sound: Sound) -> Sound:
    """Remove a quarter of the time, in gaps of 40 to 250 ms."""
    clean = music(sound).copy()
    missing = np.zeros(len(clean), bool)
    while missing.mean() < 0.25:
        start = int(studio.random.integers(0, len(clean)))
        missing[start : start + int(studio.random.uniform(0.04, 0.25) * RATE_HZ)] = True
    clean[missing] = 0.0
    return clean


def both(first: Change, second: Change) -> Change:
    """Apply one change after the other."""

    def change(studio: Studio, sound: Sound) -> Sound:
        once = first(studio, sound)
        return second(studio, np.concatenate([np.zeros(BEFORE, np.float32), once]))

    return change


def signed(number: float) -> str:
    """Format a number with its sign and without trailing zeros."""
    return f"{number:+g}" if number else "0"


def noises() -> list[Condition]:
    """Return noise at all signal-to-noise ratios, in dB over the full band."""
    found = []
    for name, slope in (("white", 0.0), ("pink", 3.0)):
        found += [
            Condition(
                f"{name} {signed(ratio)} dB", "noise", with_noise(slope, ratio), core=ratio <= 0
            )
            for ratio in (10, 5, 0, -5)
        ]
    for name, bed, ratios in (
        ("babble", "babble", (10, 5, 0, -5)),
        ("street", "street", (5, 0)),
        ("one speaker", "speech", (5, 0)),
    ):
        found += [
            Condition(f"{name} {signed(ratio)} dB", "noise", with_bed(bed, ratio), core=ratio == 0)
            for ratio in ratios
        ]
    return found + [
        Condition(f"other music {signed(ratio)} dB", "noise", with_music(ratio), core=ratio == 0)
        for ratio in (5, 0)
    ]


def speeds() -> list[Condition]:
    """Return other speeds, tempos and pitches."""
    found = [
        Condition(
            f"speed {signed(per_cent)} %",
            "speed",
            played_at(1 + per_cent / 100),
            1 + per_cent / 100,
            core=per_cent in (-3, 5),
        )
        for per_cent in (-5, -3, -1, 1, 3, 5)
    ]
    found.append(
        Condition(
            "speed +2 % and pink +5 dB", "speed", both(played_at(1.02), with_noise(3.0, 5)), 1.02
        )
    )
    found += [
        Condition(
            f"tempo {signed(per_cent)} %, same pitch",
            "tempo",
            stretched(1 + per_cent / 100),
            1 + per_cent / 100,
            core=per_cent == 4,
        )
        for per_cent in (4, -4)
    ]
    return found + [
        Condition(
            f"pitch {signed(step)} semitone, same tempo", "pitch", transposed(step), core=step == 1
        )
        for step in (1, -1)
    ]


NEAR = heard_by(0.35, 4.0, "street", 15.0, AAC_64)
FAR = heard_by(0.6, -2.0, "babble", 5.0, AAC_48)
CONDITIONS: tuple[Condition, ...] = (
    Condition("clean", "clean", lambda _, sound: music(sound), core=True),
    *noises(),
    Condition("MP3 64k", "codec", MP3_64),
    Condition("MP3 32k", "codec", MP3_32, core=True),
    Condition("Opus 16k", "codec", OPUS_16),
    Condition("AAC 48k", "codec", AAC_48),
    Condition("low-pass 3 kHz", "codec", narrow),
    Condition("telephone", "codec", telephone, core=True),
    Condition("clipping 12 dB", "level", clipped(12.0)),
    Condition("clipping 24 dB", "level", clipped(24.0), core=True),
    Condition("-50 dB, 16 bit", "level", faint, core=True),
    *speeds(),
    Condition("reverberation 0.8 s", "room", in_room(0.8, -2.0)),
    Condition("microphone near", "room", NEAR),
    Condition("microphone far", "room", FAR, core=True),
    Condition("dropouts", "level", dropouts),
    Condition("edit", "edit", lambda _, sound: music(sound)),
)
# Combinations of two kinds of damage, in addition to the table.
COMBINED: tuple[Condition, ...] = (
    Condition("speed -3 % and babble +5 dB", "combined",
              both(played_at(0.97), with_bed("babble", 5)), 0.97),
    Condition("speed +4 % and telephone", "combined", both(played_at(1.04), telephone), 1.04),
    Condition("room 0.5 s and Opus 16k", "combined", both(in_room(0.5, 0.0), OPUS_16)),
    Condition("clipping 12 dB and pink +5 dB", "combined", both(clipped(12.0), with_noise(3.0, 5))),
)  # fmt: skip
BY_NAME = {one.name: one for one in (*CONDITIONS, *COMBINED)}
