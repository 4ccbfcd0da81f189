"""Two hundred short clips on two cores: start-up costs at least as much as encoding."""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3 import identity
from benchmarks.mp3.conversions import SOME_ROUNDS
from benchmarks.mp3.inputs import Inputs

CORES = 2
FFMPEG = ("ffmpeg", "-nostdin", "-v", "error", "-y", "-i")

IN_TURN = "ffmpeg, one process each, one after the other"
TWO_AT_A_TIME = "ffmpeg, one process each, two at a time (xargs -P2)"
LOOP = "polymux.convert_to_mp3 in a loop"
MANY = "polymux.convert_many"
WAYS = (IN_TURN, TWO_AT_A_TIME, LOOP, MANY)


def convert_all(contender: str, sources: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Convert every clip with one contender into an empty folder.

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
    """Return the number of files whose frames differ from the file with the same name in another
    folder."""
    expected = sorted(reference.glob("*.mp3"))
    outcomes = identity.in_another_process([(folder / path.name, path) for path in expected])
    return sum(not outcome["equal"] for outcome in outcomes)


@dataclass(frozen=True)
class Kind:
    """Clips of one length and format, and the contenders that convert them.

    The contenders in `sometimes` run only in the first rounds, because no goal refers to them.
    """

    title: str
    sources: tuple[Path, ...]
    sometimes: tuple[str, ...] = ()


ALWAYS = (IN_TURN, MANY)
OF_ONE_SECOND, OF_FIVE_SECONDS = "of 1 s", "of 5 s"


def measure(inputs: Inputs, rounds: int) -> dict[str, Any]:
    """Run all contenders in turn, round after round, on the first two cores.

    Returns:
        Kind of clip to contender to `rounds` (each with its number), `error` and, for polymux, the
        number of `differing` files in all rounds.
    """
    kinds = (
        Kind(f"{OF_ONE_SECOND}, WAV", inputs.wav_clips, (TWO_AT_A_TIME, LOOP)),
        Kind(f"{OF_ONE_SECOND}, AAC in M4A", inputs.m4a_clips),
        Kind(f"{OF_FIVE_SECONDS}, WAV", inputs.five_second_clips),
    )
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(everywhere)[:CORES])
    try:
        return {kind.title: measure_kind(kind, rounds) for kind in kinds}
    finally:
        os.sched_setaffinity(0, everywhere)


def measure_kind(kind: Kind, rounds: int) -> dict[str, Any]:
    """Run all rounds of one kind of clip."""
    print(f"{len(kind.sources)} clips {kind.title} ...", flush=True)
    names = [name for name in WAYS if name in (*ALWAYS, *kind.sometimes)]
    folders = {name: BUILD / "mp3-clips" / str(WAYS.index(name)) for name in names}
    found: dict[str, Any] = {name: {"rounds": [], "error": None} for name in names}
    for name, folder in folders.items():  # fills the page cache
        found[name]["error"] = convert_all(name, kind.sources[:4], folder).get("error")
    for number in range(rounds):
        ran = []
        for name, folder in folders.items():
            skipped = name in kind.sometimes and number >= SOME_ROUNDS
            if skipped or found[name]["error"]:
                continue
            result = convert_all(name, kind.sources, folder)
            found[name]["error"] = result.get("error")
            if result.get("error") is None:
                found[name]["rounds"].append({"round": number, **result})
                ran.append(name)
        if IN_TURN in ran:
            for name in (name for name in ran if name in (LOOP, MANY)):
                wrong = differing(folders[name], folders[IN_TURN])
                found[name]["differing"] = found[name].get("differing", 0) + wrong
    return found
