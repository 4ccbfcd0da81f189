"""The library's places for answers: whoever wants some waits here, where it can be told to leave.

Within the library, what waits for a place looks at nobody who has left: it would wait to the end of
others' answers, or be ended with the whole process.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.engines.base import Token


class Places:
    """So many. Thread-safe.

    Args:
        count: How many there are.
    """

    def __init__(self, count: int) -> None:
        """All are free."""
        self._free = count
        self._changed = threading.Condition()
        #: Whoever comes first is first: many who want one each would keep out who wants several.
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self, count: int, token: Token) -> Iterator[None]:
        """Waits for some, all at once, and has them as long as the block goes on.

        Args:
            count: How many; no more than there are.
            token: Whose end ends the waiting.

        Raises:
            Cancelled: `token` asked for it.
        """
        token.on_cancel(self._look)
        self._wait(count, token)
        try:
            yield
        finally:
            with self._changed:
                self._free += count
                self._changed.notify_all()

    def _wait(self, count: int, token: Token) -> None:
        own = object()
        with self._changed:
            self._queue.append(own)
            try:
                token.check()
                while self._queue[0] is not own or self._free < count:
                    self._changed.wait()
                    token.check()
                self._free -= count
            finally:
                self._queue.remove(own)
                self._changed.notify_all()

    def _look(self) -> None:
        with self._changed:
            self._changed.notify_all()
