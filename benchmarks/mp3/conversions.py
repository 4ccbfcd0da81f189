"""Single files: every peer in turn, round after round."""

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import BUILD, run
from benchmarks.mp3 import environment, identity
from benchmarks.mp3.cases import Case
from benchmarks.mp3.peers.base import Mode, Peer

#: Rounds of the peers that no goal of the case refers to.
SOME_ROUNDS = 2
OUTPUTS = BUILD / "mp3-outputs"


def convert_once(peer: Peer, mode: Mode, source: Path, destination: Path) -> dict[str, Any]:
    """Convert once in a separate process.

    Returns:
        `cpu_s`, `wall_s` and `peak_rss_bytes` of the whole process; for Python packages also
        `inside`, the figures without interpreter and imports; or `error`.
    """
    destination.unlink(missing_ok=True)
    python = str(environment.PYTHON) if peer.packages else sys.executable
    try:
        usage = run(peer.command(python, mode, source, destination), env=peer.variables)
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
    cases: Sequence[Case], peers: Sequence[Peer], broken: Mapping[str, str], rounds: int
) -> dict[str, Any]:
    """Run every case.

    Args:
        cases: Inputs, settings and peers.
        peers: The converters; must include the reference.
        broken: Peer to the reason why it could not be installed.
        rounds: Rounds of each converter, in turn with the others.

    Returns:
        Case to peer to `rounds` (each with its number), `identity`, `bytes` and `error`.
    """
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    return {case.title: measure_case(case, peers, broken, rounds) for case in cases}


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def taking_part(case: Case, peers: Sequence[Peer], number: int) -> list[Peer]:
    """Return the peers of a round, in an order that varies which peer runs before which."""
    names = case.names if number < SOME_ROUNDS else case.always
    chosen = [peer for peer in peers if peer.name in names]
    first = number % len(chosen)
    return [*chosen[first:], *chosen[:first]]


def measure_case(
    case: Case, peers: Sequence[Peer], broken: Mapping[str, str], rounds: int
) -> dict[str, Any]:
    """Run one case. A peer that fails is not run again and stays in the table with its error."""
    print(f"{case.title} ...", flush=True)
    sha256(case.source)  # loads the source into the page cache
    involved = [peer for peer in peers if peer.name in case.names]
    found: dict[str, Any] = {
        peer.name: {"rounds": [], "error": broken.get(peer.name)} for peer in involved
    }
    digests: dict[str, set[str]] = {peer.name: set() for peer in involved}
    for number in range(rounds):
        for peer in taking_part(case, involved, number):
            entry = found[peer.name]
            if entry["error"]:
                continue
            output = OUTPUTS / f"{peer.name}.mp3"
            result = convert_once(peer, case.mode, case.source, output)
            entry["error"] = result.get("error")
            if entry["error"] is None:
                result.get("inside", {}).pop("memory", None)  # memory is measured separately
                entry["rounds"].append({"round": number, **result})
                digests[peer.name].add(sha256(output))
    judge(involved, found, digests)
    return found


def judge(peers: Sequence[Peer], found: Mapping[str, Any], digests: Mapping[str, set[str]]) -> None:
    """Add to each peer's entry how its frames compare, and whether all rounds wrote the same file.

    Files with equal digests have equal frames, so the last round represents every round.
    """
    done = [peer for peer in peers if found[peer.name]["error"] is None]
    files = {peer.name: OUTPUTS / f"{peer.name}.mp3" for peer in done}
    outcomes = identity.in_another_process(
        [(files[peer.name], files[peer.frames_of]) for peer in done]
    )
    for peer, outcome in zip(done, outcomes, strict=True):
        entry = found[peer.name]
        entry["identity"] = outcome | {"always_the_same": len(digests[peer.name]) == 1}
        entry["bytes"] = files[peer.name].stat().st_size
