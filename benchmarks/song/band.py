"""The performers of a track: the clock, the players, and the mixing of the parts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from benchmarks.song import drums
from benchmarks.song.drums import Hit
from benchmarks.song.harmony import BAR_BEATS, SECTION_BARS, Note, Score
from benchmarks.song.signals import RATE_HZ, Sound, decibels, generator, power
from benchmarks.song.speech import Tone
from benchmarks.song.voices import Timbre, hertz, note


@dataclass(frozen=True)
class Seeds:
    """Seeds of a track. Related tracks share some of them.

    Attributes:
        score: Harmony, melody, form.
        groove: Tempo and drum patterns.
        kit: Drum sounds.
        sound: Sounds of the other instruments, and their mix.
        take: The performance: timing, tuning, drift.
        loop: A drum loop that is shared with other songs; 0 for none.
    """

    score: int
    groove: int
    kit: int
    sound: int
    take: int
    loop: int = 0


@dataclass
class Part:
    """The part of one instrument: mono, its level in dB, and its position from -1 (left) to 1."""

    sound: Sound
    level_db: float
    pan: float = 0.0


@dataclass
class Band:
    """Plays the parts of one track.

    Attributes:
        seeds: Seeds of the track.
        tempo_bpm: Quarter notes per minute.
        seconds: Length.
        exact: Played by a machine: exactly on the grid, and each repetition has identical samples.
        live: Played in front of an audience: freer timing, different tuning.
        swing: Delay of the second of two eighth notes, in beats.
    """

    seeds: Seeds
    tempo_bpm: float
    seconds: float
    exact: bool = False
    live: bool = False
    swing: float = 0.0
    tuning_cents: float = field(init=False)
    cache: dict[tuple[object, ...], Sound] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Tune the instruments and compute the times of the beats."""
        random = self.random("take", "clock")
        if self.live:
            self.exact = False
            self.tempo_bpm *= float(random.uniform(0.96, 1.05))
        self.tuning_cents = float(random.normal(0.0, 18.0 if self.live else 6.0))
        if self.exact:
            self.tuning_cents = 0.0
        # Loops repeat exactly only if a sixteenth note is a whole number of samples.
        step = round(RATE_HZ * 15.0 / self.tempo_bpm)
        self.tempo_bpm = RATE_HZ * 15.0 / step
        beats = int(self.seconds * self.tempo_bpm / 60.0) + 3 * BAR_BEATS
        loose = 0.0 if self.exact else (0.015 if self.live else 0.005)
        knots = random.normal(0.0, loose, beats // 8 + 3)
        drift = np.interp(np.arange(beats) / 8.0, np.arange(len(knots)), knots)
        lengths = 60.0 / self.tempo_bpm * (1.0 + drift)
        self._starts = np.concatenate([[0.0], np.cumsum(lengths)])

    @property
    def frames(self) -> int:
        return round(self.seconds * RATE_HZ)

    @property
    def bars(self) -> int:
        return int(self.seconds * self.tempo_bpm / 60.0 / BAR_BEATS) + 1

    def random(self, kind: str, purpose: str) -> np.random.Generator:
        """Return the random generator of one seed and purpose."""
        return generator(getattr(self.seeds, kind), kind, purpose)

    def time_s(self, beat: float) -> float:
        """Return the time of a beat in seconds."""
        late = self.swing if round(beat * 2) % 2 and (beat * 2) % 1 == 0 else 0.0
        return float(np.interp(beat + late, np.arange(len(self._starts)), self._starts))

    def play(
        self,
        notes: list[Note],
        timbre: Timbre,
        name: str,
        loose_s: float = 0.008,
    ) -> Sound:
        """Play the part of an instrument.

        Args:
            notes: Notes of the part.
            timbre: Sound of the instrument.
            name: Name of the part, which seeds its random numbers.
            loose_s: Deviation from the beat, ignored for a machine.
        """
        random = self.random("take", name)
        result = np.zeros(self.frames + 4 * RATE_HZ, np.float32)
        tuning = self.tuning_cents / 100.0
        for one in notes:
            late = 0.0 if self.exact else random.normal(0.0, loose_s)
            start = round(max(self.time_s(one.beat) + late, 0.0) * RATE_HZ)
            if start >= self.frames:
                continue
            lasting = self.time_s(one.beat + one.beats) - self.time_s(one.beat)
            velocity = one.velocity * (1.0 if self.exact else random.uniform(0.85, 1.15))
            if self.exact:
                known = (name, one.key, round(lasting, 4), round(velocity, 3))
                if known not in self.cache:
                    own = self.random("take", repr(known))
                    self.cache[known] = note(own, timbre, hertz(one.key), lasting, velocity)
                tone = self.cache[known]
            else:
                tone = note(random, timbre, hertz(one.key + tuning), lasting, velocity)
            tone = tone[: len(result) - start]
            result[start : start + len(tone)] += tone
        return result[: self.frames]

    def tones(self, notes: list[Note], name: str, loose_s: float = 0.02) -> list[Tone]:
        """Convert notes to tones for a singer: in seconds, without overlaps."""
        random = self.random("take", name)
        found: list[Tone] = []
        for one in sorted(notes, key=lambda n: n.beat):
            start = self.time_s(one.beat) + random.normal(0.0, 0.0 if self.exact else loose_s)
            end = min(self.time_s(one.beat + one.beats), self.seconds)
            key = one.key + self.tuning_cents / 100.0 + random.normal(0.0, 0.12)
            if found and found[-1].start_s + found[-1].seconds > start:
                last = found.pop()
                found.append(Tone(last.start_s, start - last.start_s, last.key, last.velocity))
            if start < end:
                found.append(Tone(max(start, 0.0), end - start, key, one.velocity))
        return found

    def strokes(self, family: str, score: Score | None, rests: str = "") -> list[Hit]:
        """Return the drum hits of the whole song.

        Args:
            family: Key of `drums.BEATS`.
            score: Its form decides when the pattern changes; None changes it every four bars.
            rests: Letters of sections without drums.
        """
        random = self.random("groove", "patterns")
        patterns = {letter: [drums.bar(random, family) for _ in range(2)] for letter in "ABCD"}
        ends = [drums.fill(random) for _ in range(3)]
        hits = []
        for number in range(self.bars):
            letter = score.letter(number) if score else "ABCD"[number // 4 % 4]
            if letter in rests and number >= SECTION_BARS:
                continue
            last = (number + 1) % SECTION_BARS == 0
            chosen = ends[number % 3] if last else patterns[letter][number % 2]
            hits += [Hit(hit.beat + number * BAR_BEATS, hit.drum, hit.velocity) for hit in chosen]
        return hits

    def drums(self, hits: list[Hit], loose_s: float = 0.006) -> Sound:
        """Play the drums. With a machine all hits of a drum sound the same."""
        sounds = drums.kit(lambda name: self.random("kit", name))
        random = self.random("take", "drums")
        result = np.zeros(self.frames + 3 * RATE_HZ, np.float32)
        for hit in hits:
            late = 0.0 if self.exact else random.normal(0.0, loose_s)
            start = round(max(self.time_s(hit.beat) + late, 0.0) * RATE_HZ)
            if start >= self.frames:
                continue
            takes = sounds[hit.drum]
            loud = hit.velocity
            chosen = takes[0]
            if not self.exact:
                chosen = takes[int(random.integers(len(takes)))]
                loud *= random.uniform(0.8, 1.15)
            result[start : start + len(chosen)] += chosen * np.float32(loud)
        return result[: self.frames]

    def loop(self) -> Sound:
        """Repeat the loop that several songs share: two bars without variation."""
        seeds = Seeds(0, self.seeds.loop, self.seeds.loop, 0, 0)
        beats = 2 * BAR_BEATS
        machine = Band(seeds, self.tempo_bpm, beats * 60.0 / self.tempo_bpm, exact=True)
        random = machine.random("groove", "loop")
        family = str(random.choice(["drums", "lo-fi", "edm"]))
        hits = [
            Hit(hit.beat + BAR_BEATS * number, hit.drum, hit.velocity)
            for number in range(2)
            for hit in drums.bar(random, family)
        ]
        once = machine.drums(hits)
        return np.tile(once, self.frames // len(once) + 1)[: self.frames]


def mix(parts: list[Part], channels: int) -> Sound:
    """Mix all parts. In stereo, off-center parts reach one side slightly later."""
    total = np.zeros((channels, len(parts[0].sound)), np.float32)
    for part in parts:
        loud = np.sqrt(power(part.sound))
        sound = part.sound * np.float32(decibels(part.level_db) / max(loud, 1e-6))
        if channels == 1:
            total[0] += sound
            continue
        angle = (part.pan + 1.0) * np.pi / 4.0
        delay = int(abs(part.pan) * 0.0006 * RATE_HZ)
        late = np.concatenate([np.zeros(delay, np.float32), sound[: len(sound) - delay]])
        left, right = (sound, late) if part.pan < 0 else (late, sound)
        total[0] += left * np.float32(np.cos(angle))
        total[1] += right * np.float32(np.sin(angle))
    return total
