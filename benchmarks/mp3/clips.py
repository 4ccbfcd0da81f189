"""Two hundred clips of one second on two cores: where start-up costs more than encoding."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3 import identity
from benchmarks.mp3.inputs import Inputs

CORES = 2
FFMPEG = ("ffmpeg", "-nostdin", "-v", "error", "-y", "-i")

IN_TURN = "ffmpeg, one process each, one after the other"
TWO_AT_A_TIME = "ffmpeg, one process each, two at a time (xargs -P2)"
LOOP = "polymux.convert_to_mp3 in a loop"
MANY = "polymux.convert_many"


def convert_all(contender: str, sources: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Converts every clip in one way, into an empty folder.

    Returns:
        `wall_s` and `cpu_s` from the start of the first process to the end of the last, and
        `inside` for polymux; or `error`.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = [f"{source} -vn -b:a 128k {folder / source.stem}.mp3" for source in sources]
    if contender == IN_TURN:
        usage = run(
            ["sh", "-e", "-s"], stdin="".join(f"{' '.join(FFMPEG)} {line}\n" for line in lines)
        )
    elif contender == TWO_AT_A_TIME:
        usage = run(["xargs", "-P", str(CORES), "-L", "1", *FFMPEG], stdin="\n".join(lines) + "\n")
    else:
        way = ["--in-turn"] if contender == LOOP else []
        command = [sys.executable, "-m", "benchmarks.mp3.many", *way, str(folder)]
        usage = run(command, stdin="\n".join(map(str, sources)))
    if usage.status != 0:
        return {"error": usage.error}
    inside = {} if contender in (IN_TURN, TWO_AT_A_TIME) else {"inside": json.loads(usage.stdout)}
    return {"wall_s": usage.wall_s, "cpu_s": usage.cpu_s, **inside}


def differing(folder: Path, reference: Path) -> int:
    """How many files of a folder do not hold the frames of their namesakes in another."""
    expected = sorted(reference.glob("*.mp3"))
    return sum(not identity.compare(folder / path.name, path)["equal"] for path in expected)


def measure(inputs: Inputs, rounds: int) -> dict[str, Any]:
    """Runs all four ways in turn, round after round, on the first two cores.

    Returns:
        Kind of clip to way to `rounds`, `error` and, for polymux, `differing` files.
    """
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(everywhere)[:CORES])
    try:
        return {
            "WAV": measure_kind("WAV", inputs.wav_clips, rounds),
            "AAC in M4A": measure_kind("AAC in M4A", inputs.m4a_clips, rounds),
        }
    finally:
        os.sched_setaffinity(0, everywhere)


def measure_kind(title: str, sources: Sequence[Path], rounds: int) -> dict[str, Any]:
    """All rounds of one kind of clip."""
    print(f"{len(sources)} clips of 1 s, {title} ...", flush=True)
    folders = {
        contender: BUILD / "mp3-clips" / str(number)
        for number, contender in enumerate((IN_TURN, TWO_AT_A_TIME, LOOP, MANY))
    }
    found: dict[str, Any] = {name: {"rounds": [], "error": None} for name in folders}
    for name, folder in folders.items():  # once unmeasured: libraries and clips into the page cache
        found[name]["error"] = convert_all(name, sources[:4], folder).get("error")
    for _ in range(rounds):
        for name, folder in folders.items():
            if found[name]["error"] is None:
                result = convert_all(name, sources, folder)
                found[name]["error"] = result.get("error")
                if result.get("error") is None:
                    found[name]["rounds"].append(result)
    for name in (LOOP, MANY):
        if found[name]["error"] is None:
            found[name]["differing"] = differing(folders[name], folders[IN_TURN])
    return found
