"""The virtual environment of the Python peers, and all versions."""

import json
import subprocess
import sys
from collections.abc import Sequence

from benchmarks.measure import BUILD, ROOT, first_line
from benchmarks.mp3.peers.base import Peer

REQUIREMENTS = ROOT / "benchmarks" / "mp3" / "requirements.txt"
VENV = BUILD.parent / "bench-venv"
PYTHON = VENV / "bin" / "python"


def prepare(peers: Sequence[Peer]) -> dict[str, str]:
    """Install each peer separately, so a failure does not affect the others.

    Returns:
        Peer to the reason why it could not be installed; empty on success.
    """
    wanted = REQUIREMENTS.read_text()
    stamp = VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return {}
    print(f"installing the peers in {VENV.relative_to(ROOT)} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    problems = {}
    for peer in peers:
        for package in peer.packages:
            command = [str(PYTHON), "-m", "pip", "install", "-q", "-c", str(REQUIREMENTS), package]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                last = done.stderr.strip().splitlines()[-1:]
                problems[peer.name] = f"pip install {package}: {' '.join(last)}"
                break
    if not problems:
        stamp.write_text(wanted)
    return problems


def package_versions() -> dict[str, str]:
    """Return the version of every distribution in the peers' environment."""
    script = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.name.lower(): d.version for d in m.distributions()}))"
    )
    done = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, check=True)
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


def build_info() -> dict[str, object]:
    """Return polymux's build information: its version, and the versions and origin of FFmpeg and
    LAME."""
    script = (
        "import json, polymux._native._media as m; print(json.dumps(m.build_info(), default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    facts: dict[str, object] = json.loads(done.stdout)
    return facts


def versions(peers: Sequence[Peer]) -> dict[str, str]:
    """Return one line per peer."""
    installed = package_versions()
    found = {}
    for peer in peers:
        named = [f"{package} {installed.get(package, '?')}" for package in peer.packages]
        if peer.version_command:
            binary = peer.found(str(PYTHON))
            command = [argument.format(binary=binary) for argument in peer.version_command]
            named.append(first_line(command).partition(" Copyright")[0])
        if named:
            found[peer.name] = ", ".join(named)
    return found
