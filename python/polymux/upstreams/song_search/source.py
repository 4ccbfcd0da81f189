"""One catalogue of songs: its address, its pace, and how its answers are read."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlencode, urlsplit

from polymux import errors
from polymux._native import core
from polymux._native.version import __version__
from polymux._util.redaction import register_secret
from polymux.client import event_loop
from polymux.client.answer import Answer
from polymux.config import checked_base_url
from polymux.upstreams.error_mapping import reason_of, retry_after_s
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux._native import _core
    from polymux.upstreams.client import GuardedWay
    from polymux.upstreams.song_search.rate_limit import Rate
    from polymux.upstreams.song_search.songs import Song

    #: Method, address, header fields and body.
    _Request = tuple[str, str, list[str], bytes | None]

#: What servers are told of this program.
USER_AGENT = f"polymux/{__version__}"
_OK = 200
_TOO_MANY = 429
_REFUSED = 403
#: By these a catalogue says that it cannot look for this text.
_REFUSALS = frozenset({400, 414, 422})
_CONNECT_MS = 5000
#: A connection that rested so long may have been closed by the other side.
_IDLE_S = 1.0
#: Fifty songs take a tenth of it.
_MAX_ANSWER_BYTES = 4 << 20


class CatalogueServer:
    """The server of a catalogue, over the native transport. Belongs to no event loop.

    Redirects are not followed. A request is sent once: how often is the affair of `rate_limit`.

    Args:
        limited: Statuses, beside 429, by which it says that it is asked too often.
        refusals: Statuses by which it says that it cannot look for a text.
        way: Goes by this one, which judges where the address leads. Default: by none.

    Raises:
        InvalidRequestError: The address cannot be one.
    """

    def __init__(
        self,
        base_url: str,
        timeout_s: float,
        user_agent: str,
        limited: frozenset[int],
        refusals: frozenset[int] = _REFUSALS,
        way: GuardedWay | None = None,
    ) -> None:
        self._base_url = checked_base_url(base_url)
        self._user_agent = user_agent
        self._limited = limited
        self._refusals = refusals
        self._way = way
        self._timeout_ms = max(1, round(timeout_s * 1000))
        self._kept: _core.Session | None = None
        self._answered_at = math.inf

    def close(self) -> None:
        """Closes all connections; requests that run end with an error. Idempotent."""
        if self._kept is not None:
            self._kept.close()

    async def ask(
        self, path: str, body: bytes | None = None, headers: Sequence[str] = (), proxy: str = ""
    ) -> Any:
        """What it answers, parsed. Cancelled, the connection is closed.

        Args:
            path: Behind its address, with the query.
            body: JSON, for a request that asks and changes nothing: it is sent again where a kept
                connection was closed. Default: none, for GET.
            headers: Fields beside those that every request has, such as ``"Name: value"``.
            proxy: Goes through this one, on a connection of its own. Default: through none.

        Raises:
            ProviderError: There is no answer, or it is no JSON.
        """
        fields = [] if body is None else ["Content-Type: application/json", *headers]
        request = "GET" if body is None else "POST", f"{self._base_url}{path}", fields, body
        try:
            if proxy:
                answer = await self._ask_through(proxy, request)
            else:
                answer = await self._ask_kept(request)
        except errors.RequestTimeoutError:
            raise ProviderError(ErrorKind.LATE, "it did not answer in time") from None
        except errors.PolymuxError as error:
            raise ProviderError(ErrorKind.FAILED, reason_of(error)) from None
        self._check(answer)
        try:
            return core.parse_json(answer.body)
        except errors.DecodeError:
            raise ProviderError(ErrorKind.FAILED, "its answer is no JSON") from None

    async def _ask_kept(self, request: _Request) -> Answer:
        if self._kept is None:
            self._kept = self._session("" if self._way is None else await self._way.proxy())
        idle_s = time.monotonic() - self._answered_at
        try:
            answer = await self._ask(self._kept, request)
        except errors.ConnectionLostError:
            if idle_s < _IDLE_S:
                raise
            # It was closed in the moment that it was used again: nobody has seen the request.
            answer = await self._ask(self._kept, request)
        self._answered_at = time.monotonic()
        return answer

    async def _ask_through(self, proxy: str, request: _Request) -> Answer:
        password = urlsplit(proxy).password
        register_secret(password, password and unquote(password))
        session = self._session(proxy)
        try:
            return await self._ask(session, request)
        finally:
            session.close()

    def _session(self, proxy: str) -> _core.Session:
        return core.Session(
            headers=[f"User-Agent: {self._user_agent}", "Accept: application/json, */*;q=0.1"],
            proxy=proxy,
            no_proxy="",
            certificates="",
            verify=True,
            http2=True,
        )

    async def _ask(self, session: _core.Session, request: _Request) -> Answer:
        options = core.CallOptions(
            connect_ms=min(_CONNECT_MS, self._timeout_ms),
            write_ms=self._timeout_ms,
            first_byte_ms=None,
            idle_ms=self._timeout_ms,
            event_ms=None,
            total_ms=self._timeout_ms,
            max_retries=0,
            first_backoff_ms=0,
            max_backoff_ms=0,
            max_retry_after_ms=0,
            repeatable=False,
            max_answer_bytes=_MAX_ANSWER_BYTES,
            max_event_bytes=_MAX_ANSWER_BYTES,
        )
        exchange = session.start(event_loop.port(), *request, options, "buffered")
        return Answer(await event_loop.outcome(exchange, None, None))

    def _check(self, answer: Answer) -> None:
        status, headers = answer.status, answer.headers
        if status == _OK:
            return
        if self._way is not None and "proxy-status" in headers:
            reason = (
                "its address is refused" if status == _REFUSED else "there is no connection to it"
            )
            raise ProviderError(ErrorKind.FAILED, reason)
        if status == _TOO_MANY or status in self._limited:
            raise ProviderError(
                ErrorKind.LIMITED, "it wants to be asked less often", retry_after_s(headers)
            )
        if status in self._refusals:
            reason = f"it refuses this text (status {status})"
            raise ProviderError(ErrorKind.REFUSED, reason, counts=False)
        if 300 <= status < 400:
            raise ProviderError(ErrorKind.FAILED, f"it points elsewhere (status {status})")
        raise ProviderError(
            ErrorKind.FAILED, f"it answered with status {status}", retry_after_s(headers)
        )


class SongSource(ABC):
    """A catalogue of songs.

    Attributes:
        name: As settings and logs call it.
        rate: How often it may be asked.
        limited: Statuses, beside 429, by which it says that it is asked too often.

    Args:
        country: Whose catalogue, by its two letters; empty where there is one for all.
    """

    name: ClassVar[str]
    rate: ClassVar[Rate]
    limited: ClassVar[frozenset[int]] = frozenset()

    def __init__(
        self, base_url: str, timeout_s: float, country: str = "", *, agent: str = USER_AGENT
    ) -> None:
        self._country = country.upper()
        self._server = CatalogueServer(base_url, timeout_s, agent, self.limited)

    async def search(self, text: str, limit: int, proxy: str = "") -> list[Song]:
        """Songs by name, best first; an empty list where there are none.

        Raises:
            ProviderError: It has not answered, or not as its interface says.
        """
        answer = await self._server.ask(self.path(text, limit), proxy=proxy)
        return self.songs(answer, limit)

    @abstractmethod
    def path(self, text: str, limit: int) -> str:
        """Where that is asked for, behind the base address."""

    @abstractmethod
    def songs(self, answer: Any, limit: int) -> list[Song]:
        """The songs in an answer.

        Raises:
            ProviderError: It is not what the interface has.
        """

    def close(self) -> None:
        self._server.close()


def with_query(path: str, query: Mapping[str, object]) -> str:
    return f"{path}?{urlencode(query)}"


def member(value: object, *names: str) -> object:
    """A member of a member of an object; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
