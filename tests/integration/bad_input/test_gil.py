"""Another Python thread runs on while a conversion works."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support import programs

if TYPE_CHECKING:
    from pathlib import Path

ROUNDS = 3
ATTEMPTS = 3

# One thread counts; how much of the time it could have run is what the conversion leaves to it.
# "kept" is the share of the slice in which it ran or waited for a core: what is missing is time
# in which it waited for the interpreter's lock. "speed" is what it counted a second, beside the
# conversion and beside an ffmpeg that does the same work, in turns.
COUNTING = """
import io, json, statistics, subprocess, sys, threading, time
import polymux

source, kind, ffmpeg, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
SLICE_S = 0.4

def schedule():
    ran, waited, _ = open(f"/proc/self/task/{threading.get_native_id()}/schedstat").read().split()
    return (int(ran) + int(waited)) / 1e9

def count():
    begun, before, counted = time.monotonic(), schedule(), 0
    while (now := time.monotonic()) - begun < SLICE_S:
        for _ in range(1000):
            counted += 1
    return counted / (now - begun), (schedule() - before) / (now - begun)

def beside_conversion():
    stop, started = threading.Event(), threading.Event()
    def on_progress(progress):
        started.set()
        if stop.is_set():
            raise SystemExit
    def convert():
        file = open(source, "rb") if kind == "file object" else source
        polymux.convert_to_mp3(file, threads=1, bitrate="128k", on_progress=on_progress)
    thread = threading.Thread(target=convert)
    thread.start()
    started.wait(10)
    result = count()
    stop.set()
    thread.join()
    return result

def beside_ffmpeg():
    command = [ffmpeg, "-nostdin", "-v", "quiet", "-threads", "1", "-i", source,
               "-b:a", "128k", "-f", "mp3", "-y", "/dev/null"]
    process = subprocess.Popen(command)
    time.sleep(0.2)
    result = count()
    process.kill()
    process.wait()
    return result

pairs = [(beside_conversion(), beside_ffmpeg()) for _ in range(rounds)]
print(json.dumps({
    "kept": statistics.median(ours[1] for ours, _ in pairs),
    "kept_beside_ffmpeg": statistics.median(theirs[1] for _, theirs in pairs),
    "speeds": [ours[0] / theirs[0] for ours, theirs in pairs],
}))
"""


@pytest.mark.parametrize("kind", ["path", "file object"])
def test_a_python_thread_keeps_its_speed(kind: str, long_wave: Path) -> None:
    command = [sys.executable, "-c", COUNTING, long_wave, kind, programs.find("ffmpeg")]
    seen: dict[str, Any] = {}
    # Other programs on the machine disturb slices, and with bad luck a whole measurement; a lock
    # that is held disturbs them all.
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            [*command, str(ROUNDS)], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        if seen["kept"] >= 0.95 * seen["kept_beside_ffmpeg"] and max(seen["speeds"]) >= 0.95:
            return
    raise AssertionError(seen)
