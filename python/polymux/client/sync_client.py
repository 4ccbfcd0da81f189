"""The client: every operation of the interface on a server, one call each."""

from __future__ import annotations

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
    failures_told,
    path_of,
)
from polymux.client.responses import Prediction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self, Unpack

    from polymux.client.chat_stream import ChatStream
    from polymux.client.methods._caller import CallArguments
    from polymux.client.options import Timeout

__all__ = ["PATH", "Client", "Predictions"]


class Predictions(JobRequests):
    """The jobs of a server; `polymux.Client.predictions`."""

    __slots__ = ()

    def get(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """A job as it is now.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
            DecodeError: The answer is no job.
        """
        return Prediction.of_answer(self._ask("GET", path_of(prediction), timeout))

    def list(self, *, timeout: float | Timeout | None = None) -> Iterator[Prediction]:
        """The jobs of the client's key, newest first; further pages are asked for as they are read.

        Args:
            timeout: Seconds that each page may take, or a `Timeout`. Default: the client's.

        Raises:
            APIStatusError: The server refuses or fails.
            DecodeError: A page is no list of jobs, or its `next` leads to no list of them.
        """
        pages = Paginator()
        while (target := pages.target()) is not None:
            yield from pages.read(self._ask("GET", target, timeout))

    def cancel(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Asks for the end of a job, and gives it as it is then.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take, or a `Timeout`. Default: the client's.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
        """
        return Prediction.of_answer(self._ask("POST", f"{path_of(prediction)}/cancel", timeout))

    def events(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Iterator[Prediction]:
        """A job as it changes, from now until its end, as the server tells it by itself.

        Args:
            prediction: The job, or its id.
            timeout: Seconds that this may take in all, or a `Timeout`. Default: the client's; there
                is no limit on the whole then.

        Raises:
            NotFoundError: The server does not know it, or not any more.
            APIStatusError: The server refuses or fails otherwise.
            StreamInterruptedError: The server told no end.
        """
        session = self._connection.session()
        request = self._events_request(prediction, timeout)
        exchange = session.open(*request, "raw")
        news = Events(self._connection, self._settings.max_event_bytes)
        try:
            while not news.ended:
                with failures_told():
                    exchange.wait_for_news()
                ended = exchange.ended
                yield from news.read(exchange.take_bytes())
                if ended:
                    with failures_told():
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
        """Waits for the end of a job.

        Args:
            prediction: The job, or its id.
            on_progress: Called with the job whenever the server tells something new of it, its end
                too. What it raises is raised here; the job goes on.
            timeout: Seconds to wait in all, or a `Timeout`. Default: the client's, else 1,900 s.

        Returns:
            The job that has succeeded.

        Raises:
            PredictionFailedError: It failed or was cancelled; `prediction` is the job.
            RequestTimeoutError: It goes on still.
            APIStatusError: The server refuses or fails.
        """
        watch = JobPoller(self._settings, prediction, timeout, told=on_progress is not None)
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
        with failures_told():
            return checked_answer(Answer(session.perform(*request), self._connection))


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
        max_event_bytes: Longest event of a stream that is taken; a longer one is a
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
        from polymux.client.chat_stream import ChatStream, make_stream

        exchange = call.session.open(*call.arguments(), "chat")
        exchange.wait_for_news()
        call.check_begun(exchange)
        return make_stream(ChatStream, exchange)

    def close(self) -> None:
        """Closes all connections; calls that run end with an error. Idempotent."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
