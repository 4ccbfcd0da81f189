"""One server of somebody else: its address, this server's key for it, and the connections to it."""

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

#: A gateway does not wait where its caller could, and does not ask for the same work twice.
_ONCE = Retry(0)
_TWICE = Retry(1, first_backoff_s=0.1, max_backoff_s=0.2, max_retry_after_s=0.0, repeatable=True)
MAX_EVENT_BYTES = 1 << 20
_API = "/api/v1"
#: Times in a row that a server was not reached, and how long it is spared then.
_MAX_UNREACHED = 3
_SPARED_S = 2.0


class Breaker:
    """Counts how often a server could not be reached, and spares it after that.

    After three times in a row one request in two seconds goes out, and the others are told at once
    that there is no connection. The first answer, whatever it is, ends that.

    Args:
        clock: Seconds that never go back. Default: `time.monotonic`.

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
        """Whether it is spared."""
        return self._failures >= _MAX_UNREACHED

    def admits(self) -> bool:
        """Whether a request may go out now."""
        if not self.is_open:
            return True
        now = self._clock()
        if now < self._next_at:
            return False
        self._next_at = now + _SPARED_S
        return True

    def count(self, outcome: errors.PolymuxError | None) -> None:
        """Takes note of how a request ended; None where it was answered."""
        unreached = isinstance(outcome, errors.ConnectError) or (
            isinstance(outcome, errors.RequestTimeoutError) and outcome.limit == "connect"
        )
        self._failures = self._failures + 1 if unreached else 0


class UpstreamServer:
    """Requests to one server, over the native transport. Belongs to no event loop.

    Redirects are not followed, the key goes into a header of requests to this server alone, and a
    request that is cancelled closes its connection.

    Args:
        name: As configuration calls it; callers read it in errors.
        base_url: Such as ``"https://api.example/v1"``; the operator's word, so not guarded.
        key: For ``Authorization: Bearer``. Default: none.
        certificates: File of the trusted certificates, PEM. Default: the system's.
        timeout: Deadlines; ``total`` is not for streams. Default: those of `polymux.Timeout`.
        ours: Whether it is a polymux, whose errors mean what ours do. Default: False.
        max_event_bytes: Longest event of a stream that is taken. Default: 1 MiB.

    Attributes:
        name: As given.
        base_url: As given, without a slash at its end; of a polymux without ``/api/v1``.
        host: ``name:port`` of it.
        certificates: As given.

    Raises:
        InvalidRequestError: The address or the key cannot be one.

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
            self.base_url += _API  # Part of another's address, and of all of ours.
        self.host = host_of(self.base_url)
        self.certificates = certificates
        self._key_fields: list[str] = []
        #: As JSON has it; empty if there is no key.
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
        """One request, answered whole.

        Args:
            operation: What it is for.
            method: Such as ``"POST"``.
            path: Behind the base address, from ``/`` on; with its query, encoded.
            body: Bytes, or a form that is made while it is sent. Default: none.
            content_type: Of the body.
            fields: More header lines.
            usual: Deadlines, where the server has none of its own. Default: of short operations.
            repeatable: Whether it may be sent again when it may have been worked on.

        Raises:
            APIStatusError: As callers are told, see `polymux.upstreams.error_mapping.map_error`.
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
        """The same with JSON both ways; what is answered is parsed.

        Raises:
            APIStatusError: As `ask`, and where the answer is no JSON.
        """
        body = None if value is None else core.write_json(value)
        return self.parsed(await self.ask(operation, method, path, body, **how))

    def parsed(self, answer: Answer) -> Any:
        """The JSON of an answer, without this server's key where it is repeated in it.

        Raises:
            InternalServerError: It is none, or none that could be told to others.
        """
        try:
            return self._read(answer.body)
        except (errors.DecodeError, errors.InvalidRequestError):
            raise failed(self.name, "its answer is no JSON") from None

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
        """Whether JSON contains this server's key."""
        return bool(self._key_json) and self._key_json in data

    async def stream_chat(
        self,
        operation: str,
        path: str,
        value: Mapping[str, Any],
    ) -> AsyncChatStream:
        """One request, answered in chunks of a chat.

        What goes wrong between two chunks comes out of the stream as the client's own errors, of
        which `told` makes what callers are told. Closing the stream closes the connection.

        Args:
            operation: What it is for.
            path: Behind the base address.
            value: The request, written as JSON.

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
        """The events of a stream that is asked for by GET: their names, and their JSON.

        Raises:
            APIStatusError: As `ask`; also where the stream breaks off.
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
            raise failed(self.name, "its answer is no JSON") from None
        finally:
            if exchange is not None:
                exchange.close()

    @contextmanager
    def _counted(self, operation: str) -> Iterator[None]:
        """A request: the breaker takes note of its failure, and callers are told of it.

        Raises:
            APIStatusError: As `told` makes it.
        """
        try:
            yield
        except errors.PolymuxError as error:
            if not isinstance(error, errors.APIError):
                self._breaker.count(error)
            raise self.told(error, operation) from None

    def told(self, error: errors.PolymuxError, operation: str) -> errors.PolymuxError:
        """A failure as callers are told of it."""
        return map_error(self.name, error, operation=operation, ours=self._ours)

    def health(self, kind: str) -> Health:
        """Whether it was reached lately; nobody asks it."""
        if self._breaker.is_open:
            return Health("failed", f"upstream ({kind}): there is no connection to it")
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
            # A polymux is asked again for what it may have done already, and does it once.
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
        """The options of a request that may go out now.

        Raises:
            InternalServerError: It may not: the server could not be reached just now.
        """
        if not self._breaker.admits():
            raise failed(self.name, "there was no connection to it just now")
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
        """The deadline for work that is not answered at once, in seconds."""
        return self.deadlines(usual).total or NEVER

    def deadlines(self, usual: Timeout) -> Timeout:
        """The server's own, over those that such work usually has."""
        return self._timeout.over(usual)

    def close(self) -> None:
        """Closes all connections; requests that run end with an error. Idempotent."""
        if self._made is not None:
            self._made.close()


#: Of all answers of a server's life together: each has a limit of its own.
_NO_LIMIT = 1 << 62


class GuardedWay:
    """A guarded proxy of one's own, which begins to listen when it is first needed.

    Requests that the fetcher of `polymux.fetch` cannot make, as they have a body, go by it: name
    and addresses are judged as there, and the connection is made to the judged addresses alone.
    Belongs to one event loop.

    Args:
        policy: What may be reached beyond the public Internet.

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
        """The proxy's address, with its password: a secret."""
        async with self._opening:
            if self._proxy is None:
                self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
                proxy = GuardedProxy(self._policy, _NO_LIMIT)
                await proxy.start(self._folder / "proxy")
                self._proxy = proxy
            return self._proxy.url

    async def close(self) -> None:
        """Ends all connections. Idempotent."""
        proxy, self._proxy = self._proxy, None
        folder, self._folder = self._folder, None
        if proxy is not None:
            await proxy.close()
        if folder is not None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
