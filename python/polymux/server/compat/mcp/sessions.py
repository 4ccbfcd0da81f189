"""Which sessions of ``/mcp`` are open, whose they are, and which of them make room for others."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SESSIONS = 1000
MAX_SESSIONS_PER_CALLER = 100
_RETRY_S = 5


@dataclass(slots=True, eq=False)
class OpenSession:
    """A session.

    Attributes:
        name: Its id.
        owner: The caller that has begun it.
        running: How many of its requests are being answered.
    """

    name: str
    owner: str
    running: int = 0


class OpenSessions:
    """The open sessions. A client that finds its own ended begins another, as the protocol has it.

    Those that the SDK has ended meanwhile may still be counted: they are the longest idle, and so
    the first to go.

    Args:
        max_sessions: Of all callers together. Default: 1,000.
        max_per_caller: Of one caller. Default: 100.
    """

    def __init__(
        self, max_sessions: int = MAX_SESSIONS, max_per_caller: int = MAX_SESSIONS_PER_CALLER
    ) -> None:
        self._max_sessions = max_sessions
        self._max_per_caller = max_per_caller
        #: The longest idle first.
        self._open: dict[str, OpenSession] = {}

    def check(self, owner: str) -> None:
        """Before a session is begun: whether there is room, or can be made.

        Raises:
            OverloadedError: There is not: all are at work.
        """
        own = self._of(owner)
        if len(own) >= self._max_per_caller and _idle(own) is None:
            raise _full(f"your key has {len(own)} sessions open")
        everyone = list(self._open.values())
        if len(everyone) >= self._max_sessions and _idle(everyone) is None:
            raise _full(f"{len(everyone)} sessions are open here")

    def add(self, name: str, owner: str) -> list[OpenSession]:
        """A session that was begun; those to be ended for it are counted no more."""
        leaving: list[OpenSession] = []
        for sessions, max_sessions in (
            (self._of(owner), self._max_per_caller),
            (list(self._open.values()), self._max_sessions),
        ):
            idle = _idle(sessions)
            if not leaving and len(sessions) >= max_sessions and idle is not None:
                leaving.append(self._open.pop(idle.name))
        self._open[name] = OpenSession(name, owner)
        return leaving

    def remove(self, name: str, owner: str) -> None:
        """One that has ended."""
        if self._is_of(name, owner):
            del self._open[name]

    @contextmanager
    def used(self, name: str, owner: str) -> Iterator[None]:
        """While a request of a session is answered, it is not idle; another's changes nothing."""
        one = self._open[name] if self._is_of(name, owner) else OpenSession(name, owner)
        one.running += 1
        try:
            yield
        finally:
            one.running -= 1
            if self._open.get(name) is one:
                self._open[name] = self._open.pop(name)

    def _of(self, owner: str) -> list[OpenSession]:
        return [one for one in self._open.values() if one.owner == owner]

    def _is_of(self, name: str, owner: str) -> bool:
        found = self._open.get(name)
        return found is not None and found.owner == owner


def _idle(sessions: list[OpenSession]) -> OpenSession | None:
    """The one that is idle for the longest."""
    return next((one for one in sessions if not one.running), None)


def _full(found: str) -> errors.OverloadedError:
    message = f"{found}, all of them at work, and no more go: ask again later"
    return status_error(errors.OverloadedError, message, retry_after_s=_RETRY_S)
