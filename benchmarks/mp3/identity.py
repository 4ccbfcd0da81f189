"""Whether two files hold the same MP3 frames, judged by a parser that is not polymux's."""

from pathlib import Path

from tests.support.mp3_frames import Mp3Error, audio_frames


def compare(path: Path, reference: Path) -> dict[str, object]:
    """Compares the audio frames of two MP3 files one by one.

    Returns:
        `equal` (all of them, and as many), `frames`, `expected` (how many the reference has),
        `same` (how many agree at their place), and `problem` when the file cannot be parsed.
    """
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
