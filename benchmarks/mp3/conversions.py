"""Three minutes at a time: every peer in turn, round after round."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3 import environment, identity
from benchmarks.mp3.inputs import Inputs
from benchmarks.mp3.peers.base import Mode, Peer

REFERENCE = "ffmpeg"
OURS = "polymux"


@dataclass(frozen=True)
class Case:
    """One input and one setting."""

    title: str
    source: Path
    mode: Mode


def cases(inputs: Inputs) -> tuple[Case, ...]:
    """What is converted."""
    return (
        Case("3 min WAV to CBR 128", inputs.wav, "cbr128"),
        Case("3 min WAV to VBR V2", inputs.wav, "v2"),
        Case("3 min AAC in MP4 with video to CBR 128", inputs.mp4, "cbr128"),
    )


def convert_once(peer: Peer, mode: Mode, source: Path, destination: Path) -> dict[str, Any]:
    """One conversion in a process of its own.

    Returns:
        `cpu_s`, `wall_s` and `peak_rss_bytes` of the whole process; for Python packages also
        `inside`, their own account without interpreter and imports; or `error`.
    """
    destination.unlink(missing_ok=True)
    python = sys.executable if peer.name == OURS else str(environment.PYTHON)
    try:
        usage = run(peer.command(python, mode, source, destination))
    except OSError as error:
        return {"error": f"cannot be run: {error.strerror}"}
    if usage.status != 0:
        return {"error": usage.error}
    round_: dict[str, Any] = {
        "cpu_s": usage.cpu_s,
        "wall_s": usage.wall_s,
        "peak_rss_bytes": usage.peak_rss_bytes,
    }
    if peer.program is None:
        round_["inside"] = json.loads(usage.stdout)
    return round_


def measure(
    inputs: Inputs, peers: Sequence[Peer], broken: Mapping[str, str], rounds: int
) -> dict[str, Any]:
    """Runs every case.

    Args:
        inputs: The generated files.
        peers: The converters; the reference must be among them.
        broken: Peer to why it could not be installed.
        rounds: How often each converter runs, in turn with the others.

    Returns:
        Case to peer to `rounds`, `identity` and `error`.
    """
    return {case.title: measure_case(case, peers, broken, rounds) for case in cases(inputs)}


def measure_case(
    case: Case, peers: Sequence[Peer], broken: Mapping[str, str], rounds: int
) -> dict[str, Any]:
    """Runs one case; a peer that fails drops out with its error and stays in the table."""
    print(f"{case.title} ...", flush=True)
    folder = BUILD / "mp3-outputs"
    folder.mkdir(parents=True, exist_ok=True)
    case.source.read_bytes()  # from now on in the page cache
    found: dict[str, Any] = {
        peer.name: {"rounds": [], "error": broken.get(peer.name)} for peer in peers
    }
    digests: dict[str, set[str]] = {peer.name: set() for peer in peers}
    for number in range(rounds):
        first = number % len(peers)  # nobody always runs after the same neighbour
        for peer in (*peers[first:], *peers[:first]):
            entry = found[peer.name]
            if entry["error"]:
                continue
            output = folder / f"{peer.name}.mp3"
            result = convert_once(peer, case.mode, case.source, output)
            entry["error"] = result.get("error")
            if entry["error"] is None:
                result.get("inside", {}).pop("memory", None)  # that is another part's subject
                entry["rounds"].append(result)
                digests[peer.name].add(hashlib.sha256(output.read_bytes()).hexdigest())
    for peer in peers:
        entry = found[peer.name]
        if entry["error"] is None:
            outcome = identity.compare(folder / f"{peer.name}.mp3", folder / f"{REFERENCE}.mp3")
            entry["identity"] = outcome | {"always_the_same": len(digests[peer.name]) == 1}
            entry["bytes"] = (folder / f"{peer.name}.mp3").stat().st_size
    return found
