"""Whether two files hold the same MP3 frames, judged by a parser that is not polymux's.

The frames of an hour are many: `in_another_process` keeps them out of the measuring process, whose
size its children inherit.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import run


def compare(path: Path, reference: Path) -> dict[str, Any]:
    """Compares the audio frames of two MP3 files one by one.

    Returns:
        `equal` (all of them, and as many), `frames`, `expected` (how many the reference has),
        `same` (how many agree at their place), and `problem` when the file cannot be parsed.
    """
    from tests.support.mp3_frames import Mp3Error, audio_frames

    expected = audio_frames(reference)
    try:
        found = audio_frames(path)
    except (Mp3Error, OSError) as error:
        problem = {"equal": False, "frames": 0, "same": 0, "problem": str(error)}
        return problem | {"expected": len(expected)}
    same = sum(ours == theirs for ours, theirs in zip(found, expected, strict=False))
    return {
        "equal": found == expected,
        "frames": len(found),
        "expected": len(expected),
        "same": same,
    }


def in_another_process(pairs: list[tuple[Path, Path]]) -> list[dict[str, Any]]:
    """`compare` for each pair of file and reference.

    Raises:
        RuntimeError: A reference cannot be read.
    """
    given = "".join(f"{path}\t{reference}\n" for path, reference in pairs)
    usage = run([sys.executable, "-m", "benchmarks.mp3.identity"], stdin=given)
    if usage.status != 0:
        raise RuntimeError(usage.error)
    return [json.loads(line) for line in usage.stdout.splitlines()]


def main() -> None:
    """Reads pairs, one per line with a tab between, and answers with a line of JSON each."""
    for line in sys.stdin:
        path, reference = line.rstrip("\n").split("\t")
        print(json.dumps(compare(Path(path), Path(reference))))


if __name__ == "__main__":
    main()
