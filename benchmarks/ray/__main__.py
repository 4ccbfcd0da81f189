"""`scripts/bench ray`: a batch and an engine on one machine, without Ray and with it.

Both run in a separate network namespace, because Ray would listen on this machine's address.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Run the measurement in a separate network namespace and return its exit code."""
    parser = argparse.ArgumentParser(prog="scripts/bench ray", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--files", type=int, default=400, help="files per batch (default: 400)")
    parser.add_argument(
        "--requests", type=int, default=1000, help="requests to the engine (default: 1000)"
    )
    options = parser.parse_args()
    numbers = (options.rounds, options.files, options.requests)
    command = [
        "unshare", "--map-root-user", "--net", sys.executable, "-m", "benchmarks.ray.measure",
        *map(str, numbers),
    ]  # fmt: skip
    # Engine processes import the no-op engine from ROOT.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
