"""A folder of generated files, each made once even when several test processes ask for it."""

from __future__ import annotations

import fcntl
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from support import programs

if TYPE_CHECKING:
    from collections.abc import Callable


class Cache:
    """Files keyed by the text that says how they are made and by the ffmpeg program's version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".locks").mkdir(parents=True, exist_ok=True)

    def make(self, stem: str, suffix: str, recipe: str, build: Callable[[Path], None]) -> Path:
        """Returns the file of `recipe`, calling `build` with a temporary path if it is new."""
        key = hashlib.sha256(f"{programs.ffmpeg_version()}\n{recipe}".encode()).hexdigest()[:16]
        path = self.folder / f"{stem}-{key}{suffix}"
        if path.exists():
            return path
        with (self.folder / ".locks" / path.name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                with tempfile.TemporaryDirectory(dir=self.folder, prefix=".new-") as workshop:
                    fresh = Path(workshop) / f"{stem}{suffix}"
                    build(fresh)
                    fresh.replace(path)
        return path

    def ask(self, what: object, path: Path, answer: Callable[[], bytes]) -> bytes:
        """What a program says of a file: it is asked once about the same bytes."""

        def build(fresh: Path) -> None:
            fresh.write_bytes(answer())

        return self.make("asked", "", f"{what} {path.suffix} {digest(path)}", build).read_bytes()


def digest(path: Path) -> str:
    """SHA-256 of a file, to key what is made from it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
