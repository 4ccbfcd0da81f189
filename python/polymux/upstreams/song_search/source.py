"""Base of song search services: requests, rate limits and parsing of answers."""

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

    #: Method, URL, header fields and body.
    _Request = tuple[str, str, list[str], bytes | None]

#: User-Agent of requests to external services.
USER_AGENT = f"polymux/{__version__}"
_OK = 200
_TOO_MANY = 429
_REFUSED = 403
#: Statuses by which a service rejects a search text.
_REFUSALS = frozenset({400, 414, 422})
_CONNECT_MS = 5000
#: After this idle time, the server may have closed the connection.
_IDLE_S = 1.0
#: Fifty songs need a tenth of it.
_MAX_ANSWER_BYTES = 4 << 20


class ProviderClient:
    """Sends requests to a service over the native transport. Belongs to no event loop.

    Does not follow redirects and does not retry; `rate_limit` controls the frequency.

    Args:
        limited: Statuses, besides 429, that mean rate limited.
        refusals: Statuses that mean the search text was rejected.
        way: SSRF-checking proxy for all requests. Default: connect directly.

    Raises:
        InvalidRequestError: The URL is invalid.
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
        """Close all connections; running requests fail. May be called more than once."""
        if self._kept is not None:
            self._kept.close()

    async def ask(
        self, path: str, body: bytes | None = None, headers: Sequence[str] = (), proxy: str = ""
    ) -> Any:
        """Send a request and return its parsed answer. Cancellation closes the connection.

        Args:
            path: Path after the base URL, with the query.
            body: JSON of a request without side effects: it is sent again if an idle connection was
                closed. Default: none, for GET.
            headers: Additional header lines of POST requests, such as ``"Name: value"``.
            proxy: Use this proxy on a separate connection. Default: none.

        Raises:
            ProviderError: The request failed, or its response is not JSON.
        """
        fields = [] if body is None else ["Content-Type: application/json", *headers]
        request = "GET" if body is None else "POST", f"{self._base_url}{path}", fields, body
        try:
            if proxy:
                answer = await self._ask_through(proxy, request)
            else:
                answer = await self._ask_kept(request)
        except errors.RequestTimeoutError:
            raise ProviderError(ErrorKind.LATE, "timed out") from None
        except errors.PolymuxError as error:
            raise ProviderError(ErrorKind.FAILED, reason_of(error)) from None
        self._check(answer)
        try:
            return core.parse_json(answer.body)
        except errors.DecodeError:
            raise ProviderError(ErrorKind.FAILED, "its response is not JSON") from None

    async def _ask_kept(self, request: _Request) -> Answer:
        if self._kept is None:
            self._kept = self._session("" if self._way is None else await self._way.proxy())
        idle_s = time.monotonic() - self._answered_at
        try:
            answer = await self._ask(self._kept, request)
        except errors.ConnectionLostError:
            if idle_s < _IDLE_S:
                raise
            # The idle connection was closed while it was reused: the server has not processed it.
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
            reason = "its URL is not allowed" if status == _REFUSED else "cannot connect to it"
            raise ProviderError(ErrorKind.FAILED, reason)
        if status == _TOO_MANY or status in self._limited:
            raise ProviderError(
                ErrorKind.LIMITED, "rate limited by the service", retry_after_s(headers)
            )
        if status in self._refusals:
            reason = f"it rejected this text (status {status})"
            raise ProviderError(ErrorKind.REFUSED, reason, counts=False)
        if 300 <= status < 400:
            raise ProviderError(ErrorKind.FAILED, f"unexpected redirect (status {status})")
        raise ProviderError(
            ErrorKind.FAILED, f"it returned status {status}", retry_after_s(headers)
        )


class SongSource(ABC):
    """A song search service.

    Attributes:
        name: Name in settings and logs.
        rate: Rate limit of requests.
        limited: Statuses, besides 429, that mean rate limited.

    Args:
        country: Two-letter country code; empty if the service does not distinguish countries.
    """

    name: ClassVar[str]
    rate: ClassVar[Rate]
    limited: ClassVar[frozenset[int]] = frozenset()

    def __init__(
        self, base_url: str, timeout_s: float, country: str = "", *, agent: str = USER_AGENT
    ) -> None:
        self._country = country.upper()
        self._client = ProviderClient(base_url, timeout_s, agent, self.limited)

    async def search(self, text: str, limit: int, proxy: str = "") -> list[Song]:
        """Search songs by name, best first; an empty list if nothing was found.

        Raises:
            ProviderError: The service did not respond, or its response is invalid.
        """
        answer = await self._client.ask(self.path(text, limit), proxy=proxy)
        return self.songs(answer, limit)

    @abstractmethod
    def path(self, text: str, limit: int) -> str:
        """Return the path and query of a search, after the base URL."""

    @abstractmethod
    def songs(self, answer: Any, limit: int) -> list[Song]:
        """Return the songs of an answer.

        Raises:
            ProviderError: The answer is invalid.
        """

    def close(self) -> None:
        self._client.close()


def with_query(path: str, query: Mapping[str, object]) -> str:
    return f"{path}?{urlencode(query)}"


def member(value: object, *names: str) -> object:
    """Return a nested member of an object, or None if missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
