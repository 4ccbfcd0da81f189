"""Ten styles of music and the instruments of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.song import harmony
from benchmarks.song.band import Band, Part, Seeds
from benchmarks.song.harmony import BAR_BEATS, SECTION_BARS, Note, Score
from benchmarks.song.signals import (
    Sound,
    generator,
    high_pass,
    low_pass,
    moving_filter,
    spectrum_filter,
    uneven,
)
from benchmarks.song.speech import mouth, sung
from benchmarks.song.voices import Timbre, falling

if TYPE_CHECKING:
    from collections.abc import Callable

Rhythm = tuple[tuple[float, float], ...]  # beats of a bar, and the length of each
EIGHTHS: Rhythm = tuple((index / 2, 0.45) for index in range(8))
HALVES: Rhythm = ((0.0, 1.9), (2.0, 1.9))
WHOLE: Rhythm = ((0.0, 3.95),)
CHORDS: tuple[Rhythm, ...] = (
    HALVES, WHOLE, ((0, 1.4), (1.5, 1.4), (3, 0.9)), ((0, 0.9), (1, 0.9), (2, 0.9), (3, 0.9)),
    ((0.5, 0.4), (1.5, 0.4), (2.5, 0.4), (3.5, 0.4)),
)  # fmt: skip
BASSES: tuple[Rhythm, ...] = (
    EIGHTHS, ((0, 1.4), (1.5, 0.4), (2, 1.4), (3.5, 0.4)), ((0, 0.9), (1, 0.9), (2, 0.9), (3, 0.9)),
    ((0, 0.7), (0.75, 0.7), (1.5, 0.9), (2.5, 0.4), (3, 0.9)),
)  # fmt: skip


def chords(band: Band, score: Score, rhythm: Rhythm, lowest: int, rests: str = "") -> list[Note]:
    """Return the chord of each bar in this rhythm."""
    return [
        Note(number * BAR_BEATS + beat, beats, key, 0.7)
        for number in range(band.bars)
        if score.letter(number) not in rests or number < SECTION_BARS
        for beat, beats in rhythm
        for key in score.chord(number, lowest)
    ]


def bass_line(
    band: Band, score: Score, rhythm: Rhythm, random: np.random.Generator, lowest: int = 31
) -> list[Note]:
    """Return the lowest notes, sometimes replaced by another note of the chord."""
    moves = [int(random.choice([0, 0, 0, 7, 12])) for _ in rhythm]
    return [
        Note(number * BAR_BEATS + beat, beats, score.bass(number, lowest) + move, 0.85)
        for number in range(band.bars)
        for (beat, beats), move in zip(rhythm, moves, strict=True)
    ]


def arpeggio(
    band: Band, score: Score, random: np.random.Generator, lowest: int, steps: int = 8
) -> list[Note]:
    """Return the notes of the chords one after another, in an order that is random per song."""
    order = random.integers(0, 6, steps)
    length = BAR_BEATS / steps
    notes = []
    for number in range(band.bars):
        keys = score.chord(number, lowest)
        keys = [*keys, *(key + 12 for key in keys)]
        for step, choice in enumerate(order):
            beat = number * BAR_BEATS + step * length
            notes.append(Note(beat, length * 1.1, keys[choice % len(keys)], 0.7))
    return notes


def melody(score: Score, band: Band, move: int = 0, rests: str = "") -> list[Note]:
    """Return the melody, transposed by `move` semitones."""
    last = band.bars * BAR_BEATS
    return [
        Note(note.beat, note.beats, note.key + move, note.velocity)
        for note in score.melody()
        if note.beat < last and score.letter(int(note.beat // BAR_BEATS)) not in rests
    ]


def bright(band: Band, sound: Sound, name: str, min_hz: float, max_hz: float) -> Sound:
    """Apply a filter that opens and closes over several bars, with resonances that are random
    per song."""
    random = band.random("sound", name)
    period = 60.0 / band.tempo_bpm * BAR_BEATS * float(random.choice([2, 4, 8, 16]))
    offset = random.uniform()
    ratio = np.log(max_hz / min_hz)

    def gains(
        times: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
        hz: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        open_by = 0.5 - 0.5 * np.cos(2 * np.pi * (times / period + offset))
        corner = min_hz * np.exp(ratio * open_by)
        return np.asarray(1.0 / (1.0 + (hz / corner) ** 3))

    return spectrum_filter(moving_filter(sound, gains), uneven(random, 3.0))


def coloured(
    band: Band, sound: Sound, name: str, corner_hz: float, spread_db: float = 4.0
) -> Sound:
    """Apply the resonances of an instrument's body, and attenuate above a corner frequency."""
    body = uneven(band.random("sound", name), spread_db)
    dull = low_pass(corner_hz, 1.0)
    return spectrum_filter(sound, lambda hz: np.asarray(body(hz)) * np.asarray(dull(hz)))


