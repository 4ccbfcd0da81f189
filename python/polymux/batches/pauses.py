"""Pauses that a server asks for: all threads of a batch keep them together."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from polymux.errors import APIStatusError, ConnectError, OverloadedError, RateLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: After these nothing was done, and the same request may well succeed later.
REFUSALS = (RateLimitError, OverloadedError, ConnectError)
#: How long a server may refuse everything before the batch ends, to be resumed another time.
PATIENCE_S = 900.0
_FIRST_S, _LONGEST_S = 1.0, 60.0


class Pauses:
    """When the next request may be sent.

    Args:
        patience_s: How long nothing may succeed, and the longest pause that is kept.
        clock: Seconds, never jumping.

    Example:
        >>> import polymux
        >>> from polymux.batches.pauses import Pauses
        >>> pauses = Pauses(clock=lambda: 100.0)
        >>> busy = polymux.RateLimitError("too many requests")
        >>> busy.headers = {"retry-after": "7"}
        >>> pauses.refused(busy), pauses.left_s
        (True, 7.0)
    """

    def __init__(
        self, patience_s: float = PATIENCE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """No pause yet."""
        self._patience_s = patience_s
        self._clock = clock
        self._changed = threading.Condition()
        self._until = 0.0
        self._since: float | None = None
        self._refusals = 0
        self._is_over = False
        #: How many requests have succeeded.
        self.successes = 0

    @property
    def left_s(self) -> float:
        """Seconds left of a pause; 0 outside of one. Takes no lock, for `Runner.progress`."""
        return max(0.0, self._until - self._clock())

    def refused(self, error: Exception) -> bool:
        """Takes a refusal: everybody pauses; False where that would be beyond all patience."""
        asked_s = retry_after_s(error.headers) if isinstance(error, APIStatusError) else None
        with self._changed:
            now = self._clock()
            if self._since is None:
                self._since = now
            if max(now - self._since, asked_s or 0.0) > self._patience_s:
                return False
            if now >= self._until:  # Those who were refused together have asked for one pause.
                self._refusals += 1
            if asked_s is None:
                asked_s = min(_LONGEST_S, _FIRST_S * 2 ** (self._refusals - 1))
            self._until = max(self._until, now + asked_s)
            self._changed.notify_all()
            return True

    def succeeded(self) -> None:
        """The server works."""
        with self._changed:
            self._since = None
            self._refusals = 0
            self.successes += 1

    def wait(self) -> bool:
        """Waits while there is a pause; False where the batch is to end."""
        with self._changed:
            while not self._is_over and (left_s := self._until - self._clock()) > 0:
                self._changed.wait(left_s)
            return not self._is_over

    def end(self) -> None:
        """Nobody waits any longer."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait: a number, or until a date (RFC 9110, 10.2.3).

    Example:
        >>> from polymux.batches.pauses import retry_after_s
        >>> retry_after_s({"retry-after-ms": "250"}), retry_after_s({"retry-after": "soon"})
        (0.25, None)
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if text.replace(".", "", 1).isdigit() and text.isascii():
            return float(text) * unit
    try:
        when = parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
