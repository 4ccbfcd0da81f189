"""`scripts/bench ray`: a batch and an engine on one machine, without Ray and with it.

Both run in a network of their own: Ray would listen on this machine's address.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Runs the measurement in a network of its own; its exit code."""
    parser = argparse.ArgumentParser(prog="scripts/bench ray", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--files", type=int, default=400, help="of a batch; default: 400")
    parser.add_argument("--requests", type=int, default=1000, help="of an engine; default: 1000")
    options = parser.parse_args()
    numbers = (options.rounds, options.files, options.requests)
    command = [
        "unshare", "--map-root-user", "--net", sys.executable, "-m", "benchmarks.ray.measure",
        *map(str, numbers),
    ]  # fmt: skip
    # Engines' processes find the one that does nothing.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
