"""Hostile media: the cases, and helpers for the functions that generate them.

Small functions make every bomb and every broken file when the suite runs. The repository holds no
such binary, which virus scanners or licenses could object to.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support import programs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from support.cache import Cache

    Content = bytes | Callable[["Site"], bytes | Path]

#: Outcomes of a conversion: "ok" or the class of the exception.
OK = "ok"
UNSUPPORTED = "UnsupportedMediaError"
UNDECODABLE = "UndecodableError"
NO_AUDIO = "NoAudioError"
ENCRYPTED = "EncryptedMediaError"
LIMIT = "LimitExceededError"

#: Errors that a server returns as 415 or 422, for broken media and files that are not media.
REFUSED = frozenset({UNSUPPORTED, UNDECODABLE, NO_AUDIO})

#: REFUSED, or a successful conversion.
PERHAPS = REFUSED | {OK}

#: A text in every file that a hostile input tries to reach.
CANARY = "canary-5f1d7c0e9b42"


@dataclass(frozen=True)
class Site:
    """The folder of a case, and the files and listeners that its input may try to reach."""

    folder: Path
    canary: Path
    decoy_port: int
    clips: Clips

    def file(self, name: str, content: bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        return path

    @property
    def decoy_url(self) -> str:
        """A local URL whose listener counts connections."""
        return f"http://127.0.0.1:{self.decoy_port}/decoy"


@dataclass(frozen=True)
class Case:
    """One hostile input, and its allowed outcomes."""

    id: str
    name: str
    build: Callable[[Site], Path]
    allowed: frozenset[str]
    limits: Mapping[str, float] = field(default_factory=dict)
    duration_s: float | None = None
    tolerance_s: float = 0.1
    memory_mib: int = 64

    def __str__(self) -> str:
        return f"{self.id}-{self.name}"


def case(
    identifier: str,
    name: str,
    content: Content,
    allowed: frozenset[str] | str,
    *,
    file_name: str = "input.bin",
    **more: Any,
) -> Case:
    """A case with the given bytes, or with the bytes or the path that `content` returns.

    `more` are fields of `Case`.
    """

    def build(site: Site) -> Path:
        made = content if isinstance(content, bytes) else content(site)
        return made if isinstance(made, Path) else site.file(file_name, made)

    outcomes = frozenset({allowed}) if isinstance(allowed, str) else allowed
    return Case(identifier, name, build, outcomes, **more)


def group(
    identifier: str, allowed: frozenset[str] | str, contents: Mapping[str, Content], **more: Any
) -> list[Case]:
    """Cases for several inputs that share all other fields."""
    return [case(identifier, name, one, allowed, **more) for name, one in contents.items()]


class Clips:
    """Short real files (two seconds of tone and noise), each made once by the ffmpeg program."""

    SOURCE = "sine=frequency=440:duration=2:sample_rate=44100"

    #: Name to ffmpeg's arguments after the input, and the file's ending.
    FORMATS: Mapping[str, tuple[str, list[str]]] = {
        "wav": ("wav", ["-c:a", "pcm_s16le"]),
        "wav-short": ("wav", ["-c:a", "pcm_s16le", "-t", "0.2"]),
        "wav24": ("wav", ["-c:a", "pcm_s24le", "-ar", "192000"]),
        "wav-float": ("wav", ["-c:a", "pcm_f32le"]),
        "wav-u8": ("wav", ["-c:a", "pcm_u8"]),
        "wav-alaw": ("wav", ["-c:a", "pcm_alaw", "-ar", "8000", "-ac", "1"]),
        "wav-5.1": ("wav", ["-c:a", "pcm_s16le", "-ac", "6"]),
        "wav-7.1": ("wav", ["-c:a", "pcm_s16le", "-ac", "8"]),
        "wav-8k": ("wav", ["-c:a", "pcm_s16le", "-ar", "8000", "-ac", "1"]),
        "aiff": ("aiff", []),
        "flac": ("flac", []),
        "mp3": ("mp3", ["-c:a", "libmp3lame", "-b:a", "128k"]),
        "mp3-short": ("mp3", ["-c:a", "libmp3lame", "-b:a", "64k", "-t", "0.3"]),
        "m4a": ("m4a", ["-c:a", "aac"]),
        "alac": ("m4a", ["-c:a", "alac"]),
        "mov": ("mov", ["-c:a", "pcm_s16le"]),
        "mka": ("mka", ["-c:a", "flac"]),
        "webm": ("webm", ["-c:a", "libopus", "-ar", "48000"]),
        "ogg": ("ogg", ["-c:a", "libvorbis", "-ac", "2"]),
        "opus": ("opus", ["-c:a", "libopus", "-ar", "48000"]),
        "wma": ("wma", ["-c:a", "wmav2"]),
        "ac3": ("ac3", ["-c:a", "ac3"]),
        "aac": ("aac", ["-c:a", "aac"]),
        "wv": ("wv", ["-c:a", "wavpack"]),
        "tta": ("tta", ["-c:a", "tta"]),
        "caf": ("caf", ["-c:a", "pcm_s16le"]),
        "au": ("au", []),
        "w64": ("w64", []),
        "ts": ("ts", ["-c:a", "mp2"]),
        "flv": ("flv", ["-c:a", "libmp3lame", "-ar", "44100"]),
    }

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def path(self, name: str) -> Path:
        ending, arguments = self.FORMATS[name]
        return self.make(name, ending, ["-f", "lavfi", "-i", self.SOURCE, *arguments])

    def data(self, name: str) -> bytes:
        return self.path(name).read_bytes()

    def make(self, name: str, ending: str, arguments: list[str]) -> Path:

        def build(path: Path) -> None:
            programs.ffmpeg("-bitexact", *arguments, "-fflags", "+bitexact", path)

        return self._cache.make(f"hostile-{name}", f".{ending}", " ".join(arguments), build)


def noise(size: int, seed: str) -> bytes:
    """`size` bytes that look random and are the same in every run."""
    return random.Random(seed).randbytes(size)


def mutate(data: bytes, seed: int) -> bytes:
    """Flip single bits like zzuf; the seed also chooses a ratio between 0.0001 and 0.05.

    One seed in eight also cuts the file, and one in eight doubles a part of it: flipped bits alone
    rarely make wrong lengths.
    """
    rng = random.Random(f"{seed}:{hashlib.sha256(data).hexdigest()}")
    out = bytearray(data)
    ratio = 10 ** rng.uniform(-4, -1.3)
    for _ in range(max(1, int(len(out) * 8 * ratio))):
        position = rng.randrange(len(out) * 8)
        out[position // 8] ^= 1 << (position % 8)
    if seed % 8 == 1:
        del out[rng.randrange(1, len(out)) :]
    elif seed % 8 == 2:
        start = rng.randrange(len(out))
        piece = out[start : start + rng.randrange(1, 4096)]
        out[start:start] = piece
    return bytes(out)
