"""The last resort of a server that was told to stop: by its deadline the process is gone."""

from __future__ import annotations

import os
import select
import threading
import time
from contextlib import suppress

#: How long a second signal leaves for an end in order, and the closing behind the grace takes.
_AT_ONCE_S = 0.7
_CLOSING_S = 0.9


class LastResort:
    """Ends the process where a thread, a disk or an engine keeps it from ending by itself.

    What is lost by that is no more than by SIGKILL, after which a store is whole: engines end with
    the process, and what ran has failed with ``interrupted`` when the store is opened again.

    Args:
        grace_s: How long work may go on after the first signal.
    """

    def __init__(self, grace_s: float) -> None:
        """Begins to watch, on a thread of its own: handlers of signals may start none."""
        self._grace_s = grace_s
        self._told, self._tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        threading.Thread(target=self._watch, name="polymux last resort", daemon=True).start()

    def told(self, status: int = 0) -> None:
        """Notes a signal: the first, which leaves the grace, or another, which leaves no time.

        Args:
            status: What the process ends with, where it has to be ended: up to 255.
        """
        with suppress(OSError):
            os.write(self._tell, bytes((status,)))

    def close(self) -> None:
        """The server has stopped by itself."""
        tell, self._tell = self._tell, -1
        if tell >= 0:
            os.close(tell)

    def _watch(self) -> None:
        try:
            status = self._next(None)
            if status is None:
                return
            until = time.monotonic() + self._grace_s + _CLOSING_S
            try:
                second = self._next(self._grace_s + _CLOSING_S)
                if second is None:
                    return
                status, until = second, min(until, time.monotonic() + _AT_ONCE_S)
                while self._next(max(0.0, until - time.monotonic())) is not None:
                    pass
            except TimeoutError:
                os._exit(status)
        finally:
            os.close(self._told)

    def _next(self, longest_s: float | None) -> int | None:
        """The status that came with the next signal; None at the end of the server."""
        if not select.select([self._told], [], [], longest_s)[0]:
            raise TimeoutError
        data = os.read(self._told, 1)
        return data[0] if data else None