def some(random: np.random.Generator, choices: tuple[Rhythm, ...]) -> Rhythm:
    """Choose one rhythm."""
    return choices[int(random.integers(len(choices)))]


def guitar(random: np.random.Generator, decay_s: float = 2.5) -> Timbre:
    """Plucked strings."""
    return Timbre("struck", falling(12, random.uniform(0.8, 1.3), random, random.uniform(0.4, 1.0)),
                  0.0001, 0.003, decay_s, 0.35, 0.06, drift_cents=3.0)  # fmt: skip


def bass(random: np.random.Generator) -> Timbre:
    """A bass guitar or a similar instrument."""
    return Timbre("struck", falling(7, random.uniform(1.0, 1.6), random), 0.0001, 0.006, 3.0, 0.3)


def singer(band: Band, notes: list[Note], name: str) -> Sound:
    """Sing the notes."""
    random = band.random("take", name)
    who = mouth(band.random("sound", name))
    return sung(random, band.tones(notes, f"{name} timing"), band.frames, who)


def rock(band: Band) -> list[Part]:
    """Drums, bass, two distorted guitars, a voice and a lead guitar between its lines."""
    random = band.random("sound", "rock")
    score = harmony.compose(band.random("score", "song"), minor=0.5, busy=0.6)
    timbre = guitar(random, 4.0)
    parts = [Part(band.drums(band.strokes("rock", score)), 0.0)]
    for side in (-0.7, 0.7):
        strums = [
            Note(number * BAR_BEATS + beat, beats, key, 0.8)
            for number in range(band.bars)
            for beat, beats in (EIGHTHS if score.letter(number) == "B" else HALVES)
            for key in (score.bass(number, 40), score.bass(number, 40) + 7)
        ]
        clean = band.play(strums, timbre, f"guitar {side}", 0.01)
        loud = np.tanh(clean * np.float32(random.uniform(2.0, 8.0)))
        parts.append(Part(coloured(band, loud, f"amplifier {side}", 4200), -3.0, side))
    line = bass_line(band, score, some(random, BASSES), random, 28)
    parts.append(Part(coloured(band, band.play(line, bass(random), "bass"), "bass", 1500), -2.0))
    parts.append(Part(singer(band, melody(score, band, 0, "C"), "voice"), -1.0))
    solo = Timbre("bowed", vibrato_cents=25.0, attack_s=0.01, drift_cents=4.0, release_s=0.15)
    lead = np.tanh(
        2 * band.play([n for n in melody(score, band, 12) if n.beat % 64 >= 48], solo, "lead")
    )
    return [*parts, Part(coloured(band, lead, "lead", 3500), -5.0, 0.2)]


def pop(band: Band) -> list[Part]:
    """Drums, bass, electric piano, pad, arpeggio, a voice and its echo a third above."""
    random = band.random("sound", "pop")
    score = harmony.compose(band.random("score", "song"), minor=0.35, busy=0.7)
    keys = Timbre("struck", (1.0, 0.35, 0.1, 0.2, 0.05), 0.0, 0.004, 2.2, 0.5, 0.1)
    pad = Timbre("bowed", attack_s=0.2, release_s=0.4, unison=3, spread_cents=11.0)
    parts = [Part(band.drums(band.strokes("pop", score)), 0.0)]
    line = bass_line(band, score, some(random, BASSES), random)
    parts.append(Part(band.play(line, bass(random), "bass"), -2.0))
    played = band.play(chords(band, score, some(random, CHORDS), 55), keys, "keys")
    parts.append(Part(coloured(band, played, "keys", 4000), -5.0, -0.3))
    held = band.play(chords(band, score, WHOLE, 52, "A"), pad, "pad")
    parts.append(Part(coloured(band, held, "pad", 1400), -9.0, 0.3))
    plucks = band.play(arpeggio(band, score, random, 67), guitar(random, 0.8), "plucks")
    parts.append(Part(coloured(band, plucks, "plucks", 6000), -9.0, 0.5))
    parts.append(Part(singer(band, melody(score, band), "voice"), -0.5))
    second = list(melody(score, band, 4, "AC"))
    return [*parts, Part(singer(band, second, "second voice"), -8.0, -0.4)] if second else parts


