"""Batches that are killed and restarted: nothing may be lost, and nothing may be done twice."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import polymux

from support.wav_files import wave_file

if TYPE_CHECKING:
    from pathlib import Path

BITRATE = "64k"
BATCH = (
    "batch",
    "convert-to-mp3",
    "in",
    "--output-dir",
    "out",
    "--bitrate",
    BITRATE,
    "--workers",
    "2",
)
MANIFEST = "polymux-batch.db"


def noise(seed: int, seconds: float = 0.1) -> bytes:
    return wave_file(random.Random(seed).randbytes(2 * round(seconds * 16_000)), 16_000)


class BatchKills:
    """A folder of inputs, and the outputs expected from it."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.out = folder, folder / "out"
        #: Output name to expected hash.
        self.expected: dict[str, str] = {}
        #: Output name to inode and time, as seen after a kill. An output is never written again.
        self.seen: dict[str, tuple[int, int]] = {}
        for number in range(count):
            data = noise(number)
            place = folder / "in" / f"{number % 7}" / f"{number:04}.wav"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            converted = polymux.convert_to_mp3(data, bitrate=BITRATE).read()
            name = f"{number % 7}/{number:04}.mp3"
            self.expected[name] = hashlib.sha256(converted).hexdigest()
        (folder / "in" / "broken.wav").write_bytes(b"this is no sound")

    def files(self) -> dict[str, Path]:
        found = (path for path in self.out.rglob("*") if path.is_file())
        return {
            name: path
            for path in found
            if not (name := path.relative_to(self.out).as_posix()).startswith(
                (MANIFEST, ".polymux")
            )
        }

    def check(self) -> None:
        """Check that finished outputs exist, are complete, and have not changed."""
        files = self.files()
        marks = {}
        for name, path in files.items():
            status = path.stat()
            marks[name] = status.st_ino, status.st_mtime_ns
            assert hashlib.sha256(path.read_bytes()).hexdigest() == self.expected[name], name
        again = {name for name, mark in self.seen.items() if marks.get(name) != mark}
        assert not again, f"outputs written twice or lost: {sorted(again)}"
        self.seen = marks
        if not (self.out / MANIFEST).exists():
            return
        states, names = self.rows()
        done = {name.decode() for item, name in names if states[item] == "done"}
        assert done <= files.keys()

    def rows(self) -> tuple[dict[int, str], list[tuple[int, bytes]]]:
        with closing(sqlite3.connect(self.out / MANIFEST)) as manifest:
            assert manifest.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            try:
                states: dict[int, Any] = dict(manifest.execute("SELECT id, state FROM items"))
            except sqlite3.OperationalError:  # killed before it created its tables
                return {}, []
            return states, manifest.execute("SELECT item, name FROM outputs").fetchall()

    def check_complete(self) -> None:
        """Check that all outputs and no other files exist."""
        states, _ = self.rows()
        assert sorted(states.values()) == ["done"] * len(self.expected) + ["failed"]
        assert self.files().keys() == self.expected.keys()
        assert {path.name for path in self.out.iterdir() if path.is_file()} <= {
            MANIFEST, f"{MANIFEST}.lock", f"{MANIFEST}-journal",
        }  # fmt: skip
        assert not (self.out / ".polymux-batch").exists()
