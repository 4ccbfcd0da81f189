"""Peak memory of one conversion, at three minutes and at an hour."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.measure import run
from benchmarks.mp3.cases import REFERENCE
from benchmarks.mp3.conversions import OUTPUTS, convert_once
from benchmarks.mp3.inputs import Inputs
from benchmarks.mp3.peers.base import Peer
from benchmarks.mp3.peers.polymux import ONE_THREAD, OURS

PROGRAM = "polymux from C++, one thread"
HOUR_MP4 = "60 min MP4 with video"

Job = tuple[str, str]


def measure(inputs: Inputs, peers: Sequence[Peer], program: Path | None) -> dict[str, Any]:
    """Measure the peak resident memory of ffmpeg and polymux at CBR 128.

    Single-threaded programs run two at a time, because time does not count here. Programs that use
    both cores run alone. ffmpeg and polymux on two threads with an hour of MP4 are omitted: the
    long conversions report their peaks.

    Args:
        inputs: Generated files.
        peers: Peers with the commands of ffmpeg and polymux.
        program: The C++ example, if built.

    Returns:
        Input to contender to `peak_rss_bytes`, and `stages` for polymux in Python; or `error`.
    """
    print("memory, up to an hour of audio ...", flush=True)
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    sources = {
        "3 min WAV": inputs.wav,
        "60 min WAV": inputs.hour_wav,
        "3 min MP4 with video": inputs.mp4,
        HOUR_MP4: inputs.hour_mp4,
    }
    by_name = {peer.name: peer for peer in peers}
    single = (REFERENCE, ONE_THREAD, *([PROGRAM] if program else []))
    jobs = [(title, name) for title in sources for name in single]
    jobs.remove((HOUR_MP4, REFERENCE))
    parallel_jobs = [(title, OURS) for title in sources if title != HOUR_MP4]

    def one(job: Job) -> dict[str, Any]:
        title, name = job
        output = OUTPUTS / f"memory-{' '.join(job)}.mp3"
        if name == PROGRAM:
            return peak_of_program(program or Path(), sources[title], output)
        return peak(by_name[name], sources[title], output)

    with ThreadPoolExecutor(2) as pool:
        results = dict(zip(jobs, pool.map(one, jobs), strict=True))
    results |= {job: one(job) for job in parallel_jobs}
    names = (REFERENCE, OURS, *single[1:])
    return {
        title: {name: results[title, name] for name in names if (title, name) in results}
        for title in sources
    }


def peak(peer: Peer, source: Path, output: Path) -> dict[str, Any]:
    """Return the peak memory of one conversion, and the memory after each stage."""
    result = convert_once(peer, "cbr128", source, output)
    output.unlink(missing_ok=True)
    kept = {key: result[key] for key in ("error", "peak_rss_bytes") if key in result}
    return kept | ({"stages": result["inside"]["memory"]} if "inside" in result else {})


def peak_of_program(program: Path, source: Path, output: Path) -> dict[str, Any]:
    """Return the same for the C++ example, which uses one thread if it has one core."""
    core = min(os.sched_getaffinity(0))
    usage = run(["taskset", "-c", str(core), str(program), str(source), str(output)])
    output.unlink(missing_ok=True)
    return {"error": usage.error} if usage.status else {"peak_rss_bytes": usage.peak_rss_bytes}


def with_long_conversions(
    memory: Mapping[str, Any], long_case: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the peaks of every input and contender, including those of the long conversions."""
    peaks = {title: dict(entries) for title, entries in memory.items()}
    for name, entry in long_case.items():
        if entry["rounds"] and HOUR_MP4 in peaks:
            highest = max(round_["peak_rss_bytes"] for round_ in entry["rounds"])
            peaks[HOUR_MP4].setdefault(name, {"peak_rss_bytes": highest})
    return peaks
