"""Jobs on a server: looked at, watched, waited for and cancelled."""

from __future__ import annotations

from polymux._answers import Answer
from polymux._looks import (
    PATH,
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
    from collections.abc import Callable, Iterator

    from polymux._connection import Connection
    from polymux._settings import Settings
    from polymux.call_options import Timeout
    from polymux.responses import Prediction

__all__ = ["PATH", "Predictions"]


class Predictions:
    """The jobs of a server; `polymux.Client.predictions`."""

    __slots__ = ("_connection", "_settings")

    def __init__(self, connection: Connection, settings: Settings) -> None:
        """Of a client's connection."""
        self._connection = connection
        self._settings = settings

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
        return as_prediction(self._ask("GET", path_of(prediction), timeout))

    def list(self, *, timeout: float | Timeout | None = None) -> Iterator[Prediction]:
        """The jobs of the client's key, newest first; further pages are asked for as they are read.

        Args:
            timeout: Seconds that each page may take, or a `Timeout`. Default: the client's.

        Raises:
            APIStatusError: The server refuses or fails.
            DecodeError: A page is no list of jobs, or its `next` leads to no list of them.
        """
        pages = Pages()
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
        return as_prediction(self._ask("POST", f"{path_of(prediction)}/cancel", timeout))

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
        request = events_request(self._connection, self._settings, prediction, timeout)
        exchange = session.open(*request, "raw")
        news = Events(self._connection, self._settings.longest_event_bytes)
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
        watch = Watch(self._settings, prediction, timeout, told=on_progress is not None)
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
        request = prediction_request(self._connection, self._settings, method, target, timeout)
        with failures_told():
            return checked_answer(Answer(session.perform(*request), self._connection))
