"""Records from the microphone with an installed recording program."""

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

#: Additional time for a program to start and to end, in seconds.
_GRACE_S = 10.0
#: Programs, their arguments to record a WAV file, and whether they end by themselves.
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
    """Record from the microphone and return a WAV file.

    Args:
        seconds: Duration in seconds.
        screen: Shows that the recording runs.

    Raises:
        MissingDependencyError: No recording program is installed.
        InputUnreadableError: There is no microphone, or it cannot be used.
    """
    found = [one for one in _PROGRAMS if shutil.which(one[0]) is not None]
    if not found:
        names = ", ".join(dict.fromkeys(name for name, _, _ in _PROGRAMS))
        raise MissingDependencyError(
            f"missing dependency: a program that records sound ({names}). Install one, such as "
            "arecord from the package alsa-utils, or pass a file"
        )
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="polymux-listen-") as folder:
        for name, words, ends in found:
            file = Path(folder) / "heard.wav"
            screen.draw(f"recording for {seconds:g} s")
            try:
                reason = _record(name, words, file, seconds, ends=ends)
            finally:
                screen.clear()
            if not reason:
                return file.read_bytes()
            reasons[name] = reason
    failures = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
    raise InputUnreadableError(f"recording failed ({failures}). Check the microphone")


def _record(name: str, words: tuple[str, ...], file: Path, seconds: float, *, ends: bool) -> str:
    """Run a program. Return an error message; empty on success."""
    places = {"file": str(file), "seconds": f"{seconds:g}", "whole": str(max(1, round(seconds)))}
    command = [name, *(word.format(**places) for word in words)]
    with subprocess.Popen(  # noqa: S603 - arguments from the table above
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            stderr = process.communicate(timeout=seconds + (_GRACE_S if ends else 0))[1]
            in_time = ends
        except subprocess.TimeoutExpired:
            process.terminate()
            stderr = process.communicate()[1]
            in_time = not ends
        except BaseException:
            process.terminate()
            raise
    if in_time and process.returncode <= 0 and file.exists() and file.stat().st_size > 0:
        return ""
    lines = stderr.decode(errors="replace").strip().splitlines()
    return shortened(printable(lines[-1] if lines else f"exit code {process.returncode}"))
