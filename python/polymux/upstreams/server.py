"""One server of somebody else: its address, this server's key for it, and the connections to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import _loop, errors
from polymux._answers import Answer, status_error
from polymux._calls import SUCCESSES, native_call_options
from polymux._secrets import keep_secret
from polymux.call_options import QUICK, STREAMED, Retry, Timeout
from polymux.chat_stream import opened_async_stream
from polymux.config import checked_base_url, checked_key
from polymux.upstreams.failing import failed, told

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polymux import _core
    from polymux.chat_stream import AsyncChatStream

#: A gateway does not wait where its caller could: only a connection that is not there is tried
#: once more, and that of a kept connection that was closed meanwhile.
_RETRY = Retry(1, first_backoff=0.1, longest_backoff=0.2, longest_retry_after=0.0)


class UpstreamServer:
    """Requests to one server, over the native transport. Belongs to no event loop.

    Redirects are not followed, the key goes into a header of requests to this server alone, and a
    request that is cancelled closes its connection.

    Args:
        name: As configuration calls it; callers read it in errors.
        base_url: Such as ``"https://api.example/v1"``; the operator's word, so not guarded.
        key: For ``Authorization: Bearer``. Default: none.
        fields: More header lines, such as ``("X-Title: mine",)``. Default: none.
        certificates: File of the trusted certificates, PEM. Default: the system's.
        timeout: Deadlines. Default: those of the client, `polymux.Timeout`.

    Raises:
        InvalidRequestError: The address or the key cannot be one.

    Example:
        >>> from polymux.upstreams.server import UpstreamServer
        >>> UpstreamServer("groq", "https://api.groq.example/openai/v1", "gsk-secret")
        UpstreamServer('groq', 'https://api.groq.example/openai/v1')
    """

    def __init__(
        self,
        name: str,
        base_url: str,
        key: str | None = None,
        *,
        fields: Sequence[str] = (),
        certificates: str = "",
        timeout: Timeout | None = None,
    ) -> None:
        """Nothing is connected."""
        self.name = name
        self.base_url = checked_base_url(base_url)
        self._fields = list(fields)
        if key is not None:
            keep_secret(key)
            self._fields.append(f"Authorization: Bearer {checked_key(key)}")
        self._certificates = certificates
        self._timeout = timeout or Timeout()
        self._made: _core.Session | None = None

    def __repr__(self) -> str:
        """Without the key."""
        return f"{type(self).__name__}({self.name!r}, {self.base_url!r})"

    def _session(self) -> _core.Session:
        if self._made is None:
            from polymux._native_core import core
            from polymux._version import __version__

            own = [f"User-Agent: polymux/{__version__}", "Accept: application/json, */*;q=0.1"]
            self._made = core.Session(
                headers=[*own, *self._fields],
                proxy="",
                no_proxy="",
                certificates=self._certificates,
                verify=True,
                http2=True,
            )
        return self._made

    async def ask(
        self,
        operation: str,
        method: str,
        path: str,
        body: bytes | _core.MultipartBody | None = None,
        *,
        content_type: str = "application/json",
        fields: Sequence[str] = (),
        timeout: Timeout | None = None,
        repeatable: bool = False,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> Answer:
        """One request, answered whole.

        Args:
            operation: What it is for.
            method: Such as ``"POST"``.
            path: Behind the base address, from ``/`` on; with its query, encoded.
            body: Bytes, or a form that is made while it is sent. Default: none.
            content_type: Of the body.
            fields: More header lines.
            timeout: Over the server's own. Default: none.
            repeatable: Whether it may be sent again when it may have been worked on.
            on_upload: Called with bytes sent, and bytes in all.

        Raises:
            APIStatusError: As callers are told, see `polymux.upstreams.failing.told`.
        """
        options = self._options(timeout, QUICK, repeatable=repeatable)
        arguments = self._arguments(method, path, body, content_type, fields)
        try:
            exchange = self._session().start(_loop.port(), *arguments, options, "whole")
            answer = Answer(await _loop.outcome(exchange, body, on_upload))
            if answer.status not in SUCCESSES:
                raise status_error(answer)
        except errors.PolymuxError as error:
            raise told(self.name, error, operation=operation) from None
        return answer

    async def ask_json(
        self, operation: str, method: str, path: str, value: Any = None, **how: Any
    ) -> Any:
        """The same with JSON both ways; what is answered is parsed.

        Raises:
            APIStatusError: As `ask`, and where the answer is no JSON.
        """
        from polymux._native_core import core

        body = None if value is None else core.write_json(value)
        answer = await self.ask(operation, method, path, body, **how)
        try:
            return core.parse_json(answer.body)
        except errors.DecodeError:
            raise failed(self.name, "its answer is no JSON") from None

    async def stream_chat(
        self,
        operation: str,
        path: str,
        value: Mapping[str, Any],
        *,
        timeout: Timeout | None = None,
    ) -> AsyncChatStream:
        """One request, answered in chunks of a chat.

        What goes wrong between two chunks comes out of the stream as the client's own errors, of
        which `told` makes what callers are told. Closing the stream closes the connection.

        Raises:
            APIStatusError: As `ask`, before the first chunk.
        """
        from polymux._native_core import core

        body = core.write_json(value)
        accepted = ["Accept: text/event-stream, application/json"]
        arguments = self._arguments("POST", path, body, "application/json", accepted)
        options = self._options(timeout, STREAMED, repeatable=False)
        try:
            exchange = self._session().start(_loop.port(), *arguments, options, "chat")
            await _loop.news(exchange, body)
            head = exchange.head
            if exchange.ended and (head is None or head[0] not in SUCCESSES):
                raise status_error(Answer(exchange.outcome()))
        except errors.PolymuxError as error:
            raise told(self.name, error, operation=operation) from None
        return opened_async_stream(exchange)

    def _options(
        self, timeout: Timeout | None, usual: Timeout, *, repeatable: bool
    ) -> _core.CallOptions:
        own = self._timeout.over(usual)
        retry = _RETRY._replace(repeatable=True) if repeatable else _RETRY
        return native_call_options(own if timeout is None else timeout.over(own), retry)

    def _arguments(
        self,
        method: str,
        path: str,
        body: bytes | _core.MultipartBody | None,
        content_type: str,
        fields: Sequence[str],
    ) -> tuple[str, str, list[str], Any]:
        lines = list(fields)
        if body is not None:
            lines.append(f"Content-Type: {content_type}")
        return method, f"{self.base_url}{path}", lines, body

    def close(self) -> None:
        """Closes all connections; requests that run end with an error. Idempotent."""
        if self._made is not None:
            self._made.close()
