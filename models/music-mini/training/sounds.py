"""Renders the sounds of instruments, and plays compositions with them.

    sounds.py ROOT OUT

ROOT is a folder with unpacked Debian packages, which need not be installed: the soundfont MuseScore
General (MIT, parts CC0 and public domain) and FluidSynth.

    apt-get download musescore-general-soundfont-small libfluidsynth3 libinstpatch-1.0-2
    for package in *.deb; do dpkg -x $package ROOT; done
    LD_LIBRARY_PATH=ROOT/usr/lib/x86_64-linux-gnu python sounds.py ROOT sounds.npz

OUT is a NumPy archive: "piano/48" is MIDI note 48 of the piano, and "drum/kick" a hit; 16-bit mono
samples at 22,050 Hz.
"""

from __future__ import annotations

import argparse
import ctypes
import os
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
from scipy.fft import next_fast_len
from scipy.signal import resample, resample_poly

from compose import INSTRUMENTS, LOOP_SAMPLES, RATE_HZ, Note

FONT = "usr/share/sounds/sf3/MuseScore_General_Lite.sf3"
LIBRARY = "usr/lib/x86_64-linux-gnu/libfluidsynth.so.3"
VELOCITY = 105
DRUM_CHANNEL, DRUM_BANK = 9, 128
#: Program of General MIDI, seconds, and MIDI notes of each sound. Other notes are resampled.
NOTES: dict[str, tuple[int, float, tuple[int, ...]]] = {
    "piano": (0, 1.3, (36, 48, 57, 66, 75, 84)),
    "epiano": (4, 1.3, (40, 50, 60, 70, 80)),
    "harpsichord": (6, 1.3, (41, 52, 62, 72, 82)),
    "musicbox": (10, 1.3, (65, 74, 83, 92)),
    "vibraphone": (11, 1.3, (55, 64, 73, 82)),
    "marimba": (12, 0.9, (48, 58, 68, 78)),
    "organ": (16, 2.0, (38, 50, 62, 74)),
    "church": (19, 2.0, (40, 52, 64, 76)),
    "accordion": (21, 1.6, (50, 60, 70, 80)),
    "nylon": (24, 1.3, (42, 51, 60, 69, 78)),
    "steel": (25, 1.3, (42, 51, 60, 69, 78)),
    "eguitar": (27, 1.3, (42, 51, 60, 69, 78)),
    "distorted": (30, 1.8, (40, 48, 57, 66, 76)),
    "upright": (32, 1.0, (29, 36, 43, 50)),
    "ebass": (33, 1.2, (28, 35, 42, 49)),
    "synthbass": (38, 1.0, (28, 35, 42, 49)),
    "violin": (40, 1.8, (58, 66, 74, 82, 90)),
    "cello": (42, 1.8, (38, 46, 54, 62)),
    "pizzicato": (45, 0.7, (43, 55, 67, 79)),
    "harp": (46, 1.3, (45, 57, 69, 81)),
    "strings": (48, 2.4, (40, 52, 64, 76)),
    "choir": (52, 2.4, (48, 58, 68, 78)),
    "trumpet": (56, 1.4, (56, 65, 74, 83)),
    "brass": (61, 1.2, (45, 55, 65, 75)),
    "sax": (66, 1.4, (47, 56, 65, 74)),
    "clarinet": (71, 1.4, (53, 63, 73, 83)),
    "flute": (73, 1.4, (62, 71, 80, 89)),
    "square": (80, 1.2, (40, 54, 68, 82)),
    "lead": (81, 1.4, (50, 62, 74, 84)),
    "pad": (89, 2.4, (42, 54, 66, 78)),
    "sitar": (104, 1.3, (48, 58, 68, 78)),
    "banjo": (105, 0.9, (50, 60, 70, 80)),
    "koto": (107, 1.2, (52, 62, 72, 82)),
    "kalimba": (108, 0.8, (60, 70, 80)),
    "steeldrum": (114, 0.9, (58, 68, 78)),
    "bagpipe": (109, 1.4, (57, 65, 73)),
}
#: Drum kit, key and seconds.
DRUMS: dict[str, tuple[int, int, float]] = {
    "kick": (0, 36, 0.4),
    "snare": (0, 38, 0.4),
    "stick": (0, 37, 0.2),
    "hat": (0, 42, 0.15),
    "openhat": (0, 46, 0.6),
    "tomlow": (0, 45, 0.6),
    "tommid": (0, 47, 0.6),
    "tomhigh": (0, 50, 0.5),
    "crash": (0, 49, 1.3),
    "ride": (0, 51, 0.7),
    "tambourine": (0, 54, 0.3),
    "cowbell": (0, 56, 0.3),
    "bongohigh": (0, 60, 0.3),
    "bongolow": (0, 61, 0.3),
    "conga": (0, 63, 0.4),
    "shaker": (0, 70, 0.15),
    "clave": (0, 75, 0.2),
    "triangle": (0, 81, 0.8),
    "kick808": (25, 36, 0.6),
    "snare808": (25, 38, 0.3),
    "clap": (25, 39, 0.3),
    "hat808": (25, 42, 0.12),
    "brushsnare": (40, 38, 0.3),
    "brushtap": (40, 40, 0.3),
}
FADE_SAMPLES = int(0.05 * RATE_HZ)
CROSSFADE_SAMPLES = int(0.12 * RATE_HZ)
#: Held notes are made at least this long.
HELD_SAMPLES = int(4.2 * RATE_HZ)
LEVEL_WINDOW = 1102  # samples: a twentieth of a second
LEVEL = 0.1

