"""The composition: keys, chords, melodies and the order of sections.

Times are in beats of the song.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SCALES = {
    "major": (0, 2, 4, 5, 7, 9, 11),
    "minor": (0, 2, 3, 5, 7, 8, 10),
    "dorian": (0, 2, 3, 5, 7, 9, 10),
    "mixolydian": (0, 2, 4, 5, 7, 9, 10),
    "harmonic minor": (0, 2, 3, 5, 7, 8, 11),
}
SECTION_BARS = 8
BAR_BEATS = 4


@dataclass(frozen=True)
class Note:
    """A note: start and length in beats, MIDI key, and loudness from 0 to 1."""

    beat: float
    beats: float
    key: float
    velocity: float = 0.8


@dataclass(frozen=True)
class Section:
    """A repeated section of eight bars: the degrees of their chords, one per bar, and their
    melody."""

    degrees: tuple[int, ...]
    melody: tuple[Note, ...]


@dataclass(frozen=True)
class Score:
    """A composed song.

    Attributes:
        root: MIDI key of the tonic, in the octave of the chords.
        scale: Semitones of its seven steps.
        sections: Sections by letter.
        form: Letters in the order of play.
        sevenths: Whether chords have four notes.
    """

    root: int
    scale: tuple[int, ...]
    sections: dict[str, Section]
    form: str
    sevenths: bool

    @property
    def bars(self) -> int:
        """Number of bars."""
        return len(self.form) * SECTION_BARS

    def letter(self, number: int) -> str:
        """Return the section of a bar."""
        return self.form[number // SECTION_BARS]

    def step(self, degree: int) -> int:
        """Return the key of a step of the scale, counted from the tonic across octaves."""
        octave, place = divmod(degree, len(self.scale))
        return self.root + 12 * octave + self.scale[place]

    def chord(self, number: int, lowest: int) -> list[int]:
        """Return the chord of a bar, with its notes in the octave above the key `lowest`."""
        degrees = self.sections[self.letter(number)].degrees
        first = degrees[number % SECTION_BARS % len(degrees)]
        count = 4 if self.sevenths else 3
        keys = [self.step(first + 2 * index) for index in range(count)]
        return sorted((key - lowest) % 12 + lowest for key in keys)

    def bass(self, number: int, lowest: int = 31) -> int:
        """Return the lowest note of a bar's chord."""
        degrees = self.sections[self.letter(number)].degrees
        return (self.step(degrees[number % SECTION_BARS % len(degrees)]) - lowest) % 12 + lowest

    def melody(self) -> list[Note]:
        """Return the whole melody with repeated sections written out."""
        length = SECTION_BARS * BAR_BEATS
        return [
            Note(note.beat + length * place, note.beats, note.key, note.velocity)
            for place, letter in enumerate(self.form)
            for note in self.sections[letter].melody
        ]


def phrase(random: np.random.Generator, busy: float) -> list[tuple[float, float]]:
    """Return starts and lengths in beats of the notes of two bars."""
    lengths = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
    weights = np.array([busy * 3.0, 2.0, 1.0, 1.0, 0.6 - 0.4 * busy])
    notes, place = [], float(random.choice([0.0, 0.0, 0.5, 1.0]))
    while place < 2 * BAR_BEATS - 0.5:
        beats = float(random.choice(lengths, p=weights / weights.sum()))
        beats = min(beats, 2 * BAR_BEATS - place)
        if random.uniform() < 0.85:
            notes.append((place, beats))
        place += beats
    return notes


def tune(
    random: np.random.Generator, degrees: tuple[int, ...], key: Callable[[int], int], busy: float
) -> tuple[Note, ...]:
    """Return a melody of eight bars: a phrase, its repetition, another phrase, and the first one
    varied."""
    rhythms = {"a": phrase(random, busy), "b": phrase(random, busy)}
    shapes = {
        letter: np.cumsum(random.integers(-2, 3, 40)) + random.integers(0, 7) for letter in "ab"
    }
    notes = []
    for place, letter in enumerate("aaba"):
        for index, (beat, beats) in enumerate(rhythms[letter]):
            number = place * 2 + int(beat // BAR_BEATS)
            degree = int(np.clip(shapes[letter][index], -3, 11))
            if place == 3 and random.uniform() < 0.4:
                degree += int(random.integers(-2, 3))
            if beat % BAR_BEATS == 0 or beats >= 1.5:  # long notes are notes of the chord
                chord = {(degrees[number % len(degrees)] + 2 * third) % 7 for third in range(3)}
                degree = min(
                    range(degree - 2, degree + 3),
                    key=lambda d: (d % 7 not in chord, abs(d - degree)),
                )
            velocity = float(random.uniform(0.6, 1.0))
            notes.append(Note(place * 8 + beat, beats * 0.95, key(degree), velocity))
    return tuple(notes)


def compose(
    random: np.random.Generator, *, minor: float = 0.5, busy: float = 0.5, sevenths: bool = False
) -> Score:
    """Compose a song.

    Args:
        random: Source of all choices.
        minor: Probability of a minor scale.
        busy: Density of the melodies, 0 to 1.
        sevenths: Whether chords have four notes.
    """
    dark = random.uniform() < minor
    names = ("minor", "dorian", "harmonic minor") if dark else ("major", "major", "mixolydian")
    scale = SCALES[str(random.choice(names))]
    root = int(random.integers(48, 60))
    empty = Score(root, scale, {}, "", sevenths)
    sections = {}
    for letter in "ABC":
        degrees = [int(random.choice([0, 0, 3, 4, 5]))]
        while len(degrees) < int(random.choice([4, 4, 4, 8])):
            following = int(random.choice([0, 1, 2, 3, 3, 4, 4, 5, 5, 6]))
            if following != degrees[-1]:
                degrees.append(following)
        sections[letter] = Section(
            tuple(degrees), tune(random, tuple(degrees), lambda d: empty.step(d + 7), busy)
        )
    form = str(random.choice(["AABABCB", "ABABCBB", "ABACABB", "AABBCAB"]))
    return Score(root, scale, sections, form * 3, sevenths)
