"""Jobs on a server, for asyncio: looked at, watched, waited for and cancelled."""

from __future__ import annotations

from polymux._answers import Answer
from polymux._looks import (
    Events,
    Pages,
    Watch,
    as_prediction,
    checked_answer,
    events_request,
    failures_told,
    path_of,
    prediction_request,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from polymux._connection import Connection
    from polymux._settings import Settings
    from polymux.call_options import Timeout
    from polymux.responses import Prediction

__all__ = ["AsyncPredictions"]


class AsyncPredictions:
    """The jobs of a server; `polymux.AsyncClient.predictions`, the twin of `Predictions`."""

    __slots__ = ("_connection", "_settings")

    def __init__(self, connection: Connection, settings: Settings) -> None:
        """Of a client's connection."""
        self._connection = connection
        self._settings = settings

    async def get(
        self,
        prediction: Prediction | str,
        *,
        timeout: float | Timeout | None = None,
    ) -> Prediction:
        """A job as it is now; see `Predictions.get`."""
        return as_prediction(await self._ask("GET", path_of(prediction), timeout))

    async def list(
        self,
        *,
        timeout: float | Timeout | None = None,
    ) -> AsyncIterator[Prediction]:
        """The jobs of the client's key; see `Predictions.list`."""
        pages = Pages()
        while (target := pages.target()) is not None:
            for job in pages.read(await self._ask("GET", target, timeout)):
                yield job

    async def cancel(
        self,
        prediction: Prediction | str,
        *,
        timeout: float | Timeout | None = None,
    ) -> Prediction:
        """Asks for the end of a job; see `Predictions.cancel`."""
        return as_prediction(await self._ask("POST", f"{path_of(prediction)}/cancel", timeout))

    async def events(
        self,
        prediction: Prediction | str,
        *,
        timeout: float | Timeout | None = None,
    ) -> AsyncIterator[Prediction]:
        """A job as it changes; see `Predictions.events`."""
        from polymux import _loop

        session = self._connection.session()
        request = events_request(self._connection, self._settings, prediction, timeout)
        exchange = session.start(_loop.port(), *request, "raw")
        news = Events(self._connection, self._settings.longest_event_bytes)
        try:
            while not news.ended:
                with failures_told():
                    await _loop.news(exchange)
                ended = exchange.ended
                for job in news.read(exchange.take_bytes()):
                    yield job
                if ended:
                    with failures_told():
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
        """Waits for the end of a job; see `Predictions.wait`. `on_progress` may be asynchronous."""
        from asyncio import sleep
        from inspect import isawaitable

        watch = Watch(self._settings, prediction, timeout, told=on_progress is not None)
        job = None if isinstance(prediction, str) else prediction
        while True:
            if on_progress is not None and watch.is_news(job):
                said = on_progress(job)
                if isawaitable(said):
                    await said
            if job is not None and job.finished:
                return job.raise_for_status()
            if job is not None:
                await sleep(watch.pause())
            job = await self.get(prediction, timeout=watch.rest())

    async def _ask(self, method: str, target: str, timeout: float | Timeout | None) -> Answer:
        from polymux import _loop

        session = self._connection.session()
        request = prediction_request(self._connection, self._settings, method, target, timeout)
        with failures_told():
            exchange = session.start(_loop.port(), *request, "buffered")
            outcome = await _loop.outcome(exchange, None, None)
            return checked_answer(Answer(outcome, self._connection))
