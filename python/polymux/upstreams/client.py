"""HTTP requests to one upstream server: URL, API key, connections and circuit breaker."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import core
from polymux._native.version import __version__
from polymux._util.redaction import redact_json, register_secret
from polymux.client import event_loop
from polymux.client.answer import Answer, status_error
from polymux.client.call import SUCCESSES
from polymux.client.chat_stream import AsyncChatStream, make_stream
from polymux.client.options import NEVER, QUICK, STREAMED, Retry, Timeout, native_options
from polymux.config import checked_base_url, checked_key, host_of
from polymux.downloads.proxy import GuardedProxy
from polymux.service.backend import Health
from polymux.upstreams.error_mapping import failed, map_error
from polymux.upstreams.openai.completions import replace_lone_surrogates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from polymux._native import _core
    from polymux.fetch.fetcher import FetchPolicy

#: The server does not retry on its own: its clients can, and work must not run twice.
_ONCE = Retry(0)
_TWICE = Retry(1, first_backoff_s=0.1, max_backoff_s=0.2, max_retry_after_s=0.0, repeatable=True)
MAX_EVENT_BYTES = 1 << 20
_API = "/api/v1"
#: Consecutive connection failures that open the breaker, and the pause between attempts then.
_MAX_UNREACHED = 3
_SPARED_S = 2.0


class Breaker:
    """A circuit breaker for connection failures.

    After three consecutive failures, only one request in two seconds is sent; the others fail at
    once. Any response from the server closes the breaker.

    Args:
        clock: Returns monotonic seconds. Default: `time.monotonic`.

    Example:
        >>> from polymux import errors
        >>> from polymux.upstreams.client import Breaker
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
        """Whether most requests fail without a connection attempt."""
        return self._failures >= _MAX_UNREACHED

    def admits(self) -> bool:
        """Return whether a request may be sent now."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_at:
            return False
        self._next_at = now + _SPARED_S
        return True

    def count(self, outcome: errors.PolymuxError | None) -> None:
        """Record the outcome of a request; None for any response."""
        unreached = isinstance(outcome, errors.ConnectError) or (
            isinstance(outcome, errors.RequestTimeoutError) and outcome.limit == "connect"
        )
        self._failures = self._failures + 1 if unreached else 0


class UpstreamServer:
    """Sends requests to one server over the native transport. Belongs to no event loop.

    Does not follow redirects. Sends the API key only to this server. A canceled request closes its
    connection.

    Args:
        name: Name in the configuration; appears in errors for clients.
        base_url: Such as ``"https://api.example/v1"``. Not checked by SSRF protection, because the
            operator configured it.
        key: API key for ``Authorization: Bearer``. Default: none.
        certificates: File of trusted certificates (PEM). Default: those of the system.
        timeout: Timeouts; ``total`` does not apply to streams. Default: those of `polymux.Timeout`.
        ours: Whether it is a polymux server, with the same error codes. Default: False.
        max_event_bytes: Maximum size of a stream event in bytes. Default: 1 MiB.

    Attributes:
        name: As given.
        base_url: Without a slash at its end; for a polymux server without ``/api/v1``.
        host: ``name:port`` of `base_url`.
        certificates: As given.

    Raises:
        InvalidRequestError: The URL or the key is invalid.

    Example:
        >>> from polymux.upstreams.client import UpstreamServer
        >>> UpstreamServer("groq", "https://api.groq.example/openai/v1", "gsk-secret")
        UpstreamServer('groq', 'https://api.groq.example/openai/v1')
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None = None,
        *,
        certificates: str = "",
        timeout: Timeout | None = None,
        ours: bool = False,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.name = name
        self.base_url = checked_base_url(base_url)
        if not ours and base_url.rstrip("/").endswith(_API):
            self.base_url += _API  # Only for a polymux server the client adds this part itself.
        self.host = host_of(self.base_url)
        self.certificates = certificates
        self._key_fields: list[str] = []
        #: The key as written in JSON; empty without a key.
        self._key_json = core.write_json(key)[1:-1] if key else b""
        if key is not None:
            self._key_fields.append(f"Authorization: Bearer {checked_key(key)}")
            register_secret(key)
        self._timeout = timeout or Timeout()
        self._ours = ours
        self._max_event_bytes = max_event_bytes
        self._breaker = Breaker()
        self._made: _core.Session | None = None
        self._options_of: dict[tuple[Timeout, bool], _core.CallOptions] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.base_url!r})"

    async def ask(
        self,
        operation: str,
        method: str,
        path: str,
        body: bytes | _core.MultipartBody | None = None,
        *,
        content_type: str = "application/json",
        fields: Sequence[str] = (),
        usual: Timeout = QUICK,
        repeatable: bool = False,
    ) -> Answer:
        """Send one request and return the whole response.

        Args:
            operation: The operation, for error messages.
            method: Such as ``"POST"``.
            path: Path after the base URL, starting with ``/``; with the encoded query.
            body: Bytes, or a form that is generated while it is sent. Default: none.
            content_type: Content type of the body.
            fields: Additional header lines.
            usual: Timeouts that the server does not override. Default: for short operations.
            repeatable: Whether the request may be sent again after it reached the server.

        Raises:
            APIStatusError: See `polymux.upstreams.error_mapping.map_error`.
        """
        options = self._admitted(usual, repeatable=repeatable)
        with self._counted(operation):
            exchange = self._start(method, path, body, content_type, fields, options, "buffered")
            answer = Answer(await event_loop.outcome(exchange, body, None))
            self._breaker.count(None)
            if answer.status not in SUCCESSES:
                raise status_error(answer)
        return answer

    async def ask_json(
        self, operation: str, method: str, path: str, value: Any = None, **how: Any
    ) -> Any:
        """Send a JSON request and return the parsed JSON response.

        Raises:
            APIStatusError: As `ask`; also if the response is not JSON.
        """
        body = None if value is None else core.write_json(value)
        return self.parsed(await self.ask(operation, method, path, body, **how))

    def parsed(self, answer: Answer) -> Any:
        """Parse the JSON of a response, and redact this server's API key in it.

        Raises:
            InternalServerError: The response is not valid JSON.
        """
        try:
            return self._read(answer.body)
        except (errors.DecodeError, errors.InvalidRequestError):
            raise failed(self.name, "its response is not JSON") from None

    def _read(self, data: bytes) -> Any:
        try:
            value = core.parse_json(data)
        except errors.DecodeError:
            whole = replace_lone_surrogates(data)
            if whole == data:
                raise
            value = core.parse_json(whole)
        return redact_json(value) if self.repeats_key(core.write_json(value)) else value

    def repeats_key(self, data: bytes) -> bool:
        """Check whether JSON contains this server's API key."""
        return bool(self._key_json) and self._key_json in data

    async def stream_chat(
        self,
        operation: str,
        path: str,
        value: Mapping[str, Any],
    ) -> AsyncChatStream:
        """Send one request and return its response as a stream of chat chunks.

        Errors between two chunks are the client's own; convert them with `convert_error`. Closing
        the stream closes the connection.

        Args:
            operation: The operation, for error messages.
            path: Path after the base URL.
            value: The request, sent as JSON.

        Raises:
            APIStatusError: As `ask`, before the first chunk.
        """
        body = core.write_json(value)
        accepted = ["Accept: text/event-stream, application/json"]
        options = self._admitted(STREAMED, repeatable=False)
        with self._counted(operation):
            exchange = self._start(
                "POST", path, body, "application/json", accepted, options, "chat"
            )
            await event_loop.news(exchange, body)
            head = exchange.head
            if exchange.ended and (head is None or head[0] not in SUCCESSES):
                answer = Answer(exchange.outcome())
                self._breaker.count(None)
                raise status_error(answer)
        self._breaker.count(None)
        return make_stream(AsyncChatStream, exchange)

    async def events(self, operation: str, path: str) -> AsyncIterator[tuple[str, Any]]:
        """Request a stream by GET, and yield the names and the JSON of its events.

        Raises:
            APIStatusError: As `ask`; also if the stream is interrupted.
        """
        options = self._admitted(STREAMED, repeatable=True)
        accepted = ["Accept: text/event-stream"]
        splitter = core.EventSplitter(self._max_event_bytes)
        exchange = None
        try:
            with self._counted(operation):
                exchange = self._start("GET", path, None, "", accepted, options, "raw")
                ended = False
                while not ended:
                    await event_loop.news(exchange)
                    ended = exchange.ended
                    for kind, data in splitter.feed(exchange.take_bytes()):
                        yield kind, self._read(data)
                answer = Answer(exchange.outcome())
                if answer.status not in SUCCESSES:
                    raise status_error(answer)
        except errors.InvalidRequestError:
            raise failed(self.name, "its response is not JSON") from None
        finally:
            if exchange is not None:
                exchange.close()

    @contextmanager
    def _counted(self, operation: str) -> Iterator[None]:
        """Count the failure of a request in the breaker and convert it for clients.

        Raises:
            APIStatusError: The error converted by `convert_error`.
        """
        try:
            yield
        except errors.PolymuxError as error:
            if not isinstance(error, errors.APIError):
                self._breaker.count(error)
            raise self.convert_error(error, operation) from None

    def convert_error(self, error: errors.PolymuxError, operation: str) -> errors.PolymuxError:
        """Convert an error of this upstream to an error for clients."""
        return map_error(self.name, error, operation=operation, ours=self._ours)

    def health(self, kind: str) -> Health:
        """Return the state of the breaker; sends no request."""
        if self._breaker.is_open:
            return Health("failed", f"upstream ({kind}): cannot connect")
        return Health("ready", f"upstream ({kind})")

    def _start(
        self,
        method: str,
        path: str,
        body: bytes | _core.MultipartBody | None,
        content_type: str,
        fields: Sequence[str],
        options: _core.CallOptions,
        reading: str,
    ) -> _core.Exchange:
        lines = list(fields)
        if body is not None:
            # The key lets a polymux server recognize a retry and run the work only once.
            lines += [f"Content-Type: {content_type}", f"Idempotency-Key: {os.urandom(16).hex()}"]
        url = f"{self.base_url}{path}"
        return self._session().start(event_loop.port(), method, url, lines, body, options, reading)

    def _session(self) -> _core.Session:
        if self._made is None:
            own = [f"User-Agent: polymux/{__version__}", "Accept: application/json, */*;q=0.1"]
            self._made = core.Session(
                headers=[*own, *self._key_fields],
                proxy="",
                no_proxy="",
                certificates=self.certificates,
                verify=True,
                http2=True,
            )
        return self._made

    def _admitted(self, usual: Timeout, *, repeatable: bool) -> _core.CallOptions:
        """Return the options of a request, if the breaker allows it.

        Raises:
            InternalServerError: The breaker is open.
        """
        if not self._breaker.admits():
            raise failed(self.name, "recent connection attempts failed. Try again later")
        found = self._options_of.get((usual, repeatable))
        if found is None:
            timeout = self._timeout.over(usual)
            if usual is STREAMED:
                timeout = timeout._replace(total=NEVER)
            retry = _TWICE if repeatable else _ONCE
            found = native_options(timeout, retry, self._max_event_bytes)
            self._options_of[usual, repeatable] = found
        return found

    def total_s(self, usual: Timeout) -> float:
        """Return the total timeout in seconds for asynchronous work, such as a job."""
        return self.deadlines(usual).total or NEVER

    def deadlines(self, usual: Timeout) -> Timeout:
        """Return the timeouts configured for the server, with `usual` as defaults."""
        return self._timeout.over(usual)

    def close(self) -> None:
        """Close all connections; running requests fail. May be called more than once."""
        if self._made is not None:
            self._made.close()


