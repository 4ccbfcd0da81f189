"""Peak memory of one conversion, at three minutes and at an hour."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3.conversions import OURS, REFERENCE, convert_once
from benchmarks.mp3.inputs import Inputs
from benchmarks.mp3.peers.base import Peer

PROGRAM = "polymux from C++"


def measure(inputs: Inputs, peers: Sequence[Peer], program: Path | None) -> dict[str, Any]:
    """Peak resident memory of ffmpeg and polymux. Time does not count here: two run at once.

    Args:
        inputs: The generated files.
        peers: Where ffmpeg and polymux are found.
        program: The C++ example, if it has been built.

    Returns:
        Input to contender to `peak_rss_bytes`, and `stages` for polymux in Python; or `error`.
    """
    print("memory, up to an hour of audio ...", flush=True)
    sources = {
        "3 min WAV": inputs.wav,
        "60 min WAV": inputs.hour_wav,
        "3 min MP4 with video": inputs.mp4,
        "60 min MP4 with video": inputs.hour_mp4,
    }
    by_name = {peer.name: peer for peer in peers if peer.name in (REFERENCE, OURS)}
    contenders = [*by_name, *([PROGRAM] if program else [])]
    jobs = [(title, name) for title in sources for name in contenders]

    def one(job: tuple[str, str]) -> dict[str, Any]:
        title, name = job
        output = BUILD / "mp3-outputs" / f"memory-{jobs.index(job)}.mp3"
        result: dict[str, Any]
        if name == PROGRAM:
            usage = run([str(program), str(sources[title]), str(output)])
            result = {"error": usage.error} if usage.status else dict(vars(usage))
        else:
            result = convert_once(by_name[name], "cbr128", sources[title], output)
        output.unlink(missing_ok=True)
        kept = {key: result[key] for key in ("error", "peak_rss_bytes") if key in result}
        return kept | ({"stages": result["inside"]["memory"]} if "inside" in result else {})

    (BUILD / "mp3-outputs").mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, jobs))
    found: dict[str, Any] = {title: {} for title in sources}
    for (title, name), result in zip(jobs, results, strict=True):
        found[title][name] = result
    return found
