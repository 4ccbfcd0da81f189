"""The asyncio client of a polymux server: one coroutine for each operation."""

from __future__ import annotations

from polymux._util.imports import IMPORTING
from polymux.client import event_loop
from polymux.client.answer import Answer
from polymux.client.base import ClientBase
from polymux.client.call import Call
from polymux.client.methods.asynchronous import AsyncOperations
from polymux.client.polling import (
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
    from collections.abc import AsyncIterator, Callable
    from typing import Any, Self, Unpack

    from polymux._native import _core
    from polymux.client.chat_stream import AsyncChatStream
    from polymux.client.methods._caller import CallArguments
    from polymux.client.options import Timeout

__all__ = ["AsyncClient", "AsyncPredictions"]


class AsyncPredictions(JobRequests):
    """Manage the jobs of a server. `polymux.AsyncClient.predictions` returns it."""

    __slots__ = ()

    async def get(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Get a job; see `Predictions.get`."""
        return Prediction.of_answer(await self._ask("GET", path_of(prediction), timeout))

    async def list(self, *, timeout: float | Timeout | None = None) -> AsyncIterator[Prediction]:
        """List the jobs of the client's API key; see `Predictions.list`."""
        pages = Paginator()
        while (target := pages.target()) is not None:
            for job in pages.read(await self._ask("GET", target, timeout)):
                yield job

    async def cancel(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> Prediction:
        """Cancel a job; see `Predictions.cancel`."""
        return Prediction.of_answer(
            await self._ask("POST", f"{path_of(prediction)}/cancel", timeout)
        )

    async def events(
        self, prediction: Prediction | str, *, timeout: float | Timeout | None = None
    ) -> AsyncIterator[Prediction]:
        """Stream a job's changes; see `Predictions.events`."""
        session = self._connection.session()
        request = self._events_request(prediction, timeout)
        exchange = session.start(event_loop.port(), *request, "raw")
        news = Events(self._connection, self._settings.max_event_bytes)
        try:
            while not news.ended:
                with log_failures():
                    await event_loop.news(exchange)
                ended = exchange.ended
                for job in news.read(exchange.take_bytes()):
                    yield job
                if ended:
                    with log_failures():
                        checked_answer(Answer(exchange.outcome(), self._connection))
                        news.finish()
        finally:
            exchange.close()

    async def wait(
        self,
        prediction: Prediction | str,
        *,
        on_progress: Callable[[Prediction], object] | None = None,
        timeout: float | Timeout | None = None,
    ) -> Prediction:
        """Wait until a job ends; see `Predictions.wait`. `on_progress` may be asynchronous."""
        from asyncio import sleep
        from inspect import isawaitable

        watch = JobPoller(self._settings, prediction, timeout, has_callback=on_progress is not None)
        job = None if isinstance(prediction, str) else prediction
        while True:
            if on_progress is not None and watch.is_news(job):
                result = on_progress(job)
                if isawaitable(result):
                    await result
            if job is not None and job.finished:
                return job.raise_for_status()
            if job is not None:
                await sleep(watch.pause())
            job = await self.get(prediction, timeout=watch.rest())

    async def _ask(self, method: str, target: str, timeout: float | Timeout | None) -> Answer:
        session = self._connection.session()
        request = self._request(method, target, timeout)
        with log_failures():
            exchange = session.start(event_loop.port(), *request, "buffered")
            outcome = await event_loop.outcome(exchange, None, None)
            return checked_answer(Answer(outcome, self._connection))


class AsyncClient(ClientBase, AsyncOperations):
    """Client of a polymux server for asyncio.

    Tasks, event loops and threads can share one client: a background thread, which starts with the
    first request, does the network I/O. Only one task at a time may read a stream, but any task may
    close it. The arguments are those of `polymux.Client`.

    Example:
        >>> import asyncio
        >>> import polymux
        >>> async def main() -> None:
        ...     async with polymux.AsyncClient("http://127.0.0.1:8000", "secret") as client:
        ...         print(client)
        >>> asyncio.run(main())
        AsyncClient('http://127.0.0.1:8000')
    """

    @property
    def predictions(self) -> AsyncPredictions:
        """The server's jobs: `get`, `list`, `cancel`, `events` and `wait`."""
        return AsyncPredictions(self._connection, self._settings)

    async def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        call = Call(
            self._connection, self._settings, self._plans, operation, values, **arguments,
            awaited=True,
        )  # fmt: skip
        try:
            exchange = call.session.start(
                event_loop.port(), *call.arguments(), "chat" if call.stream else "buffered"
            )
            if call.stream:
                return await self._stream(call, exchange)
            answer = call.answer(await event_loop.outcome(exchange, call.body, call.on_upload))
        except Exception as error:
            call.tell_failure(error)
            raise
        job = call.job(answer)
        if job is None:
            return call.result(answer)
        if not call.wait and not job.finished:
            return job
        if call.on_progress is not None or not job.finished:
            job = await self.predictions.wait(
                job, on_progress=call.on_progress, timeout=call.rest()
            )
        return call.result_of_job(job.raise_for_status())

    async def _stream(self, call: Call, exchange: _core.Exchange) -> AsyncChatStream:
        with IMPORTING:
            from polymux.client.chat_stream import AsyncChatStream, make_stream

        await event_loop.news(exchange, call.body, call.on_upload)
        call.check_begun(exchange)
        return make_stream(AsyncChatStream, exchange)

    async def aclose(self) -> None:
        """Close all connections. Running calls fail. Idempotent."""
        self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
