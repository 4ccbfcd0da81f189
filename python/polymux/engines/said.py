"""What an engine's process says on its standard error: a log gets as much of it as it can hold."""

from __future__ import annotations

import logging
from collections import deque

from polymux._util.text import printable, shortened

_log = logging.getLogger("polymux.engines")
_KEPT_LINES = 50
_LONGEST_LINE = 500
#: Of lines, that are logged in so many seconds: a library that warns of each frame fills a disk.
_LOGGED_LINES = 500
_WITHIN_S = 10.0


class Said:
    """Takes what comes through the pipe, however much that is.

    Args:
        name: Whose it is, as the log calls it.

    Attributes:
        lines: The last ones, for people.
    """

    def __init__(self, name: str) -> None:
        """Nothing was said."""
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._name = name
        self._rest = b""
        self._since = 0.0
        self._logged = 0
        self._left_out = 0

    def take(self, piece: bytes, now: float) -> None:
        """A piece of any length.

        Args:
            piece: Bytes; empty at the end, when what has no end of a line is one too.
            now: By any clock that only goes forward, in seconds.
        """
        if now - self._since >= _WITHIN_S or not piece:
            self._tell_left_out()
            self._since, self._logged = now, 0
        *lines, rest = (self._rest + (piece or b"\n")).split(b"\n")
        self._rest = rest[:_LONGEST_LINE]
        room = _LOGGED_LINES - self._logged
        for line in lines[:room]:
            self._keep(line, is_logged=True)
        left = lines[room:]
        self._left_out += len(left)
        for line in left[-_KEPT_LINES:]:
            self._keep(line, is_logged=False)

    def _keep(self, line: bytes, *, is_logged: bool) -> None:
        plain = line[: 4 * _LONGEST_LINE].decode("utf-8", "replace").rstrip()
        text = shortened(printable(plain), _LONGEST_LINE)
        if not text:
            return
        self.lines.append(text)
        if is_logged:
            self._logged += 1
            _log.info("%s: %s", self._name, text)

    def _tell_left_out(self) -> None:
        if self._left_out:
            _log.info("%s: %d more lines", self._name, self._left_out)
        self._left_out = 0
