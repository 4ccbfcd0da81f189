"""Composes loops of 5.12 s with captions: solos, drums and bands.

`music.toml` has the instruments, rhythms, genres and words. The same seed gives the same loop.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RATE_HZ = 22_050
LOOP_SAMPLES = 112_896  # 512 columns of 10 ms
LOOP_S = LOOP_SAMPLES / RATE_HZ
#: Notes that start later are left out.
LAST_START_S = LOOP_S - 0.03

MUSIC: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("music.toml").read_text(encoding="utf-8")
)
INSTRUMENTS = MUSIC["instruments"]
SCALES = MUSIC["scales"]
RHYTHMS = MUSIC["rhythms"]
DRUMS = MUSIC["drums"]
GENRES = MUSIC["genres"]
WORDS = MUSIC["words"]
#: Scale of a mode that has its own chords.
SCALE_OF_MODE = {"jazz": "major", "drone": "mixolydian", "blues": "mixolydian"}
#: Semitones above the root of the chords of the blues, by degree.
BLUES_ROOTS = {0: 0, 3: 5, 4: 7}
LOUDNESS = {"X": 1.0, "x": 0.7, "o": 0.4}
BRIGHT_DRUMS = ("hat", "hat808", "shaker", "openhat", "ride", "triangle", "tambourine")
ARPEGGIOS = (
    (0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (0, 1, 2, 3, 2, 1), (0, 3, 2, 3, 1, 3, 2, 3),
)  # fmt: skip
WALKS = (-2, -1, -1, 0, 1, 1, 2, 3, -3)


@dataclass(frozen=True)
class Note:
    """A note or a drum hit.

    Attributes:
        instrument: Name in `INSTRUMENTS`, or "drum".
        pitch: MIDI note, or the name of the drum.
        start_s: Start in seconds.
        length_s: Length in seconds.
        gain: Loudness; 1 is a solo.
    """

    instrument: str
    pitch: int | str
    start_s: float
    length_s: float
    gain: float


def pick(rng: np.random.Generator, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


class Song:
    """Notes on a grid of beats, from the first beat of a bar on."""

    def __init__(
        self,
        rng: np.random.Generator,
        bpm: int,
        mode: str,
        progression: str = "",
        *,
        beats: int = 4,
        has_swing: bool = False,
    ) -> None:
        self.rng, self.bpm, self.mode, self.beats, self.has_swing = rng, bpm, mode, beats, has_swing
        self.beat_s = 60 / bpm
        self.length = LOOP_S / self.beat_s
        self.root = int(rng.integers(12))
        self.scale = SCALES[SCALE_OF_MODE.get(mode, mode)]
        degrees = progression or str(rng.choice(MUSIC["progressions"][mode]))
        self.degrees = [int(one) - 1 for one in degrees]
        self.chord_beats: float = beats
        if bpm < 115 and beats == 4:
            self.chord_beats = beats / 2
        self.has_sevenths = mode in ("jazz", "blues") or rng.random() < 0.1
        self.gallops = False
        self.notes: list[Note] = []

    def seconds(self, beat: float) -> float:
        """Return the time of a beat. Swing delays its second half."""
        if self.has_swing:
            whole, part = divmod(beat, 1)
            swung = part / 0.5 * 0.667 if part <= 0.5 else 0.667 + (part - 0.5) / 0.5 * 0.333
            beat = whole + swung
        return beat * self.beat_s

    def degree(self, beat: float) -> int:
        return self.degrees[int(beat / self.chord_beats + 1e-6) % len(self.degrees)]

    def semitones(self, step: int) -> int:
        """Return the semitones of a step of the scale above the C below the lowest root."""
        octave, index = divmod(step, len(self.scale))
        return self.root + 12 * octave + int(self.scale[index])

    def chord(self, beat: float, low: int, count: int | None = None) -> list[int]:
        """Return the notes of the chord at a beat, close together above the lowest."""
        degree = self.degree(beat)
        if len(self.scale) == 5:
            tones = [self.semitones(0), self.semitones(3), self.semitones(2)]
        else:
            steps = (0, 2, 4, 6) if self.has_sevenths else (0, 2, 4)
            tones = [self.semitones(degree + step) for step in steps]
            if self.mode == "minor" and degree == 4:
                tones[1] += 1  # the leading note
            if self.mode == "blues":
                root = self.root + BLUES_ROOTS[degree]
                tones = [root, root + 4, root + 7, root + 10]
        notes = sorted({low + (tone - low) % 12 for tone in tones})
        while count and len(notes) < count:
            notes.append(notes[len(notes) - len({note % 12 for note in notes})] + 12)
        return notes[:count] if count else notes

    def bass_note(self, beat: float, step: int = 0, low: int = 28) -> int:
        degree = self.degree(beat)
        if self.mode == "blues":
            tone = self.root + BLUES_ROOTS[degree] + (0, 4, 7, 9, 10)[step // 2 % 5]
        else:
            tone = self.semitones(degree + step)
        return low + (tone - low) % 12

    def add(self, instrument: str, note: int, beat: float, length: float, gain: float) -> None:
        start = self.seconds(beat)
        if start >= LAST_START_S:
            return
        length_s = max(0.06, self.seconds(beat + length) - start)
        accent = 1.0 if beat % 1 < 0.01 else 0.82
        gain = gain * accent * self.rng.uniform(0.88, 1.08)
        self.notes.append(Note(instrument, int(note), start, length_s, gain))

    def hit(self, drum: str, beat: float, gain: float) -> None:
        start = self.seconds(beat)
        if start < LAST_START_S:
            gain = gain * self.rng.uniform(0.88, 1.08)
            self.notes.append(Note("drum", drum, start, 3.0, gain))

    def melody(
        self,
        name: str,
        speed: str,
        gain: float = 1.0,
        *,
        shift: int = 0,
        scale: list[int] | None = None,
    ) -> None:
        """Add a melody whose bars repeat their rhythm and often their steps."""
        rng, about = self.rng, INSTRUMENTS[name]
        scale = scale or self.scale
        pitches = [
            pitch
            for pitch in range(about["low"] + shift, about["high"] + shift + 1)
            if (pitch - self.root) % 12 in scale
        ]
        known = RHYTHMS["waltz" if self.beats == 3 else speed]
        rhythms = [known[int(index)] for index in rng.choice(len(known), 2)]
        place = int(len(pitches) * rng.uniform(0.35, 0.65))
        stretch = 0.95 if about["kind"] != "mallet" else 1.5
        last: list[int] = []
        beat, bar = 0.0, 0
        while beat < self.length:
            rhythm = rhythms[bar % 2 if rng.random() < 0.8 else 0]
            moves = [int(move) for move in rng.choice(WALKS, len(rhythm))]
            if last and len(last) == len(rhythm) and rng.random() < 0.6:
                moves = last
            last = moves
            for length, move in zip(rhythm, moves, strict=True):
                place = _turned(place + move, move, len(pitches))
                if beat % 1 == 0 and len(scale) == 7:
                    place = self._nearest_tone(pitches, place, beat)
                if rng.random() > 0.06 or beat == 0:
                    self.add(name, pitches[place], beat, length * stretch, gain)
                beat += length
                if beat >= self.length:
                    return
            bar += 1

    def _nearest_tone(self, pitches: list[int], place: int, beat: float) -> int:
        tones = {note % 12 for note in self.chord(beat, 60)}
        return min(
            range(len(pitches)),
            key=lambda other: (pitches[other] % 12 not in tones, abs(other - place)),
        )

    def chords(self, name: str, style: str, gain: float = 0.6, low: int | None = None) -> None:
        rng, kind, each = self.rng, INSTRUMENTS[name]["kind"], self.chord_beats
        low = low or max(INSTRUMENTS[name]["low"] - 4, 48) + int(rng.integers(0, 4))
        count = 4 if kind in ("guitar", "sustain") else None
        pattern = self._chord_pattern(style)
        repeats = ("beats", "eighths", "offbeat", "skank", "waltz")
        is_whole_bar = pattern[-1][0] >= 2 and style not in repeats
        span = max(each, 4) if is_whole_bar else each
        spread = 0.0
        if kind == "guitar":
            spread = (0.03 if style == "strum" else 0.012) / self.beat_s
        beat = 0.0
        while beat < self.length:
            for offset, length in pattern:
                notes = self.chord(beat + offset, low, count)
                if style == "strum" and offset % 1:
                    notes = notes[::-1]
                for index, note in enumerate(notes):
                    at = beat + offset + index * spread * (0 if self.has_swing else 1)
                    self.add(name, note, at, length, gain / len(notes) ** 0.5)
            beat += span

    def _chord_pattern(self, style: str) -> list[tuple[float, float]]:
        each = self.chord_beats
        beats = range(int(np.ceil(each)))
        patterns: dict[str, list[tuple[float, float]]] = {
            "block": [(0, each)],
            "beats": [(beat, 0.9) for beat in beats],
            "eighths": [(half / 2, 0.45) for half in range(int(2 * each))],
            "offbeat": [(beat + 0.5, 0.3) for beat in beats],
            "skank": [(beat + 0.5, 0.25) for beat in beats],
        }
        return patterns.get(style) or MUSIC["chord_styles"][style]

    def arpeggio(self, name: str, step: float, gain: float, low: int | None = None) -> None:
        rng = self.rng
        low = low or INSTRUMENTS[name]["low"] + int(rng.integers(0, 6))
        order = pick(rng, ARPEGGIOS)
        for index in range(int(self.length / step) + 1):
            beat = index * step
            notes = self.chord(beat, low, 4)
            note = notes[order[index % len(order)] % len(notes)]
            self.add(name, note, beat, step * rng.choice((0.95, 1.5, 2.5)), gain)

    def power_chords(self, name: str, style: str, gain: float) -> None:
        step = {"eighths": 0.5, "sixteenths": 0.25, "held": self.chord_beats}[style]
        stretch = 0.9 if style != "sixteenths" else 0.7
        for index in range(int(self.length / step) + 1):
            if style == "sixteenths" and index % 4 == 1 and self.gallops:
                continue
            root = self.bass_note(index * step, 0, 40)
            for note in (root, root + 7, root + 12):
                self.add(name, note, index * step, step * stretch, gain / 1.7)

    def bass(self, name: str, line: str, gain: float = 0.9) -> None:
        bar = 0.0
        while bar < self.length:
            if line in ("walking", "boogie"):
                for beat in range(4):
                    step = (0, 2, 4, int(self.rng.choice((1, 5, 6, 3))))[beat]
                    if self.mode == "blues":
                        step = (0, 2, 4, 6)[beat]
                    self.add(name, self.bass_note(bar + beat, step), bar + beat, 0.95, gain)
            else:
                for start, step, length in MUSIC["bass_lines"][line]:
                    is_octave = step == 7
                    note = self.bass_note(bar + start, 0 if is_octave else step)
                    self.add(name, note + 12 * is_octave, bar + start, length, gain)
            bar += self.beats

    def drums(self, pattern: dict[str, str], gain: float = 1.0) -> None:
        """Add bars of drums. The letters of `pattern` share a bar evenly."""
        bar = 0.0
        while bar < self.length:
            for drum, steps in pattern.items():
                quiet = 0.35 if drum in BRIGHT_DRUMS else 1.0
                for index, letter in enumerate(steps):
                    if letter in LOUDNESS:
                        beat = bar + index * self.beats / len(steps)
                        self.hit(drum, beat, gain * quiet * LOUDNESS[letter])
            bar += self.beats


def _turned(place: int, move: int, count: int) -> int:
    """Return a place inside of the range; a melody that leaves it turns back."""
    if 0 <= place < count:
        return place
    place = min(max(place, 0), count - 1) - 2 * int(np.sign(move))
    return min(max(place, 0), count - 1)


@dataclass(frozen=True)
class Loop:
    """A composed loop.

    Attributes:
        notes: Its notes.
        bpm: Beats per minute.
        caption: Text that describes it.
        label: The instrument of a solo, "drums", or the genre of a band.
    """

    notes: list[Note]
    bpm: int
    caption: str
    label: str


def compose(rng: np.random.Generator) -> Loop:
    kind = rng.random()
    if kind < 0.42:
        return solo(rng)
    return drum_loop(rng) if kind < 0.5 else band(rng)


#: Ways to play a solo, by kind of the instrument.
WAYS = {
    "keys": ("melody", "chords", "arpeggio", "both"),
    "mallet": ("melody", "arpeggio", "melody"),
    "guitar": ("melody", "chords", "arpeggio", "strum"),
    "wind": ("melody",),
    "sustain": ("chords", "chords", "melody"),
    "bass": ("bass",),
}
WAY_WORDS = {
    "melody": ("melody", "solo", "tune"),
    "chords": ("chords", "harmony"),
    "strum": ("strumming", "strummed chords"),
    "arpeggio": ("arpeggio", "arpeggios", "broken chords"),
    "both": ("solo", "piece", "melody and chords"),
    "bass": ("bass line", "riff", "groove"),
}
PACES = {"slow": (58, 84), "medium": (86, 124), "fast": (126, 160)}


def solo(rng: np.random.Generator, name: str = "") -> Loop:
    name = name or str(rng.choice(list(INSTRUMENTS)))
    kind = INSTRUMENTS[name]["kind"]
    mode = str(rng.choice(["major", "minor"]))
    if name == "koto" and rng.random() < 0.6:
        mode = "japanese"
    pace = str(rng.choice(list(PACES)))
    song = Song(rng, int(rng.integers(*PACES[pace])), mode)
    shift, extra = 0, []
    if rng.random() < 0.2 and kind != "bass":
        shift = int(rng.choice((-7, 7)))
        extra = [WORDS["high"] if shift > 0 else WORDS["low"]]
    way = pick(rng, WAYS[kind])
    _play_solo(song, name, way, pace, shift)
    said = pick(rng, INSTRUMENTS[name]["names"])
    word = pick(rng, WAY_WORDS[way])
    playing = f"{said} playing {word}" if word.endswith("s") else f"{said} playing a {word}"
    subjects = (
        said, said, said, f"solo {said}", f"{said} {word}", f"{said} {word}", playing,
        f"{word} on {said}", f"{said} music", f"{said} alone",
    )  # fmt: skip
    is_minor = mode != "major" if kind != "bass" else None
    caption = _caption(rng, pick(rng, subjects), song.bpm, is_minor, extra)
    return Loop(song.notes, song.bpm, caption, name)


def _play_solo(song: Song, name: str, way: str, pace: str, shift: int) -> None:
    rng, kind = song.rng, INSTRUMENTS[name]["kind"]
    speed = "slow" if kind == "sustain" else "medium" if pace == "slow" else pace
    if kind == "wind" and pace == "slow":
        speed = "slow"
    low = INSTRUMENTS[name]["low"] + shift
    if way == "melody":
        song.melody(name, speed, shift=shift)
    elif way == "chords":
        style = "block" if kind == "sustain" else pick(rng, ("block", "beats"))
        song.chords(name, style, 1.0, low)
    elif way == "strum":
        song.chords(name, "strum", 1.0, low)
    elif way == "arpeggio":
        step = float(rng.choice((0.5, 0.5, 0.25 if song.bpm < 110 else 0.5)))
        song.arpeggio(name, step, 1.0, low)
    elif way == "both":
        song.chords(name, pick(rng, ("block", "beats")), 0.6, 50)
        song.melody(name, speed, shift=max(shift, 0))
    else:
        song.bass(name, pick(rng, ("walking", "eighths", "rootfifth", "funk", "root", "octave")))


DRUM_PACES = {
    "metal": (120, 165), "dnb": (165, 178), "swing": (110, 180), "reggae": (72, 96),
    "hiphop": (80, 100), "waltz": (110, 170),
}  # fmt: skip
DRUM_WORDS = ("drums", "drum beat", "drum loop", "drum kit", "beat", "drums only", "drum solo")


def drum_loop(rng: np.random.Generator, name: str = "") -> Loop:
    name = name or str(rng.choice(list(DRUMS)))
    pattern = pick(rng, DRUMS[name])
    bpm = int(rng.integers(*DRUM_PACES.get(name, (80, 140))))
    song = Song(rng, bpm, "major", beats=3 if name == "waltz" else 4)
    song.drums(pattern)
    names = [*MUSIC["drum_names"].get(name, []), *DRUM_WORDS]
    if name in GENRES and rng.random() < 0.4:
        names = [f"{pick(rng, GENRES[name]['names'])} drums"]
    return Loop(song.notes, bpm, _caption(rng, pick(rng, names), bpm, None), "drums")


#: Genres that have drums in 70 % of the loops only.
RARELY_DRUMS = ("indian", "african", "cinematic", "waltz", "island")


def band(rng: np.random.Generator, genre: str = "") -> Loop:
    genre = genre or str(rng.choice(list(GENRES)))
    about = GENRES[genre]
    bpm = int(rng.integers(about["bpm"][0], about["bpm"][1] + 1))
    swings = about.get("swing", False)
    beats = 3 if genre == "waltz" else 4
    song = Song(rng, bpm, pick(rng, about["modes"]), beats=beats, has_swing=swings)
    comp, style = pick(rng, about["chords"])
    lead = pick(rng, about["leads"]) if rng.random() < 0.6 else ""
    if "drums" in about and (genre not in RARELY_DRUMS or rng.random() < 0.7):
        pattern = pick(rng, DRUMS[about["drums"]])
        # Patterns of twelve steps already swing.
        song.has_swing = swings and len(next(iter(pattern.values()))) != 12
        song.drums(pattern, 0.9)
        song.has_swing = swings
    if about["basses"]:
        name, line = pick(rng, about["basses"])
        song.bass(name, line, 0.75)
    _accompany(song, comp, style, 0.55 if lead else 0.75)
    if lead:
        scale = SCALES["blues"] if genre == "blues" else None
        shift = 12 if lead == comp and INSTRUMENTS[lead]["high"] < 82 else 0
        song.melody(lead, about["speed"], 0.85, scale=scale, shift=shift)
    said = list(dict.fromkeys([lead, comp] if lead else [comp]))
    subject = pick(rng, about["names"])
    return Loop(song.notes, bpm, _caption(rng, subject, bpm, _is_minor(song), (), said), genre)


def _accompany(song: Song, name: str, style: str, gain: float) -> None:
    rng = song.rng
    if style.startswith("power"):
        song.gallops = bool(rng.random() < 0.5)
        way = "sixteenths" if style == "power16" else pick(rng, ("eighths", "held"))
        song.power_chords(name, way, gain)
    elif style.startswith("arp"):
        song.arpeggio(name, 0.25 if style == "arp16" else 0.5, gain)
    else:
        song.chords(name, style, gain * 1.2)


def _is_minor(song: Song) -> bool | None:
    if song.mode in ("jazz", "blues", "drone"):
        return None
    return song.mode not in ("major", "mixolydian")


BEGINNINGS = ("a loop of ", "some ", "the sound of ", "a recording of ")


def _caption(
    rng: np.random.Generator,
    subject: str,
    bpm: int,
    is_minor: bool | None,  # noqa: FBT001 - None if the mode is neither
    extra: Any = (),
    instruments: Any = (),
) -> str:
    """Return a caption: words before and after the subject, some of them left out."""
    before: list[str] = []
    after: list[str] = []
    tempo = WORDS["slow" if bpm < 85 else "fast" if bpm >= 125 else "medium"]
    moods = None if is_minor is None else WORDS["sad" if is_minor else "happy"]
    for words in (moods, tempo):
        if words is not None and rng.random() < 0.45:
            word = pick(rng, words)
            (before if rng.random() < 0.65 and " " not in word else after).append(word)
    before += [pick(rng, words) for words in extra if rng.random() < 0.7]
    rng.shuffle(before)
    said = [pick(rng, INSTRUMENTS[name]["names"]) for name in instruments]
    if said and rng.random() < 0.75:
        subject = _with_instruments(rng, subject, said[: int(rng.integers(1, 3))], after)
    if rng.random() < 0.2:
        after.append(f"{5 * round(bpm / 5)} bpm")
    if is_minor is not None and rng.random() < 0.1:
        after.append("in a minor key" if is_minor else "in a major key")
    rng.shuffle(after)
    text = " ".join([*before, subject])
    if after:
        text += ", " + ", ".join(after) if rng.random() < 0.8 else " " + " ".join(after)
    return pick(rng, BEGINNINGS) + text if rng.random() < 0.08 else text


def _with_instruments(
    rng: np.random.Generator, subject: str, said: list[str], after: list[str]
) -> str:
    joined = " and ".join(said)
    form = int(rng.integers(4))
    if form == 0:
        return f"{subject} with {joined}"
    if form == 1 and "music" not in subject and "song" not in subject:
        return f"{subject} {said[0]}"
    if form == 2:
        after.append(joined)
        return subject
    return f"{joined}, {subject}" if rng.random() < 0.5 else f"{subject}, {joined}"