def piano(band: Band) -> list[Part]:
    """A piano alone: left hand in broken chords, right hand with the melody."""
    random = band.random("sound", "piano")
    score = harmony.compose(band.random("score", "song"), minor=0.6, busy=0.8)
    grand = Timbre("struck", falling(12, random.uniform(1.1, 1.6), random),
                   float(random.uniform(0.0002, 0.0006)), 0.003, 6.0, 0.35, 0.25,
                   drift_cents=0.8)  # fmt: skip
    left = arpeggio(band, score, random, 45, int(random.choice([4, 8, 8, 6])))
    left += bass_line(band, score, some(random, (WHOLE, HALVES)), random, 33)
    right = melody(score, band, 12) + [
        Note(n.beat, n.beats, n.key, 0.5) for n in melody(score, band, 0) if n.beats > 1.2
    ]
    body = coloured(band, band.play(left, grand, "left", 0.012), "body", 5000, 2.0)
    return [
        Part(body, -3.0, -0.2),
        Part(coloured(band, band.play(right, grand, "right", 0.015), "body", 5000, 2.0), 0.0, 0.2),
    ]


def edm(band: Band) -> list[Part]:
    """Four to the floor on the grid; loops with filters that move over them."""
    random = band.random("sound", "edm")
    score = harmony.compose(band.random("score", "song"), minor=0.8, busy=0.7)
    stack = Timbre("bowed", attack_s=0.005, release_s=0.08, unison=5, spread_cents=9.0)
    acid = Timbre("bowed", attack_s=0.003, release_s=0.04)
    lead = Timbre("pulse", attack_s=0.003, release_s=0.06, width=0.3, vibrato_cents=8.0)
    hits = band.strokes("edm", score, "C")
    parts = [Part(band.drums(hits), 0.0)]
    line = bass_line(band, score, some(random, (EIGHTHS, *BASSES)), random)
    low = band.play(line, acid, "bass")
    parts.append(Part(bright(band, low, "bass filter", 150, 900), -2.5))
    played = band.play(chords(band, score, some(random, CHORDS), 57), stack, "stack")
    ducked = played * pumped(band)
    parts.append(Part(bright(band, ducked, "stack filter", 500, 6000), -4.0, 0.2))
    steps = band.play(arpeggio(band, score, random, 60, 16), acid, "steps")
    parts.append(Part(bright(band, steps, "steps filter", 400, 5000), -7.0, -0.4))
    tune = band.play(melody(score, band, 12, "A"), lead, "lead")
    return [*parts, Part(coloured(band, tune, "lead", 5000), -5.0, 0.1)]


def pumped(band: Band) -> Sound:
    """Return gains that dip on each beat."""
    places = np.arange(band.frames) / (15.0 / band.tempo_bpm * 4 * 22_050)
    return (0.25 + 0.75 * np.minimum(np.mod(places, 1.0) * 2.0, 1.0)).astype(np.float32)


def lo_fi(band: Band) -> list[Part]:
    """A lazy sampled loop, an electric piano that wobbles as tapes do, crackle."""
    random = band.random("sound", "lo-fi")
    score = harmony.compose(band.random("score", "song"), minor=0.7, busy=0.4, sevenths=True)
    keys = Timbre("struck", (1.0, 0.5, 0.12, 0.18), 0.0, 0.006, 2.8, 0.6, 0.2,
                  vibrato_hz=1.3, vibrato_cents=14.0, drift_cents=6.0)  # fmt: skip
    flute = Timbre(
        "struck", (1.0, 0.2, 0.08), attack_s=0.05, decay_s=20.0, vibrato_cents=14.0, breath=0.03
    )
    drums = coloured(band, band.drums(band.strokes("lo-fi", score, "")), "tape", 5000, 2.0)
    played = band.play(chords(band, score, some(random, CHORDS), 53), keys, "keys")
    tune = band.play(melody(score, band, 12, "A"), flute, "flute")
    line = bass_line(band, score, some(random, BASSES), random)
    crackle = band.random("take", "crackle")
    clicks = np.zeros(band.frames, np.float32)
    clicks[crackle.integers(0, band.frames, int(band.seconds * 12))] = crackle.normal(
        0, 1, int(band.seconds * 12)
    )
    hiss = clicks + 0.02 * crackle.standard_normal(band.frames, np.float32)
    return [
        Part(drums, 0.0),
        Part(bright(band, played, "tape keys", 900, 3500), -2.0, -0.2),
        Part(band.play(line, bass(random), "bass"), -3.0),
        Part(tune, -6.0, 0.3),
        Part(coloured(band, hiss, "hiss", 6000, 2.0), -32.0),
    ]


