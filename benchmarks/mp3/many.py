"""Convert the files listed on standard input into a folder, all at once or `--in-turn`."""

import json
import sys
import time
from pathlib import Path

from benchmarks.mp3.peers.base import cpu_s


def main() -> None:
    folder = Path(sys.argv[-1])
    sources = [Path(line) for line in sys.stdin.read().splitlines()]
    import polymux

    began = time.perf_counter()
    if "--in-turn" in sys.argv:
        for source in sources:
            polymux.convert_to_mp3(source, folder / f"{source.stem}.mp3", bitrate="128k")
    else:
        outcomes = polymux.convert_many(sources, folder, bitrate="128k")
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if failed:
            sys.exit(f"{len(failed)} conversions failed: {failed[0].error}")
    print(json.dumps({"wall_s": time.perf_counter() - began, "whole_cpu_s": cpu_s()}))


if __name__ == "__main__":
    main()
