"""`scripts/bench spectrogram`: converting sound to images and back, compared with librosa."""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.measure import Usage, run
from benchmarks.spectrogram import inputs
from benchmarks.verdicts import Figure, Goal, plain

if TYPE_CHECKING:
    from pathlib import Path

PEER = "librosa"
CPU = Figure("CPU, s", plain("cpu_s"), 3)
WALL = Figure("wall, s", plain("wall_s"), 3)
MEL = Figure("convergence in mel bands", plain("mel_convergence"), 4)
ALL = Figure("in all frequencies", plain("convergence"), 4)


def judged(
    usage: Usage, *, environment: Environment, path: Path, sound: Path, who: str
) -> dict[str, Any]:
    """Return a run's figures, and how close its result is to the original."""
    measured: dict[str, Any] = json.loads(usage.stdout.splitlines()[-1])
    samples = path.with_suffix(f".{who}-play")
    judge = (environment.python, "-m", "benchmarks.spectrogram.judge")
    verdict = run([*judge, str(path), str(samples), str(sound)])
    if verdict.status != 0:
        raise SystemExit(f"the judge: {verdict.error}")
    close: dict[str, Any] = json.loads(verdict.stdout)
    return measured | close


def variant(
    environment: Environment, who: str, what: str, path: Path, sound: Path, *, judges: bool
) -> Variant:
    """Return a contender."""
    python = sys.executable if who == OURS else environment.python
    command = (python, "-m", "benchmarks.spectrogram.contenders", who, what, str(path))
    figures = partial(judged, environment=environment, path=path, sound=sound, who=who)
    return Variant(who, command, ours=who == OURS, figures=figures if judges else None)


def cases(environment: Environment, *, with_peers: bool) -> list[Case]:
    """Return the cases: playing each kind of sound, drawing one of them, and a round trip of
    each."""
    found = []
    for kind in inputs.KINDS:
        path, sound = inputs.picture(kind), inputs.sound(kind)
        variants = tuple(
            variant(environment, who, "play", path, sound, judges=with_peers)
            for who in (OURS, PEER)
        )
        goals = (
            Goal("librosa's wall time over ours", 5, PEER, WALL),
            Goal("librosa's CPU over ours", 5, PEER, CPU),
            Goal("convergence in mel bands over librosa's", 1, PEER, MEL, at_most=True),
            Goal("convergence in all frequencies over librosa's", 1, PEER, ALL, at_most=True),
        )
        title = f"{kind} of {inputs.SECONDS} s, played"
        found.append(Case(title, variants, (WALL, CPU, MEL, ALL), goals, who="library"))
    drawn = inputs.sound("chords")
    variants = tuple(
        variant(environment, who, "draw", drawn, drawn, judges=False) for who in (OURS, PEER)
    )
    quick = (Goal("librosa's wall time over ours", 2, PEER, WALL),)
    title = f"chords of {inputs.SECONDS} s, drawn"
    found.append(Case(title, variants, (WALL, CPU), quick, who="library"))
    return found + [round_trip(environment, kind) for kind in inputs.KINDS]


def round_trip(environment: Environment, kind: str) -> Case:
    """Convert sound to an image and back in one run."""
    path = inputs.sound(kind)
    variants = tuple(
        variant(environment, who, "round-trip", path, path, judges=False) for who in (OURS, PEER)
    )
    goals = (
        Goal("librosa's wall time over ours", 5, PEER, WALL),
        Goal("librosa's CPU over ours", 5, PEER, CPU),
    )
    title = f"{kind} of {inputs.SECONDS} s, drawn and played"
    return Case(title, variants, (WALL, CPU), goals, who="library")


def main() -> None:
    """Makes the sounds, measures."""
    options = arguments("spectrogram", __doc__)
    for program in ("ffmpeg", "espeak-ng"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed: sudo apt-get install {program}")
    environment = Environment("spectrogram")
    if options.with_peers:
        environment.prepare()
    versions = environment.versions() if options.with_peers else {}
    compete("spectrogram", cases(environment, with_peers=options.with_peers), options, versions)


if __name__ == "__main__":
    main()
