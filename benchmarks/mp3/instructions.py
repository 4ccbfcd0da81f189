"""Instruction counts by callgrind, which do not depend on clock speed or other processes."""

import re
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3.inputs import Inputs


def count(command: list[str]) -> dict[str, Any]:
    """Return the instructions of a whole process, including dynamic loading.

    Raises:
        OSError: valgrind is not installed.
    """
    profile = BUILD / "callgrind.out"
    usage = run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", *command])
    collected = re.search(r"Collected : (\d+)", usage.stderr)
    if usage.status != 0 or collected is None:
        return {"error": usage.error}
    return {"instructions": int(collected[1])}


def measure(inputs: Inputs, program: Path) -> dict[str, Any]:
    """Count for ffmpeg and the C++ example: a clip of one second, and ten seconds of the music.

    Returns:
        Input to contender to `instructions`, or `error`.
    """
    print("instruction counts ...", flush=True)
    output = str(BUILD / "callgrind.mp3")
    found: dict[str, Any] = {}
    for title, source in (("1 s WAV", inputs.wav_clips[0]), ("1 s M4A", inputs.m4a_clips[0])):
        ffmpeg = ["ffmpeg", "-nostdin", "-v", "error", "-y", "-i", str(source)]
        found[title] = {
            "ffmpeg": count([*ffmpeg, "-vn", "-b:a", "128k", output]),
            "polymux from C++": count([str(program), str(source), output]),
        }
    return found