def orchestra(band: Band) -> list[Part]:
    """Strings in four voices, brass, a flute with the melody, timpani; swelling and slow."""
    random = band.random("sound", "orchestra")
    score = harmony.compose(band.random("score", "song"), minor=0.5, busy=0.4)
    strings = Timbre("bowed", attack_s=0.12, release_s=0.25, unison=4, spread_cents=14.0,
                     vibrato_hz=5.2, vibrato_cents=14.0, drift_cents=6.0, breath=0.03)  # fmt: skip
    brass = Timbre("bowed", attack_s=0.06, release_s=0.12, vibrato_cents=6.0, drift_cents=4.0)
    flute = Timbre("struck", (1.0, 0.4, 0.15, 0.06), attack_s=0.05, decay_s=30.0, decay_tilt=0.05,
                   vibrato_cents=22.0, drift_cents=5.0, breath=0.04)  # fmt: skip
    parts = []
    for place, lowest in enumerate((48, 60)):
        rhythm = some(random, (WHOLE, HALVES))
        held = band.play(chords(band, score, rhythm, lowest), strings, f"strings {place}", 0.025)
        pan = place - 0.5
        parts.append(Part(coloured(band, held, f"strings {place}", 2200), -3.0, pan))
    violins = band.play(melody(score, band, 12, "B"), strings, "violins", 0.02)
    parts.append(Part(coloured(band, violins, "violins", 3000), -2.0, -0.6))
    wind = band.play(melody(score, band, 12, "A"), flute, "flute", 0.02)
    parts.append(Part(wind, -3.0, 0.2))
    fanfare = band.play(chords(band, score, some(random, CHORDS), 50, "A"), brass, "brass", 0.02)
    parts.append(Part(coloured(band, fanfare, "brass", 1600), -5.0, 0.5))
    low = band.play(bass_line(band, score, HALVES, random, 33), strings, "basses", 0.02)
    return [*parts, Part(coloured(band, low, "basses", 700), -4.0, 0.4)]


def chip(band: Band) -> list[Part]:
    """Two pulses, a stepped triangle and noise: an old machine, exact to the sample."""
    random = band.random("sound", "chip")
    score = harmony.compose(band.random("score", "song"), minor=0.5, busy=0.9)
    width = float(random.choice([0.125, 0.25, 0.5]))
    first = Timbre("pulse", attack_s=0.001, release_s=0.01, width=width, vibrato_hz=6.0,
                   vibrato_cents=float(random.choice([0, 15])), drift_cents=0.0)  # fmt: skip
    second = Timbre("pulse", attack_s=0.001, release_s=0.005, width=0.5, drift_cents=0.0)
    third = Timbre("triangle", attack_s=0.001, release_s=0.005, drift_cents=0.0)
    rolled = [Note(n.beat, 0.22, n.key, 0.6) for n in arpeggio(band, score, random, 60, 16)]
    return [
        Part(band.play(melody(score, band, 12), first, "first"), 0.0, -0.2),
        Part(band.play(rolled, second, "second"), -5.0, 0.2),
        Part(
            band.play(bass_line(band, score, some(random, BASSES), random, 36), third, "third"),
            -1.0,
        ),
        Part(np.round(band.drums(band.strokes("edm", score)) * 8) / np.float32(8), -5.0),
    ]


