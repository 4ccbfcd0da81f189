"""Terminal output: results, messages and a progress line."""

from __future__ import annotations

import os
import re
import sys
from io import FileIO

from polymux._util.text import clock, printable, size

TYPE_CHECKING = bool()  # see polymux/__init__.py
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TextIO

    from polymux.media.results import Progress

_BAR_COLUMNS = 24
#: Control characters (C0 and C1) to their escapes.
_CONTROLS = {
    code: printable(chr(code))
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\n\t"
}


#: Styles for `styled`; see ECMA-48, 8.3.117.
BOLD, RED, GREEN, YELLOW = "1", "31", "32", "33"


def has_colors(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colors; see https://no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str) -> str:
    """Return a text in a style, for a terminal with colors."""
    return f"\x1b[{style}m{text}\x1b[0m"


def standard_input() -> FileIO:
    """Return unbuffered standard input: a native read from a pipe can then be interrupted."""
    return FileIO(sys.stdin.fileno(), closefd=False)


def standard_output() -> FileIO:
    """Return unbuffered standard output, because a blocked native write would hang at exit."""
    return FileIO(sys.stdout.fileno(), "w", closefd=False)


def write_line(text: str, style: str = "") -> None:
    """Write a line of a result to standard output; its first word in a style on a terminal."""
    line = printable(text)
    if style and has_colors(sys.stdout):
        word, rest = re.match(r"(\S*)(.*)", line, re.DOTALL).groups()  # type: ignore[union-attr]
        line = styled(word, style) + rest
    sys.stdout.write(line + "\n")


def write_text(text: str) -> None:
    """Write a multi-line text to standard output, without control characters on a terminal."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)


def harmless(text: str) -> str:
    """Replace control characters other than newlines and tabs."""
    return text.translate(_CONTROLS)


def write_json(value: Any) -> None:
    """Write one JSON value as one line of ASCII to standard output."""
    from json import dumps  # Most commands do not need it to start.

    sys.stdout.write(dumps(value) + "\n")
    sys.stdout.flush()


class Screen:
    """Messages and a progress line on standard error.

    Args:
        quiet: Show only errors.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._draws = not quiet and sys.stderr.isatty()
        self._drawn = False
        self._thinks = False

    @property
    def draws(self) -> bool:
        """Whether progress is shown."""
        return self._draws

    def say(self, text: str) -> None:
        """Show a message unless quiet."""
        if not self._quiet:
            self.complain(text)

    def say_text(self, text: str) -> None:
        """Show a multi-line message unless quiet."""
        if not self._quiet:
            self.clear()
            sys.stderr.write(harmless(text if text.endswith("\n") else text + "\n"))
            sys.stderr.flush()

    def think(self, piece: str) -> None:
        """Show a piece of a model's reasoning. An empty piece ends it."""
        if self._quiet or not (piece or self._thinks):
            return
        sys.stderr.write(harmless(piece) if piece else "\n")
        sys.stderr.flush()
        self._thinks = bool(piece)

    def complain(self, text: str) -> None:
        """Show a message even if quiet."""
        self.clear()
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()

    def draw(self, text: str) -> None:
        """Replace the progress line."""
        if not self._draws:
            return
        from shutil import get_terminal_size  # It imports every compression module.

        columns = get_terminal_size().columns - 1
        sys.stderr.write(f"\r{printable(text)[:columns]}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Remove the progress line."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def progress_line(progress: Progress) -> str:
    """Return the progress of one conversion: bar, position, size, speed and remaining time."""
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
    """Return the progress of an upload or download: bar, bytes and speed.

    Args:
        verb: Past participle for the bytes, such as "downloaded".
        done: Bytes done, including `before`.
        total: Total bytes; None if unknown.
        elapsed_s: Seconds since the start.
        before: Bytes that existed at the start and do not count for the speed.
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
    """Return the progress of several conversions: number done and overall speed.

    Args:
        finished: Number of finished inputs, including failed ones.
        total: Number of inputs; None if unknown.
        running: Progress of the running conversions.
        finished_s: Seconds of audio in finished inputs.
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
