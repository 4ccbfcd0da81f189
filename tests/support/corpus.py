"""The test corpus: media files of every kind that polymux accepts, made by real programs.

    corpus = Corpus()
    corpus.path("mp4_video")        # a file, made at the first request and kept
    corpus.wave(Sound(samples=1))   # a 16-bit WAV of any sound

Files are cached in `build/corpus` of the repository or in `$POLYMUX_TEST_CORPUS`, so only the first
run makes them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from support import programs, reference
from support.cache import Cache
from support.media import MEDIA, Medium, build_medium
from support.sounds import Sound, sound_file

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORY = Path(__file__).resolve().parents[2]


class Corpus:
    def __init__(self) -> None:
        chosen = Path(os.environ.get("POLYMUX_TEST_CORPUS", REPOSITORY / "build/corpus"))
        for program in programs.PACKAGES:
            programs.find(program)
        self.cache = Cache(chosen)

    def path(self, name: str) -> Path:
        return self.build(name, MEDIA[name])

    def build(self, name: str, medium: Medium) -> Path:
        return build_medium(self.cache, name, medium)

    def wave(self, sound: Sound, codec: str = "pcm_s16le") -> Path:
        name = f"{sound.stem}-{codec}"
        return self.build(name, Medium(".wav", (sound,), ("-c:a", codec)))

    def sound(self, sound: Sound) -> Path:
        """The 32-bit float WAV that is the source of every file with `sound`."""
        return sound_file(self.cache, sound)

    def reference(
        self, source: Path, arguments: Sequence[str] = ("-b:a", "128k"), **options: Sequence[str]
    ) -> Path:
        """The MP3 that the ffmpeg program makes from `source`; see `reference.mp3`."""
        return reference.mp3(self.cache, source, arguments, **options)
