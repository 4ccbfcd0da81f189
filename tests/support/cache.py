"""A cache of generated files. Several test processes share it, and each file is made once."""

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
    """Files by recipe (a text that describes how a file is made) and ffmpeg version."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".locks").mkdir(parents=True, exist_ok=True)

    def make(self, stem: str, suffix: str, recipe: str, build: Callable[[Path], None]) -> Path:
        """Return the file of `recipe`. If it is new, call `build` with a temporary path."""
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
        """Return a program's output about a file, and cache it by the file's bytes."""

        def build(fresh: Path) -> None:
            fresh.write_bytes(answer())

        return self.make("asked", "", f"{what} {path.suffix} {digest(path)}", build).read_bytes()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
