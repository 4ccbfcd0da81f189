"""Compare the frames of two MP3 files with a parser that is independent of polymux.

An hour has many frames. `in_another_process` keeps them out of the measuring process, because
children inherit its size.
"""

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import run


def compare(path: Path, reference: Path) -> dict[str, Any]:
    """Compare the audio frames of two MP3 files one by one.

    Returns:
        `equal` (same number and all equal), `frames`, `expected` (number of frames in the
        reference), `same` (number of equal frames), and `problem` if the file cannot be parsed.
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
    """Run `compare` for each pair of file and reference.

    Raises:
        RuntimeError: A reference cannot be read.
    """
    given = "".join(f"{path}\t{reference}\n" for path, reference in pairs)
    usage = run([sys.executable, "-m", "benchmarks.mp3.identity"], stdin=given)
    if usage.status != 0:
        raise RuntimeError(usage.error)
    return [json.loads(line) for line in usage.stdout.splitlines()]


def main() -> None:
    """Read one tab-separated pair per line and print a line of JSON for each."""
    for line in sys.stdin:
        path, reference = line.rstrip("\n").split("\t")
        print(json.dumps(compare(Path(path), Path(reference))))


if __name__ == "__main__":
    main()