Bank = dict[str, dict[Any, np.ndarray]]


class Synthesizer:
    """FluidSynth without reverb and chorus, at twice the rate of the sounds."""

    def __init__(self, library: Path, font: Path) -> None:
        self._library = ctypes.CDLL(os.fspath(library))
        for name in ("new_fluid_settings", "new_fluid_synth"):
            getattr(self._library, name).restype = ctypes.c_void_p
        settings = ctypes.c_void_p(self._library.new_fluid_settings())
        for name, value in ((b"synth.sample-rate", 2 * RATE_HZ), (b"synth.gain", 0.5)):
            self._library.fluid_settings_setnum(settings, name, ctypes.c_double(value))
        for name in (b"synth.reverb.active", b"synth.chorus.active"):
            self._library.fluid_settings_setint(settings, name, 0)
        self._synth = ctypes.c_void_p(self._library.new_fluid_synth(settings))
        if self._library.fluid_synth_sfload(self._synth, os.fsencode(font), 1) < 0:
            raise SystemExit(f"{font}: not a soundfont")

    def choose(self, program: int) -> None:
        self._library.fluid_synth_program_select(self._synth, 0, 1, 0, program)

    def choose_drums(self, kit: int) -> None:
        self._library.fluid_synth_bank_select(self._synth, DRUM_CHANNEL, DRUM_BANK)
        self._library.fluid_synth_program_change(self._synth, DRUM_CHANNEL, kit)

    def play(self, channel: int, key: int, seconds: float) -> np.ndarray:
        """Return a note, which begins where it can be heard."""
        self._library.fluid_synth_noteon(self._synth, channel, key, VELOCITY)
        left, right = self._written(int(2 * RATE_HZ * seconds))
        self._library.fluid_synth_all_sounds_off(self._synth, channel)
        self._written(8192)  # the end of the last note
        mono = resample_poly(left.astype(np.float64) + right, 1, 2)
        peak = abs(mono).max()
        if peak < 1e-4:
            raise SystemExit(f"channel {channel}, key {key}: silent")
        begin = max(0, np.nonzero(abs(mono) > 0.02 * peak)[0][0] - 40)
        return np.rint(mono[begin:] / peak * 32000).astype(np.int16)

    def _written(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        sides = np.zeros(count, np.float32), np.zeros(count, np.float32)
        places = [side.ctypes.data_as(ctypes.c_void_p) for side in sides]
        self._library.fluid_synth_write_float(self._synth, count, places[0], 0, 1, places[1], 0, 1)
        return sides


def rendered(root: Path) -> dict[str, np.ndarray]:
    synthesizer = Synthesizer(root / LIBRARY, root / FONT)
    sounds = {}
    for name, (program, seconds, keys) in NOTES.items():
        synthesizer.choose(program)
        for key in keys:
            sounds[f"{name}/{key}"] = synthesizer.play(0, key, seconds)
    for name, (kit, key, seconds) in DRUMS.items():
        synthesizer.choose_drums(kit)
        sounds[f"drum/{name}"] = synthesizer.play(DRUM_CHANNEL, key, seconds)
    return sounds


def read_bank(path: Path) -> Bank:
    """Return the sounds of each instrument by note, and the drums as instrument "drum"."""
    archive = np.load(path)
    base: Bank = {}
    for key in archive.files:
        name, note = key.split("/")
        base.setdefault(name, {})[note] = archive[key].astype(np.float32) / 32768
    bank: Bank = {"drum": {name: levelled(sound) for name, sound in base.pop("drum").items()}}
    jobs = []
    for name, notes in base.items():
        keys = sorted(map(int, notes))
        for wanted in range(keys[0] - 7, keys[-1] + 8):
            key = min(keys, key=lambda one: (abs(one - wanted), -one))
            jobs.append((name, wanted, notes[str(key)], wanted - key))
    with ThreadPool(os.cpu_count()) as pool:
        made = pool.starmap(_note, [(name, sound, shift) for name, _, sound, shift in jobs])
    for (name, wanted, _, _), sound in zip(jobs, made, strict=True):
        bank.setdefault(name, {})[wanted] = sound
    return bank


def _note(name: str, sound: np.ndarray, semitones: int) -> np.ndarray:
    if INSTRUMENTS.get(name, {}).get("held"):
        sound = _held(sound)
    if semitones:
        size = next_fast_len(len(sound) + 200)
        ratio = 2 ** (semitones / 12)
        padded = np.pad(sound, (0, size - len(sound)))
        sound = resample(padded, round(size / ratio))[: int(len(sound) / ratio)]
    return levelled(sound)


def _held(sound: np.ndarray) -> np.ndarray:
    """Repeat the middle of a sound with crossfades."""
    begin, end = int(0.45 * len(sound)), len(sound) - int(0.05 * RATE_HZ)
    ramp = np.sqrt(np.linspace(0, 1, CROSSFADE_SAMPLES, dtype=np.float32))
    sound = sound[:end]
    while len(sound) < HELD_SAMPLES:
        again = sound[begin:end].copy()
        both = sound[-CROSSFADE_SAMPLES:] * ramp[::-1] + again[:CROSSFADE_SAMPLES] * ramp
        sound = np.concatenate([sound[:-CROSSFADE_SAMPLES], both, again[CROSSFADE_SAMPLES:]])
    return sound[:HELD_SAMPLES]


def levelled(sound: np.ndarray) -> np.ndarray:
    """Scale to the same root mean square in the loudest twentieth of a second."""
    window = np.ones(LEVEL_WINDOW) / LEVEL_WINDOW
    power = np.convolve(sound.astype(np.float64) ** 2, window)[LEVEL_WINDOW // 2 :: 256]
    return (sound * (LEVEL / np.sqrt(power.max() + 1e-12))).astype(np.float32)


def played(notes: list[Note], bank: Bank) -> np.ndarray:
    """Return a loop as samples at 22,050 Hz with a peak of 0.95."""
    out = np.zeros(LOOP_SAMPLES, np.float32)
    fade = np.linspace(1, 0, FADE_SAMPLES, dtype=np.float32)
    for note in notes:
        begin = int(note.start_s * RATE_HZ)
        sound = _sound(note, bank)
        held = int(note.length_s * RATE_HZ) + FADE_SAMPLES
        count = min(len(sound), held, LOOP_SAMPLES - begin)
        piece = note.gain * sound[:count]
        if note.instrument != "drum":
            last = min(FADE_SAMPLES, count)
            piece[count - last :] *= fade[-last:]
        out[begin : begin + count] += piece
    peak = abs(out).max()
    return out * (0.95 / peak) if peak > 0 else out


def _sound(note: Note, bank: Bank) -> np.ndarray:
    """Return the sound of a note. Outside of the instrument's range, it is octaves away."""
    name = INSTRUMENTS.get(note.instrument, {}).get("sample", note.instrument)
    notes, pitch = bank[name], note.pitch
    while isinstance(pitch, int) and pitch not in notes:
        pitch += 12 if pitch < min(notes) else -12
    return notes[pitch]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    sounds = rendered(options.root)
    np.savez_compressed(options.out, **sounds)
    print(f"{len(sounds)} sounds, {sum(one.nbytes for one in sounds.values()) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
