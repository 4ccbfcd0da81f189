"""How much a key may ask for: a bucket of requests that fills again, and so many at once."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polymux.server.auth.api_keys import Key

_MAX_BUCKETS = 10_000


class _Use:
    __slots__ = ("filled_at", "left", "running")

    def __init__(self) -> None:
        #: Requests that may come now; None until the key had a rate.
        self.left: float | None = None
        self.filled_at = 0.0
        self.running = 0


class Quotas:
    """The quotas of all keys."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._uses: dict[str, _Use] = {}

    @contextmanager
    def request(self, key: Key | None, jobs: int = 0) -> Iterator[None]:
        """Room for one request.

        Args:
            key: Whose; None for one that needs no key, and has room.
            jobs: How many of its jobs go on without a request, and have a place each. Default: 0.

        Raises:
            RateLimitError: The key has had too many of late, or has too many at once.
        """
        if key is None:
            yield
            return
        use = self._use(key)
        self._take(key, use)
        if key.concurrent is not None and use.running + jobs >= key.concurrent:
            raise _too_many(key)
        use.running += 1
        try:
            yield
        finally:
            use.running -= 1

    def check_jobs(self, key: Key, jobs: int) -> None:
        """Raises where a request that has its room may begin nothing beside the key's jobs.

        Args:
            key: Whose.
            jobs: How many of its jobs go on without a request.
        """
        if key.concurrent is not None and self._use(key).running + jobs > key.concurrent:
            raise _too_many(key)

    def _use(self, key: Key) -> _Use:
        use = self._uses.get(key.id)
        if use is None:
            if len(self._uses) >= _MAX_BUCKETS:
                self._uses = {name: one for name, one in self._uses.items() if one.running}
            use = self._uses[key.id] = _Use()
        return use

    def _take(self, key: Key, use: _Use) -> None:
        rate = key.requests_per_minute
        if rate is None:
            return
        now, most = self._clock(), max(rate, 1.0)
        # Who has had no rate until now begins with all that this one gives.
        left = most if use.left is None else use.left + (now - use.filled_at) * rate / 60
        use.left, use.filled_at = min(most, left), now
        if use.left < 1:
            wait_s = (1 - use.left) * 60 / rate
            raise status_error(
                errors.RateLimitError,
                f"this key may ask {rate:g} times a minute: ask again in {wait_s:.0f} s",
                retry_after_s=wait_s,
            )
        use.left -= 1


def _too_many(key: Key) -> errors.RateLimitError:
    return status_error(
        errors.RateLimitError,
        f"this key may have {key.concurrent} requests and jobs at once, and has them: ask again "
        "when one has ended",
        retry_after_s=1,
    )
