"""An upstream that cannot be reached is not asked by everybody at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from polymux import errors

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_FAILURES = 3
_PAUSE_S = 2.0


class Breaker:
    """Counts how often a server could not be reached, and spares it after that.

    After three times in a row one request in two seconds goes out, and the others are told at once
    that there is no connection. The first answer, whatever it is, ends that.

    Args:
        clock: Seconds that never go back. Default: `time.monotonic`.

    Example:
        >>> from polymux import errors
        >>> from polymux.upstreams.circuit_breaker import Breaker
        >>> breaker = Breaker(clock=lambda: 0.0)
        >>> for _ in range(3):
        ...     breaker.count(errors.ConnectError("refused"))
        >>> breaker.admits(), breaker.admits(), breaker.is_open
        (True, False, True)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._next_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it is spared."""
        return self._failures >= _MAX_FAILURES

    def admits(self) -> bool:
        """Whether a request may go out now."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_at:
            return False
        self._next_at = now + _PAUSE_S
        return True

    def count(self, outcome: errors.PolymuxError | None) -> None:
        """Takes note of how a request ended; None where it was answered."""
        unreached = isinstance(outcome, errors.ConnectError) or (
            isinstance(outcome, errors.RequestTimeoutError) and outcome.limit == "connect"
        )
        self._failures = self._failures + 1 if unreached else 0
