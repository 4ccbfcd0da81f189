#!/usr/bin/env python3
"""make_corpus.py FOLDER: the first inputs of the fuzz targets, small and of every kind.

FOLDER/convert and FOLDER/frame get real files made by the ffmpeg program (a twentieth of a second
each) and the broken ones of the test-suite's generators; FOLDER/stream chat streams in the shapes
of several servers; FOLDER/tags a few runs of bytes, since its input is choices and not a file.
Files that are there already stay, so a corpus that has grown is kept.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support import (
    chat_streams,
    hostile_id3,
    hostile_mkv,
    hostile_mp4,
    hostile_streams,
    hostile_text,
    hostile_wav,
)
from support.cache import Cache
from support.hostile import Case, Clips, Site, noise

MOST_BYTES = 16 * 1024
SECONDS = "0.05"
TONE = "sine=frequency=440:duration=0.05:sample_rate=44100"


def write(path: Path, content: bytes) -> None:
    """Adds one input, unless it is too long to be mutated well."""
    if len(content) <= MOST_BYTES and not path.exists():
        path.write_bytes(content)


def real_files(folder: Path) -> None:
    """One very short file of every format of the test-suite."""
    for name, (ending, arguments) in Clips.FORMATS.items():
        path = folder / f"{name}.{ending}"
        if path.exists():
            continue
        command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", TONE]
        subprocess.run([*command, *arguments, "-t", SECONDS, str(path)], check=True)


def broken_files(folder: Path) -> None:
    """The hostile files of the test-suite that are small enough."""
    modules = [hostile_id3, hostile_mkv, hostile_mp4, hostile_streams, hostile_text, hostile_wav]
    cases: list[Case] = [case for module in modules for case in module.cases()]
    with tempfile.TemporaryDirectory() as workshop:
        clips = Clips(Cache(folder.parent / "clips"))
        for case in cases:
            if case.id in ("V12", "V13", "V14"):
                continue  # bombs: long on purpose, and no seed for mutation
            place = Path(workshop) / str(case)
            place.mkdir()
            source = case.build(Site(place, place / "canary.wav", 9, clips))
            write(folder / f"{case}.bin", source.read_bytes())


def main() -> None:
    """Fills the folder named on the command line."""
    root = Path(sys.argv[1])
    for target in ("convert", "frame", "stream", "tags"):
        (root / target).mkdir(parents=True, exist_ok=True)
    real_files(root / "convert")
    broken_files(root / "convert")
    for path in (root / "convert").glob("mp3*"):
        write(root / "frame" / path.name, path.read_bytes())
    for name, stream in chat_streams.SERVERS.items():
        body = stream(chat_streams.words(6))
        write(root / "stream" / f"{name}.bin", b"\x00\x20\x03\xff" + body)
        write(root / "stream" / f"{name}-crlf.bin", b"\x40" * 4 + body.replace(b"\n", b"\r\n"))
    for size in (16, 200, 3000):
        write(root / "tags" / f"{size}.bin", noise(size, "tags"))


if __name__ == "__main__":
    main()