#: No total limit for the proxy's lifetime, because each response has its own limit.
_NO_LIMIT = 1 << 62


class GuardedWay:
    """An SSRF-checking proxy that starts when it is first needed.

    For requests that `polymux.fetch` cannot send because they have a body. The proxy checks host
    names and addresses in the same way, and connects only to validated addresses. Belongs to one
    event loop.

    Args:
        policy: Allowed hosts beyond the public Internet.

    Example:
        >>> import asyncio
        >>> from polymux.fetch.fetcher import FetchPolicy
        >>> async def main() -> str:
        ...     way = GuardedWay(FetchPolicy())
        ...     try:
        ...         return await way.proxy()
        ...     finally:
        ...         await way.close()
        >>> asyncio.run(main()).startswith("http://polymux:")
        True
    """

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._opening = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._folder: Path | None = None

    async def proxy(self) -> str:
        """Return the proxy URL including its password: a secret."""
        async with self._opening:
            if self._proxy is None:
                self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
                proxy = GuardedProxy(self._policy, _NO_LIMIT)
                await proxy.start(self._folder / "proxy")
                self._proxy = proxy
            return self._proxy.url

    async def close(self) -> None:
        """Close all connections. May be called more than once."""
        proxy, self._proxy = self._proxy, None
        folder, self._folder = self._folder, None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
