"""Unusual containers, sounds that are not music, and files without sound."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.song import media
from benchmarks.song.signals import RATE_HZ, Sound, decibels, noise, to_int16, wav_bytes
from benchmarks.song.speech import speech

if TYPE_CHECKING:
    from collections.abc import Callable

Samples = npt.NDArray[np.int16]  # shape (frames, 2)
Packed = tuple[bytes, str]  # content of the upload, and its file extension


def packed(samples: Samples, container: str, ending: str, *arguments: str) -> Packed:
    """Encode stereo in a container that can be written to a pipe."""
    exact = ("-bitexact", "-f", container, "pipe:1")  # without random IDs in the file
    given = (*media.raw_input(channels=2), *arguments, *exact)
    return media.ffmpeg(*given, given=samples.tobytes()), ending


def with_picture(_: np.random.Generator, samples: Samples) -> Packed:
    """An MP4 with a video track."""
    seconds = len(samples) / RATE_HZ
    picture = f"testsrc=size=160x120:rate=10:duration={seconds:.3f}"
    return packed(samples, "mp4", "mp4", "-f", "lavfi", "-i", picture, "-map", "1:v", "-map", "0:a",
                  "-c:v", "mpeg4", "-c:a", "aac", "-b:a", "96k",
                  "-movflags", "frag_keyframe+empty_moov")  # fmt: skip


def surround(_: np.random.Generator, samples: Samples) -> Packed:
    """Six channels: the music in front, part of it in the rear."""
    pan = "pan=5.1|FL=FL|FR=FR|FC=0.4*FL+0.4*FR|LFE=0.2*FL|BL=0.3*FL|BR=0.3*FR"
    return packed(
        samples, "matroska", "mka", "-af", pan, "-ar", "48000", "-c:a", "ac3", "-b:a", "256k"
    )


def eight_bits(_: np.random.Generator, samples: Samples) -> Packed:
    """An 8-bit WAV."""
    return packed(samples, "wav", "wav", "-c:a", "pcm_u8")


def fast_rate(_: np.random.Generator, samples: Samples) -> Packed:
    """FLAC at 96 kHz and 24 bits."""
    return packed(samples, "flac", "flac", "-ar", "96000", "-sample_fmt", "s32", "-c:a", "flac")


def antiphase(_: np.random.Generator, samples: Samples) -> Packed:
    """The right channel is the inverted left one, so their sum is silence."""
    left = np.clip(samples[:, 0], -32767, 32767)
    return wav_bytes(np.stack([left, -left], axis=1)), "wav"


def half_silent(random: np.random.Generator, samples: Samples) -> Packed:
    """One channel is silent."""
    changed = samples.copy()
    changed[:, int(random.integers(2))] = 0
    return wav_bytes(changed), "wav"


def late(_: np.random.Generator, samples: Samples) -> Packed:
    """Starts with three seconds of silence."""
    silence = np.zeros((3 * RATE_HZ, 2), np.int16)
    return wav_bytes(np.concatenate([silence, samples])), "wav"


def truncated(random: np.random.Generator, samples: Samples) -> Packed:
    """The last eighth of the bytes is missing."""
    forms = (
        ("mp3", "mp3", "-c:a", "libmp3lame", "-b:a", "128k"),
        ("ogg", "ogg", "-c:a", "libvorbis", "-q:a", "4"),
        ("flac", "flac", "-c:a", "flac"),
        ("wav", "wav", "-c:a", "pcm_s16le"),
    )
    content, ending = packed(samples, *forms[int(random.integers(len(forms)))])
    return content[: len(content) * 7 // 8], ending


def misnamed(_: np.random.Generator, samples: Samples) -> Packed:
    """An MP3 with the extension of a WAV."""
    return packed(samples, "mp3", "mp3", "-c:a", "libmp3lame", "-b:a", "128k")[0], "wav"


def matroska(_: np.random.Generator, samples: Samples) -> Packed:
    """Opus in WebM, as browsers record it."""
    return packed(samples, "webm", "webm", "-c:a", "libopus", "-b:a", "64k")


CONTAINERS: dict[str, Callable[[np.random.Generator, Samples], Packed]] = {
    "MP4 with picture": with_picture,
    "5.1": surround,
    "8 bit": eight_bits,
    "96 kHz": fast_rate,
    "antiphase": antiphase,
    "one channel silent": half_silent,
    "leading silence": late,
    "truncated": truncated,
    "wrong extension": misnamed,
    "WebM": matroska,
}


def silence(_: np.random.Generator, frames: int) -> Sound:
    return np.zeros(frames, np.float32)


def hush(random: np.random.Generator, frames: int) -> Sound:
    """Almost silent: only the lowest bit varies."""
    return noise(random, frames) * np.float32(decibels(-88.0))


def tones(random: np.random.Generator, frames: int) -> Sound:
    """A few continuous sine waves."""
    places = np.arange(frames) / RATE_HZ
    total = np.zeros(frames)
    for hz in random.uniform(110, 3500, int(random.integers(1, 6))):
        total += np.sin(2 * np.pi * hz * places)
    return (total / 8).astype(np.float32)


def sweep(random: np.random.Generator, frames: int) -> Sound:
    """A tone that rises through all frequencies."""
    places = np.arange(frames) / frames
    first, last = random.uniform(80, 300), random.uniform(3000, 9000)
    phase = np.cumsum(first * (last / first) ** places) / RATE_HZ
    return (0.4 * np.sin(2 * np.pi * phase)).astype(np.float32)


def dialled(random: np.random.Generator, frames: int) -> Sound:
    """Dial tones of a telephone."""
    places = np.arange(frames) / RATE_HZ
    low, high = (697, 770, 852, 941), (1209, 1336, 1477)
    total = np.zeros(frames)
    for first in np.arange(0, frames, RATE_HZ // 4):
        part = slice(first, first + RATE_HZ // 7)
        for hz in (random.choice(low), random.choice(high)):
            total[part] += 0.3 * np.sin(2 * np.pi * hz * places[part])
    return total.astype(np.float32)


def clicks(random: np.random.Generator, frames: int) -> Sound:
    """A metronome, or a scratched record without music."""
    sound = np.zeros(frames, np.float32)
    if random.uniform() < 0.5:
        sound[:: int(random.uniform(0.2, 0.6) * RATE_HZ)] = 0.9
    else:
        count = frames // 1500 + 1
        sound[random.integers(0, frames, count)] = random.uniform(-0.9, 0.9, count)
    return sound


def hum(random: np.random.Generator, frames: int) -> Sound:
    """Mains hum: 50 or 60 Hz and its harmonics."""
    places = np.arange(frames) / RATE_HZ
    base = float(random.choice([50.0, 60.0]))
    total = np.zeros(frames)
    for number in range(1, 12):
        total += np.sin(2 * np.pi * base * number * places + number) / number
    return (total * 0.2).astype(np.float32) + noise(random, frames) * np.float32(0.001)


JUNK: dict[str, Callable[[np.random.Generator, int], Sound]] = {
    "silence": silence,
    "hush": hush,
    "tones": tones,
    "sweep": sweep,
    "dialled": dialled,
    "clicks": clicks,
    "hum": hum,
    "white noise": lambda random, frames: noise(random, frames) * np.float32(0.2),
    "pink noise": lambda random, frames: noise(random, frames, 3.0) * np.float32(0.2),
    "speech": lambda random, frames: speech(random, frames) * np.float32(0.1),
}


def text(random: np.random.Generator, _: Samples) -> Packed:
    """A text file with the extension of a music file."""
    words = " ".join(str(word) for word in random.choice(["la", "li", "lu", "\n"], 900))
    return words.encode(), "mp3"


def nothing(_: np.random.Generator, __: Samples) -> Packed:
    return b"", "mp3"


def headless(_: np.random.Generator, samples: Samples) -> Packed:
    """The first twenty bytes of a WAV."""
    return wav_bytes(samples)[:20], "wav"


def random_bytes(random: np.random.Generator, _: Samples) -> Packed:
    """Random bytes."""
    return random.bytes(40_000), "mp3"


def empty_wav(_: np.random.Generator, __: Samples) -> Packed:
    """A WAV with no samples."""
    return wav_bytes(np.zeros((0, 2), np.int16)), "wav"


def lying_wav(_: np.random.Generator, __: Samples) -> Packed:
    """A WAV whose header declares four gigabytes but which has no samples."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 2, 44_100, 176_400, 4, 16)
    head = struct.pack("<4sI4s", b"RIFF", 0xFFFFFFF0, b"WAVE")
    return head + form + struct.pack("<4sI", b"data", 0xFFFFFFD0), "wav"


def picture(_: np.random.Generator, __: Samples) -> Packed:
    """An image."""
    made = ("-frames:v", "1", "-c:v", "png", "-f", "image2pipe", "pipe:1")
    return media.ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x64", *made), "mp3"


BROKEN: dict[str, Callable[[np.random.Generator, Samples], Packed]] = {
    "text": text,
    "empty": nothing,
    "truncated header": headless,
    "random bytes": random_bytes,
    "no samples": empty_wav,
    "lying header": lying_wav,
    "picture": picture,
}


def junk_bytes(random: np.random.Generator, name: str, seconds: float) -> bytes:
    """Return a sound that is not music, as WAV."""
    return wav_bytes(to_int16(JUNK[name](random, round(seconds * RATE_HZ))))
