"""The last crashes of an engine, and the requests and API keys that caused them.

One key must not disable an engine for the others: a request that has crashed it twice is refused,
then the key that sent several of them, and only then the engine is disabled for everybody.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from polymux import errors
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CRASHES = 3
CRASHES_WITHIN_S = 300.0
#: Crashes by the same request after which it is refused.
MAX_CRASHES_OF_REQUEST = 2
_FIRST_PAUSE_S = 0.2


class _Crash(NamedTuple):
    at: float
    owner: str
    digest: str


class Crashes:
    """Counts crashes of the last five minutes. Belongs to one event loop.

    Args:
        name: Name of the engine.
        clock: Returns seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        #: Ends of the process, whatever the cause.
        self._ends: deque[float] = deque(maxlen=MAX_CRASHES)
        #: Ends that no request caused, or requests of different keys. These disable the engine.
        self._own: deque[_Crash] = deque(maxlen=MAX_CRASHES)
        self._caused: list[_Crash] = []

    def record_end(self, *, by_request: bool) -> None:
        """Record that the process has crashed."""
        now = self._clock()
        self._ends.append(now)
        if not by_request:
            self._own.append(_Crash(now, "", ""))

    def record_cause(self, owner: str, digest: str) -> None:
        """Record the request that has crashed the process."""
        crash = _Crash(self._clock(), owner, digest)
        self._caused = [*self._recent(), crash]
        # The engine itself is at fault if it crashes for one key after the other.
        if all(one.owner != owner for one in self._own if crash.at - one.at < CRASHES_WITHIN_S):
            self._own.append(crash)

    def _recent(self) -> list[_Crash]:
        return [one for one in self._caused if self._clock() - one.at < CRASHES_WITHIN_S]

    def has_causes(self, owner: str) -> bool:
        return any(one.owner == owner for one in self._recent())

    def check_request(self, owner: str, digest: str) -> None:
        """Reject a request that has crashed the engine twice.

        Raises:
            UnprocessableEntityError: It has (code ``engine_crashed``).
        """
        same = [one for one in self._recent() if (one.owner, one.digest) == (owner, digest)]
        if len(same) >= MAX_CRASHES_OF_REQUEST:
            raise status_error(
                errors.UnprocessableEntityError,
                f"this request has crashed engine {self._name} {MAX_CRASHES_OF_REQUEST} times and "
                f"is refused for {CRASHES_WITHIN_S / 60:.0f} minutes. Change its input",
                code="engine_crashed",
            )

    @property
    def blocked_s(self) -> float:
        """For how long the engine is disabled for everybody; 0 if it is not."""
        return self._left_s([one.at for one in self._own])

    def _left_s(self, times: list[float]) -> float:
        if len(times) < MAX_CRASHES:
            return 0.0
        return max(0.0, times[-MAX_CRASHES] + CRASHES_WITHIN_S - self._clock())

    @property
    def reason(self) -> str:
        return f"{MAX_CRASHES} crashes in {CRASHES_WITHIN_S:.0f} s"

    @property
    def pause_s(self) -> float:
        """The delay before the next start, which doubles with each crash."""
        count = sum(self._clock() - one < CRASHES_WITHIN_S for one in self._ends)
        return _FIRST_PAUSE_S * 2 ** (count - 1) if count else 0.0

    def blocked_for_s(self, owner: str) -> float:
        """For how long the engine is disabled for an API key; 0 if it is not."""
        of_key = [one.at for one in self._recent() if one.owner == owner]
        return max(self.blocked_s, self._left_s(of_key))

    def check(self, owner: str) -> None:
        """Reject requests of an API key while the engine is disabled for it, or for everybody.

        Raises:
            OverloadedError: The engine is disabled (code ``engine_broken``).
        """
        blocked_s = self.blocked_for_s(owner)
        if blocked_s > 0:
            whose = "" if self.blocked_s > 0 else " with requests of this API key"
            raise status_error(
                errors.OverloadedError,
                f"engine {self._name} has crashed {MAX_CRASHES} times in "
                f"{CRASHES_WITHIN_S / 60:.0f} minutes{whose} and is disabled for a while. Try "
                "again later",
                code="engine_broken",
                retry_after_s=blocked_s,
            )
