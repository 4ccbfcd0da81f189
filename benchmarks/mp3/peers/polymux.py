"""polymux itself, measured like every other Python package."""

import os
from typing import Any

from benchmarks.mp3.peers.base import Convert, Mode, Peer, serve

#: Name in the tables and for the other peers.
OURS = "polymux"
ONE_THREAD = "polymux, one thread"
FAST = "polymux, preset fast"

THREADS = "BENCHMARK_THREADS"
PRESET = "BENCHMARK_PRESET"

PEERS = (
    Peer(
        name=OURS,
        settings=(
            '`convert_to_mp3(..., threads=2)` with `bitrate="128k"` or `vbr_quality=2`, preset'
            ' "ffmpeg"; waits until the file is safe on the disk, as nobody else does'
        ),
        module=__name__,
        variables={THREADS: "2"},
    ),
    Peer(
        name=ONE_THREAD,
        settings=(
            "the same with `threads=1`, at VBR also with `exact=True`: one encoder from beginning"
            " to end"
        ),
        module=__name__,
        variables={THREADS: "1"},
    ),
    Peer(
        name=FAST,
        settings=(
            'as polymux, with `preset="fast"`, which is LAME\'s quality 7; its frames are compared'
            " with those of `ffmpeg -compression_level 7`"
        ),
        module=__name__,
        variables={THREADS: "2", PRESET: "fast"},
        frames_of="ffmpeg -compression_level 7",
    ),
)


def load() -> Convert:
    import polymux
    import polymux._native._media  # counts as loading, not as conversion

    threads = int(os.environ[THREADS])
    preset = os.environ.get(PRESET, "ffmpeg")

    def convert(source: str, destination: str, mode: Mode) -> dict[str, int]:
        wanted: dict[str, Any] = {"threads": threads, "preset": preset}
        if mode == "cbr128":
            wanted["bitrate"] = "128k"
        else:
            wanted["vbr_quality"] = 2
            wanted |= {"exact": True} if threads == 1 else {}
        converted = polymux.convert_to_mp3(source, destination, **wanted)
        return {"seams": converted.report.seams}

    return convert


if __name__ == "__main__":
    serve(load)
