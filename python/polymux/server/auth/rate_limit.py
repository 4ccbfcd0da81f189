"""Quotas of API keys: a token bucket of requests, and a limit of concurrent requests."""

from __future__ import annotations

import math
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
        #: Available tokens; None until the key has a rate.
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
        """Count one request during the context.

        Args:
            key: The API key; None for public endpoints, which have no quota.
            jobs: Number of the key's jobs without a request, which count too. Default: 0.

        Raises:
            RateLimitError: The rate or the limit of concurrent requests is exceeded.
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

    def count(self, key: Key, requests: int) -> None:
        """Count further requests that one HTTP request contains.

        Raises:
            RateLimitError: The rate is exceeded.
        """
        for _ in range(requests):
            self._take(key, self._use(key))

    def check_jobs(self, key: Key, jobs: int) -> None:
        """Check whether a counted request may start another job.

        Args:
            key: The API key.
            jobs: Number of the key's jobs without a request.

        Raises:
            RateLimitError: The limit of concurrent requests is reached.
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
        # A key that has no rate until now starts with a full bucket.
        left = most if use.left is None else use.left + (now - use.filled_at) * rate / 60
        use.left, use.filled_at = min(most, left), now
        if use.left < 1:
            wait_s = (1 - use.left) * 60 / rate
            raise status_error(
                errors.RateLimitError,
                f"rate limited: this API key allows {rate:g} requests per minute. Try again in "
                f"{math.ceil(wait_s)} s",
                retry_after_s=wait_s,
            )
        use.left -= 1


def _too_many(key: Key) -> errors.RateLimitError:
    return status_error(
        errors.RateLimitError,
        f"rate limited: this API key allows {key.concurrent} concurrent requests and jobs. Try "
        "again after one of them has ended",
        retry_after_s=1,
    )