def ambient(band: Band) -> list[Part]:
    """Long chords that flow into each other, bells now and then, wind."""
    random = band.random("sound", "ambient")
    score = harmony.compose(band.random("score", "song"), minor=0.5, busy=0.1, sevenths=True)
    pad = Timbre("bowed", attack_s=1.2, release_s=2.0, unison=4, spread_cents=12.0, drift_cents=5.0)
    glass = Timbre("struck", falling(6, 1.0, random), 0.002, 0.4, 7.0, 0.3, 2.0, drift_cents=2.0)
    bells = Timbre("struck", (1.0, 0.2, 0.5, 0.1, 0.3), 0.02, 0.005, 5.0, 0.3, 1.0)
    held = [Note(n.beat, n.beats + 2, n.key, n.velocity) for n in chords(band, score, WHOLE, 50)]
    sparse = [n for n in arpeggio(band, score, random, 67, 4) if random.uniform() < 0.45]
    deep = [
        Note(n.beat, n.beats + 2, n.key, n.velocity) for n in chords(band, score, WHOLE, 62, "A")
    ]
    wind = band.random("take", "wind").standard_normal(band.frames, np.float32)
    return [
        Part(bright(band, band.play(held, pad, "pad", 0.08), "pad", 300, 2500), 0.0, -0.2),
        Part(bright(band, band.play(deep, glass, "glass", 0.1), "glass", 600, 5000), -4.0, 0.4),
        Part(band.play(sparse, bells, "bells", 0.06), -6.0, 0.1),
        Part(bright(band, wind, "wind", 200, 900), -24.0, 0.0),
    ]


def a_cappella(band: Band) -> list[Part]:
    """A voice alone, or with one or two others below it, and its breath."""
    random = band.random("sound", "a cappella")
    score = harmony.compose(band.random("score", "song"), minor=0.5, busy=0.5)
    high = int(random.choice([0, 0, 7, -5]))
    parts = [Part(singer(band, melody(score, band, high), "voice"), 0.0)]
    for number in range(int(random.integers(0, 3))):
        under = [
            Note(beat + bar * BAR_BEATS, beats, score.chord(bar, 48 + high)[number], 0.7)
            for bar in range(band.bars)
            for beat, beats in HALVES
        ]
        parts.append(Part(singer(band, under, f"voice {number}"), -6.0, number - 0.5))
    return parts


def drums_only(band: Band) -> list[Part]:
    """A drummer alone."""
    played = band.drums(band.strokes("drums", None))
    more = spectrum_filter(played, high_pass(150.0))
    return [Part(played, 0.0, -0.1), Part(coloured(band, more, "near", 6000), -8.0, 0.4)]


STYLES: dict[str, Callable[[Band], list[Part]]] = {
    "rock": rock,
    "pop": pop,
    "piano": piano,
    "edm": edm,
    "lo-fi": lo_fi,
    "orchestra": orchestra,
    "chip": chip,
    "ambient": ambient,
    "a cappella": a_cappella,
    "drums only": drums_only,
}
TEMPO_BPM = {
    "rock": (100, 168), "pop": (88, 128), "piano": (66, 116), "edm": (120, 140), "lo-fi": (68, 92),
    "orchestra": (60, 110), "chip": (110, 170), "ambient": (50, 76), "a cappella": (66, 104),
    "drums only": (84, 140),
}  # fmt: skip
EXACT = frozenset({"edm", "lo-fi", "chip"})  # played by machines
WITH_DRUMS = ("rock", "pop", "edm", "lo-fi", "chip")


def assemble(style: str, seeds: Seeds, seconds: float, *, live: bool) -> tuple[Band, list[Part]]:
    """Return the band of a style, and the parts that it plays.

    Args:
        style: Key of STYLES.
        seeds: Seeds of the track. A loop seed sets tempo and grid and adds the loop.
        seconds: Length.
        live: Whether it is played in front of an audience.
    """
    least, most = TEMPO_BPM[style]
    if seeds.loop:
        least, most = 92, 126  # all songs with a loop have its tempo
    groove = generator(seeds.loop or seeds.groove, "tempo")
    tempo = float(groove.uniform(least, most))
    swing = float(groove.choice([0.0, 0.0, 0.06, 0.1])) if style in {"lo-fi", "pop"} else 0.0
    band = Band(
        seeds,
        tempo,
        seconds,
        style in EXACT or bool(seeds.loop),
        live,
        0.0 if seeds.loop else swing,
    )
    parts = STYLES[style](band)
    if seeds.loop:
        drums = 0 if style != "chip" else 3
        parts[drums] = Part(band.loop(), parts[drums].level_db + 1.0)
    return band, parts
