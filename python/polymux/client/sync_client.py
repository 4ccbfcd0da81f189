"""The synchronous client of a polymux server: one method for each operation."""

from __future__ import annotations

from polymux._util.imports import IMPORTING
from polymux.client.answer import Answer
from polymux.client.base import ClientBase
from polymux.client.call import Call
from polymux.client.methods.synchronous import Operations
from polymux.client.polling import (
    PATH,
    Events,
    JobPoller,
    JobRequests,
    Paginator,
    checked_answer,
    log_failures,
    path_of,
)
from polymux.client.responses import Prediction

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self, Unpack

    from polymux.client.chat_stream import ChatStream
    from polymux.client.methods._caller import CallArguments
    from polymux.client.options import Timeout

__all__ = ["PATH", "Client", "Predictions"]


class Predictions(JobRequests):
    """Manage the jobs of a server. `polymux.Client.predictions` returns it."""

    __slots__ = ()

    def get(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Get a job.

        Args:
            prediction: The job, or its ID.
            timeout: Total timeout in seconds, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The job does not exist.
            APIStatusError: The server returned another error.
            DecodeError: The response is not a job.
        """
        return Prediction.of_answer(self._ask("GET", path_of(prediction), timeout))

    def list(self, *, timeout: float | Timeout | None = None) -> Iterator[Prediction]:
        """List the jobs of the client's API key, newest first. Loads further pages as needed.

        Args:
            timeout: Total timeout of each page in seconds, or a `Timeout`. Default: the client's.

        Raises:
            APIStatusError: The server returned an error.
            DecodeError: A page is not a list of jobs, or its `next` is not a URL of such a list.
        """
        pages = Paginator()
        while (target := pages.target()) is not None:
            yield from pages.read(self._ask("GET", target, timeout))

    def cancel(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Cancel a job and return its state after the request.

        Args:
            prediction: The job, or its ID.
            timeout: Total timeout in seconds, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The job does not exist.
            APIStatusError: The server returned another error.
        """
        return Prediction.of_answer(self._ask("POST", f"{path_of(prediction)}/cancel", timeout))

    def events(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Iterator[Prediction]:
        """Stream a job's changes until it ends, as server-sent events.

        Args:
            prediction: The job, or its ID.
            timeout: Total timeout in seconds, or a `Timeout`. Default: the client's, without a
                limit on the total.

        Raises:
            NotFoundError: The job does not exist.
            APIStatusError: The server returned another error.
            StreamInterruptedError: The stream ended before the job.
        """
        session = self._connection.session()
        request = self._events_request(prediction, timeout)
        exchange = session.open(*request, "raw")
        news = Events(self._connection, self._settings.max_event_bytes)
        try:
            while not news.ended:
                with log_failures():
                    exchange.wait_for_news()
                ended = exchange.ended
                yield from news.read(exchange.take_bytes())
                if ended:
                    with log_failures():
                        checked_answer(Answer(exchange.outcome(), self._connection))
                        news.finish()
        finally:
            exchange.close()

    def wait(
        self,
        prediction: Prediction | str,
        *,
        on_progress: Callable[[Prediction], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Prediction:
        """Wait until a job ends.

        Args:
            prediction: The job, or its ID.
            on_progress: Called with the job after each change, including its end. An exception from
                it is raised here; the job continues.
            timeout: Total timeout in seconds, or a `Timeout`. Default: the client's, else 1,900 s.

        Returns:
            The job, which has succeeded.

        Raises:
            PredictionFailedError: The job failed or was canceled; `prediction` is the job.
            RequestTimeoutError: The job is still running.
            APIStatusError: The server returned an error.
        """
        watch = JobPoller(self._settings, prediction, timeout, has_callback=on_progress is not None)
        job = None if isinstance(prediction, str) else prediction
        from time import sleep

        while True:
            if on_progress is not None and watch.is_news(job):
                on_progress(job)
            if job is not None and job.finished:
                return job.raise_for_status()
            if job is not None:
                sleep(watch.pause())
            job = self.get(prediction, timeout=watch.rest())

    def _ask(self, method: str, target: str, timeout: float | Timeout | None) -> Answer:
        session = self._connection.session()
        request = self._request(method, target, timeout)
        with log_failures():
            return checked_answer(Answer(session.perform(*request), self._connection))


class Client(ClientBase, Operations):
    """Client of a polymux server.

    Threads, and child processes after a fork, can share one client. Only one thread at a time may
    read a stream, but any thread may close it. Creating a client reads no files and opens no
    connections: the first request does.

    Args:
        base_url: The server's URL, such as ``"https://server.example:8443"``. Default:
            ``POLYMUX_BASE_URL``, then the configuration file.
        api_key: API key of the server. Default: ``POLYMUX_API_KEY``, then the configuration file.
        timeout: Total timeout of a call in seconds, or a `Timeout`. Default: see `Timeout`.
        retry: Maximum number of retries, or a `Retry`. Default: see `Retry`.
        chat_model: Default model of chats. Default: ``POLYMUX_CHAT_MODEL``, then the configuration
            file, then the server's default.
        headers: Header fields for every request. They override the client's own.
        paths: Custom paths of operations, such as ``{"chat": "/v1/chat/completions"}``.
        proxy: URL of an http, https or socks proxy. Default: ``POLYMUX_PROXY``, then the
            configuration file, then none.
        trust_env: Whether to use a proxy from the environment variables. Default: False.
        verify: Whether to verify the server's certificate, or a file of trusted CA certificates
            (PEM). Default: True, with the CA certificates of ``POLYMUX_CA_FILE``, then of
            ``ca_file`` in the configuration file, then of the system.
        client_certificate: File with a client certificate and its key (PEM, without a passphrase).
            Default: ``POLYMUX_CLIENT_CERTIFICATE``, then the configuration file, then none.
        http2: Whether to use HTTP/2 if the server offers it over TLS. Default: True.
        max_event_bytes: Maximum size of a stream's event in bytes; larger events raise
            `DecodeError`. Default: 16 MiB; at most 1 GiB.

    Raises:
        InvalidRequestError: An invalid URL, key or header field.

    Example:
        >>> import polymux
        >>> with polymux.Client("http://127.0.0.1:8000", "secret") as client:
        ...     print(client)
        Client('http://127.0.0.1:8000')
    """

    @property
    def predictions(self) -> Predictions:
        """The server's jobs: `get`, `list`, `cancel`, `events` and `wait`."""
        return Predictions(self._connection, self._settings)

    def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        call = Call(self._connection, self._settings, self._plans, operation, values, **arguments)
        try:
            if call.stream:
                return self._stream(call)
            answer = call.answer(call.session.perform(*call.arguments()))
        except Exception as error:
            call.tell_failure(error)
            raise
        job = call.job(answer)
        if job is None:
            return call.result(answer)
        if not call.wait and not job.finished:
            return job
        if call.on_progress is not None or not job.finished:
            job = self.predictions.wait(job, on_progress=call.on_progress, timeout=call.rest())
        return call.result_of_job(job.raise_for_status())

    def _stream(self, call: Call) -> ChatStream:
        with IMPORTING:
            from polymux.client.chat_stream import ChatStream, make_stream

        exchange = call.session.open(*call.arguments(), "chat")
        exchange.wait_for_news()
        call.check_begun(exchange)
        return make_stream(ChatStream, exchange)

    def close(self) -> None:
        """Close all connections. Running calls fail. Idempotent."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
