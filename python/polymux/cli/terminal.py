"""What people see on the terminal: messages, and one line of progress."""

from __future__ import annotations

import json
import shutil
import sys
from io import FileIO
from typing import TYPE_CHECKING, Any

from polymux._util.text import clock, printable, size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.media.results import Progress

_BAR_COLUMNS = 24
#: Control characters (C0 and C1) to their escapes.
_CONTROLS = {
    code: printable(chr(code))
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\n\t"
}


def standard_input() -> FileIO:
    """Standard input without a buffer: a native read from a pipe can then be interrupted."""
    return FileIO(sys.stdin.fileno(), closefd=False)


def standard_output() -> FileIO:
    """Standard output without a buffer, which a blocked native write would hold at exit."""
    return FileIO(sys.stdout.fileno(), "w", closefd=False)


def write_line(text: str) -> None:
    """Writes a line of results to standard output."""
    sys.stdout.write(printable(text) + "\n")


def write_text(text: str) -> None:
    """Writes a text of several lines to standard output: as it is, but safe on a terminal."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


def harmless(text: str) -> str:
    """The text without what would drive a terminal; line ends and tabs stay."""
    return text.translate(_CONTROLS)


def write_json(value: Any) -> None:
    """Writes one JSON value as one line of ASCII to standard output."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


class Screen:
    """Standard error: lines that stay, and a last line that shows the progress.

    Args:
        quiet: Show neither progress nor what went well; errors are shown all the same.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._draws = not quiet and sys.stderr.isatty()
        self._drawn = False
        self._thinks = False

    @property
    def draws(self) -> bool:
        """Whether progress is shown at all."""
        return self._draws

    def say(self, text: str) -> None:
        """Shows a line about something that went well."""
        if not self._quiet:
            self.complain(text)

    def say_text(self, text: str) -> None:
        """Shows a text of several lines that is no part of the result."""
        if not self._quiet:
            self.clear()
            sys.stderr.write(harmless(text if text.endswith("\n") else text + "\n"))
            sys.stderr.flush()

    def think(self, piece: str) -> None:
        """Shows a piece of a model's thinking; an empty one ends it, and its line."""
        if self._quiet or not (piece or self._thinks):
            return
        sys.stderr.write(harmless(piece) if piece else "\n")
        sys.stderr.flush()
        self._thinks = bool(piece)

    def complain(self, text: str) -> None:
        """Shows a line whatever happens."""
        self.clear()
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()

    def draw(self, text: str) -> None:
        """Replaces the progress line."""
        if not self._draws:
            return
        columns = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r{printable(text)[:columns]}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Removes the progress line."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def progress_line(progress: Progress) -> str:
    """One conversion: bar, position, size, speed and the time that is left."""
    parts = []
    if progress.fraction is None:
        parts.append(clock(progress.position_s))
    else:
        parts.append(f"{_bar(progress.fraction)} {progress.fraction:4.0%}")
        parts.append(f"{clock(progress.position_s)} of {clock(progress.duration_s or 0)}")
    parts.append(size(progress.bytes_written))
    if progress.speed is not None:
        parts.append(f"{progress.speed:.1f}x")
    if progress.eta_s is not None:
        parts.append(f"{clock(progress.eta_s)} left")
    return "  ".join(parts)


def transfer_line(
    verb: str, done: int, total: int | None, elapsed_s: float, before: int = 0
) -> str:
    """An upload or a download: bar, bytes and speed.

    Args:
        verb: What was done with the bytes.
        done: How many, with those `before`.
        total: Of how many; None where it is not known.
        elapsed_s: Seconds since the start.
        before: Bytes that were there at the start, and are no part of the speed.
    """
    parts = [f"{verb} {size(done)}"]
    if total:
        parts = [
            f"{_bar(done / total)} {min(1.0, done / total):4.0%}",
            f"{parts[0]} of {size(total)}",
        ]
    if elapsed_s > 0:
        parts.append(f"{size((done - before) / elapsed_s)}/s")
    return "  ".join(parts)


def overall_line(
    finished: int,
    total: int | None,
    running: Iterable[Progress],
    finished_s: float,
    elapsed_s: float,
) -> str:
    """Many conversions: how many are done, and how fast all of them together go.

    Args:
        finished: Inputs that are done, well or not.
        total: Inputs in all; None when not known yet.
        running: Progress of those in flight.
        finished_s: Seconds of audio in those that are done.
        elapsed_s: Seconds since the start.
    """
    now = list(running)
    audio_s = finished_s + sum(progress.position_s for progress in now)
    share = sum(progress.fraction or 0.0 for progress in now)
    parts = [f"{finished} of {total} files" if total else f"{finished} files"]
    if total:
        parts.insert(0, f"{_bar((finished + share) / total)} {(finished + share) / total:4.0%}")
    parts.append(f"{len(now)} running")
    if elapsed_s > 0:
        parts.append(f"{audio_s / elapsed_s:.1f}x")
    if total and finished + share > 0:
        parts.append(f"{clock(elapsed_s * (total - finished - share) / (finished + share))} left")
    return "  ".join(parts)


def _bar(fraction: float) -> str:
    filled = round(_BAR_COLUMNS * min(1.0, fraction))
    return "[" + "#" * filled + "-" * (_BAR_COLUMNS - filled) + "]"
