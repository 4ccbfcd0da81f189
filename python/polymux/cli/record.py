"""A few seconds from the microphone, by whatever program of this computer records."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.text import printable, shortened
from polymux.errors import InputUnreadableError, MissingDependencyError

if TYPE_CHECKING:
    from polymux.cli.terminal import Screen

#: What a program needs to start and to end, beyond the recording.
_GRACE_S = 10.0
#: Programs, how they record so many seconds into a file of WAV, and whether they end by themselves.
_PROGRAMS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("arecord", ("-q", "-f", "S16_LE", "-r", "44100", "-c", "1", "-d", "{whole}", "{file}"), True),
    ("parecord", ("--rate=44100", "--channels=1", "--file-format=wav", "{file}"), False),
    ("pw-record", ("--rate=44100", "--channels=1", "{file}"), False),
    ("ffmpeg", ("-v", "error", "-y", "-f", "pulse", "-i", "default", "-t", "{seconds}", "{file}"),
     True),
    ("ffmpeg", ("-v", "error", "-y", "-f", "alsa", "-i", "default", "-t", "{seconds}", "{file}"),
     True),
)  # fmt: skip


def recorded(seconds: float, screen: Screen) -> bytes:
    """What the microphone hears, as the bytes of a WAV file.

    Args:
        seconds: How long.
        screen: Told that it listens.

    Raises:
        MissingDependencyError: No program that records is installed.
        InputUnreadableError: There is no microphone, or it cannot be used.
    """
    found = [one for one in _PROGRAMS if shutil.which(one[0]) is not None]
    if not found:
        names = ", ".join(dict.fromkeys(name for name, _, _ in _PROGRAMS))
        raise MissingDependencyError(
            f"there is no program that records ({names}): install one, such as alsa-utils, or give "
            "a file"
        )
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="polymux-listen-") as folder:
        for name, words, ends in found:
            file = Path(folder) / "heard.wav"
            screen.draw(f"listening for {seconds:g} s")
            try:
                reason = _record(name, words, file, seconds, ends=ends)
            finally:
                screen.clear()
            if not reason:
                return file.read_bytes()
            reasons[name] = reason
    told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise InputUnreadableError(f"nothing could be recorded: is there a microphone? ({told})")


def _record(name: str, words: tuple[str, ...], file: Path, seconds: float, *, ends: bool) -> str:
    """Runs a program; gives why nothing was recorded, empty where something was."""
    places = {"file": str(file), "seconds": f"{seconds:g}", "whole": str(max(1, round(seconds)))}
    command = [name, *(word.format(**places) for word in words)]
    with subprocess.Popen(  # noqa: S603 - of our own words
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            said = process.communicate(timeout=seconds + (_GRACE_S if ends else 0))[1]
            in_time = ends
        except subprocess.TimeoutExpired:
            process.terminate()
            said = process.communicate()[1]
            in_time = not ends
        except BaseException:
            process.terminate()
            raise
    if in_time and process.returncode <= 0 and file.exists() and file.stat().st_size > 0:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    return shortened(printable(lines[-1] if lines else f"it ended with {process.returncode}"))
