"""The client: every operation of the interface on a server, one call each."""

from __future__ import annotations

from time import monotonic

from polymux.client.base import ClientBase
from polymux.client.methods.synchronous import Operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from polymux.client.call import Call
    from polymux.client.chat_stream import ChatStream
    from polymux.client.options import Timeout
    from polymux.client.responses import Prediction
    from polymux.predictions import Predictions

__all__ = ["Client"]

#: Loaded by the first call, as making a client costs nothing; and once, as calls come often.
_calls: Any = None


def _load() -> None:
    global _calls
    import polymux.client.call as loaded

    _calls = loaded


class Client(ClientBase, Operations):
    """Speaks to a server of the interface.

    One client serves any number of threads, and children of a fork too; a stream belongs to one
    reader at a time, and any thread may close it. Making a client costs nothing and touches
    nothing: files and the network are first looked at by the first request.

    Args:
        base_url: The server's address, such as ``"https://server.example:8443"``. Default:
            ``POLYMUX_BASE_URL``, then the configuration file.
        api_key: The server's key. Default: ``POLYMUX_API_KEY``, then the configuration file.
        timeout: Seconds that a call may take in all, or a `Timeout`. Default: see there.
        retry: How often a request is sent again at most, or a `Retry`. Default: see there.
        chat_model: Model of chats that name none. Default: ``POLYMUX_CHAT_MODEL``, then the
            configuration file, then the server's own.
        headers: Header fields for every request, in place of the client's own of the same names.
        paths: Operation to path, for servers that have an operation somewhere else, such as
            ``{"chat": "/v1/chat/completions"}``.
        proxy: Address of a proxy: http, https or socks. Default: ``POLYMUX_PROXY``, then the
            configuration file, then none.
        trust_env: Whether a proxy that the environment names is used. Default: False.
        verify: Whether the server's certificate must be trusted, or the file of certificates (PEM)
            that are. Default: True, with those of ``POLYMUX_CA_FILE``, then of ``ca_file`` in the
            configuration file, then of the system.
        client_certificate: File of a certificate to show to the server, together with its key
            (PEM, without a pass phrase). Default: ``POLYMUX_CLIENT_CERTIFICATE``, then the
            configuration file, then none.
        http2: Whether to speak HTTP/2 with servers that offer it over TLS. Default: True.
        longest_event_bytes: Longest event of a stream that is taken; a longer one is a
            `DecodeError`. Default: 16 MiB; at most 1 GiB.

    Raises:
        InvalidRequestError: An address, key or header field that cannot be one.

    Example:
        >>> import polymux
        >>> with polymux.Client("http://127.0.0.1:8000", "secret") as client:
        ...     print(client)
        Client('http://127.0.0.1:8000')
    """

    @property
    def predictions(self) -> Predictions:
        """The server's jobs: `get`, `list`, `cancel`, `events`, `wait`."""
        from polymux.predictions import Predictions

        return Predictions(self._connection, self._settings)

    def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Any:
        if _calls is None:
            _load()
        started = monotonic()
        session = self._connection.session()
        call: Call = _calls.Call(
            self._connection,
            self._settings,
            self._plans,
            operation,
            values,
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            wait=wait,
            watched=on_progress is not None,
        )
        arguments = call.arguments()
        try:
            if call.stream:
                return self._stream(call, session.open(*arguments, "chat"))
            answer = call.answer(session.perform(*arguments))
        except Exception as error:
            call.tell_failure(error, started)
            raise
        job = call.job(answer)
        if job is None:
            return call.result(answer)
        if not wait and not job.finished:
            return job
        if on_progress is not None or not job.finished:
            rest = call.rest(started)
            job = self.predictions.wait(job, on_progress=on_progress, timeout=rest)
        return call.result_of_job(job.raise_for_status())

    def _stream(self, call: Call, exchange: Any) -> ChatStream:
        from polymux.client.chat_stream import opened_stream

        exchange.wait_for_news()
        call.check_begun(exchange)
        return opened_stream(exchange)

    def close(self) -> None:
        """Closes all connections; calls that run end with an error. Idempotent."""
        self._connection.close()

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes."""
        self.close()
